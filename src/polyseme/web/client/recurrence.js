/**
 * Questions that this device has answered before: two independent sets of one answer can be intersected. What is
 * remembered, and what counts as the same question, is in `polyseme.device.queue` in Python.
 */

import { stratumOf } from "./strata.js";

/**
 * @typedef {{name: string, labels: number[], drawn: string}} Asked a question for which a set was sent: the smallest
 *   hashes of its labels, and what a sticky set was drawn from
 */

const KEPT = 64;
/** Domains with fewer labels, such as yes and no, are those of too many questions. */
const FEW = 5;

/** @param {unknown} text */
const plain = (text) => String(text).normalize("NFKC").toLowerCase().split(/\s+/).filter(Boolean).join(" ");

/** FNV-1a, twice 26 bits. @param {string} text */
function hash(text) {
  let [low, high] = [0x811c9dc5, 0x1000193];
  for (let at = 0; at < text.length; at++) {
    low = Math.imul(low ^ text.charCodeAt(at), 0x1000193);
    high = Math.imul(high ^ low, 0x85ebca6b);
  }
  return (low >>> 6) * 2 ** 26 + (high >>> 6);
}

/** @param {Iterable<number>} hashes */
const smallest = (hashes) => [...new Set(hashes)].sort((one, other) => one - other).slice(0, KEPT);

/**
 * The protected questions of a report.
 * @param {import("./campaign.js").Campaign} campaign @param {import("./report.js").Report} report
 * @returns {Asked[]}
 */
export const askedBy = (campaign, report) =>
  campaign.protected.map(({ name, labels, placing, strata }) => {
    const number = stratumOf(placing, report.open);
    const drawn = campaign.collection.draws === "sticky" ? `${strata[number].fingerprint} ${number}` : "";
    return { name, labels: smallest(labels.map((label) => hash(plain(label)))), drawn };
  });

/**
 * Whether a set for one question could be intersected with that for an earlier one.
 * @param {Asked} one @param {Asked} earlier
 */
export function addsTo(one, earlier) {
  const all = smallest([...one.labels, ...earlier.labels]);
  const common = all.filter((label) => one.labels.includes(label) && earlier.labels.includes(label)).length;
  const alike = Math.min(one.labels.length, earlier.labels.length) >= FEW && 2 * common >= all.length;
  return (alike || plain(one.name) === plain(earlier.name)) && !(one.drawn && one.drawn === earlier.drawn);
}
