/**
 * The campaign document as a device reads it: pinned by its hash, and nothing that a device acts on taken on trust.
 * Texts are for pages to show; making a document without one is refused.
 */

import { ascending, CampaignError, integer, list, object, require, text, Workload } from "./fields.js";
import { campaignId, fingerprint } from "./fingerprint.js";
import { largestOdds, worstPosterior } from "./posterior.js";
import { Sampling } from "./sampling.js";
import { readPlacing } from "./strata.js";

export const FORMAT = "polyseme-campaign-1";
export const MEDIA_TYPE = "application/vnd.polyseme.report+json;v=1";
/** By how much, relatively, a number may exceed its limit: weights are fitted and rounded. */
const SLACK = 1e-6;
/** No set may change the odds between two of its candidates by more than this factor. */
const LARGEST_ODDS = 1024;
/** Above this factor a person has to agree first. */
const ODDS_WITH_CONSENT = 64;
/** No declared share may be smaller than this part of a uniform one. */
const LEAST_SHARE = 1 / 1024;
const MOST_BYTES = 16e6;
const MOST_COLUMNS = 1000;

/**
 * @typedef {string | number | boolean} Label
 * @typedef {Record<string, string>} Spoken a text by language
 * @typedef {{name: string, labels: Label[]}} Open a column that is sent as it is
 * @typedef {{codes: number[], sampling: Sampling, fingerprint: string, prior: number[] | null}} Stratum
 * @typedef {Open & {
 *   l: number, posterior: number | null, placing: import("./strata.js").Placing | null, strata: Stratum[],
 * }} Protected a column in whose place a set is sent
 * @typedef {{text: Spoken, help?: Spoken, labels?: Record<string, string[]>, source?: Spoken}} Question
 *   source: where a prior that is not uniform comes from
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
  require(bytes.length <= MOST_BYTES, "document", "too long");
  const found = await campaignId(bytes);
  require(id === undefined || id === found, "campaign", "not the one that the link names: the document was changed");
  const document = object(parse(bytes), "document");
  require(document.format === FORMAT, "format", `expected ${FORMAT}`);
  const languages = list(document.languages, "languages");
  require(languages.length && languages.length <= MOST_COLUMNS, "languages");
  require(list(document.columns, "columns").length <= MOST_COLUMNS, "columns");
  /** @type {ReturnType<typeof readColumn>[]} */
  const columns = document.columns.map(readColumn);
  const open = columns.filter(({ published }) => published === "as-is");
  const hidden = columns.filter(({ published }) => published === "sets");
  require(hidden.length && open.length + hidden.length === new Set(columns.map(({ name }) => name)).size, "columns");
  const workload = new Workload();
  const sizes = new Map(open.map(({ name, labels }) => [name, labels.length]));
  return {
    id: found,
    name: text(document.name, "name"),
    title: object(document.title, "title"),
    languages,
    open,
    protected: await Promise.all(hidden.map((/** @type {Open} */ column) => readProtected(column, document, sizes, workload))),
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
 * @param {Workload} workload @returns {Promise<Protected>}
 */
async function readProtected({ name, labels }, document, sizes, workload) {
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
      readStratum(name, labels, l, object(one, where), priors[at], `${where}.strata[${at}]`, workload))),
  };
}

/**
 * @param {string} name @param {Label[]} labels @param {number} l @param {any} entry @param {number[] | null} prior
 * @param {string} where @param {Workload} workload @returns {Promise<Stratum>}
 */
async function readStratum(name, labels, l, entry, prior, where, workload) {
  workload.charge(labels.length, where);
  const excluded = new Set(ascending(entry.excluded, labels.length, where));
  const codes = [...labels.keys()].filter((code) => !excluded.has(code));
  const { l: candidates, size = codes.length } = object(entry.document, where);
  require(candidates === l && size === codes.length, where);
  const sampling = new Sampling(entry.document, `${where}.document`, workload, prior !== null);
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

/** What this device has computed of each stratum. @type {WeakMap<Stratum, Found>} */
const known = new WeakMap();

/**
 * @typedef {{worst: number, uniform: number, odds: number}} Found what a device finds: the largest posterior under the
 *   declared prior, the same under a uniform one, and the largest factor by which a set changes the odds between two of
 *   its candidates, which holds whatever the prior is
 */

/** @param {Stratum} stratum @returns {Found} */
function foundOf(stratum) {
  const { sampling, prior } = stratum;
  let found = known.get(stratum);
  if (!found) {
    const worst = worstPosterior(sampling, prior);
    found = { worst, uniform: prior ? worstPosterior(sampling) : worst, odds: largestOdds(sampling) };
    known.set(stratum, found);
  }
  return found;
}

/** @param {Protected} column @param {keyof Found} key */
const most = ({ strata }, key) => Math.max(...strata.map((stratum) => foundOf(stratum)[key]));

/** The largest posterior of a protected column under the declared priors. @param {Protected} column */
export const worstOf = (column) => most(column, "worst");

/** The same under a uniform prior. @param {Protected} column */
export const uniformOf = (column) => most(column, "uniform");

/** The largest factor by which a set changes the odds between two of its candidates. @param {Protected} column */
export const oddsOf = (column) => most(column, "odds");

/** @param {number[]} prior */
const smallest = (prior) => prior.reduce((one, other) => Math.min(one, other));

/** Whether a declared prior is uniform. @param {number[] | null} prior */
export const isEven = (prior) => !prior || smallest(prior) * prior.length >= 1 - SLACK;

/** The columns to whose sets a person has to agree first. @param {Campaign} campaign */
export const needingConsent = (campaign) =>
  campaign.protected.filter((column) => oddsOf(column) > ODDS_WITH_CONSENT * (1 + SLACK));

/** Throws where some set can tell more than is promised, or than any set may. @param {Campaign} campaign */
export function requirePromises(campaign) {
  for (const column of campaign.protected) {
    const { name, l, posterior, strata } = column;
    const where = `promises.${name}`;
    require(l > 1, `${where}.l`, "a set of one candidate is the answer itself");
    if (posterior === null) throw new CampaignError(`${where}.posterior: nothing is promised: a set could tell anything`);
    const fair = strata.every(({ prior }) => !prior || smallest(prior) * prior.length >= LEAST_SHARE * (1 - SLACK));
    require(fair, `${where}.priors`, "a share is 0, or smaller than 1/1,024 of a uniform one");
    const source = campaign.questions[name]?.source;
    const named = strata.every(({ prior }) => isEven(prior)) || campaign.languages.every((one) => source?.[one]);
    require(named, `questions.${name}.source`, "the prior is not uniform, and nothing says where it comes from");
    const odds = oddsOf(column);
    const changes = `a set can change the odds between two of its candidates by a factor of ${odds.toPrecision(6)}`;
    require(odds <= LARGEST_ODDS * (1 + SLACK), `sampling.${name}`, `${changes}, more than ${LARGEST_ODDS}`);
    const worst = worstOf(column);
    const what = `${posterior} is promised, but a set can give ${worst.toPrecision(6)}`;
    require(worst <= posterior * (1 + SLACK), `${where}.posterior`, what);
  }
}
