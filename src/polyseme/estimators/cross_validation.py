"""How strongly to shrink: as far as it makes reports that were left out of the fit more likely.

Leaving out one report of set R changes the fitted table by `M a_R / f_R`, to first order, where `M` is the inverse
curvature of the penalized likelihood among the tables of the same total. So the log-likelihood of all reports, each
under the fit without it, is

    sum_i c_i log f_i  -  tr(M J),      J = sum_i c_i a_i a_i' / f_i^2

The trace is the number of parameters that the fit really uses. With a penalty of `s m_v` further records of value v,
`S = diag(s m / x^2)`, and with `(J + S) x = (n + s) 1` at the maximum it is

    tr(M J)  =  K - tr((J + S)^-1 S) - n / (n + s)

where
    K  the cells that are not zero; without a penalty K - 1 parameters are left

The simpler table m was itself made from the reports, so leaving one out moves it too. With the response T of m to a
report, see `simpler`, and the share r of a group in all records that is a further

    r tr(M diag(s / x) T)

For a product of margins and a great strength these are the parameters of the margins.

That is a statement about many records. With few of them for each cell, parts of the reports are held out instead and
the rest is fitted again, which then costs little; so are, with one part, tables with too many cells for a matrix. The
simpler table is then remade from the rest, unless the part held out is small beside all reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.cells import CellLikelihoods
from polyseme.estimators.counts import distinct, shape_of
from polyseme.estimators.likelihood import Joined, Likelihood, likelihood_of
from polyseme.estimators.solver import MATRIX_CELLS, maximise, tolerance_for
from polyseme.estimators.target import Simpler, simpler_table
from polyseme.kernel.work import check_cancelled
from polyseme.randomness import experiment

__all__ = ["best_strength", "left_out", "towards", "used_parameters"]

_STEPS = tuple(10.0**exponent for exponent in range(10))
"""From hardly any pull to one that no table of fewer than 10^9 records resists; steps of ten bracket the optimum."""
_FOLDS = 4
"""Parts of the reports of which each is held out once: few, because every one of them is a fit. A judgment."""
_GROUPS = 48
"""Groups that are tried of very many, spread evenly: the strength is one for all. A judgment, for speed."""
_SMALL = 100
"""Cells of a table from which on a fit takes so long that not every part is held out; a judgment."""
_PLENTY = 20_000
"""Records with which one held-out part, of 5,000, says enough about a large table; a judgment."""
_LIMIT = 60
"""Steps of a fit under trial; what has not converged by then is judged as it is. Measured on 1,188 fits of 100,000
records in 40 groups: 4 in the middle, 12 at the most."""
_IDLE = 1e-4
"""A strength below this share of a group's records changes nothing that can be seen."""
_MANY = 50
"""Records for each cell from which one report is so little that its absence is a matter of first order."""
_SLACK = 1.0
"""Log-likelihood of held-out reports that a weaker strength may lose to the best one and still be preferred."""
_LARGE_SHARE = 0.1
"""The share of all records from which a group has a say in the simpler table."""
_SEED = 20_210_413
"""Any number: the same table is split into the same folds each time."""
_ZERO = 1e-9
"""Shares below this are zeros that the solver has not finished setting."""


def best_strength(likelihoods: CellLikelihoods, simpler: Simpler, plain: Floats) -> tuple[float, float]:
    """The weakest strength under which held-out reports are about as likely as under the best, and its gain over zero.

    plain  the tables without a penalty, to start from

    Strengths rise by powers of ten until two in a row are worse than the best; then the halves beside it are tried.
    """
    trials, reports = _trials(likelihoods, simpler, plain), likelihoods.reports
    records = float(reports.counts.sum())
    least, most = _IDLE * records / max(reports.cells, 1), 10.0 * records
    scores = {0.0: sum(trial.judged(0.0) for trial in trials)}
    for strength in _STEPS:
        if least <= strength <= most:
            scores[strength] = sum(trial.score(strength) for trial in trials)
            if max(list(scores.values())[-2:]) < max(scores.values()):
                break
    best = max(scores, key=scores.__getitem__)
    for strength in (best / np.sqrt(10.0), best * np.sqrt(10.0)) if best > 0.0 else ():
        scores[strength] = sum(trial.score(strength) for trial in trials)
    chosen = min(strength for strength, score in scores.items() if score >= max(scores.values()) - _SLACK)
    return chosen, scores[chosen] - scores[0.0]


def towards(x: Floats, target: Floats, ratio: float) -> Floats:
    """Where a stronger penalty will about take the table: no cell of it at zero."""
    return (x + ratio * target) / (1.0 + ratio)


class _Trial(ABC):
    """One group of reports, fitted with rising strengths.

    x  the last fit; at first the one without a penalty
    """

    def __init__(self, fitted: Likelihood, simpler: Simpler, x: Floats) -> None:
        self.fitted = fitted
        self.simpler = simpler
        self.x = x

    def score(self, strength: float) -> float:
        """Fit with this strength, and judge."""
        target = self.simpler.table
        joined = Joined.of(self.fitted, strength * target)
        start = towards(self.x, target, strength / self.fitted.records)
        self.x = maximise(joined, self.tolerance(joined.records), limit=_LIMIT, start=start).x
        return self.judged(strength)

    def tolerance(self, records: float) -> float:
        """How near to the maximum a fit has to be."""
        return tolerance_for(records)

    @abstractmethod
    def judged(self, strength: float) -> float:
        """The log-likelihood of held-out reports under the last fit."""


class _LeftOut(_Trial):
    """Every report left out once."""

    def __init__(self, fitted: Likelihood, simpler: Simpler, x: Floats, share: float) -> None:
        super().__init__(fitted, simpler, x)
        self.share = share

    def judged(self, strength: float) -> float:
        return self.fitted.value(self.x) - used_parameters(self.fitted, self.x, self.simpler, strength, self.share)


class _HeldOut(_Trial):
    """A part of the reports held out."""

    def __init__(self, fitted: Likelihood, held: Likelihood, simpler: Simpler, start: Floats) -> None:
        near = self.tolerance(fitted.records)
        super().__init__(fitted, simpler, maximise(fitted, near, start=start, limit=_LIMIT).x)
        self.held = held

    def tolerance(self, records: float) -> float:
        # The log-likelihood is then within a tenth of the slack of its maximum: strengths do not differ by less.
        return max(0.1 * _SLACK / records, tolerance_for(records))

    def judged(self, strength: float) -> float:
        return self.held.value(self.x)


def used_parameters(likelihood: Likelihood, x: Floats, simpler: Simpler, strength: float, share: float = 1.0) -> float:
    """The parameters used at the maximum `x` (proportions) of the likelihood with this penalty.

    share  of all records in this group
    """
    if strength == 0.0:
        return float((x > _ZERO).sum()) - 1.0
    f = likelihood.product(x)
    rows = np.divide(likelihood.counts, f**2, out=np.zeros_like(f), where=likelihood.counts > 0.0)
    penalty = strength * simpler.table / x**2
    curvature = likelihood.information(rows).copy()
    curvature[np.diag_indices_from(curvature)] += penalty
    inverse = np.linalg.inv(curvature)
    held = float(inverse.diagonal() @ penalty)
    ones = inverse.sum(axis=1)
    among = inverse - np.outer(ones, ones) / ones.sum()
    moved = float(np.sum(among * (strength / x[:, None] * simpler.response).T))
    return len(x) - held - likelihood.records / (likelihood.records + strength) + share * moved


def left_out(likelihoods: CellLikelihoods, proportions: Floats, simpler: Simpler, strength: float) -> float:
    """The log-likelihood of all reports, each under the fit without it, to first order.

    proportions  the fit: (cells, F_1, ..., F_q), each cell adding up to one
    """
    total, everybody = 0.0, max(float(likelihoods.reports.counts.sum()), 1.0)
    for likelihood, table in zip(likelihoods, proportions):
        x = table.ravel()
        if likelihood.records > 0:
            share = likelihood.records / everybody
            total += likelihood.value(x) - used_parameters(likelihood, x, simpler, strength, share)
    return total


def _trials(likelihoods: CellLikelihoods, simpler: Simpler, plain: Floats) -> list[_Trial]:
    """The groups with enough records; of very many groups some, because the strength is one for all."""
    reports = likelihoods.reports
    groups = [group for group in reports.by_cell() if group[2].sum() >= _FOLDS]
    if len(groups) > _GROUPS:
        groups = [groups[place] for place in np.linspace(0, len(groups) - 1, _GROUPS).astype(np.int64)]
    # Of a large table one part is enough when it holds many reports, and several groups are as many fits as parts.
    folds = _FOLDS
    if plain[0].size > _SMALL:
        folds = 1 if reports.counts.sum() >= _PLENTY else max(1, _FOLDS // max(len(groups), 1))
    making = _Making(likelihoods, simpler, folds, experiment(_SEED))
    trials: list[_Trial] = []
    for cell, sets, counts in groups:
        trials.extend(making.trials(cell, sets, counts, plain[cell].ravel()))
    return trials


@dataclass(frozen=True, eq=False)
class _Making:
    """What the trials of every group share."""

    likelihoods: CellLikelihoods
    simpler: Simpler
    folds: int
    generator: np.random.Generator

    def trials(self, cell: int, sets: Sequence[Ints], counts: Ints, plain: Floats) -> Iterator[_Trial]:
        whole, reports, mechanisms = self.likelihoods[cell], self.likelihoods.reports, self.likelihoods.mechanisms
        start = plain / whole.records
        if whole.size <= MATRIX_CELLS and whole.records >= _MANY * whole.size:
            share = whole.records / float(reports.counts.sum())
            yield _LeftOut(whole, self.simpler, start, share)
            return
        # Distinct reports in their own order, so that the parts do not depend on the order of the rows.
        rows, inverse = distinct(np.hstack(sets), max(shape_of(mechanisms)))
        total = np.bincount(inverse, weights=counts.astype(np.float64)).astype(np.int64)
        parts = np.split(rows, np.cumsum([codes.shape[1] for codes in sets])[:-1], axis=1)
        left = total
        for fold in range(self.folds if whole.size <= MATRIX_CELLS else 1):
            check_cancelled()
            held = self.generator.binomial(left, 1.0 / (_FOLDS - fold))
            left = left - held
            if 0 < held.sum() < total.sum():
                fitted, kept = (likelihood_of(parts, part, mechanisms) for part in (total - held, held))
                yield _HeldOut(fitted, kept, self.without(cell, parts, total - held), start)

    def without(self, cell: int, sets: Sequence[Ints], rest: Ints) -> Simpler:
        """The simpler table when of this group's reports only the rest is known."""
        reports = self.likelihoods.reports
        if rest.sum() < _LARGE_SHARE * reports.counts.sum():
            return self.simpler
        others = reports.cell != cell
        joined = [np.vstack([codes, more[others]]) for codes, more in zip(sets, reports.sets)]
        counts = np.concatenate([rest, reports.counts[others]])
        return simpler_table(joined, counts, self.likelihoods.mechanisms, reports.cells)
