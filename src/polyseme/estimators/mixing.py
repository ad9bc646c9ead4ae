"""Between the even spread and the largest likelihood: how far the steps of expectation maximisation are trusted.

    x  =  w step(x) + (1 - w) even      maximises      log L(x)  +  s sum_v even_v / n log x_v,      w = n / (n + s)

where
    step  the table to expect when each record is shared out in proportion to x
    even  the even spread
    s     further records, as if drawn from the even spread
    n     the records

So w = 1 is the largest likelihood and w = 0 the even spread, and whatever lies between is a way to share the records
out as well: what is known exactly stays exact, and margins that both tables keep are kept. The weight is the one under
which records that were left out of the fit are most likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.fixed_point import STILL, fixed_point
from polyseme.kernel.work import check_cancelled
from polyseme.randomness import experiment

__all__ = ["WEIGHTS", "Mixed", "Trial", "best_weight", "folds_of", "mixed", "weight_of"]

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
