/** Reading untrusted documents: nothing is taken on trust. */

/** A campaign, an answer or a report that cannot be used; the message holds no answer. */
export class CampaignError extends Error {
  name = "CampaignError";
}

/** @param {unknown} holds @param {string} where @param {string} [what] @returns {asserts holds} */
export function require(holds, where, what = "not as the protocol says") {
  if (!holds) throw new CampaignError(`${where}: ${what}`);
}

/** Most values of an attribute. */
export const MOST_VALUES = 1e6;

/** How much work a campaign may give a device, in units that `docs/collection/protocol.md` counts. */
export class Workload {
  #left = 16e6;

  /** Counts work before it is done; throws where it is more than is left. @param {number} units @param {string} where */
  charge(units, where) {
    this.#left -= units;
    require(this.#left >= 0, where, "too much to compute for a device: too many candidates, values or sets");
  }
}

/**
 * A whole number from `low` to `high`; 2^53 itself is exact too.
 * @param {unknown} value @param {number} low @param {number} high @param {string} where @returns {number}
 */
export function integer(value, low, high, where) {
  require(typeof value === "number" && Number.isInteger(value) && value >= low && value <= high, where);
  return value;
}

/**
 * A list of such numbers.
 * @param {unknown} value @param {number} low @param {number} high @param {string} where @param {number} [count]
 * @returns {number[]}
 */
export function integers(value, low, high, where, count) {
  for (const one of list(value, where)) integer(one, low, high, where);
  const found = /** @type {number[]} */ (value);
  require(count === undefined || found.length === count, where);
  return found;
}

/** Numbers below `high` that rise. @param {unknown} value @param {number} high @param {string} where */
export function ascending(value, high, where) {
  const found = integers(value, 0, high - 1, where);
  require(found.every((one, place) => !place || found[place - 1] < one), where);
  return found;
}

/** @param {unknown} value @param {string} where @returns {any[]} */
export function list(value, where) {
  require(Array.isArray(value), where);
  return value;
}

/** @param {unknown} value @param {string} where @returns {Record<string, any>} */
export function object(value, where) {
  require(typeof value === "object" && value, where);
  return value;
}

/** @param {unknown} value @param {string} where @returns {string} */
export function text(value, where) {
  require(typeof value === "string" && value, where);
  return value;
}
