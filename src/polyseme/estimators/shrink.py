"""`shrink`: maximum likelihood drawn towards a simpler table, as far as the release itself says it should be.

    x  maximises  sum_i c_i log f_i  +  strength * sum_v m_v log x_v

where
    m         the simpler table, see `simpler`: the product of the margins of the attributes; for one attribute in
              several groups its distribution over all of them; for one ordered attribute alone the neighbors' average;
              else uniform
    strength  in records: as many further records as if drawn from m

The penalty is that of a Dirichlet prior, so it acts like further reports whose true value is known, and the solver is
that of `ml`. The strength is the one under which reports left out of the fit are most likely, see `strength`; it is
never set by stopping the search early. Strength zero is `ml`, and the same criterion chooses between the two.

`x` is about the population that the records were drawn from: it is pulled towards m even where the records themselves
differ from it. The people in the table are estimated by what the reports say of each of them when x is the prior,

    sum_i c_i A[i, v] x_v / f_i  =  (n + strength) x_v - strength m_v      for the proportions x_v

so that only the doubt about a report is settled by m, never the report itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyseme.arrays import Floats
from polyseme.estimators.base import Estimator, Fit, Reports, check
from polyseme.estimators.cells import CellLikelihoods
from polyseme.estimators.cross_validation import best_strength, towards
from polyseme.estimators.likelihood import Joined
from polyseme.estimators.limits import around
from polyseme.estimators.maximum import convergence_note, most_likely
from polyseme.estimators.solver import maximise, shared_out, tolerance_for
from polyseme.estimators.target import simpler_table
from polyseme.mechanism import Mechanism

__all__ = ["Shrink", "shrunk"]


class Shrink(Estimator):
    """Penalized likelihood; wins where cells are many and records few.

    strength  fixed by hand, in records for each group; None lets held-out reports decide
    """

    name = "shrink"

    def __init__(self, strength: float | None = None) -> None:
        self.strength = strength

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        likelihoods = CellLikelihoods(reports, mechanisms)
        plain = most_likely(likelihoods)
        if not reports.paired:
            return replace(plain, notes=("shrinkage needs the sets: not applied to counts only", *plain.notes))
        simpler, strength = simpler_table(reports.sets, reports.counts, mechanisms, reports.cells), self.strength
        if strength is None:
            strength, _ = best_strength(likelihoods, simpler, plain.values)
        return shrunk(likelihoods, simpler.table, strength, plain)


def shrunk(likelihoods: CellLikelihoods, target: Floats, strength: float, plain: Fit) -> Fit:
    """The table shrunk towards `target` with this strength; `plain` is the one without."""
    expected, people, gap = [], [], 0.0
    for cell, likelihood in enumerate(likelihoods):
        joined = Joined.of(likelihood, strength * target) if strength > 0.0 else likelihood
        records = likelihood.records
        start = towards(plain.values[cell].ravel() / records, target, strength / records) if records else None
        solution = maximise(joined, tolerance_for(records), start=start)
        expected.append(solution.x * records)
        people.append(shared_out(likelihood, solution.x))
        gap = max(gap, solution.gap)
    shape = plain.values.shape
    note = f"shrunk towards a simpler table, as if by {_rounded(strength)} further records in each group"
    notes = (note, *convergence_note(gap), *plain.notes)
    return around(plain, np.array(people).reshape(shape), np.array(expected).reshape(shape), gap=gap, notes=notes)


def _rounded(strength: float) -> str:
    return f"{strength:,.0f}" if strength >= 10.0 else f"{strength:.2g}"
