/** To which stratum a record belongs: what its open columns say, looked up column by column. */

import { integers, list, object, require } from "./fields.js";

/** @typedef {{steps: {column: string, classes: number[], next: number[][]}[], strata: number[]}} Placing */

/** One more than the largest. @param {number[]} numbers */
const beyond = (numbers) => 1 + numbers.reduce((one, other) => Math.max(one, other), 0);

/**
 * Checks how records find their stratum.
 * @param {any} given
 * @param {Map<string, number>} sizes how many codes each open column has
 * @param {number} count how many strata there are
 * @param {string} where
 * @returns {Placing}
 */
export function readPlacing(given, sizes, count, where) {
  let states = 1;
  for (const { column, classes, next } of list(object(given, where).steps, where)) {
    require(sizes.has(column), where, "not an open column of this campaign");
    const width = beyond(integers(classes, 0, 2 ** 20, where, sizes.get(column)));
    require(list(next, where).length === states, where);
    states = beyond(next.map((/** @type {unknown} */ row) => beyond(integers(row, 0, 2 ** 20, where, width)) - 1));
  }
  integers(given.strata, 0, count - 1, where, states);
  return given;
}

/** The number of the stratum of a record. @param {Placing | null} placing @param {Record<string, number>} codes */
export function stratumOf(placing, codes) {
  let state = 0;
  for (const { column, classes, next } of placing?.steps ?? []) state = next[state][classes[codes[column]]];
  return placing ? placing.strata[state] : 0;
}
