/** What the admin listener answers. The token is kept as long as the tab is open, and goes nowhere else. */

/**
 * @typedef {{
 *   id: string, name: string, state: string, reports: number, withdrawn: number, invited: number, spent: number,
 *   minimum: number, planned: number, enough: boolean, tokens: string, wave: number,
 * }} Standing
 * @typedef {{
 *   name: string, question: string, values: number, l: number, promised: number | null, worst: number,
 *   now: number | null, planned: number | null,
 * }} Expected
 * @typedef {{reports: number, planned: number, columns: Expected[], open: {name: string, question: string}[]}} Precision
 * @typedef {{name: string, records: number, share: (number | null)[], low: (number | null)[], high: (number | null)[]}} Group
 * @typedef {{
 *   of: string, by: string | null, question: string, labels: string[], ordered: boolean, groups: Group[], level: number, records: number,
 *   estimator: string, notes: string[],
 * }} Shares
 */

const KEY = "polyseme-token";

/** A request without a token, or with one that is not known. */
export class NotAllowed extends Error {}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  /** @param {string} value */
  set: (value) => sessionStorage.setItem(KEY, value),
  clear: () => sessionStorage.removeItem(KEY),
};

/** @param {string} path @returns {Promise<any>} */
async function asked(path) {
  const headers = { authorization: `Bearer ${token.get()}` };
  const answer = await fetch(path, { headers, credentials: "omit", cache: "no-store" }).catch(() => {
    throw new Error("The collector does not answer. Is it running?");
  });
  if (answer.status === 401 || answer.status === 403) throw new NotAllowed();
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.detail ?? found.title ?? `The collector answered ${answer.status}.`);
  return found;
}

/** @returns {Promise<Standing[]>} */
export const campaigns = async () => (await asked("v1/campaigns")).campaigns;

/** @param {string} id @returns {Promise<Precision>} */
export const precision = (id) => asked(`v1/campaigns/${id}/precision`);

/** @param {string} id @param {string} of @param {string} by @returns {Promise<Shares>} */
export const estimates = (id, of, by) =>
  asked(`v1/campaigns/${id}/estimates?${new URLSearchParams(by ? { of, by } : { of })}`);
