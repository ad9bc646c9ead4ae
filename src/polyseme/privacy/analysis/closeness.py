"""t-closeness as a limit on the odds of truth.

An attacker whose prior is `pi` sees a set R. With the odds of truth `s = p / (1 - p)` and the pull
`m_v = K(R | v) / B(R)` of each member (`1 / rho_v` when the design is one distribution over sets), Bayes' rule gives

    posterior = (1 - lambda) prior + lambda q_R,   q_R proportional to pi_v m_v on R,   lambda = s A / (1 + s A),
    A = sum over R of pi_v m_v

The earth mover's distance is homogeneous, so the distance from the prior is `lambda` times `E = EMD(pi, q_R)`, and it
stays within t exactly when

    s <= t / (A (E - t))      (any s when E <= t)

Hence three limits, each a closed form:

- `exact_odds`: the least of these over every possible set, for any design, prior and ground.
- `uniform_odds`: sets of eta values drawn uniformly (`rho = eta / F`), equal ground. A set matters only through its
  prior mass a: `s <= rho t / (a (1 - a - t))`, so the worst set is the one whose mass is nearest to `(1 - t) / 2`.
  That is the heaviest or the lightest eta values when this lies beyond them; in between it is a bound.
- `safe_odds`: every set, prior, ground and design: `s = 4 t / (1 - t)^2 / max m`, which is the in:out likelihood ratio
  `r = 1 + s max m = ((1 + t) / (1 - t))^2`. Weights between 1 and r move an event of prior mass a to at most
  `r a / (r a + 1 - a)`, a gain of at most `(sqrt r - 1) / (sqrt r + 1) = tanh(ln(r) / 4) = t`.
"""

from __future__ import annotations

from math import comb, log

import numpy as np

from polyseme.designs.base import Design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.semantics.distances.ground import Equal, Ground

__all__ = [
    "CELL_LIMIT",
    "closeness_of_epsilon",
    "closeness_reached",
    "exact_distance",
    "exact_odds",
    "listed_pulls",
    "probability",
    "safe_odds",
    "subsets",
    "uniform_distance",
    "uniform_odds",
]

CELL_LIMIT = 4_000_000
"""Largest number of sets times values that is listed to tighten a limit: 32 MB, chosen by judgment."""

_LOG_ROUNDING = 1e-9
"""Rounding of a sum of logarithms; the exact count is compared afterwards."""

_MASK_BITS = 20
"""Largest domain for which the masses of all subsets are listed: a million of them."""

_CHUNK = 1_000_000
"""Probabilities that are moved at a time: 8 MB."""
_ROUNDING = 1e-15
"""Distances and masses within this of their limit are at it."""


def probability(odds: Floats | float) -> Floats:
    """The truth probability `p = s / (1 + s)`, rounded down; 1 for infinite odds only."""
    odds = np.asarray(odds, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = odds / (1.0 + odds)
        # Near 1 a rounding error of p is a large error of its odds: a promise of epsilon = 36 would be broken.
        p = np.where(p / (1.0 - p) > odds, np.nextafter(p, 0.0), p)
    return np.where(np.isinf(odds), 1.0, p)


def closeness_of_epsilon(epsilon: float) -> float:
    """The largest distance of prior and posterior under epsilon-LDP: tanh(epsilon / 4)."""
    return float(np.tanh(epsilon / 4.0))


def safe_odds(t: float, least_inclusion: float | Floats) -> Floats:
    """The odds that keep t-closeness for every prior, set and ground.

    `least_inclusion` is the smallest `rho_v` (one over the largest pull).

    >>> float(probability(safe_odds(0.25, 2 / 3)))
    0.5423728813559322
    """
    if t >= 1.0:
        return np.full(np.shape(least_inclusion), np.inf)
    return np.asarray(4.0 * t / (1.0 - t) ** 2 * np.asarray(least_inclusion))


def subsets(size: int, eta: int) -> Ints:
    """All sets of `eta` of the codes 0 ... size-1, in lexicographic order: (C(size, eta), eta).

    >>> subsets(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if 2 * eta > size:
        # Fewer are left out than taken; leaving out in descending order is taking in ascending order.
        left_out = subsets(size, size - eta)[::-1]
        taken = np.ones((len(left_out), size), dtype=np.bool_)
        taken[np.arange(len(left_out))[:, None], left_out] = False
        return np.nonzero(taken)[1].reshape(len(left_out), eta)
    sets = np.zeros((1, 0), dtype=np.int64)
    for chosen in range(eta):
        last = sets[:, -1] if chosen else np.full(1, -1)
        # Leave room for the members still to come.
        choices = size - (eta - chosen) - last
        rows = np.repeat(np.arange(len(sets)), choices)
        offset = np.arange(len(rows)) - np.repeat(np.cumsum(choices) - choices, choices)
        sets = np.column_stack([sets[rows], last[rows] + 1 + offset])
    return sets


def _few(size: int, eta: int) -> bool:
    """Whether all sets of this size can be listed; huge binomials are not even computed."""
    fewer = min(eta, size - eta)
    # C(F, k) is at least (F / k)^k.
    at_least = log(size) + (fewer * log(size / fewer) if fewer else 0.0)
    return at_least <= log(CELL_LIMIT) + _LOG_ROUNDING and comb(size, fewer) * size <= CELL_LIMIT


def _learned(sets: Ints, pull: Floats, prior: Floats, ground: Ground) -> tuple[Floats, Floats]:
    """`A` and `E` of each set."""
    strength, distance = np.empty(len(sets)), np.empty(len(sets))
    step = max(1, _CHUNK // len(prior))
    for start in range(0, len(sets), step):
        part = slice(start, start + step)
        weight = prior[sets[part]] * pull[part]
        total = weight.sum(axis=1)
        share = weight / np.where(total > 0.0, total, 1.0)[:, None]
        shift = np.repeat(-prior[None, :], len(share), axis=0)
        shift[np.arange(len(share))[:, None], sets[part]] += share
        strength[part], distance[part] = total, ground.work(shift)
    return strength, distance


def listed_pulls(design: Design) -> tuple[Ints, Floats] | None:
    """Every set that a design can draw and its members' pulls.

    None when they are too many to list.
    """
    if design.count() * design.structure.size > CELL_LIMIT:
        return None
    sets = design.sets()
    blind = design.blind_likelihood(sets)
    drawn = blind > 0.0
    return sets[drawn], design.likelihood(sets[drawn]) / blind[drawn, None]


def exact_odds(sets: Ints, pull: Floats, prior: Floats, t: float, ground: Ground) -> float:
    """The largest odds of truth that keep every one of these sets within t. Exact.

    sets, pull   members (n, l) and `K(R | v) / B(R)` of each
    prior        the distribution of the attribute, A_j
    """
    strength, distance = _learned(sets, pull, prior, ground)
    matters = (strength > 0.0) & (distance > t + _ROUNDING)
    if not matters.any():
        return float("inf")
    return float((t / (strength[matters] * (distance[matters] - t))).min())


def exact_distance(sets: Ints, pull: Floats, prior: Floats, odds: float, ground: Ground) -> float:
    """The largest distance between prior and posterior over these sets. Exact."""
    strength, distance = _learned(sets, pull, prior, ground)
    seen = strength > 0.0
    return float((probability(odds * strength[seen]) * distance[seen]).max(initial=0.0))


def _mass_range(prior: Floats, etas: Ints) -> tuple[Floats, Floats]:
    """The lightest and the heaviest mass of eta values."""
    rising = np.concatenate([[0.0], np.cumsum(np.sort(prior))])
    return rising[etas], np.minimum(rising[-1] - rising[len(prior) - etas], 1.0)


def _nearest_masses(prior: Floats, etas: Ints, target: Floats) -> Floats:
    """For each eta, the mass of the eta values nearest to its target.

    Exact up to 20 values or at the ends of the range.

    Inside the range of a larger domain the target itself is returned, which is never better for us than a real set.
    """
    lightest, heaviest = _mass_range(prior, etas)
    nearest = np.clip(target, lightest, heaviest)
    inside = (lightest < target) & (target < heaviest)
    if not inside.any() or len(prior) > _MASK_BITS:
        return nearest
    masses, members = np.zeros(1), np.zeros(1, dtype=np.int8)
    for mass in prior:
        masses = np.concatenate([masses, masses + mass])
        members = np.concatenate([members, members + 1])
    for index in np.flatnonzero(inside):
        of_size = masses[members == etas[index]]
        nearest[index] = of_size[np.abs(of_size - target[index]).argmin()]
    return nearest


def uniform_odds(prior: Floats, etas: Ints, t: float, ground: Ground | None = None) -> Floats:
    """The largest odds that keep t-closeness for this prior, for uniform sets of sizes `etas`.

    Never above what the worst set allows. Exact for the equal ground up to 20 values, or when the worst set is the
    heaviest or the lightest one; for other grounds exact as long as all sets can be listed (`CELL_LIMIT`), and the
    value of the equal ground, which is never larger, beyond.
    """
    size = len(prior)
    rho = etas / size
    mass = _nearest_masses(prior, etas, np.full(len(etas), (1.0 - t) / 2.0))
    gap = mass * (1.0 - mass - t)
    matters = gap > _ROUNDING * mass
    odds = np.full(len(etas), np.inf)
    odds[matters] = rho[matters] * t / gap[matters]
    if ground is None or isinstance(ground, Equal):
        return odds
    for index, eta in enumerate(etas.tolist()):
        if _few(size, eta):
            sets = subsets(size, eta)
            odds[index] = exact_odds(sets, np.full(sets.shape, size / eta), prior, t, ground)
    return odds


def uniform_distance(prior: Floats, eta: int, odds: float, ground: Ground | None = None) -> float:
    """The largest distance between prior and posterior for sets of eta values drawn uniformly.

    Exact where `uniform_odds` is, an upper bound elsewhere.
    """
    size = len(prior)
    if eta == size or odds == 0.0:
        return 0.0
    if not (ground is None or isinstance(ground, Equal)) and _few(size, eta):
        sets = subsets(size, eta)
        return exact_distance(sets, np.full(sets.shape, size / eta), prior, odds, ground)
    gain = odds * size / eta
    if np.isinf(gain):
        # Every set with some mass leaves only itself: the lightest one is the worst.
        lightest = _mass_range(prior, np.array([eta]))[0][0]
        return float(1.0 - max(lightest, prior[prior > 0.0].min(initial=1.0)))
    # The distance gain a (1 - a) / (1 + gain a) has one peak in a, at 1 / (1 + sqrt r), but is not symmetric about it.
    peak = np.array([1.0 / (1.0 + np.sqrt(1.0 + gain))])
    return _peak_distance(prior, eta, gain, peak)


def _peak_distance(prior: Floats, eta: int, gain: float, peak: Floats) -> float:
    etas = np.array([eta])
    lightest, heaviest = _mass_range(prior, etas)
    masses = np.clip(peak, lightest, heaviest)
    if lightest[0] < peak[0] < heaviest[0] and len(prior) <= _MASK_BITS:
        masses = prior[subsets(len(prior), eta)].sum(axis=1)
    return float((gain * masses * (1.0 - masses) / (1.0 + gain * masses)).max())


def closeness_reached(mechanism: Mechanism, reference: Floats, ground: Ground) -> float | None:
    """The largest distance between a reference distribution and its posterior after a set.

    Exact, or an upper bound; None when there are too many sets to look at.

    >>> from polyseme.designs import make_design
    >>> from polyseme.semantics.distances.base import Clusters
    >>> free = Mechanism(make_design("balanced", Clusters(np.arange(4)), 1), 0.5)
    >>> closeness_reached(free, np.full(4, 0.25), Equal())
    0.375
    """
    design, p = mechanism.design, mechanism.p
    odds = p / (1.0 - p) if p < 1.0 else np.inf
    if design.even:
        return uniform_distance(reference, mechanism.l, odds, ground)
    listed = listed_pulls(design)
    return None if listed is None else exact_distance(*listed, reference, odds, ground)
