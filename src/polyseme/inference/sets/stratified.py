"""One table from records that were published through different mechanisms.

A cell of the table whose records all went through the same mechanisms is estimated from them alone. Where a cell mixes
strata, maximum likelihood in each of them would not do: every small stratum overestimates its rare values a little, and
these biases add up while errors only add up in squares. So each stratum contributes its unbiased estimate,

    x  minimizes  (x - u)' V^-1 (x - u)    over the tables x >= 0 with the same total

where
    u  the sum of the unbiased estimates of the strata, see `unbiased`
    V  its covariance about the people in the table

and the limits are the normal ones of u.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.inference.base import Estimator, Fit, Population
from polyseme.inference.counts import Part, containment
from polyseme.inference.intervals.limits import CellFit, LikelihoodLimits, LinearLimits, Unbiased, Widened, around
from polyseme.inference.intervals.unbiased import Half, unbiased_table
from polyseme.inference.sets.cross_validation import folded, margin_of
from polyseme.inference.sets.linear import NO_VARIANCE, Inverse
from polyseme.inference.sets.maximum import LARGE, Bayes, MaximumLikelihood, Shrink, assemble, may_lie
from polyseme.inference.sets.registry import choose, estimator_given
from polyseme.inference.sets.smooth import Smooth
from polyseme.inference.solver import MATRIX_CELLS, nonnegative_minimum
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.work import tracked

__all__ = ["fit_parts", "is_likely", "nearest_table"]

MIXED = "this group mixes strata with different mechanisms: their unbiased estimates were combined"

_WORK = 3e10
"""Operations for the second moments of all reports, about ten seconds; beyond that `inverse` is used."""
_RIDGE = 1e-3
"""Variance, for each record, that every value has at least when the nearest table is sought."""
_TOTAL = 1e4
"""How much stiffer the total is than the stiffest cell; it is then restored exactly."""


def is_likely(chosen: Estimator | None) -> bool:
    """Whether a table is estimated by the likelihood of its sets, as by default."""
    return chosen is None or isinstance(chosen, MaximumLikelihood | Shrink | Smooth)


def fit_parts(
    parts: Sequence[Part], shape: tuple[int, ...], estimator: str | Estimator | None = None
) -> tuple[str, Fit]:
    """The name of the estimator, and the estimated table of this shape: (cells, F_1, ..., F_q).

    estimator  a name or an estimator; None lets the data choose
    """
    chosen = estimator_given(estimator)
    if len(parts) == 1 and parts[0].is_whole(shape):
        return _fitted(parts[0], chosen)
    if chosen is not None and not isinstance(chosen, MaximumLikelihood | Shrink | Smooth | Bayes):
        return chosen.name, _Sum(parts, [_fitted(part, chosen)[1] for part in parts], shape).fit()
    if isinstance(chosen, Bayes) or not all(part.reports.paired for part in parts):
        used = chosen or MaximumLikelihood()
        return used.name, _by_inverse(parts, shape, "", used)
    plain, mixed = _Stratified(parts, shape).fit()
    helped = any(part.reports.finer for part in parts)
    if isinstance(chosen, MaximumLikelihood) or (chosen is None and mixed and not helped):
        return MaximumLikelihood.name, plain
    return _added(parts, shape, chosen, plain)


def _fitted(part: Part, chosen: Estimator | None) -> tuple[str, Fit]:
    if chosen is None:
        return choose(part.reports, part.mechanisms)
    return chosen.name, chosen.fit(part.reports, part.mechanisms)


def _added(parts: Sequence[Part], shape: tuple[int, ...], chosen: Estimator | None, plain: Fit) -> tuple[str, Fit]:
    """The sum of the parts' own estimates, with the limits of the plain one."""
    values, expected, names, notes = np.zeros(shape), np.zeros(shape), [], []
    for part in tracked(parts, "groups", "Estimating groups"):
        name, fit = _fitted(part, chosen)
        part.added(values, fit.values)
        part.added(expected, fit.about("super").values)
        names.append(name)
        notes.append(fit.notes)
    name = " and ".join(dict.fromkeys(names))
    said = (*_notes(parts, notes), *(note for note in plain.notes if note == MIXED))
    if names == [MaximumLikelihood.name] * len(names):
        return name, replace(plain, notes=said)
    return name, around(plain, values, expected, gap=plain.gap, notes=said)


def _notes(parts: Sequence[Part], notes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What holds for every part, and what holds for some."""
    common = [note for note in notes[0] if all(note in others for others in notes)]
    single = [
        f"{part.totals().sum():,.0f} records by themselves: {note}"
        for part, own in zip(parts, notes)
        for note in own
        if note not in common
    ]
    return (*common, *single)


class _Stratified:
    """Maximum likelihood for cells with one stratum, a sum of unbiased estimates for others."""

    def __init__(self, parts: Sequence[Part], shape: tuple[int, ...]) -> None:
        self.parts = parts
        self.shape = shape
        self.size = int(np.prod(shape[1:]))
        # A part without records in a cell has no say there.
        self.here: list[list[tuple[Part, int]]] = [[] for _ in range(shape[0])]
        for part in parts:
            for place, (cell, total) in enumerate(zip(part.cells, part.totals())):
                if total > 0:
                    self.here[cell].append((part, place))

    def fit(self) -> tuple[Fit, bool]:
        """The table, and whether any of its cells mixes strata."""
        mixed = any(len(here) > 1 for here in self.here)
        if self.size > MATRIX_CELLS or (mixed and self._work() > _WORK):
            return _by_inverse(self.parts, self.shape, LARGE, MaximumLikelihood()), mixed
        own = {id(part): MaximumLikelihood().fit(part.reports, part.mechanisms) for part in self._alone()}
        folds = self._folds() if mixed else {}
        if not all(axis.identifiable for pair in folds.values() for fold in pair for axis in fold.maps):
            return _by_inverse(self.parts, self.shape, "", MaximumLikelihood()), mixed
        fit = assemble([self._cell(here, own, folds) for here in self.here], self.shape, self._totals())
        return (replace(fit, notes=(*fit.notes, MIXED)) if mixed else fit), mixed

    def _work(self) -> float:
        """Operations that the second moments of the reports take."""
        return float(self.size) ** 2 * sum(len(part.reports.counts) for part in self.parts)

    def _totals(self) -> Floats:
        return np.array([sum(float(part.totals()[place]) for part, place in here) for here in self.here])

    def _alone(self) -> Iterator[Part]:
        """The parts that some cell has all records of."""
        seen = set()
        for here in self.here:
            if len(here) == 1 and id(here[0][0]) not in seen:
                seen.add(id(here[0][0]))
                yield here[0][0]

    def _cell(self, here: Sequence[tuple[Part, int]], own: dict[int, Fit], folds: dict[int, list[Half]]) -> CellFit:
        if not here:
            return CellFit(np.zeros(self.size), 0.0, np.arange(0), None, None)
        if len(here) > 1:
            return self._mixed(here, folds)
        (part, place) = here[0]
        limits = own[id(part)].limits
        assert isinstance(limits, LikelihoodLimits)  # noqa: S101 - the table is small enough
        return self._widened(limits.fits[place], part.flat(self.shape))

    def _widened(self, fit: CellFit, flat: Ints) -> CellFit:
        """The fit of a part's cell in the codes of the whole table."""

        def whole(values: Floats) -> Floats:
            out = np.zeros(self.size)
            out[flat] = values
            return out

        unbiased = fit.unbiased
        if unbiased is not None:
            second = np.zeros((self.size, self.size))
            second[np.ix_(flat, flat)] = unbiased.second
            unbiased = Unbiased(whole(unbiased.values), second)
        ceiling = None if fit.ceiling is None else whole(fit.ceiling)
        return replace(fit, x=whole(fit.x), places=flat[fit.places], ceiling=ceiling, unbiased=unbiased, possible=flat)

    def _folds(self) -> dict[int, list[Half]]:
        """The two halves of each part, with what a set adds by the other half and other parts."""
        return {id(part): pair for part, pair in zip(self.parts, folded(self.parts, self.shape[1:], margin_of))}

    def _mixed(self, here: Sequence[tuple[Part, int]], folds: dict[int, list[Half]]) -> CellFit:
        values, ceiling = np.zeros(self.size), np.zeros(self.size)
        second, least = np.zeros((self.size, self.size)), np.zeros((self.size, self.size))
        for part, place in here:
            rows, flat = part.reports.rows(place), part.flat(self.shape)
            sets = tuple(codes[rows] for codes in part.reports.sets)
            for fold in folds[id(part)]:
                found = unbiased_table(fold.maps, sets, fold.counts[rows])
                values[flat] += found.values
                second[np.ix_(flat, flat)] += found.second
                if fold.covariance is not None:
                    least[np.ix_(flat, flat)] += float(fold.counts[rows].sum()) * fold.covariance
            alone = replace(part.reports, sets=sets, cell=0 * rows, counts=part.reports.counts[rows], cells=1)
            ceiling[flat] += containment(alone, part.mechanisms).ravel()
        places = np.unique(np.concatenate([part.flat(self.shape) for part, _ in here]))
        total, repeats = float(values.sum()), here[0][0].reports.repeats
        unbiased, x = Unbiased(values, second, least), np.zeros(self.size)
        x[places] = nearest_table(values[places], least[np.ix_(places, places)], total)
        lies = any(may_lie(part.mechanisms) for part, _ in here)
        return CellFit(x, 0.0, places, None, None if lies else ceiling, repeats, unbiased, places)


def nearest_table(values: Floats, covariance: Floats, total: float) -> Floats:
    """The nearest table without negative cells, in units of the errors."""
    # The total has no error at all, and where sets tell a value for sure, neither has that.
    ridge = _RIDGE * (np.maximum(values, 0.0) + total / len(values))
    information = np.linalg.inv(covariance + np.diag(ridge))
    information = (information + information.T) / 2.0
    stiff = _TOTAL * float(information.diagonal().max())
    x = nonnegative_minimum(information + stiff, information @ values + stiff * total, values > 0.0)
    return np.asarray(x * (total / x.sum()), dtype=np.float64)


def _by_inverse(parts: Sequence[Part], shape: tuple[int, ...], note: str, estimator: Estimator) -> Fit:
    """The sum of the parts' estimates, with the errors and limits of the unbiased `inverse`."""
    values, totals = np.zeros(shape), np.zeros(shape[0])
    for part in parts:
        part.added(values, estimator.fit(part.reports, part.mechanisms).values)
        totals[part.cells] += part.totals()
    try:
        linear = _Sum(parts, [Inverse().fit(part.reports, part.mechanisms) for part in parts], shape).fit()
    except ImpossibleError:
        return Fit(values, np.full(shape, np.nan), notes=(NO_VARIANCE,), totals=totals)
    notes = (*([note] if note else []), *linear.notes)
    return replace(linear, values=values, notes=notes, limits=Widened(LinearLimits(linear, None), values, values))


@dataclass(frozen=True, eq=False)
class _Sum:
    """The sum of linear estimates of the parts."""

    parts: Sequence[Part]
    fits: Sequence[Fit]
    shape: tuple[int, ...]

    def fit(self) -> Fit:
        values, variance, totals = np.zeros(self.shape), np.zeros(self.shape), np.zeros(self.shape[0])
        for part, fit in zip(self.parts, self.fits):
            part.added(values, fit.values)
            part.added(variance, fit.variance)
            totals[part.cells] += part.totals()
        return Fit(
            values=values,
            variance=variance,
            notes=_notes(self.parts, [fit.notes for fit in self.fits]),
            totals=totals,
            spread=self._spread if all(fit.spread is not None for fit in self.fits) else None,
            repeats=max(fit.repeats for fit in self.fits),
        )

    def _spread(self, contrasts: Floats, population: Population) -> Floats:
        """Variances of sums of cells; decoys of different parts are drawn independently."""
        variance = np.zeros(len(contrasts))
        sums, squares, totals = (
            np.zeros((len(contrasts), self.shape[0])),
            np.zeros(len(contrasts)),
            np.zeros(self.shape[0]),
        )
        for part, fit in zip(self.parts, self.fits):
            inside = contrasts[np.ix_(np.arange(len(contrasts)), part.cells, *part.axes)]
            assert fit.spread is not None  # noqa: S101 - otherwise the sum has no spread
            variance += fit.spread(inside, population)
            here, own = (inside * fit.values).reshape(len(inside), len(part.cells), -1).sum(axis=2), part.totals()
            sums[:, part.cells] += here
            squares += _ratio(here**2, own).sum(axis=1)
            totals[part.cells] += own
        if population == "super":
            # How many members of the population fall into each part is random too.
            between = squares - _ratio(sums**2, totals).sum(axis=1)
            variance += max(fit.repeats for fit in self.fits) * np.maximum(between, 0.0)
        return variance


def _ratio(numerator: Floats, records: Floats) -> Floats:
    return np.asarray(np.divide(numerator, records, out=np.zeros_like(numerator), where=records > 0))
