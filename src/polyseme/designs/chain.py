"""Sets as chains of places: the dynamic program behind lines and clusters.

A set of `l` places in ascending order is a chain in which each place is followed by one of its `next` places. With
weights `w`, `P(R)` is proportional to the product of `w` over the chain, and everything follows from two tables

    before[r, k]   total weight of r members that can stand before k
    after[r, k]    total weight of r members that can stand after k

filled by cumulative sums in `O(F l)`. Rows are scaled to a maximum of one, so nothing overflows.

A *tight* window of mutually incompatible places holds exactly one member of every set. Then a place may be followed
only by places that leap over no tight window; this is how a target on the boundary of the possible is met exactly.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError

__all__ = ["Chain", "EvenChain", "Steps"]

_LARGEST_LOG = 700.0
"""Largest logarithm whose exponential is still a number (709), rounded down."""
_CELLS = 20_000_000
"""Largest number of places times members for which tables are filled: four of 160 MB, chosen by judgment."""


class Steps:
    """Which place may follow which: `low[k] <= next < high[k]`, and the same looking back.

    ahead  first compatible place after each place, F when there is none
    tight  first places of windows `[k, ahead[k])` of which every set holds exactly one member
    """

    def __init__(self, ahead: Ints, tight: Ints) -> None:
        size = len(ahead)
        self.size, self.low, self.tight = size, ahead, tight
        # A member after k may stand no later than the end of the first tight window that starts after k.
        ends = np.append(ahead[tight], size)
        self.high: Ints = ends[np.searchsorted(tight, np.arange(size), side="right")]
        self.first_end = int(ends[0])
        self.last_start = int(tight[-1]) if tight.size else 0
        places = np.arange(size)
        self.back_high: Ints = np.searchsorted(self.low, places, side="right").astype(np.int64)
        self.back_low: Ints = np.searchsorted(self.high, places, side="right").astype(np.int64)

    def valid(self, places: Ints) -> Floats:
        """Whether each row of ascending places is a chain, as 1.0 or 0.0."""
        fits = (places[:, 0] < self.first_end) & (places[:, -1] >= self.last_start)
        for column in range(places.shape[1] - 1):
            here, following = places[:, column], places[:, column + 1]
            fits &= (following >= self.low[here]) & (following < self.high[here])
        return fits.astype(np.float64)


class Chain:
    """The distribution with log weights `log_weights` over chains of `l` places."""

    def __init__(self, steps: Steps, l: int, log_weights: Floats) -> None:
        self.steps, self.l, self.size = steps, l, steps.size
        if l * self.size > _CELLS:
            raise _too_large(l, self.size)
        # A common factor of the weights cancels; this choice keeps sums near one.
        top = log_weights.max()
        shift = top + np.log(np.exp(log_weights - top).sum() / l)
        self.log_weights = log_weights - shift
        self.weights = np.exp(self.log_weights)
        self._shift = float(shift)
        self._fill()

    @property
    def log_total(self) -> float:
        """The logarithm of the sum over all chains, of the weights that sums are taken with."""
        return self._log_total

    @property
    def log_partition(self) -> float:
        """The same, of the weights that were given."""
        return self.log_total + self.l * self._shift

    def _fill(self) -> None:
        steps, l, w = self.steps, self.l, self.weights
        self.before, self.after = np.zeros((l, self.size)), np.zeros((l, self.size))
        self.before[0, : steps.first_end] = 1.0
        self.after[0, steps.last_start :] = 1.0
        self.prefix, self.suffix = np.zeros((l, self.size + 1)), np.zeros((l, self.size + 1))
        before_scale, after_scale = np.zeros(l), np.zeros(l)
        for r in range(l):
            np.cumsum(w * self.before[r], out=self.prefix[r, 1:])
            np.cumsum((w * self.after[r])[::-1], out=self.suffix[r, -2::-1])
            if r + 1 < l:
                row = self.prefix[r, steps.back_high] - self.prefix[r, steps.back_low]
                self.before[r + 1], before_scale[r + 1] = _scaled(row, before_scale[r])
                row = self.suffix[r, steps.low] - self.suffix[r, steps.high]
                self.after[r + 1], after_scale[r + 1] = _scaled(row, after_scale[r])
        self.before_scale, self.after_scale = before_scale, after_scale
        total = (w * self.before[l - 1])[steps.last_start :].sum()
        self._log_total = float(np.log(total) + before_scale[l - 1]) if total > 0 else -np.inf

    @cached_property
    def mix(self) -> Floats:
        """Brings `before[r] * after[l-1-r]` to a probability."""
        logs = self.before_scale + self.after_scale[::-1] - self.log_total
        if logs.max(initial=0.0) > _LARGEST_LOG:
            raise _too_large(self.l, self.size)
        return np.asarray(np.exp(logs), dtype=np.float64)

    @cached_property
    def split(self) -> Floats:
        """`P(k is a member and exactly r members stand before it)`: (l, F)."""
        split: Floats = self.mix[:, None] * self.before * self.after[::-1] * self.weights
        return split

    @cached_property
    def inclusion(self) -> Floats:
        total: Floats = self.split.sum(axis=0)
        return total

    def log_probability(self, places: Ints) -> Floats:
        """`ln P` of rows of ascending places."""
        value = self.log_weights[places].sum(axis=1) - self.log_total
        return np.where(self.steps.valid(places) > 0, value, -np.inf)

    def joint(self, places: Ints) -> Floats:
        """`P(places[i] and k are both members)` for every k: (len(places), F)."""
        out = self._with_later(places) + self._with_earlier(places)
        out[np.arange(len(places)), places] = self.inclusion[places]
        return out

    def _with_later(self, places: Ints) -> Floats:
        """The part of `joint` where k stands after the given place."""
        steps, l, w, rows = self.steps, self.l, self.weights, np.arange(len(places))
        out, reach = np.zeros((len(places), self.size)), np.zeros((len(places), self.size))
        sums = np.zeros((len(places), self.size + 1))
        for r in range(1, l):
            # reach[i, k]: weight of r members before k, place i one of them; in the scale of before[r]
            reach *= w
            reach[rows, places] = w[places] * self.before[r - 1, places]
            np.cumsum(reach, axis=1, out=sums[:, 1:])
            reach = sums[:, steps.back_high]
            if steps.tight.size:
                reach -= sums[:, steps.back_low]
            reach *= np.exp(self.before_scale[r - 1] - self.before_scale[r])
            out += reach * (w * self.after[l - 1 - r] * self.mix[r])
        return out

    def _with_earlier(self, places: Ints) -> Floats:
        """The part of `joint` where k stands before the given place."""
        steps, l, w, rows = self.steps, self.l, self.weights, np.arange(len(places))
        out, reach = np.zeros((len(places), self.size)), np.zeros((len(places), self.size))
        sums = np.zeros((len(places), self.size + 1))
        for r in range(1, l):
            reach *= w
            reach[rows, places] = w[places] * self.after[r - 1, places]
            np.cumsum(reach[:, ::-1], axis=1, out=sums[:, -2::-1])
            reach = sums[:, steps.low]
            if steps.tight.size:
                reach -= sums[:, steps.high]
            reach *= np.exp(self.after_scale[r - 1] - self.after_scale[r])
            out += reach * (w * self.before[l - 1 - r] * self.mix[l - 1 - r])
        return out

    def joint_matrix(self) -> Floats:
        """`joint` of all places: (F, F)."""
        starts = range(0, self.size, 64)
        later = np.concatenate([self._with_later(np.arange(s, min(s + 64, self.size))) for s in starts])
        both: Floats = later + later.T
        both.flat[:: self.size + 1] = self.inclusion
        return both

    def covariance(self) -> Floats:
        """Covariances of membership, all places: (F, F)."""
        return self.joint_matrix() - np.outer(self.inclusion, self.inclusion)

    def covariance_times(self, vector: Floats) -> Floats:
        """`covariance() @ vector` without the matrix: the tables differentiated along `vector`."""
        steps, l, w = self.steps, self.l, self.weights
        slope_before, slope_after = np.zeros_like(self.before), np.zeros_like(self.after)
        sums = np.zeros(self.size + 1)
        for r in range(l - 1):
            np.cumsum(w * (vector * self.before[r] + slope_before[r]), out=sums[1:])
            sums[0] = 0.0
            row = sums[steps.back_high] - sums[steps.back_low]
            slope_before[r + 1] = row * np.exp(self.before_scale[r] - self.before_scale[r + 1])
            np.cumsum((w * (vector * self.after[r] + slope_after[r]))[::-1], out=sums[-2::-1])
            sums[-1] = 0.0
            row = sums[steps.low] - sums[steps.high]
            slope_after[r + 1] = row * np.exp(self.after_scale[r] - self.after_scale[r + 1])
        slope = self.mix @ (slope_before * self.after[::-1] + self.before * slope_after[::-1])
        result: Floats = self.inclusion * (vector - self.inclusion @ vector) + w * slope
        return result

    def lightest(self, cost: Floats) -> Floats:
        """For each place, the least total `cost` of a possible set that holds it.

        Infinite if there is none.
        """
        steps, l = self.steps, self.l
        before, after = np.full((l, self.size), np.inf), np.full((l, self.size), np.inf)
        before[0, : steps.first_end] = 0.0
        after[0, steps.last_start :] = 0.0
        for r in range(l - 1):
            before[r + 1] = _least(cost + before[r], steps.back_low, steps.back_high)
            after[r + 1] = _least(cost + after[r], steps.low, steps.high)
        least: Floats = cost + (before + after[::-1]).min(axis=0)
        return least


class EvenChain(Chain):
    """Any `l` places, all chains alike: closed forms, for sets of any size."""

    def __init__(self, steps: Steps, l: int) -> None:
        self.steps, self.l, self.size = steps, l, steps.size
        self.log_weights, self.weights = np.zeros(self.size), np.ones(self.size)

    @property
    def log_total(self) -> float:
        from scipy.special import gammaln

        return float(gammaln(self.size + 1.0) - gammaln(self.l + 1.0) - gammaln(self.size - self.l + 1.0))

    @property
    def log_partition(self) -> float:
        return self.log_total

    @cached_property
    def inclusion(self) -> Floats:
        return np.full(self.size, self.l / self.size)

    @property
    def _pair(self) -> float:
        """The probability that two given places are both members."""
        return self.l * (self.l - 1) / max(self.size * (self.size - 1), 1)

    def joint(self, places: Ints) -> Floats:
        out = np.full((len(places), self.size), self._pair)
        out[np.arange(len(places)), places] = self.l / self.size
        return out

    def joint_matrix(self) -> Floats:
        return self.joint(np.arange(self.size))

    def covariance_times(self, vector: Floats) -> Floats:
        rho, total = self.l / self.size, float(vector.sum())
        result: Floats = (rho - self._pair) * vector + (self._pair - rho**2) * total
        return result

    def lightest(self, cost: Floats) -> Floats:
        cheap = np.argsort(cost, kind="stable")[: self.l]
        # A place that is not among the l cheapest takes the room of the dearest of them.
        least: Floats = np.maximum(cost - cost[cheap[-1]], 0.0) + cost[cheap].sum()
        return least


def _too_large(l: int, size: int) -> ImpossibleError:
    return ImpossibleError(
        f"sets of {l:,} of {size:,} values are too large for values with unequal probabilities", "use smaller sets"
    )


def _scaled(row: Floats, scale: float) -> tuple[Floats, float]:
    row = np.maximum(row, 0.0)
    top = row.max(initial=0.0)
    return (row / top, scale + float(np.log(top))) if top > 0 else (row, scale)


def _least(values: Floats, low: Ints, high: Ints) -> Floats:
    """The minimum of `values[low:high]` for each pair; infinite for an empty range.

    A range is covered by two overlapping ones whose length is a power of two, and minima over those are built by
    doubling.
    """
    width = np.maximum(high - low, 1)
    power = np.frexp(width.astype(np.float64))[1] - 1
    least = np.full(len(low), np.inf)
    spans = np.append(values, np.inf)
    for k in range(int(power.max(initial=0)) + 1):
        chosen = np.flatnonzero((power == k) & (low < high))
        least[chosen] = np.minimum(spans[low[chosen]], spans[high[chosen] - (1 << k)])
        step = 1 << k
        spans = np.minimum(spans[:-step], spans[step:]) if len(spans) > step else spans
    return least
