"""Which likelihood estimator, when none is named: the one under which reports left out of the fit are most likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyseme.estimators.base import Fit, Reports, check
from polyseme.estimators.maximum import MaximumLikelihood
from polyseme.estimators.shrink import Shrink, shrunk
from polyseme.estimators.simpler import Simpler, simpler_table
from polyseme.estimators.smooth import Smooth, Smoothed, smoothed
from polyseme.estimators.splines import is_ordered
from polyseme.estimators.strength import best_strength, left_out
from polyseme.mechanism import Mechanism

__all__ = ["choose"]

_WORTH = 2.0
"""Log-likelihood that a change must gain on all left-out reports together; less is within the luck of the draw."""


def choose(reports: Reports, mechanisms: Sequence[Mechanism]) -> tuple[str, Fit]:
    """`ml`, `shrink` or, where values stand on a line, `smooth`, and its fit; the notes name the choice."""
    check(reports, mechanisms)
    plain = MaximumLikelihood().fit(reports, mechanisms)
    if not reports.paired:
        return MaximumLikelihood.name, plain
    simpler = simpler_table(reports.sets, reports.counts, mechanisms, reports.cells)
    strength, gain = best_strength(reports, mechanisms, simpler, plain.values)
    if gain < _WORTH:
        note = "ml was chosen: shrinking made left-out reports no more likely"
        name, fit, strength = MaximumLikelihood.name, replace(plain, notes=(note, *plain.notes)), 0.0
    else:
        name, fit = Shrink.name, shrunk(reports, mechanisms, simpler.table, strength, plain)
    smoother = _smoother(reports, mechanisms, fit, simpler, strength)
    return (name, fit) if smoother is None else (Smooth.name, smoother.fit(plain))


def _smoother(
    reports: Reports, mechanisms: Sequence[Mechanism], fit: Fit, simpler: Simpler, strength: float
) -> Smoothed | None:
    """A smooth table, where it is clearly better than this fit, which was drawn to a simpler one with some strength.

    With few records the first order flatters both, but less the smooth one, which uses fewer numbers.
    """
    if not any(is_ordered(distance) for distance in reports.distances or ()):
        return None
    found = smoothed(reports, mechanisms)
    if found is None:
        return None
    values = fit.about("super").values
    totals = reports.totals(mechanisms).reshape(-1, *[1] * (values.ndim - 1))
    proportions = values / np.maximum(totals, 1.0)
    return found if found.left_out - left_out(reports, mechanisms, proportions, simpler, strength) >= _WORTH else None
