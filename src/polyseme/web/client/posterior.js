/** What the set of a sampling document can tell at worst, in numbers; see `polyseme.device.protected` in Python. */

/**
 * The largest probability of any value given any set, for an attacker with this prior.
 * @param {import("./sampling.js").Sampling} sampling
 * @param {number[] | null} [prior] uniform where there is none
 * @returns {number}
 */
export function worstPosterior(sampling, prior = null) {
  const { size, kind } = sampling;
  const p = sampling.p53 / 2 ** 53;
  const shares = prior ?? new Array(size).fill(1 / size);
  const cost = shares.map((share, code) => share / sampling.inclusion[code]);
  const totals = kind.lightest(cost).map((least) => p * least + 1 - p);
  let worst = 0;
  let heaviest = 0;
  let lightest = Infinity;
  totals.forEach((total, code) => {
    // A set of which this prior believes no value is never seen by its owner.
    if (total > 0) worst = Math.max(worst, (p * cost[code] + (1 - p) * shares[code]) / total);
    heaviest = Math.max(heaviest, shares[code]);
    lightest = Math.min(lightest, total);
  });
  return p < 1 ? Math.max(worst, ((1 - p) * heaviest) / lightest) : worst;
}

/**
 * The largest factor by which any set changes the odds between two of its values, whatever the prior is.
 * @param {import("./sampling.js").Sampling} sampling
 * @returns {number}
 */
export function largestOdds(sampling) {
  const p = sampling.p53 / 2 ** 53;
  const factors = sampling.inclusion.map((rho) => p / rho + 1 - p);
  const best = sampling.kind.partners(factors);
  return factors.reduce((most, own, code) => Math.max(most, best[code] / own), 1);
}
