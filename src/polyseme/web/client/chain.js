/**
 * Sets as chains of places, in whole numbers: what lines, circles and clusters with weights have in common.
 * `polyseme.device.chain` in Python says what the tables mean.
 */

import { sums } from "./stream.js";

/** @typedef {import("./stream.js").KeyStream} KeyStream */

/** A quotient of large whole numbers. @param {bigint} top @param {bigint} bottom */
export function ratio(top, bottom) {
  const shift = Math.max(0, bottom.toString(2).length - top.toString(2).length + 64);
  return Number((top << BigInt(shift)) / bottom) / 2 ** shift;
}

/** How many numbers of a rising list are at most 0, 1, 2 and so on. @param {number[]} rising @param {number} count */
export function upTo(rising, count) {
  const found = [];
  for (let place = 0, seen = 0; place < count; place++) {
    while (seen < rising.length && rising[seen] <= place) seen++;
    found.push(seen);
  }
  return found;
}

export class Chain {
  /** @type {bigint[][] | undefined} */
  #prefix;
  /** @type {bigint[][] | undefined} */
  #onward;

  /**
   * @param {number} l
   * @param {number[]} low the first place that may follow each
   * @param {number[]} tight first places of windows that hold one place of every set
   * @param {bigint[]} weights
   */
  constructor(l, low, tight, weights) {
    const size = low.length;
    const ends = [...tight.map((place) => low[place]), size];
    this.l = l;
    this.low = low;
    this.weights = weights;
    this.size = size;
    this.high = upTo(tight, size).map((count) => ends[count]);
    this.firstEnd = ends[0];
    this.lastStart = tight.length ? tight[tight.length - 1] : 0;
    this.backLow = upTo(this.high, size);
    this.backHigh = upTo(low, size);
  }

  /** @param {(place: number) => boolean} first @param {number[]} from @param {number[]} to */
  #rows(first, from, to) {
    const rows = [sums(this.weights.map((weight, place) => (first(place) ? weight : 0n)))];
    while (rows.length < this.l) {
      const last = rows[rows.length - 1];
      rows.push(sums(this.weights.map((weight, place) => weight * span(last, from[place], to[place]))));
    }
    return rows;
  }

  get prefix() {
    return (this.#prefix ??= this.#rows((place) => place < this.firstEnd, this.backLow, this.backHigh));
  }

  get onward() {
    return (this.#onward ??= this.#rows((place) => place >= this.lastStart, this.low, this.high));
  }

  /** For each r, the weight of the others where r of them stand before this place. @param {number} place */
  splits(place) {
    const before = this.prefix.map((row) => span(row, this.backLow[place], this.backHigh[place]));
    const after = this.onward.map((row) => span(row, this.low[place], this.high[place]));
    before.unshift(BigInt(place < this.firstEnd));
    after.splice(this.l - 1, 1);
    after.unshift(BigInt(place >= this.lastStart));
    return after.reverse().map((weight, r) => before[r] * weight);
  }

  get total() {
    return this.onward[this.l - 1][this.firstEnd];
  }

  /** A chain that holds this place. @param {number} place @param {KeyStream} stream */
  given(place, stream) {
    const r = stream.pick(this.splits(place));
    const found = [place];
    for (let column = r - 1, here = place; column >= 0; column--) {
      here = stream.between(this.prefix[column], this.backLow[here], this.backHigh[here]);
      found.push(here);
    }
    return this.#onwards(found, place, this.l - 1 - r, stream);
  }

  /** Any chain, from the left. @param {KeyStream} stream */
  blind(stream) {
    const first = stream.between(this.onward[this.l - 1], 0, this.firstEnd);
    return this.#onwards([first], first, this.l - 1, stream);
  }

  /** @param {number[]} found @param {number} here @param {number} count @param {KeyStream} stream */
  #onwards(found, here, count, stream) {
    while (count--) {
      here = stream.between(this.onward[count], this.low[here], this.high[here]);
      found.push(here);
    }
    return found;
  }

  /** The probability that each place is in a chain. */
  inclusion() {
    const total = this.total;
    return this.weights.map((weight, place) => ratio(weight * this.splits(place).reduce((a, b) => a + b), total));
  }

  /** For each place, the least total cost of a chain that holds it. @param {number[]} cost */
  lightest(cost) {
    return this.#others(cost, (one, other) => one + other).map((others, place) => cost[place] + others);
  }

  /** For each place, the largest of the positive values of the others of its chains. @param {number[]} values */
  partners(values) {
    const join = (/** @type {number} */ one, /** @type {number} */ other) =>
      Math.max(one, other) < Infinity ? Math.min(one, other) : Infinity;
    return this.#others(values.map((value) => -value), join).map((least) => -least);
  }

  /** The least cost of the other places of a chain. @param {number[]} cost @param {(one: number, other: number) => number} join */
  #others(cost, join) {
    const before = [cost.map((_, place) => (place < this.firstEnd ? 0 : Infinity))];
    const after = [cost.map((_, place) => (place >= this.lastStart ? 0 : Infinity))];
    /** @param {number[]} last */
    const joined = (last) => cost.map((one, place) => join(one, last[place]));
    for (let r = 1; r < this.l; r++) {
      before.push(least(joined(before[r - 1]), this.backLow, this.backHigh));
      after.push(least(joined(after[r - 1]), this.low, this.high));
    }
    return cost.map((_, place) => {
      let best = Infinity;
      for (let r = 0; r < this.l; r++) best = Math.min(best, join(before[r][place], after[this.l - 1 - r][place]));
      return best;
    });
  }
}

/** @param {bigint[]} totals @param {number} from @param {number} to */
const span = (totals, from, to) => (to > from ? totals[to] - totals[from] : 0n);

/**
 * The least of `values[low .. high - 1]` for ranges whose ends never descend.
 * @param {number[]} values
 * @param {number[]} low
 * @param {number[]} high
 */
export function least(values, low, high) {
  /** @type {number[]} */
  const window = [];
  let head = 0;
  let end = 0;
  return low.map((first, place) => {
    for (; end < high[place]; end++) {
      while (window.length > head && values[window[window.length - 1]] >= values[end]) window.pop();
      window.push(end);
    }
    while (head < window.length && window[head] < first) head++;
    return head < window.length ? values[window[head]] : Infinity;
  });
}
