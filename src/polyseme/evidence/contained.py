"""Containment counts against the channel: the long form, in which it is not known which candidates belong together.

How often each value stands among the candidates is a mixture of the rows of `Q[v, u] = P(u in R | v)`; whether the
counts can be one is all that can be tested. For each value the records are split into those whose set holds it and
those whose set does not, and the deviances of these splits are added up at the shares of true values that make the sum
least. The splits are of the same sets, so they are not independent: a record moves l of them at once, and by the
inequality of Cauchy and Schwarz no sum of them varies more than l times as much as if they were. So the sum is divided
by l.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats
from polyseme.errors import ImpossibleError
from polyseme.estimators.likelihood import Likelihood
from polyseme.estimators.solver import MATRIX_CELLS, maximise, tolerance_for
from polyseme.evidence.found import Evidence, Finding, impossible, least, nothing
from polyseme.evidence.tails import deviance, deviance_tail
from polyseme.mechanism import Mechanism

__all__ = ["contained_evidence"]

_ROUNDING = 1e-9
"""Shares that are zero by construction come out this close to it."""
_SINGLES = "long form: only how often each value occurs could be tested, not which values occur together"


@dataclass(frozen=True, eq=False)
class _Splits(Likelihood):
    """For each value, how many records hold it and how many do not.

    matrix  (2F, F): the probability of holding each value, then that of not holding it, for each true value
    """

    matrix: Floats
    counts: Floats
    shape: tuple[int, ...]

    def product(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ x, dtype=np.float64)

    def pull(self, rows: Floats) -> Floats:
        return np.asarray(self.matrix.T @ rows, dtype=np.float64)

    def information(self, rows: Floats, thin: int = 1) -> Floats:
        return np.asarray((self.matrix.T * rows) @ self.matrix, dtype=np.float64)


def contained_evidence(contained: Floats, mechanism: Mechanism) -> Evidence:
    """The evidence of the numbers of sets that hold each value: (F,)."""
    records = float(contained.sum()) / mechanism.l
    if mechanism.size > MATRIX_CELLS:
        return nothing(records, f"long form with more than {MATRIX_CELLS:,} values: not tested")
    try:
        inclusion = mechanism.inclusion_matrix().T
    except ImpossibleError:
        return nothing(records, "long form of a mechanism whose inclusion probabilities are not known: not tested")
    if not np.isfinite(inclusion).all():
        return impossible(records, "the channel in the manifest is not a valid channel: it does not give probabilities")
    matrix = _without_rounding(np.concatenate([inclusion, 1.0 - inclusion]))
    counts = _without_rounding(np.concatenate([contained, records - contained]) / records) * records
    if (counts < 0.0).any() or (counts[~matrix.any(axis=1)] > 0.0).any():
        return impossible(records, "some values occur more often, or less often, than any sets would allow")
    splits = _Splits(matrix, counts, (mechanism.size,))
    solution = maximise(splits, tolerance_for(records))
    expected = records * splits.product(solution.x)
    lacking = 2.0 * counts.sum() * solution.gap
    found = max(deviance(counts, expected) - lacking, 0.0) / mechanism.l
    rarer = np.minimum(*np.split(expected, 2))
    return least([Finding("singles", found, deviance_tail(found, rarer))], records, _SINGLES)


def _without_rounding(shares: Floats) -> Floats:
    return np.where(np.abs(shares) <= _ROUNDING, 0.0, shares)
