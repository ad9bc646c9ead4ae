/**
 * How the sets of each kind of sampling document are drawn; the files of `polyseme.device` in Python are the same.
 *
 * A value that is in no set needs no check of its own: there is nothing to draw from then, and no promise holds.
 */

import { Chain, least as leastBetween, ratio, upTo } from "./chain.js";
import { ascending, integer, integers, list, MOST_VALUES, require } from "./fields.js";
import { sums } from "./stream.js";

/**
 * @typedef {import("./stream.js").KeyStream} KeyStream
 * @typedef {{
 *   size: number,
 *   given(code: number, stream: KeyStream): number[],
 *   blind(stream: KeyStream): number[],
 *   inclusion(): number[],
 *   lightest(cost: number[]): number[],
 *   partners(values: number[]): number[],
 * }} Kind partners: for each value, the largest of the positive values of those that share a set with it
 * @typedef {(units: number) => void} Charge counts work before it is done
 * @typedef {Record<string, any>} Document
 */

const MOST_SETS = 5e5;

/** @param {number} count */
const range = (count) => [...Array(count).keys()];

/** @param {unknown} weights @param {number} count @param {string} where */
const whole = (weights, count, where) => integers(weights, 1, 2 ** 53 - 1, where, count).map(BigInt);

/** @param {number[]} values */
const least = (values) => values.reduce((one, other) => Math.min(one, other), Infinity);

/** @param {number[]} values */
const largest = (values) => values.reduce((one, other) => Math.max(one, other), 0);

/** @param {number[]} codes */
const sorted = (codes) => codes.sort((one, other) => one - other);

/**
 * The code at each place, the place of each code, and the first place ahead that is far enough.
 * @param {Document} document @param {string} where @param {number} turns
 */
function ordered(document, where, turns) {
  const order = integers(document.order, 0, list(document.order, where).length - 1, where);
  const size = order.length;
  const ahead = integers(document.ahead, 1, turns * size, where, size);
  require(new Set(order).size === size, where);
  require(ahead.every((first, place) => first > place && first >= (ahead[place - 1] ?? 0)), where);
  /** @type {number[]} */
  const places = [];
  order.forEach((code, place) => (places[code] = place));
  return { order, ahead, places, size };
}

/**
 * Sets with at most one value of each cluster.
 * @param {Document} document @param {string} where @param {Charge} charge @returns {Kind}
 */
function clusters({ l, size, labels: given, ...document }, where, charge) {
  charge(8 * (given ? list(given, where).length : integer(size, 1, MOST_VALUES, where)));
  const labels = given ?? range(size);
  /** @type {number[][]} */
  const members = [];
  integers(labels, 0, MOST_VALUES, where).forEach((label, code) => (members[label] ??= []).push(code));
  const count = members.length;
  require(Object.keys(members).length === count && l <= count, where);
  charge(l * l * (document.weights ? count : 1));
  const full = ascending(document.full ?? [], count, where);
  const following = members.map((_, place) => place + 1);
  const chain = document.weights && new Chain(l, following, full, whole(document.weights, count, where));
  const shares = whole(document.shares ?? range(labels.length).fill(1), labels.length, where);
  const shareSums = members.map((codes) => sums(codes.map((code) => shares[code])));

  /** A value of each cluster. @param {number[]} chosen @param {KeyStream} stream @param {number} [code] */
  const values = (chosen, stream, code = -1) =>
    sorted(sorted(chosen).map((cluster) => {
      if (cluster === labels[code]) return code;
      const codes = members[cluster];
      // Shares that are all alike are drawn as ranks; both read nothing where there is only one value.
      return codes[codes.length > 1 ? stream.between(shareSums[cluster], 0, codes.length) : 0];
    }));

  /** Clusters by their rank among those that are not taken. @param {number[]} taken @param {KeyStream} stream */
  const distinct = (taken, stream) => {
    while (taken.length < l) {
      let number = Number(stream.below(BigInt(count - taken.length)));
      let place = 0;
      for (; taken[place] <= number; place++) number++;
      taken.splice(place, 0, number);
    }
    return taken;
  };

  return {
    size: labels.length,
    given(code, stream) {
      const own = labels[code];
      return values(chain ? chain.given(own, stream) : distinct([own], stream), stream, code);
    },
    blind: (stream) => values(chain ? chain.blind(stream) : distinct([], stream), stream),
    inclusion() {
      const rho = chain ? chain.inclusion() : members.map(() => l / count);
      return shares.map((share, code) => rho[labels[code]] * ratio(share, shareSums[labels[code]].at(-1) ?? 1n));
    },
    lightest(cost) {
      const cheapest = members.map((codes) => least(codes.map((code) => cost[code])));
      const cheap = [...cheapest].sort((one, other) => one - other).slice(0, l);
      const total = cheap.reduce((one, other) => one + other);
      /** @type {number[]} */
      const lightest = chain ? chain.lightest(cheapest) : cheapest.map((one) => Math.max(one - cheap[l - 1], 0) + total);
      return cost.map((own, code) => lightest[labels[code]] - cheapest[labels[code]] + own);
    },
    partners(values) {
      const most = members.map((codes) => largest(codes.map((code) => values[code])));
      const first = most.indexOf(largest(most));
      const second = largest(most.filter((_, place) => place !== first));
      const others = chain ? chain.partners(most) : most.map((_, place) => (l < 2 ? 0 : most[first]));
      if (!chain && l > 1) others[first] = second;
      return labels.map((/** @type {number} */ label) => others[label]);
    },
  };
}

/** Sets on a line. @param {Document} document @param {string} where @param {Charge} charge @returns {Kind} */
function line(document, where, charge) {
  const { order, ahead, places, size } = ordered(document, where, 1);
  charge(document.l ** 2 * size);
  const tight = ascending(document.tight, size, where);
  const chain = new Chain(document.l, ahead, tight, whole(document.weights, size, where));
  /** @param {number[]} found */
  const codes = (found) => sorted(found.map((place) => order[place]));
  /** @param {number[]} found */
  const byCode = (found) => places.map((place) => found[place]);
  return {
    size,
    given: (code, stream) => codes(chain.given(places[code], stream)),
    blind: (stream) => codes(chain.blind(stream)),
    inclusion: () => byCode(chain.inclusion()),
    lightest: (cost) => byCode(chain.lightest(order.map((code) => cost[code]))),
    partners: (values) => byCode(chain.partners(order.map((code) => values[code]))),
  };
}

/**
 * Sets on a circle.
 * @param {Document} document @param {string} where @param {Charge} charge @param {boolean} declared @returns {Kind}
 */
function circle(document, where, charge, declared) {
  const { l } = document;
  const { order, ahead, places, size } = ordered(document, where, 2);
  require(ahead.every((first, place) => first <= place + size) && ahead[size - 1] <= ahead[0] + size, where);
  const { weights } = document;
  // With weights, and for a prior, each value has a chain of its own.
  charge(l * l * size * (weights || declared ? 2 * size : 1));
  const heavy = whole(weights ?? range(size).fill(1), size, where);
  require(weights || ahead.every((first, place) => first - place === ahead[0]), where);

  /** The first place ahead of one of any turn. @param {number} place */
  const next = (place) => ahead[place % size] + place - (place % size);
  /** @type {Map<number, Chain>} */
  const kept = new Map();
  /** The others of a set, as steps from the first place that is far enough from its root. @param {number} root */
  const others = (root) => {
    const from = weights ? root : 0;
    const first = ahead[from];
    let end = from + size;
    while (end > first && next(end - 1) > from + size) end--;
    const steps = range(Math.max(end - first, 0));
    const low = steps.map((step) => Math.min(next(first + step) - first, steps.length));
    const found = kept.get(from) ?? new Chain(l - 1, low, [], steps.map((step) => heavy[(first + step) % size]));
    // Large circles with weights have a chain for each value: some are enough to keep.
    if (kept.size > 63) kept.clear();
    kept.set(from, found);
    return found;
  };

  /** @param {number} root @param {KeyStream} stream */
  const around = (root, stream) => {
    const steps = l > 1 ? others(root).blind(stream) : [];
    return sorted([root, ...steps.map((step) => ahead[root] + step)].map((place) => order[place % size]));
  };
  /** The weight of all sets that hold each place, up to a factor. @returns {bigint[]} */
  const totals = () => heavy.map((weight, root) => (weights && l > 1 ? weight * others(root).total : weight));

  return {
    size,
    given: (code, stream) => around(places[code], stream),
    blind: (stream) => around(stream.pick(totals()), stream),
    inclusion() {
      const found = sums(totals());
      return places.map((place) => ratio(BigInt(l) * (found[place + 1] - found[place]), found[size]));
    },
    lightest(cost) {
      if (l === 1 || cost.every((one) => one === cost[0])) return cost.map((one) => l * one);
      return places.map((root, code) => {
        const along = range(others(root).size).map((step) => cost[order[(ahead[root] + step) % size]]);
        return cost[code] + least(others(root).lightest(along));
      });
    },
    partners(values) {
      const costs = range(2 * size).map((place) => -values[order[place % size]]);
      const behind = upTo(range(2 * size).map(next), 2 * size).map((count) => count - 1);
      const nearest = [range(size)];
      const furthest = [range(size).map((place) => place + size)];
      for (let steps = 1; steps < l; steps++) {
        nearest.push(nearest[steps - 1].map(next));
        furthest.push(furthest[steps - 1].map((place) => behind[place]));
      }
      // The m-th of the others, from a place on: from as near as m steps allow to as far as the l - m after it allow.
      let found = range(size).map((place) => -costs[place]);
      for (let steps = 1; steps < l; steps++) {
        const least = leastBetween(costs, nearest[steps], furthest[l - steps].map((place) => place + 1));
        found = found.map((one, place) => Math.max(one, -least[place]));
      }
      return places.map((place) => found[place]);
    },
  };
}

/** Listed sets with a weight each. @param {number} size @param {number[][]} sets @param {bigint[]} weights @returns {Kind} */
function table(size, sets, weights) {
  /** @type {number[][]} */
  const holding = range(size).map(() => []);
  sets.forEach((members, number) => members.forEach((code) => holding[code].push(number)));
  /** @param {number[]} numbers */
  const sumsOf = (numbers) => sums(numbers.map((number) => weights[number]));
  /** @param {number[]} numbers @param {KeyStream} stream */
  const one = (numbers, stream) => [...sets[numbers[stream.between(sumsOf(numbers), 0, numbers.length)]]];
  return {
    size,
    given: (code, stream) => one(holding[code], stream),
    blind: (stream) => one([...sets.keys()], stream),
    inclusion() {
      const all = sums(weights)[sets.length];
      return holding.map((numbers) => ratio(sumsOf(numbers)[numbers.length], all));
    },
    lightest(cost) {
      const totals = sets.map((members) => members.reduce((sum, code) => sum + cost[code], 0));
      return holding.map((numbers) => least(numbers.map((number) => totals[number])));
    },
    partners(values) {
      const most = sets.map((members) => largest(members.map((code) => values[code])));
      return holding.map((numbers) => largest(numbers.map((number) => most[number])));
    },
  };
}

/** Sets of ascending codes. @param {unknown} value @param {number} l @param {number} size @param {string} where */
function setsOf(value, l, size, where) {
  const found = list(value, where).map((members) => ascending(members, size, where));
  require(found.every((members) => members.length === l) && found.length <= MOST_SETS, where);
  return found;
}

/** @param {Charge} charge @param {number} count @param {number} l @param {string} where */
function chargeSets(charge, count, l, where) {
  require(count <= MOST_SETS, where, `${count} sets, more than the ${MOST_SETS} that a device lists`);
  charge(l * l * count);
}

/** All sets whose values may stand together in pairs. @param {Document} document @param {string} where @param {Charge} charge */
function listed({ l, neighbours, weights, excluded }, where, charge) {
  const size = list(neighbours, where).length;
  /** @type {Set<number>[]} */
  const later = neighbours.map((/** @type {unknown} */ row) => new Set(ascending(row, size, where)));
  require(neighbours.every((/** @type {number[]} */ row, /** @type {number} */ code) => !row.length || row[0] > code), where);
  const never = new Set(setsOf(excluded, l, size, where).map(String));
  const factors = whole(weights, size, where);
  /** Sets, and the later values that may stand with all of theirs. @type {[number[], number[]][]} */
  let rows = range(size).map((code) => [[code], neighbours[code]]);
  /** @param {(left: number) => number} units */
  const total = (units) => rows.reduce((sum, [, left]) => sum + units(left.length), 0);
  for (let length = 2; length <= l; length++) {
    if (length === l) chargeSets(charge, total((left) => left), l, where);
    else charge(total((left) => (left * (left + 1)) / 2));
    rows = rows.flatMap(([members, left]) =>
      left.map((code, place) => /** @type {[number[], number[]]} */ ([[...members, code], length < l ? left.slice(place + 1).filter((one) => later[code].has(one)) : []])),
    );
  }
  const sets = rows.map(([members]) => members).filter((members) => !never.has(String(members)));
  return table(size, sets, sets.map((members) => members.reduce((product, code) => product * factors[code], 1n)));
}

/**
 * What reads each kind, and its fields in their order.
 * @type {Record<string, [(document: Document, where: string, charge: Charge, declared: boolean) => Kind, string]>}
 */
export const KINDS = {
  clusters: [clusters, "size labels weights shares full"],
  line: [line, "order ahead weights tight"],
  circle: [circle, "order ahead weights"],
  listed: [listed, "neighbours weights excluded"],
  table: [
    ({ l, size, sets, weights }, where, charge) => {
      chargeSets(charge, list(sets, where).length, l, where);
      charge(8 * integer(size, 1, MOST_VALUES, where));
      const found = setsOf(sets, l, integer(size, 1, MOST_VALUES, where), where);
      return table(size, found, whole(weights, found.length, where));
    },
    "size sets weights",
  ],
};
