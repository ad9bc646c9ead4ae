"""How strongly to shrink: as far as it makes reports left out of the fit more likely.

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
report, see `simpler_table`, and the share r of a group in all records that is a further

    r tr(M diag(s / x) T)

For a product of margins and a great strength these are the parameters of the margins.

That is a statement about many records. With few of them for each cell, parts of the reports are held out instead and
the rest is fitted again, which then costs little; so are, with one part, tables with too many cells for a matrix. The
simpler table is then remade from the rest, unless the part held out is small beside all reports.

The simpler table m is what the attributes say one by one. Reports are halved: each half has what a set adds to an
unbiased estimate as the other half and other parts settle it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.counts import Part, distinct, shape_of
from polyseme.inference.intervals.unbiased import Half, UnbiasedMap, unbiased_map
from polyseme.inference.likelihood import (
    STACKABLE,
    CellLikelihoods,
    Joined,
    Likelihood,
    RecordLikelihood,
    SetLikelihood,
    Stacked,
    likelihood_of,
)
from polyseme.inference.solver import (
    MANY_RECORDS,
    MATRIX_CELLS,
    WORK,
    expectation_maximization,
    maximize,
    maximize_stacked,
    steps_of_expectation,
    tolerances_for,
)
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.kernel.work import check_cancelled
from polyseme.semantics.distances.base import Circle, Line

__all__ = [
    "LEAST_GAIN",
    "Margin",
    "Simpler",
    "best_strength",
    "folded",
    "held",
    "left_out",
    "margin_of",
    "rough_margin",
    "simpler_table",
    "toward",
    "used_parameters",
]

_FLOOR = 0.01
"""Share of an even table in the simpler one: a value whose estimate is zero is not held at zero by it. A
judgment."""
_TARGET_STEPS = 30
"""Steps toward the maximum after which a rough distribution is near enough: further ones follow the noise of the
reports. Simulated on 14 to 250 ranks; 10 and 100 steps gave errors within 3% of these."""
_NO_SHARE = 1e-9
"""Shares below this are zeros that the solver has not finished setting."""


@dataclass(frozen=True, eq=False)
class Simpler:
    """A table that a fit may be drawn toward.

    table    its proportions, flattened, nowhere zero
    margins  the distributions of the attributes it is the product of, if it is one
    blur     for one attribute alone: how its distribution was averaged, (F, F); None beyond `MATRIX_CELLS`
    """

    table: Floats
    margins: tuple[Floats, ...] = ()
    blur: Floats | None = None

    @cached_property
    def response(self) -> Floats:
        """How the table moves with one more certain report of each combination: (K, K).

        In records: the change is `response[:, v] / n`, up to a multiple of the table itself.
        """
        size = len(self.table)
        if self.blur is not None:
            return self.blur
        moved = np.zeros((size, size))
        codes = np.unravel_index(np.arange(size), tuple(len(margin) for margin in self.margins)) if self.margins else ()
        for margin, code in zip(self.margins, codes):
            same = code[:, None] == code[None, :]
            # A value estimated to be absent stays absent.
            scale = np.divide(self.table, margin[code], out=np.zeros(size), where=margin[code] > _NO_SHARE)
            moved += same * scale[:, None]
        return moved


def simpler_table(sets: Sequence[Ints], counts: Ints, mechanisms: Sequence[Mechanism], groups: int) -> Simpler:
    """The product of the margins.

    Of one attribute its own distribution, to which each of several groups is drawn.

    One attribute in one group is drawn to the average over its neighbors, or to the same share for every value.
    """
    structure = mechanisms[0].design.structure
    alone = len(mechanisms) == 1 and groups == 1
    if alone and not isinstance(structure, Line | Circle):
        return Simpler(np.full(mechanisms[0].size, 1.0 / mechanisms[0].size))
    margins = tuple(margin_of(codes, counts, mechanism) for codes, mechanism in zip(sets, mechanisms))
    if alone and isinstance(structure, Line | Circle):
        return _neighbors(margins[0], structure)
    table = np.ones(1)
    for margin in margins:
        table = np.multiply.outer(table, margin).ravel()
    return Simpler(_floored(table), margins)


def _floored(table: Floats) -> Floats:
    return (1.0 - _FLOOR) * table + _FLOOR / len(table)


def rough_margin(sets: Ints, counts: Ints | Floats, mechanism: Mechanism) -> Floats:
    """The approximate distribution of one attribute: a few steps, averaged over neighbors."""
    rows, weights = _together(sets, counts, mechanism)
    if not weights.any():
        return np.full(mechanism.size, 1.0 / mechanism.size)
    likelihood = SetLikelihood.of([rows], weights, [mechanism])
    x, structure = expectation_maximization(likelihood, 0.0, _TARGET_STEPS).x, mechanism.design.structure
    if isinstance(structure, Line | Circle):
        x[structure.order] = _averaged(x[structure.order], structure)
    return np.asarray(x / x.sum(), dtype=np.float64)


def margin_of(sets: Ints, counts: Ints | Floats, mechanism: Mechanism) -> Floats:
    """The distribution of one attribute by maximum likelihood, all groups together."""
    rows, weights = _together(sets, counts, mechanism)
    return maximize(SetLikelihood.of([rows], weights, [mechanism])).x


def _together(sets: Ints, counts: Ints | Floats, mechanism: Mechanism) -> tuple[Ints, Floats]:
    """The distinct sets, and how often each was reported."""
    rows, inverse = distinct(sets, mechanism.size)
    weights = np.bincount(inverse, weights=counts.astype(np.float64), minlength=len(rows))
    return rows, np.asarray(weights, dtype=np.float64)


def _neighbors(x: Floats, structure: Line | Circle) -> Simpler:
    averaged = _averaged(x[structure.order], structure)
    table = np.empty_like(x)
    table[structure.order] = averaged / averaged.sum()
    blur = None
    if len(x) <= MATRIX_CELLS:
        blur = np.empty((len(x), len(x)))
        blur[np.ix_(structure.order, structure.order)] = _averaged(np.eye(len(x)), structure)
        blur[:, x <= _NO_SHARE] = 0.0
    return Simpler(_floored(table), blur=blur)


def _averaged(ordered: Floats, structure: Line | Circle) -> Floats:
    """Twice a quarter of either neighbor and a half of its own, along the first axis."""
    for _ in range(2):
        padded = np.pad(
            ordered, [(1, 1), *[(0, 0)] * (ordered.ndim - 1)], mode="wrap" if isinstance(structure, Circle) else "edge"
        )
        ordered = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    return ordered


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
LEAST_GAIN = 2.0
"""Log-likelihood that a penalty must gain on all held-out reports together; less is within the luck of the draw."""
_UNNOTICED, _DOUBT, _CLEARLY = 0.02, 0.5, 5.0
"""Log-likelihood of held-out reports that some steps of a fit change when it is settled; by which a decision must be
clear for such fits to be trusted with it; and by which a fit has lost before it has converged."""
_LARGE_SHARE = 0.1
"""The share of all records from which a group has a say in the simpler table."""
_SEED = 20_210_413
"""Any number: the same table is split into the same folds each time."""
_ZERO = 1e-9
"""Shares below this are zeros that the solver has not finished setting."""


def best_strength(likelihoods: CellLikelihoods, simpler: Simpler, plain: Floats) -> tuple[float, float]:
    """The weakest strength about as good as the best on held-out reports, and its gain.

    plain  the tables without a penalty, to start from

    Strengths rise by powers of ten until two in a row are worse than the best; then the halves beside it are tried.
    """
    trials, reports = _stacked_trials(_trials(likelihoods, simpler, plain)), likelihoods.reports
    records = float(reports.counts.sum())
    least, most = _IDLE * records / max(reports.cells, 1), 10.0 * records
    steps = [strength for strength in _STEPS if least <= strength <= most]
    large = [trial for trial in trials if isinstance(trial, _HeldOut) and trial.fitted.size > MATRIX_CELLS]
    if steps and large and len(large) == len(trials):
        found = _rough_strength(large, steps)
        if found is not None:
            return found
    for trial in trials:
        trial.begin()
    return _searched(lambda strength: sum(_scored(trial, strength) for trial in trials), steps)[:2]


def _scored(trial: _Judge, strength: float) -> float:
    return trial.score(strength) if strength > 0.0 else trial.judged(0.0)


def _searched(score: Callable[[float], float], steps: Sequence[float]) -> tuple[float, float, dict[float, float]]:
    """The strength, its gain, and all scores; a strength of 0 is asked for first."""
    scores = {0.0: score(0.0)}
    for strength in steps:
        scores[strength] = score(strength)
        if max(list(scores.values())[-2:]) < max(scores.values()):
            break
    best = max(scores, key=scores.__getitem__)
    for strength in (best / np.sqrt(10.0), best * np.sqrt(10.0)) if best > 0.0 else ():
        scores[strength] = score(strength)
    chosen = min(strength for strength, score in scores.items() if score >= max(scores.values()) - _SLACK)
    return chosen, scores[chosen] - scores[0.0], scores


def _rough_strength(trials: Sequence[_HeldOut], steps: Sequence[float]) -> tuple[float, float] | None:
    """The same decision from fits that end when the held-out reports no longer notice them.

    Where a penalty helps, the fit without one has to be followed only until it has clearly lost. None where scores are
    so near to each other that such fits do not settle it.
    """
    known: dict[float, float] = {}

    def score(strength: float) -> float:
        if strength not in known:
            known[strength] = sum(trial.settled(strength) for trial in trials)
        return known[strength]

    for strength in steps:
        score(strength)
        if max(list(known.values())[-2:]) < max(known.values()):
            break
    lost = max(known.values()) - _SLACK - _CLEARLY
    known[0.0] = sum(trial.settled(0.0, lost if len(trials) == 1 else -np.inf) for trial in trials)
    chosen, gain, scores = _searched(score, steps)
    near = [abs(value - max(scores.values()) + _SLACK) for value in scores.values()]
    lead = sorted(value for strength, value in scores.items() if strength in steps or strength == 0.0)
    sure = min(near) > _DOUBT and abs(gain - LEAST_GAIN) > _DOUBT and (len(lead) < 2 or lead[-1] - lead[-2] > _DOUBT)
    return (chosen, gain) if sure else None


def toward(x: Floats, target: Floats, ratio: float | Floats) -> Floats:
    """Where a stronger penalty will about take the table: no cell of it at zero."""
    return (x + ratio * target) / (1.0 + ratio)


class _Judge(ABC):
    """Reports that are fitted with rising strengths, and judged by others."""

    @abstractmethod
    def begin(self) -> None:
        """Fit without a penalty."""

    @abstractmethod
    def score(self, strength: float) -> float:
        """Fit with this strength, and judge."""

    @abstractmethod
    def judged(self, strength: float) -> float:
        """The log-likelihood of held-out reports under the last fit."""


class _Trial(_Judge):
    """One group of reports.

    x  the last fit; at first the one without a penalty
    """

    def __init__(self, fitted: Likelihood, simpler: Simpler, x: Floats) -> None:
        self.fitted = fitted
        self.simpler = simpler
        self.x = x

    def begin(self) -> None:
        """Nothing: the fit without a penalty is known."""

    def score(self, strength: float) -> float:
        target = self.simpler.table
        joined = Joined.of(self.fitted, strength * target)
        start = toward(self.x, target, strength / self.fitted.records)
        tolerance = float(self.tolerance(np.array([joined.records]))[0])
        self.x = maximize(joined, tolerance, limit=_LIMIT, start=start).x
        return self.judged(strength)

    @staticmethod
    def tolerance(records: Floats) -> Floats:
        """How near to the maximum a fit has to be."""
        return tolerances_for(records)

    @classmethod
    def stack(cls, trials: Sequence[Any]) -> _Judge:
        """Several of them as one."""
        raise NotImplementedError


class _LeftOut(_Trial):
    """Every report left out once."""

    def __init__(self, fitted: Likelihood, simpler: Simpler, x: Floats, share: float) -> None:
        super().__init__(fitted, simpler, x)
        self.share = share

    def judged(self, strength: float) -> float:
        return self.fitted.value(self.x) - used_parameters(self.fitted, self.x, self.simpler, strength, self.share)

    @classmethod
    def stack(cls, trials: Sequence[Any]) -> _Judge:
        return _LeftOutStack(trials, np.array([trial.share for trial in trials]))


class _HeldOut(_Trial):
    """A part of the reports held out."""

    def __init__(self, fitted: Likelihood, held: Likelihood, simpler: Simpler, start: Floats) -> None:
        super().__init__(fitted, simpler, start)
        self.held = held

        self.start = start

    def begin(self) -> None:
        near = float(self.tolerance(np.array([self.fitted.records]))[0])
        self.x = maximize(self.fitted, near, start=self.start, limit=_LIMIT).x

    def settled(self, strength: float, lost: float = -np.inf) -> float:
        """Fit until the held-out reports do not notice it any more, or fall below `lost`."""
        if strength == 0.0:
            fitted, start = self.fitted, self.start
        else:
            fitted = Joined.of(self.fitted, strength * self.simpler.table)
            start = toward(self.x, self.simpler.table, strength / self.fitted.records)
        tolerance, watch = float(self.tolerance(np.array([fitted.records]))[0]), _Watch(self.held, lost)
        self.x = maximize(fitted, tolerance, limit=_LIMIT, start=start, enough=watch).x
        return self.judged(strength)

    @staticmethod
    def tolerance(records: Floats) -> Floats:
        # The log-likelihood is then within a tenth of the slack of its maximum: strengths do not differ by less.
        return np.maximum(0.1 * _SLACK / records, tolerances_for(records))

    def judged(self, strength: float) -> float:
        return self.held.value(self.x)

    @classmethod
    def stack(cls, trials: Sequence[Any]) -> _Judge:
        return _HeldOutStack(trials, Stacked.of([each.held for each in trials if isinstance(each.held, SetLikelihood)]))


class _Watch:
    """Whether held-out reports still notice the steps of a fit."""

    def __init__(self, held: Likelihood, lost: float) -> None:
        self.held, self.lost = held, lost
        self.seen: list[float] = []

    def __call__(self, x: Floats) -> bool:
        self.seen.append(self.held.value(x))
        if len(self.seen) < 3:
            return False
        changes = np.abs(np.diff(self.seen[-3:]))
        return bool(changes.max() < _UNNOTICED or (self.seen[-1] < self.lost and self.seen[-1] < self.seen[-2]))


class _TrialStack(_Judge):
    """Several groups, fitted together."""

    def __init__(self, trials: Sequence[_Trial]) -> None:
        self.fitted = Stacked.of([trial.fitted for trial in trials if isinstance(trial.fitted, SetLikelihood)])
        self.target = np.array([trial.simpler.table for trial in trials])
        self.x = np.array([trial.x for trial in trials])
        self.tolerance = trials[0].tolerance

    def begin(self) -> None:
        """Nothing: the fit without a penalty is known."""

    def score(self, strength: float) -> float:
        joined = self.fitted.with_prior(strength * self.target)
        start = toward(self.x, self.target, strength / self.fitted.records[:, None])
        self.x = maximize_stacked(joined, self.tolerance(joined.records), limit=_LIMIT, start=start).x
        return self.judged(strength)


class _LeftOutStack(_TrialStack):
    """Every report left out once."""

    def __init__(self, trials: Sequence[_Trial], share: Floats) -> None:
        super().__init__(trials)
        self.simpler, self.share = trials[0].simpler, share

    def judged(self, strength: float) -> float:
        used = stacked_parameters(self.fitted, self.x, self.simpler, strength, self.share)
        return float(np.sum(self.fitted.values(self.x) - used))


class _HeldOutStack(_TrialStack):
    """A part of the reports of each group held out."""

    def __init__(self, trials: Sequence[_Trial], held: Stacked) -> None:
        super().__init__(trials)
        self.held = held

    def begin(self) -> None:
        near = self.tolerance(self.fitted.records)
        self.x = maximize_stacked(self.fitted, near, start=self.x, limit=_LIMIT).x

    def judged(self, strength: float) -> float:
        return float(self.held.values(self.x).sum())


def _stacked_trials(trials: Sequence[_Trial]) -> list[_Judge]:
    """Small groups stacked, those of one kind together; the others as they are."""
    out: list[_Judge] = []
    for kind in (_LeftOut, _HeldOut):
        own = [trial for trial in trials if isinstance(trial, kind)]
        small = [trial for trial in own if _is_small(trial.fitted) and _is_small(getattr(trial, "held", trial.fitted))]
        if len(small) > 1:
            out.append(kind.stack(small))
        out.extend(trial for trial in own if len(small) < 2 or trial not in small)
    return out


def _is_small(likelihood: Likelihood) -> bool:
    return isinstance(likelihood, SetLikelihood) and likelihood.stacks(2 * WORK)


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


def stacked_parameters(stack: Stacked, x: Floats, simpler: Simpler, strength: float, share: Floats) -> Floats:
    """The same of several groups: (groups,)."""
    if strength == 0.0:
        return np.asarray((x > _ZERO).sum(axis=1) - 1.0, dtype=np.float64)
    out, places = np.empty(stack.groups), np.arange(stack.size)
    for at, block in stack.blocks():
        here, f = x[at], block.product(x[at])
        rows = np.divide(block.counts, f**2, out=np.zeros_like(f), where=block.counts > 0.0)
        penalty = strength * simpler.table / here**2
        curvature = block.information(rows)
        curvature[:, places, places] += penalty
        inverse = np.linalg.inv(curvature)
        held = (inverse.diagonal(axis1=1, axis2=2) * penalty).sum(axis=1)
        ones = inverse.sum(axis=2)
        among = inverse - ones[:, :, None] * ones[:, None, :] / ones.sum(axis=1)[:, None, None]
        moved = np.einsum("gij,gj,ji->g", among, strength / here, simpler.response)
        records = block.summed(block.counts)
        out[at] = stack.size - held - records / (records + strength) + share[at] * moved
    return out


def left_out(likelihoods: CellLikelihoods, proportions: Floats, simpler: Simpler, strength: float) -> float:
    """The log-likelihood of all reports, each under the fit without it, to first order.

    proportions  the fit: (cells, F_1, ..., F_q), each cell adding up to one
    """
    total, everyone = 0.0, max(float(likelihoods.reports.counts.sum()), 1.0)
    tables, done = proportions.reshape(len(proportions), -1), np.zeros(len(proportions), dtype=np.bool_)
    for cells, stack in likelihoods.stacks(2 * WORK, MANY_RECORDS):
        used = stacked_parameters(stack, tables[cells], simpler, strength, stack.records / everyone)
        total += float(np.sum(stack.values(tables[cells]) - used))
        done[cells] = True
    for cell in np.flatnonzero(~done).tolist():
        likelihood, x = likelihoods[cell], tables[cell]
        if likelihood.records > 0:
            share = likelihood.records / everyone
            total += likelihood.value(x) - used_parameters(likelihood, x, simpler, strength, share)
    return total


def _trials(likelihoods: CellLikelihoods, simpler: Simpler, plain: Floats) -> list[_Trial]:
    """The groups with enough records; a sample of very many, since all share one strength."""
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
                fitted, kept = (self.likelihood(parts, part) for part in (total - held, held))
                yield _HeldOut(fitted, kept, self.without(cell, parts, total - held), start)

    def likelihood(self, sets: Sequence[Ints], counts: Ints) -> RecordLikelihood:
        """Of a part of the reports; a table that has no matrix needs only the rows that are there."""
        if int(np.prod(shape_of(self.likelihoods.mechanisms))) > MATRIX_CELLS:
            there = counts > 0
            sets, counts = [codes[there] for codes in sets], counts[there]
        return likelihood_of(sets, counts, self.likelihoods.mechanisms)

    def without(self, cell: int, sets: Sequence[Ints], rest: Ints) -> Simpler:
        """The simpler table when of this group's reports only the rest is known."""
        reports = self.likelihoods.reports
        if rest.sum() < _LARGE_SHARE * reports.counts.sum():
            return self.simpler
        others = reports.cell != cell
        joined = [np.vstack([codes, more[others]]) for codes, more in zip(sets, reports.sets)]
        counts = np.concatenate([rest, reports.counts[others]])
        return simpler_table(joined, counts, self.likelihoods.mechanisms, reports.cells)


Margin: TypeAlias = Callable[[Ints, Ints | Floats, Mechanism], Floats]
"""The distribution of one attribute, from sets and how often each was reported."""

_BORROWED = 2.0
"""Records for each value with which the other parts speak in the working distribution of a part: enough to steady a
small part, and nothing to a large one."""
_FOLD_SEED = 20_261_117
"""Any number: the same reports are halved in the same way each time."""


def folded(parts: Sequence[Part], sizes: Sequence[int], margin: Margin) -> list[list[Half]]:
    """The two halves of each part.

    sizes   of the attributes in the whole table
    margin  how the distribution of an attribute is found
    """
    draw = experiment(_FOLD_SEED)
    halves = [_halved(part.reports, draw) for part in parts]
    known = _known(parts, [part.reports.counts for part in parts], margin) if len(parts) > 1 else []
    first = _known(parts, halves, margin)
    second = _known(parts, [part.reports.counts - half for part, half in zip(parts, halves)], margin)
    everyone = [np.zeros(size) for size in sizes]
    for part, own in zip(parts, known):
        for axis, counts in enumerate(own):
            everyone[axis][part.axes[axis]] += counts
    folds = []
    for place, (part, half) in enumerate(zip(parts, halves)):
        rest = part.reports.counts - half
        others = [
            np.maximum(everyone[axis][codes] - known[place][axis], 0.0) if known else np.zeros(len(codes))
            for axis, codes in enumerate(part.axes)
        ]
        folds.append(
            [
                Half(counts, _maps(part, other, others, len(parts)))
                for counts, other in ((half, second[place]), (rest, first[place]))
            ]
        )
    return folds


def held(part: Part, counts: Ints) -> Ints | Floats:
    """What reports say, by their counts, or by squared weights, which errors come from."""
    weights = part.reports.weights
    if weights is None:
        return counts
    squares = counts * weights**2
    total = float(squares.sum())
    # As many records of equal weight as would be as precise.
    return squares * (total / float(squares @ weights**2)) if total > 0.0 else np.zeros(len(counts))


def _known(parts: Sequence[Part], counts: Sequence[Ints], margin: Margin) -> list[list[Floats]]:
    """What some of the reports of each part say of each attribute: its expected records."""
    said = [held(part, some) for part, some in zip(parts, counts)]
    found: list[list[Floats]] = [[] for _ in parts]
    for axis in range(len(parts[0].mechanisms)):
        reports = [(part.reports.sets[axis], some, part.mechanisms[axis]) for part, some in zip(parts, said)]
        for place, (shares, some) in enumerate(zip(_margins(reports, margin), said)):
            found[place].append(float(some.sum()) * shares)
    return found


def _margins(reports: Sequence[tuple[Ints, Ints | Floats, Mechanism]], margin: Margin) -> list[Floats]:
    """The distribution of an attribute in several parts; rough ones go together."""
    mechanism = reports[0][2]
    alike = len(reports) > 1 and all(each is mechanism for _, _, each in reports)
    if margin is not rough_margin or not alike or mechanism.size > STACKABLE:
        return [margin(*each) for each in reports]
    some = [place for place, (_, counts, _) in enumerate(reports) if counts.any()]
    found = [np.full(mechanism.size, 1.0 / mechanism.size) for _ in reports]
    if some:
        sets, counts = (np.concatenate([reports[place][item] for place in some]) for item in (0, 1))
        group = np.repeat(np.arange(len(some)), [len(reports[place][1]) for place in some])
        stack = SetLikelihood.of([sets], counts, [mechanism]).stacked(group, len(some))
        x = steps_of_expectation(stack, _TARGET_STEPS)
        structure = mechanism.design.structure
        if isinstance(structure, Line | Circle):
            x[:, structure.order] = _averaged(x[:, structure.order].T, structure).T
        for place, row in zip(some, x / x.sum(axis=1, keepdims=True)):
            found[place] = row
    return found


def _maps(part: Part, own: Sequence[Floats], others: Sequence[Floats], parts: int) -> tuple[UnbiasedMap, ...]:
    maps = []
    for mine, theirs, mechanism in zip(own, others, part.mechanisms):
        most = _BORROWED * mechanism.size / max(float(theirs.sum()), 1e-300)
        # One further record of the whole table, spread evenly, decides where there is no other.
        even = 1.0 / (mechanism.size * parts)
        maps.append(unbiased_map(mechanism, mine + theirs * min(most, 1.0) + even))
    return tuple(maps)


def _halved(reports: Reports, draw: np.random.Generator) -> Ints:
    """How many records of each report fall into a random first half, whatever the row order.

    Records of one draw stay together: they would tell each half the noise of the other.
    """
    weights = () if reports.weights is None else (reports.weights,)
    order = np.lexsort([*weights, *(column for sets in reports.sets for column in sets.T), reports.cell])
    counts = reports.counts[order]
    draws = np.maximum(np.rint(counts / reports.repeats), 1).astype(np.int64)
    half = np.empty_like(reports.counts)
    half[order] = counts * draw.binomial(draws, 0.5) // draws
    return half
