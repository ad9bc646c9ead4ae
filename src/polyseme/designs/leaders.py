"""Which member of a set has the highest score: exact, without a list of sets if possible.

Order the values by score. The k-th one leads exactly when it is in the set and none of those before it is, so

    P(the k-th leads) = Z(without the first k - 1) / Z - Z(without the first k) / Z

where `Z` is the total weight of the valid sets of a design in the shape of a product of weights, here with some weights
set to zero. On a line and over clusters it is a dynamic program of `O(F l)`, on a circle one for each way of cutting
it; all of them are computed side by side. Other designs go through their listed sets. `Design.leading` picks the way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyseme.designs.chain import Chain
from polyseme.designs.ring import ring_of
from polyseme.kernel.arrays import Floats, Ints
from polyseme.semantics.distances.base import Circle

__all__ = ["Within", "among_listed", "any_of", "around", "on_chain", "peeled"]

_WORK = 40_000_000
"""Most cells (values times members times steps) that are gone through: one to two seconds on one core."""
_CELLS = 1 << 17
"""Cells that are worked on together: what stays in the cache."""

_REST = 1e-13
"""What is left of a whole when its parts are subtracted one by one is rounding up to about this, not weight."""

Within = Callable[[Floats], Floats]
"""From the part of each value's (or cluster's) weight that is kept, (steps, units), to `Z / Z(all)`, (steps,)."""


def peeled(score: Floats, least: float, unit: Ints, share: Floats, within: Within, work: int) -> Floats:
    """For each value, the probability that it leads with a score above `least`.

    Values are taken away from the highest score down.

    Where that would be too much work (`_WORK`) neighboring scores are taken together and the highest of them is named.

    unit    the place or the cluster of each value, of whose weight it has `share`
    work    cells that one step takes
    """
    order = np.argsort(-score, kind="stable")
    order = order[: int(np.count_nonzero(score > least))]
    out = np.zeros(len(score))
    if len(order) == 0:
        return out
    steps = _steps(score[order], max(_WORK // work, 2))
    left = np.ones(len(steps))
    units = int(unit.max(initial=0)) + 1
    block = max(_CELLS // units, 1)
    kept, done = np.ones(units), 0
    for start in range(0, len(steps), block):
        ends = steps[start : start + block]
        gone = np.zeros((len(ends), units))
        taken = order[done : int(ends[-1])]
        np.add.at(gone, (np.searchsorted(ends, np.arange(done, int(ends[-1])) + 1), unit[taken]), share[taken])
        parts = np.maximum(kept - np.cumsum(gone, axis=0), 0.0)
        parts[parts < _REST] = 0.0
        left[start : start + block] = within(parts)
        kept, done = parts[-1], int(ends[-1])
    chance = -np.diff(np.clip(left, 0.0, 1.0), prepend=1.0)
    out[order[np.append(0, steps[:-1])]] = np.maximum(chance, 0.0)
    return out


def _steps(falling: Floats, most: int) -> Ints:
    """After how many values to count: after each, or after `most` at even ranks and even scores."""
    count = len(falling)
    if count <= most:
        return np.arange(1, count + 1)
    ranks = np.linspace(1, count, most // 2).astype(np.int64)
    levels = np.linspace(falling[0], falling[-1], most - most // 2)
    return np.unique(np.append(ranks, np.maximum(np.searchsorted(-falling, -levels), 1)))


def on_chain(chain: Chain) -> Within:
    """Along the places of a chain."""
    # Over clusters each place may be followed by the next one.
    neighbors = bool(np.array_equal(chain.steps.back_high, np.arange(chain.size)))

    def within(kept: Floats) -> Floats:
        steps, weights = chain.steps, kept * chain.weights
        before = np.zeros_like(weights)
        before[:, : steps.first_end] = 1.0
        sums = np.zeros((len(kept), chain.size + 1))
        for r in range(chain.l - 1):
            np.cumsum(weights * before, axis=1, out=sums[:, 1:])
            before = sums[:, :-1].copy() if neighbors else sums.take(steps.back_high, axis=1)
            if steps.tight.size:
                before -= sums.take(steps.back_low, axis=1)
            before *= np.exp(chain.before_scale[r] - chain.before_scale[r + 1])
        total = (weights * np.maximum(before, 0.0))[:, steps.last_start :].sum(axis=1)
        share: Floats = total * np.exp(chain.before_scale[-1] - chain.log_total)
        return share

    return within


def any_of(size: int, l: int) -> Within:
    """Any `l` of `size` values, all sets alike: the binomial of those that are kept."""
    from scipy.special import gammaln

    def within(kept: Floats) -> Floats:
        rest = kept.sum(axis=1)
        logs = gammaln(rest + 1.0) - gammaln(np.maximum(rest - l, 0.0) + 1.0)
        logs -= gammaln(size + 1.0) - gammaln(size - l + 1.0)
        return np.where(rest >= l, np.exp(logs), 0.0)

    return within


def around(circle: Circle, log_weights: Floats, l: int, score: Floats, least: float) -> Floats:
    """On a circle; `log_weights` and `score` by code."""
    size, logs = circle.size, log_weights[circle.order]
    ring = ring_of(circle)
    weights = np.exp(logs - logs.max())
    weights *= l / weights.sum()
    cut = int(ring.ahead[0])
    everything = float(_circle_total(ring.ahead, ring.behind, l, weights[None, :])[0])

    def within(kept: Floats) -> Floats:
        return _circle_total(ring.ahead, ring.behind, l, kept * weights) / everything

    return peeled(score, least, np.argsort(circle.order), np.ones(size), within, l * size * (cut + 1))


def _circle_total(ahead: Ints, behind: Ints, l: int, weights: Floats) -> Floats:
    """The total weight of the valid sets of a circle, cut where its first place begins.

    Of the places that are too close to the first a set holds at most one. Without them, and without those too close to
    the one it holds, the rest is a line.
    """
    size = weights.shape[1]
    cut = int(ahead[0])
    total = _line_total(ahead, l, weights, cut, size)
    for place in range(min(cut, size)):
        others = _line_total(ahead, l - 1, weights, int(ahead[place]), int(behind[place + size]) + 1)
        total += weights[:, place] * others
    return total


def _line_total(ahead: Ints, l: int, weights: Floats, start: int, end: int) -> Floats:
    """The total weight of sets of `l` places from `start` to before `end`, the circle unrolled."""
    if l == 0:
        return np.ones(len(weights))
    if end <= start:
        return np.zeros(len(weights))
    places = np.arange(start, end)
    mine = weights[:, places % weights.shape[1]]
    following = np.minimum(ahead[places], end) - start
    sums, after = np.zeros((len(weights), end - start + 1)), np.ones_like(mine)
    for r in range(l):
        sums[:, -2::-1] = np.cumsum((mine * after)[:, ::-1], axis=1)
        if r + 1 < l:
            after = sums[:, following]
    return np.asarray(sums[:, 0])


def among_listed(sets: Ints, chance: Floats, score: Floats, least: float) -> Floats:
    """From all sets and their probabilities."""
    mine = score[sets]
    rows = np.arange(len(sets))
    top = mine.argmax(axis=1)
    leads = mine[rows, top] > least
    return np.bincount(sets[rows, top][leads], chance[leads], len(score)).astype(np.float64)
