"""Between the even spread and the largest likelihood: tables from labels, shrunk.

    x  =  w step(x) + (1 - w) even      maximizes      log L(x)  +  s sum_v even_v / n log x_v,      w = n / (n + s)

where
    step  the table to expect when each record is shared out in proportion to x
    even  the even spread
    s     further records, as if drawn from the even spread
    n     the records

So w = 1 is the largest likelihood and w = 0 the even spread, and whatever lies between is a way to share the records
out as well: what is known exactly stays exact, and margins that both tables keep are kept. The weight is the one under
which records that were left out of the fit are most likely.

Records that show labels are fitted with each attribute by itself: the labels of other records say how the values of a
label are distributed.

    x(c, v)  =  S [ w step(x)(c, v) + (1 - w) even(c, v) ]

where
    x     records of cell c with value v of one attribute
    step  each record shared out among the values of its label in proportion to x
    even  the even spread
    w     how far the likelihood is trusted, see above
    S     a moving average over neighbors, for numbers in ascending order; else nothing

Attributes are taken one by one, as if they had nothing to do with one another within a cell; so does the even spread.
Fitted together, as `ml` does, the combinations are so many that hardly two labels tell them apart, and the likelihood
picks those few combinations that most labels share. With several cells, those of few records are drawn toward the
distribution over all of them.

Labels are not chosen at random, because methods show wide ones where values are rare. Records left out say how well x
foretells labels, but not whether values behind wide labels are like those behind narrow ones. So the even spread is
left only as far as they clearly demand it (`_SLACK`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from polyseme.inference.solver import STILL, fixed_point
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.kernel.work import check_cancelled

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["WEIGHTS", "LabelCounts", "Mixed", "Sharing", "Trial", "best_weight", "folds_of", "mixed", "weight_of"]

WEIGHTS = (0.0, 0.3, 0.5, 0.7, 0.85, 0.92, 0.96, 0.98, 0.99, 1.0)
"""Those that are tried. They are closer near 1, where tables change most: steps repeat themselves, and what a step is
short of by 1 - w adds up."""
_FOLDS = 5
"""Parts of the records of which each is left out once; a judgment, as usual."""
_TRIED = 0.01
"""Records by which no cell moves any more when a table is only tried."""
_HOPELESS = 10.0
"""Log-likelihood below the best one at which larger weights, which take the most steps, are not tried any more."""
_SEED = 20_240_607
"""Of the parts: the same release has the same estimate."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """A table between the even spread and the largest likelihood.

    weights  by the place of the attribute: 0 for the even spread, 1 for the largest likelihood
    """

    values: Floats
    weights: Mapping[int, float]
    converged: bool = True


def mixed(
    step: Callable[[Floats], Floats], even: Floats, weight: float, start: Floats | None = None, still: float = STILL
) -> tuple[Floats, bool]:
    """The table that this weight leads to, and whether the steps converged."""
    if weight == 0.0:
        return even, True
    start = even if start is None else start
    return fixed_point(lambda table: weight * step(table) + (1.0 - weight) * even, start, still)


def weight_of(strength: float, records: float) -> float:
    """The weight that is the same as this many further records."""
    return records / (records + strength) if records else 0.0


def folds_of(counts: Ints) -> Iterator[Ints]:
    """How many of each kind of record are left out, part by part; together all of them."""
    generator, left = experiment(_SEED), np.asarray(counts, dtype=np.int64)
    for fold in range(_FOLDS):
        check_cancelled()
        held = generator.binomial(left, 1.0 / (_FOLDS - fold))
        left = left - held
        yield held


@dataclass(eq=False)
class Trial:
    """A part that is left out, and the table of the rest, which follows the weights upwards."""

    step: Callable[[Floats], Floats]
    even: Floats
    judged: Callable[[Floats], float]
    table: Floats | None = None

    def score(self, weight: float) -> float:
        """The log-likelihood of the part."""
        self.table, _ = mixed(self.step, self.even, weight, self.table, _TRIED)
        return self.judged(self.table)


def best_weight(trials: Sequence[Trial], slack: float) -> float:
    """The weight under which the parts are most likely.

    slack  log-likelihood that another weight may lose and still be preferred: a larger one, or where negative a smaller
    """
    scores = list[float]()
    for weight in WEIGHTS:
        scores.append(sum(trial.score(weight) for trial in trials))
        if scores[-1] < max(scores) - _HOPELESS:
            break
    close = np.flatnonzero(np.array(scores) >= max(scores) - abs(slack))
    return WEIGHTS[int(close[-1 if slack > 0 else 0])]


_SLACK = 2.0
"""Log-likelihood of left-out records that a stronger pull to the even spread may lose and still be preferred; a
judgment, on the side of the even spread because the likelihood assumes more than is known."""
_POOLED = (np.inf, 1_000.0, 100.0, 10.0, 0.0)
"""Further records from the distribution over all cells that are tried for each cell."""
_WIDTH = 1 / 8
"""Standard deviation of the moving average, as a share of the numbers. A judgment: on Adult's ages, errors with 5 to
12 years were within 3% of one another for both kinds of Mondrian, and the wider the better after local recoding."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """How a label is shared out among its values.

    weight   of the likelihood
    expected the table in proportion to which that part goes: (cells, values)
    """

    weight: float
    expected: Floats
    converged: bool


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """One attribute: how many records of each cell show each label.

    counts      (cells, labels)
    stands_for  whether each label may stand for each value: (labels, values)
    numbers     how many values, the first ones, are numbers in ascending order
    """

    counts: Ints
    stands_for: csr_array
    numbers: int = 0

    @cached_property
    def even(self) -> Floats:
        lengths = np.maximum(self.stands_for.sum(axis=1), 1)
        return np.asarray((self.counts / lengths) @ self.stands_for, dtype=np.float64)

    def step(self, table: Floats) -> Floats:
        """The table to expect when labels are shared out in proportion to another one."""
        behind = self.behind(table)
        shares = np.divide(self.counts, behind, out=np.zeros(behind.shape), where=behind > 0)
        return np.asarray(table * (shares @ self.stands_for), dtype=np.float64)

    def behind(self, table: Floats) -> Floats:
        """How much of a table stands behind each label: (cells, labels)."""
        return np.asarray(table @ self.stands_for.T, dtype=np.float64)

    def times(self, counts: Ints) -> LabelCounts:
        """With other numbers of records."""
        return LabelCounts(counts, self.stands_for, self.numbers)

    @property
    def pooled(self) -> LabelCounts:
        """All cells as one."""
        return self.times(self.counts.sum(axis=0, keepdims=True))

    def log_likelihood(self, table: Floats) -> float:
        """Of these labels, when values are distributed as in a table of other records."""
        # One more record, which may have any value: what has not been seen is not impossible.
        total = table.sum(axis=1, keepdims=True)
        likely = self.behind((table + 1.0 / table.shape[1]) / (total + 1.0))
        return float((self.counts * np.log(np.maximum(likely, 1e-300))).sum())

    def shared(self, strength: float | None = None) -> Sharing:
        """How labels are shared out.

        strength  in records; None takes the weight that records left out of the fit demand
        """
        whole = self.pooled
        weight = whole._best_weight() if strength is None else weight_of(strength, float(whole.counts.sum()))
        table, converged = whole._fitted(weight)
        if len(self.counts) > 1:
            table, converged = self._drawn(table, weight, self._best_pull(weight))
        return Sharing(weight, table, converged)

    def _best_weight(self) -> float:
        trials = [
            Trial(rest._smooth_step, rest._smooth(rest.even), left_out.log_likelihood)
            for rest, left_out in self._parts()
        ]
        return best_weight(trials, -_SLACK)

    def _parts(self) -> Iterator[tuple[LabelCounts, LabelCounts]]:
        """What is fitted and what is left out."""
        for held in folds_of(self.counts):
            yield self.times(self.counts - held), self.times(held)

    def _best_pull(self, weight: float) -> float:
        scores = np.zeros(len(_POOLED))
        for rest, left_out in self._parts():
            whole, _ = rest.pooled._fitted(weight)
            scores += [left_out.log_likelihood(rest._drawn(whole, weight, pull)[0]) for pull in _POOLED]
        return _POOLED[int(np.flatnonzero(scores >= scores.max() - _SLACK)[0])]

    def _fitted(self, weight: float) -> tuple[Floats, bool]:
        return mixed(self._smooth_step, self._smooth(self.even), weight)

    def _drawn(self, whole: Floats, weight: float, pull: float) -> tuple[Floats, bool]:
        """Cells drawn toward the distribution over all of them, by as many further records."""
        records = self.counts.sum(axis=1, keepdims=True).astype(np.float64)
        toward = records * whole / max(float(whole.sum()), 1.0)
        own = np.zeros_like(records) if np.isinf(pull) else records / np.maximum(records + pull, 1e-9)

        def drawn(table: Floats) -> Floats:
            return np.asarray(own * self._smooth(table) + (1.0 - own) * toward, dtype=np.float64)

        return mixed(lambda table: drawn(self.step(table)), drawn(self.even), weight)

    def _smooth_step(self, table: Floats) -> Floats:
        return self._smooth(self.step(table))

    def _smooth(self, table: Floats) -> Floats:
        from scipy.ndimage import gaussian_filter1d

        if self.numbers < 3:
            return table
        smoothed = gaussian_filter1d(table[:, : self.numbers], self.numbers * _WIDTH, axis=1, mode="reflect")
        return np.hstack([smoothed, table[:, self.numbers :]])
