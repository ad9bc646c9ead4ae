"""Containment counts against the channel: the long form, in which it is not known which candidates belong together.

How often each value stands among the candidates is a mixture of the rows of `Q[v, u] = P(u in R | v)`; whether the
counts can be one is all that can be tested.
"""

from __future__ import annotations

import numpy as np

from polyseme.distances.structure import Floats
from polyseme.errors import ImpossibleError
from polyseme.estimators.likelihood import ContainmentLikelihood
from polyseme.estimators.solver import MATRIX_CELLS, maximise, tolerance_for
from polyseme.evidence.found import Evidence, Finding, least, nothing
from polyseme.evidence.tails import share_tail
from polyseme.mechanism import Mechanism

__all__ = ["contained_evidence"]

_SINGLES = "long form: only how often each value occurs could be tested, not which values stand together"


def contained_evidence(contained: Floats, mechanism: Mechanism) -> Evidence:
    """The evidence of the numbers of sets that hold each value: (F,)."""
    records = float(contained.sum()) / mechanism.l
    if mechanism.size > MATRIX_CELLS:
        return nothing(records, f"long form with more than {MATRIX_CELLS:,} values: not tested")
    try:
        inclusion = mechanism.inclusion_matrix()
    except ImpossibleError:
        return nothing(records, "long form of a mechanism whose inclusion probabilities are not known: not tested")
    likelihood = ContainmentLikelihood((inclusion,), contained, (mechanism.size,))
    x = maximise(likelihood, tolerance_for(records)).x
    tails = share_tail(contained, records, x @ inclusion)
    tail = float(tails.min(initial=0.0))
    return least([Finding("singles", tail, tail, 2 * len(np.atleast_1d(tails)))], records, _SINGLES)
