"""Tables of survey weights: how many people of a population the records stand for.

    x = sum_i w_i y(R_i)

where
    w_i   the weight of record i
    y(R)  what a set adds to an unbiased table, see `unbiased`: the expectation of `y(R_i)` is 1 at the true value of
          record i and 0 elsewhere, so that of x is the sum of the weights of the records with each value

Sets are drawn for each record by itself, whatever it weighs, so

    var(k . x) = sum_i w_i^2 (k . y_i)^2 - sum_v k_v^2 s_v,      s = sum_i w_i^2 y_i

about the records of the table: s estimates, without bias, the sum of the squared weights of each value. About the
population that n records were drawn from, as if with replacement and with probabilities inverse to their weights,

    var(k . x) = sum_i w_i^2 (k . y_i)^2 - (k . x)^2 / n

and for shares and means, in which the sum W of the weights is taken as given, `sum_i w_i^2 (k . y_i - k . x / W)^2`.

The working distribution of y is the one that a record has when it is chosen in proportion to its squared weight, by
maximum likelihood on the other half of the reports: at it no such sum is more precise. Negative cells are removed, as
where strata are mixed, while the limits are the normal ones of x. With equal weights, all this is the ordinary table
times the weight, and so that is what is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.inference.base import Estimator, Fit, Limits, Population
from polyseme.inference.counts import Part, containment
from polyseme.inference.intervals.intervals import normal_quantile
from polyseme.inference.intervals.limits import Sampled, Unbiased
from polyseme.inference.intervals.unbiased import Half, inverse_map, unbiased_table
from polyseme.inference.sets import stratified
from polyseme.inference.sets.cross_validation import folded, held, margin_of
from polyseme.inference.sets.linear import Inverse
from polyseme.inference.sets.maximum import may_lie
from polyseme.inference.sets.registry import estimator_given
from polyseme.inference.sets.stratified import nearest_table
from polyseme.inference.solver import MATRIX_CELLS
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import Problem, QuestionError

__all__ = ["fit_table"]

NAME = "weighted"
UNWEIGHTED = "--unweighted counts the records instead (unweighted=True)"


def fit_table(
    parts: Sequence[Part], shape: tuple[int, ...], estimator: str | Estimator | None = None
) -> tuple[str, Fit]:
    """The name of the estimator, and the estimated table of records or of their weights."""
    if not _weighted(parts):
        return stratified.fit_parts(parts, shape, estimator)
    same = _common_weight(parts)
    if same is not None:
        name, fit = stratified.fit_parts([_counting(part) for part in parts], shape, estimator)
        return name, _scaled(fit, same)
    chosen = estimator_given(estimator)
    _check_possible(parts, shape, chosen)
    table = _Weighted(parts, shape, linear=chosen is not None)
    return (NAME if chosen is None else chosen.name), table.fit(projected=chosen is None)


def _weighted(parts: Sequence[Part]) -> bool:
    return any(part.reports.weights is not None for part in parts)


def _weights(part: Part) -> Floats:
    weights = part.reports.weights
    assert weights is not None  # noqa: S101 - all parts of a table come from one release
    return weights


def _common_weight(parts: Sequence[Part]) -> float | None:
    """The weight that all records have; None where they differ."""
    found = np.unique(np.concatenate([_weights(part) for part in parts]))
    return float(found[0]) if len(found) == 1 else None


def _counting(part: Part) -> Part:
    """The same records without their weights."""
    return replace(part, reports=replace(part.reports, weights=None))


def _check_possible(parts: Sequence[Part], shape: tuple[int, ...], chosen: Estimator | None) -> None:
    problems = []
    if chosen is not None and not isinstance(chosen, Inverse):
        what = f"{chosen.name} counts records, and knows no weights"
        problems.append(Problem("estimator", what, f"omit --estimator, or use {Inverse.name}; {UNWEIGHTED}"))
    if not all(part.reports.paired for part in parts):
        what = "in the long form it is not known which rows are one record, so no error of a weighted table is known"
        problems.append(Problem("of", what, f"publish the set form; {UNWEIGHTED}"))
    if (size := int(np.prod(shape[1:]))) > MATRIX_CELLS:
        what = f"a weighted table has at most {MATRIX_CELLS:,} cells for each group, and this one {size:,}"
        problems.append(Problem("of", what, f"ask for fewer attributes; {UNWEIGHTED}"))
    if problems:
        raise QuestionError(problems)


# -- equal weights ---------------------------------------------------------------------------------------------------


def _scaled(fit: Fit, weight: float) -> Fit:
    """A table of records that all weigh the same."""
    spread, limits = fit.spread, fit.limits
    return replace(
        fit,
        values=weight * fit.values,
        variance=weight**2 * fit.variance,
        totals=None if fit.totals is None else weight * fit.totals,
        expected=None if fit.expected is None else weight * fit.expected,
        spread=None if spread is None else lambda contrasts, population: weight**2 * spread(contrasts, population),
        limits=None if limits is None else _Scaled(limits, weight),
        # The multinomial variance is proportional to the values, and the weight is squared in it.
        repeats=weight * fit.repeats,
    )


@dataclass(frozen=True, eq=False)
class _Scaled(Limits):
    """The limits of a table whose numbers are all multiplied by a weight."""

    inner: Limits
    weight: float

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        low, high = self.inner(contrasts, level, population)
        return self.weight * low, self.weight * high

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        low, high = self.inner.cells(level, population)
        return self.weight * low, self.weight * high


# -- different weights -----------------------------------------------------------------------------------------------


class _Weighted:
    """The weighted table of all parts.

    linear  whether a set adds what it does for `inverse`, however the values are distributed
    """

    def __init__(self, parts: Sequence[Part], shape: tuple[int, ...], linear: bool = False) -> None:
        self.parts, self.shape, self.size = parts, shape, int(np.prod(shape[1:]))
        self.halves = [_undivided(part) for part in parts] if linear else folded(parts, shape[1:], margin_of)
        if not all(axis.identifiable for pair in self.halves for half in pair for axis in half.maps):
            what = "some values leave the same traces in the sets, so their weighted sums have no unbiased estimate"
            raise QuestionError(Problem("of", what, UNWEIGHTED))

    def fit(self, projected: bool) -> Fit:
        """The table; without negative cells where it is to be projected."""
        tables, ceiling, totals = self._tables(), self._ceiling(), np.zeros(self.shape[0])
        for part in self.parts:
            totals[part.cells] += part.totals()
        values = np.array([self._nearest(table) if projected else table.values for table in tables])
        repeats = max(part.reports.repeats for part in self.parts)
        drawn = WeightedLimits(tuple(tables), values, totals, ceiling, repeats, self.shape)
        return replace(drawn.fit(), given=drawn.given().fit())

    def _tables(self) -> list[Unbiased]:
        """The unbiased table of each cell, from the reports of all parts."""
        size = self.size
        values, squares, records = (
            np.zeros((self.shape[0], size)),
            np.zeros((self.shape[0], size)),
            np.zeros(self.shape[0]),
        )
        second, least = (np.zeros((self.shape[0], size, size)) for _ in range(2))
        for part, halves in zip(self.parts, self.halves):
            flat, weights = part.flat(self.shape), _weights(part)
            for place, cell in enumerate(part.cells):
                rows = np.flatnonzero(part.reports.cell == place)
                sets, here = tuple(codes[rows] for codes in part.reports.sets), np.ix_(flat, flat)
                for half in halves:
                    found = unbiased_table(half.maps, sets, half.counts[rows], weights[rows])
                    assert found.sampled is not None  # noqa: S101 - weights were given
                    values[cell, flat] += found.values
                    squares[cell, flat] += found.sampled.squares
                    second[cell][here] += found.second
                    records[cell] += found.sampled.records
                    if half.covariance is not None:
                        least[cell][here] += float(half.counts[rows] @ weights[rows] ** 2) * half.covariance
        return [
            Unbiased(values[cell], second[cell], least[cell], Sampled(squares[cell], records[cell]))
            for cell in range(self.shape[0])
        ]

    def _nearest(self, table: Unbiased) -> Floats:
        total = float(table.values.sum())
        if total <= 0.0 or table.least is None:
            return np.zeros(self.size)
        # A value that no record can have has no error, and stays at nothing.
        possible = np.flatnonzero((table.values != 0.0) | (table.least.diagonal() > 0.0))
        out = np.zeros(self.size)
        out[possible] = nearest_table(table.values[possible], table.least[np.ix_(possible, possible)], total)
        return out

    def _ceiling(self) -> Floats | None:
        """The weight of records whose sets contain each value: an upper bound for truthful sets."""
        if any(may_lie(part.mechanisms) for part in self.parts):
            return None
        out = np.zeros(self.shape)
        for part in self.parts:
            part.added(out, containment(part.reports, part.mechanisms))
        return out.reshape(self.shape[0], -1)


def _undivided(part: Part) -> list[Half]:
    """All reports of a part, with what a set adds for `inverse`."""
    said = held(part, part.reports.counts)
    maps = tuple(
        inverse_map(mechanism, margin_of(sets, said, mechanism))
        for sets, mechanism in zip(part.reports.sets, part.mechanisms)
    )
    return [Half(part.reports.counts, maps)]


@dataclass(frozen=True, eq=False)
class WeightedLimits(Limits):
    """Normal limits of unbiased tables, one for each cell of the untouched attributes.

    tables   the unbiased tables
    values   what is shown of them: (cells, size), flattened
    totals   what the records of each cell weigh
    ceiling  what the records weigh whose sets hold each value, where every set holds the truth
    """

    tables: tuple[Unbiased, ...]
    values: Floats
    totals: Floats
    ceiling: Floats | None
    repeats: float
    shape: tuple[int, ...]

    def given(self) -> WeightedLimits:
        """The same with the weight of every cell taken as given."""
        tables = tuple(
            replace(table, sampled=table.sampled and replace(table.sampled, given=True)) for table in self.tables
        )
        return replace(self, tables=tables)

    def fit(self) -> Fit:
        """The table with these limits."""
        finite, sampled = (self._variances(population).reshape(self.shape) for population in ("finite", "super"))
        values = self.values.reshape(self.shape)
        return Fit(
            values, finite, totals=self.totals, spread=self.spread, limits=self, repeats=self.repeats, sampled=sampled
        )

    def _variances(self, population: Population) -> Floats:
        units = np.eye(self.values.shape[1])
        return np.array([table.variance(units, population, self.repeats) for table in self.tables])

    def spread(self, contrasts: Floats, population: Population) -> Floats:
        """Variances of sums of cells: sets of different records are drawn independently."""
        flat = contrasts.reshape(len(contrasts), self.shape[0], -1)
        out = np.zeros(len(contrasts))
        for cell, table in enumerate(self.tables):
            out += table.variance(flat[:, cell], population, self.repeats)
        return out

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        flat = contrasts.reshape(len(contrasts), -1)
        center = flat @ np.concatenate([table.values for table in self.tables])
        half = normal_quantile(level) * np.sqrt(self.spread(contrasts, population))
        return _holding(flat @ self.values.ravel(), center, half)

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        center = np.array([table.values for table in self.tables])
        low, high = _holding(self.values, center, normal_quantile(level) * np.sqrt(self._variances(population)))
        low = np.maximum(low, 0.0)
        if population == "finite":
            roof = self.totals[:, None] if self.ceiling is None else np.maximum(self.ceiling, self.values)
            high = np.minimum(high, roof)
        return low.reshape(self.shape), high.reshape(self.shape)


def _holding(value: Floats, center: Floats, half: Floats) -> tuple[Floats, Floats]:
    """Limits around an unbiased estimate, widened to include the value where they do not."""
    low, high = center - half, center + half
    room = np.where((value < low) | (value > high), half, 0.0)
    return np.minimum(low, value - room), np.maximum(high, value + room)
