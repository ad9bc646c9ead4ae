/** Answers become reports: open columns as codes, a set in the place of every protected value. */

import { needingConsent, requirePromises } from "./campaign.js";
import { integer, require } from "./fields.js";
import { base64url, sha256 } from "./fingerprint.js";
import { stratumOf } from "./strata.js";
import { randomBytes, stickySubkey, utf8 } from "./stream.js";

/**
 * @typedef {import("./campaign.js").Campaign} Campaign
 * @typedef {{id: string, open: Record<string, number>, sets: Record<string, number[]>, token?: string}} Report
 */

/** Campaigns whose promises this device has found kept. @type {WeakSet<Campaign>} */
const kept = new WeakSet();

/**
 * The report of an answer: all that leaves the device.
 * @param {Campaign} campaign
 * @param {Record<string, number>} codes the answer to each column, as a code of its domain
 * @param {{key?: CryptoKey, token?: string, consent?: boolean}} [own] the device's key for sticky sets, the token that is
 *   asked for, and whether the person agrees to sets that change odds by a factor above 64, or is asked before sending
 * @returns {Promise<Report>}
 */
export async function answer(campaign, codes, { key, token, consent } = {}) {
  if (!kept.has(campaign)) requirePromises(campaign);
  kept.add(campaign);
  require(consent || !needingConsent(campaign).length, "consent", "some set changes odds by a factor above 64");
  const { draws, tokens } = campaign.collection;
  require((draws === "sticky") === Boolean(key), "key", `this campaign draws ${draws} sets`);
  require((tokens !== "none") === Boolean(token), "token", `this campaign wants ${tokens}`);
  for (const { name, labels } of [...campaign.open, ...campaign.protected])
    integer(codes[name], 0, labels.length - 1, name);
  /** @type {Report} */
  const report = { id: await idOf(tokens, token), open: {}, sets: {}, ...(token && { token }) };
  for (const { name } of campaign.open) report.open[name] = codes[name];
  for (const column of campaign.protected) report.sets[column.name] = await drawnSet(column, codes, key);
  return report;
}

/**
 * Random; with a blind token its hash, so that a token is good for one report however often it is sent.
 * @param {string} tokens @param {string} [token]
 */
async function idOf(tokens, token) {
  if (tokens !== "blind-rsa" || !token) return base64url(randomBytes(16));
  const bytes = Uint8Array.from(atob(token.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  return base64url((await sha256(bytes)).slice(0, 16));
}

/**
 * @param {import("./campaign.js").Protected} column
 * @param {Record<string, number>} codes
 * @param {CryptoKey} [key]
 */
async function drawnSet(column, codes, key) {
  const number = stratumOf(column.placing, codes);
  const { codes: possible, sampling, fingerprint } = column.strata[number];
  const inner = possible.indexOf(codes[column.name]);
  require(inner >= 0, column.name, "impossible together with the other answers");
  const subkey = key ? await stickySubkey(key, fingerprint, number, inner) : randomBytes(32);
  return (await sampling.draw(inner, subkey)).map((code) => possible[code]);
}

/** The bytes that are sent, filled up to exactly `size`. @param {Report} report @param {number} size */
export function reportBody({ id, open, sets, token }, size) {
  const content = { id, open, sets, ...(token && { token }) };
  const bare = utf8(JSON.stringify({ ...content, pad: "" })).length;
  require(bare <= size, "report", "too long");
  return utf8(JSON.stringify({ ...content, pad: "0".repeat(size - bare) }));
}
