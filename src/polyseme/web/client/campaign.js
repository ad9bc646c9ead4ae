/**
 * The campaign document as a device reads it: pinned by its hash, and nothing that a device acts on taken on trust.
 * Texts are for pages to show; whoever made the document was refused where one was missing.
 */

import { ascending, integer, list, object, require, text } from "./fields.js";
import { campaignId, fingerprint } from "./fingerprint.js";
import { worstPosterior } from "./posterior.js";
import { Sampling } from "./sampling.js";
import { readPlacing } from "./strata.js";

export const FORMAT = "polyseme-campaign-1";
export const MEDIA_TYPE = "application/vnd.polyseme.report+json;v=1";
/** By how much, relatively, a posterior may exceed what is promised: weights are fitted and rounded. */
const SLACK = 1e-6;

/**
 * @typedef {string | number | boolean} Label
 * @typedef {Record<string, string>} Spoken a text by language
 * @typedef {{name: string, labels: Label[]}} Open a column that is sent as it is
 * @typedef {{codes: number[], sampling: Sampling, fingerprint: string, prior: number[] | null}} Stratum
 * @typedef {Open & {
 *   l: number, posterior: number | null, placing: import("./strata.js").Placing | null, strata: Stratum[],
 * }} Protected a column in whose place a set is sent
 * @typedef {{text: Spoken, help?: Spoken, labels?: Record<string, string[]>}} Question
 * @typedef {{
 *   draws: "fresh" | "sticky", opens: string | null, closes: string | null, wave: number, minimum: number,
 *   planned: number, tokens: "none" | "invitation" | "blind-rsa", relay: string | null, size: number, delay: number,
 *   purpose: Spoken, contact: string, gateway?: string | null, issuer?: {address: string, key: string} | null,
 *   reports?: number,
 * }} Collection
 * @typedef {{
 *   id: string, name: string, title: Spoken, languages: string[], open: Open[], protected: Protected[],
 *   questions: Record<string, Question>, collection: Collection, document: Record<string, any>,
 * }} Campaign
 */

/**
 * Checks the hash, the format and every number.
 * @param {import("./stream.js").Bytes} bytes
 * @param {string} [id] what the link says
 * @returns {Promise<Campaign>}
 */
export async function readCampaign(bytes, id) {
  const found = await campaignId(bytes);
  require(id === undefined || id === found, "campaign", "not the one that the link names: the document was changed");
  const document = object(parse(bytes), "document");
  require(document.format === FORMAT, "format", `expected ${FORMAT}`);
  const languages = list(document.languages, "languages");
  require(languages.length, "languages");
  const columns = list(document.columns, "columns").map(readColumn);
  const open = columns.filter(({ published }) => published === "as-is");
  const hidden = columns.filter(({ published }) => published === "sets");
  require(hidden.length && open.length + hidden.length === new Set(columns.map(({ name }) => name)).size, "columns");
  const sizes = new Map(open.map(({ name, labels }) => [name, labels.length]));
  return {
    id: found,
    name: text(document.name, "name"),
    title: object(document.title, "title"),
    languages,
    open,
    protected: await Promise.all(hidden.map((column) => readProtected(column, document, sizes))),
    questions: object(document.questions, "questions"),
    collection: readCollection(object(document.collection, "collection")),
    document,
  };
}

/** @param {import("./stream.js").Bytes} bytes @returns {unknown} */
function parse(bytes) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return require(false, "document", "expected JSON in UTF-8");
  }
}

/** @param {any} entry @param {number} number @returns {Open & {published: unknown}} */
function readColumn(entry, number) {
  const where = `columns[${number}]`;
  const labels = list(object(object(entry, where).domain, where).values, where);
  require(labels.length && labels.every(isLabel) && new Set(labels.map(String)).size === labels.length, where);
  return { name: text(entry.name, where), labels, published: entry.published };
}

/** @param {unknown} label */
const isLabel = (label) => ["string", "boolean"].includes(typeof label) || Number.isSafeInteger(label);

/**
 * @param {Open} column @param {Record<string, any>} document @param {Map<string, number>} sizes
 * @returns {Promise<Protected>}
 */
async function readProtected({ name, labels }, document, sizes) {
  const where = `sampling.${name}`;
  const { placing, strata } = object(document.sampling?.[name], where);
  const { l, posterior, priors } = object(document.promises?.[name], `promises.${name}`);
  integer(l, 1, labels.length, `promises.${name}`);
  require(posterior === null || (posterior > 0 && posterior <= 1), `promises.${name}`);
  require(list(strata, where).length && list(priors, where).length === strata.length, where);
  return {
    name,
    labels,
    l,
    posterior,
    placing: placing || strata.length > 1 ? readPlacing(placing, sizes, strata.length, `${where}.placing`) : null,
    strata: await Promise.all(strata.map((/** @type {any} */ one, /** @type {number} */ at) =>
      readStratum(name, labels, l, object(one, where), priors[at], `${where}.strata[${at}]`))),
  };
}

/**
 * @param {string} name @param {Label[]} labels @param {number} l @param {any} entry @param {number[] | null} prior
 * @param {string} where @returns {Promise<Stratum>}
 */
async function readStratum(name, labels, l, entry, prior, where) {
  const excluded = new Set(ascending(entry.excluded, labels.length, where));
  const codes = [...labels.keys()].filter((code) => !excluded.has(code));
  const sampling = new Sampling(entry.document, `${where}.document`);
  require(sampling.l === l && sampling.size === codes.length, where);
  const known = await fingerprint(name, codes.map((code) => labels[code]), sampling.document);
  require(entry.fingerprint === known, `${where}.fingerprint`);
  require(prior === null || (list(prior, where).length === codes.length && isShares(prior)), where);
  return { codes, sampling, fingerprint: known, prior };
}

/** @param {number[]} prior */
const isShares = (prior) =>
  prior.every((share) => typeof share === "number" && share >= 0) &&
  Math.abs(prior.reduce((one, other) => one + other) - 1) <= SLACK;

/** What a device acts on; the rest is for people to read. @param {any} collection @returns {Collection} */
function readCollection(collection) {
  const { draws, tokens, relay, size, delay, gateway, issuer, reports = 1 } = collection;
  require(["fresh", "sticky"].includes(draws), "collection.draws");
  require(["none", "invitation", "blind-rsa"].includes(tokens), "collection.tokens");
  // Without the key of its gateway nothing goes through a relay, and past it nothing may go.
  if (relay !== null) text(gateway, text(relay, "collection.relay"));
  if (tokens === "blind-rsa") text(issuer?.key, text(issuer?.address, "collection.issuer"));
  integer(size, 128, 4096, "collection.size");
  integer(delay, 0, 604800, "collection.delay");
  integer(reports, 1, draws === "fresh" ? 1 : 1000, "collection.reports");
  return collection;
}

/** The largest posterior of a protected column, as this device computes it. @param {Protected} column */
export const worstOf = ({ strata }) => Math.max(...strata.map(({ sampling, prior }) => worstPosterior(sampling, prior)));

/** Throws where some set can tell more than is promised. @param {Campaign} campaign */
export function requirePromises(campaign) {
  for (const column of campaign.protected) {
    const { name, posterior } = column;
    if (posterior === null) continue;
    const worst = worstOf(column);
    const what = `${posterior} is promised, but a set can give ${worst.toPrecision(6)}`;
    require(worst <= posterior * (1 + SLACK), `promises.${name}.posterior`, what);
  }
}
