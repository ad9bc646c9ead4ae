"""Sums of cells from what each report adds to them, without the bias of non-negativity.

A likelihood estimate of a cell near zero can only be too high, and everything else is then too low. One cell hardly
notices; a mean over hundreds of values does, and so does a difference of groups that are drawn toward each other. So a
sum `k . x` is estimated by

    s = sum_i c_i w_i h(R_i),      h(R) = k . y(R)

where y(R) is what a set adds to an unbiased table, see `unbiased`, and w_i the weight of a record, or 1. About the
people in the table,

    var(s) = sum_i c_i w_i^2 (h_i^2 - g_i),      g(R) = k^2 . y(R)

since the expectation of h given the true value v is k_v, and that of g is k_v^2. Drawing the records from a population
adds `sum_i c_i w_i^2 (g_i - m^2)`, with m the mean of h in a group: see `weighted` for the three ways to count it.

The variance is itself an estimate, made of few records in a small group. So a few further records speak for what the
working distribution behind y would give, and the quantile is that of a t distribution.

Where a domain is large and its distribution steep, nearly all of the variance comes from a few sets that add a great
deal. A release without them has an estimate off to one side and a variance that is too small. So the variance is not
taken smaller than what sets have that are drawn for the most likely distribution of the values.

Only the members of a set enter h: with `y(R) = J^-1 a_R / f_R` it is `(J^-1 k) . a_R / f_R`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from polyseme.inference.axes import along
from polyseme.inference.base import Fit, Population
from polyseme.inference.counts import Part, containment, members
from polyseme.inference.intervals.intervals import (
    holding,
    intervals,
    normal_quantile,
    presented,
    standard_errors,
    widened,
)
from polyseme.inference.intervals.limits import NORMAL_RECORDS
from polyseme.inference.intervals.unbiased import Half, UnbiasedMap
from polyseme.inference.sets.cross_validation import folded, held, margin_of, rough_margin
from polyseme.inference.sets.maximum import draw_effect, may_lie
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.randomness import SystemStream, experiment

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["Sums", "UnbiasedSums", "asks_unbiased", "cell_limits", "is_clear"]

_FURTHER = 20.0
"""Records with which the working distribution speaks in a variance. Without them, or with 10, sums over a distribution
with 99% in one value were covered in 75% to 91% (300 records, `line (2,2)`), with 20 in 93%; of 1,000 records they
add 1% to an interval."""
_OWN = 5.0
"""Records for each value from which on a group has a working distribution of its own. A judgment."""
_OWN_WORK = 1e6
"""Squared values times groups up to which groups have one of their own: a few seconds at most. A judgment."""
_ROUGH, _INSIDE = 2.0, 3.0
"""The standard error of a cell, in records, and the number of these from zero, from which on its unbiased estimate is
about normal whatever the other cells are."""
_CELLS = 400
"""Most cells of a group that are looked at one by one. A judgment, for speed only."""
_CELL_WORK = 1e8
"""Reports times cells of a group up to which every cell is looked at, about a second. A judgment."""
_CHUNK = 4_000_000
"""Numbers in memory at a time (32 MB)."""
_DRAWS = 50_000
"""Sets that are drawn to learn a variance. Of 3,000 records with a steep distribution over 120 values it is known from
their own sets to 100% of itself, and from these to 25%."""
_SEED = 20_261_118
"""Any number: the same question has the same interval each time it is asked."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Estimated sums with their variances, and how many records these were estimated from."""

    values: Floats
    variance: Floats
    records: Floats

    @property
    def errors(self) -> Floats:
        """Their standard errors."""
        return np.sqrt(self.variance)

    def reach(self, level: float) -> Floats:
        """Half the lengths of their intervals."""
        from scipy import special

        freedom = np.maximum(self.records, 1.0)
        return np.asarray(special.stdtrit(freedom, 0.5 + level / 2.0) * self.errors, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Moments:
    """What the reports of each group add up to, for each sum: (k, cells).

    first, second  of w h and (w h)^2; drawn of w^2 g
    weighted       of w^2 h
    assumed        what the variances would be by the working distributions
    """

    first: Floats
    second: Floats
    drawn: Floats
    weighted: Floats
    assumed: Floats

    @classmethod
    def none(cls, sums: int, cells: int) -> _Moments:
        return cls(*(np.zeros((sums, cells)) for _ in range(5)))

    def add(self, rows: Ints, cell: int, held: Floats, weights: Floats, h: Floats, g: Floats, assumed: Floats) -> None:
        """The reports of one group: `held` counts them, h and g are (n, k)."""
        squares = held * weights**2
        self.first[rows, cell] += (held * weights) @ h
        self.second[rows, cell] += squares @ h**2
        self.drawn[rows, cell] += squares @ g
        self.weighted[rows, cell] += squares @ h
        self.assumed[rows, cell] += squares.sum() * assumed


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Sets drawn for records whose values are distributed as is most likely.

    values  the values of each attribute, sets the sets drawn for them
    """

    values: tuple[Ints, ...]
    sets: tuple[Ints, ...]

    @classmethod
    def of(cls, part: Part, maps: Sequence[UnbiasedMap]) -> _Drawn | None:
        """Of a part whose sets are too many to list; None for others and very large domains."""
        listed = all(mechanism.lists() for mechanism in part.mechanisms)
        if listed or not part.reports.counts.any() or any(each.inverse is None for each in maps):
            return None
        random, stream, said = experiment(_SEED), SystemStream.seeded(_SEED), held(part, part.reports.counts)
        values, sets = [], []
        for codes, mechanism in zip(part.reports.sets, part.mechanisms):
            likely = margin_of(codes, said, mechanism)
            values.append(random.choice(mechanism.size, _DRAWS, p=likely / likely.sum()))
            sets.append(mechanism.sample(values[-1], stream))
        return cls(tuple(values), tuple(sets))

    def variance(self, maps: Sequence[UnbiasedMap], contrasts: Floats) -> Floats:
        """The variance, about the people in the table, of what a record adds to each sum."""
        matrix, pulled = _rows(maps, self.sets), _pulled(maps, contrasts).T
        true, table = np.ravel_multi_index(self.values, contrasts.shape[1:]), contrasts.reshape(len(contrasts), -1)
        out, step = np.zeros(len(contrasts)), max(1, _CHUNK // _DRAWS)
        for start in range(0, len(contrasts), step):
            some = slice(start, start + step)
            known = table[some][:, true].T
            out[some] = np.mean((matrix @ pulled[:, some]) ** 2 - known**2, axis=0)
        return np.maximum(out, 0.0)


@dataclass(frozen=True, eq=False)
class UnbiasedSums:
    """Sums over a table of this shape: (cells, F_1, ..., F_q).

    parts   the reports
    halves  the two halves of each part
    """

    parts: tuple[Part, ...]
    halves: tuple[Sequence[Half], ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, parts: Sequence[Part], shape: tuple[int, ...]) -> UnbiasedSums | None:
        """From the reports of a table.

        None where some values leave the same traces, or in the long form.
        """
        if not all(part.reports.paired for part in parts):
            return None
        divided = [piece for part in parts for piece in _divided(part, sum(len(part.cells) for part in parts))]
        halves = folded(divided, shape[1:], rough_margin)
        if not all(axis.identifiable for pair in halves for half in pair for axis in half.maps):
            return None
        return cls(tuple(divided), tuple(halves), shape)

    def __call__(self, contrasts: Floats, population: Population, given: bool = False) -> Sums:
        """The sums `sum(contrast * table)` for each contrast (k, cells, F_1, ..., F_q).

        given  whether what the records of each cell weigh is taken as given, as for shares
        """
        used = np.abs(contrasts).reshape(*contrasts.shape[:2], -1).max(axis=2) > 0.0
        moments = self._moments(contrasts)
        variance, assumed = self._variance(moments, population, given), self.repeats * moments.assumed
        records = _effective(assumed, self.records, used)
        further = _further(records) * assumed.sum(axis=1)
        total = np.maximum(variance.sum(axis=1), 0.0) + further
        if any(drawn is not None for drawn in self._drawn):
            among = np.maximum(self._variance(moments, "finite", given).sum(axis=1), 0.0) + further
            total += np.maximum(self._least(contrasts).sum(axis=1) - among, 0.0)
        return Sums(moments.first.sum(axis=1), total, records)

    @cached_property
    def _drawn(self) -> tuple[_Drawn | None, ...]:
        """Drawn sets for each part, where the sets it has are too few to learn a variance from."""
        return tuple(_Drawn.of(part, pair[0].maps) for part, pair in zip(self.parts, self.halves))

    def _least(self, contrasts: Floats) -> Floats:
        """The variances of each sum and group (k, cells) that drawn sets have."""
        out = np.zeros((len(contrasts), self.shape[0]))
        for part, pair, drawn in zip(self.parts, self.halves, self._drawn):
            if drawn is None:
                continue
            inside = contrasts[np.ix_(np.arange(len(contrasts)), part.cells, *part.axes)]
            for place, cell in enumerate(part.cells):
                used = np.flatnonzero(inside[:, place].reshape(len(inside), -1).any(axis=1))
                rows = part.reports.rows(place)
                weights = 1.0 if part.reports.weights is None else part.reports.weights[rows]
                for half in pair if used.size and rows.size else ():
                    squares = float(np.sum(half.counts[rows] * np.square(weights)))
                    out[used, cell] += squares * drawn.variance(half.maps, inside[used, place])
        return np.asarray(self.repeats * out, dtype=np.float64)

    @property
    def has_cells(self) -> bool:
        """Whether the table is small enough to look at every cell."""
        size = float(np.prod(self.shape[1:]))
        return size <= _CELLS and size * sum(len(part.reports.counts) for part in self.parts) <= _CELL_WORK

    def cells(self, population: Population, given: bool = False) -> Sums:
        """Every cell of the table: (cells, F_1, ..., F_q)."""
        size = int(np.prod(self.shape[1:]))
        moments = _Moments.none(size, self.shape[0])
        for part, pair in zip(self.parts, self.halves):
            units = np.eye(size)[part.flat(self.shape)].reshape(-1, *self.shape[1:])
            inside = units[np.ix_(np.arange(len(units)), *part.axes)]
            for half in pair:
                self._add_groups(moments, part, half, inside)
        variance, assumed = self._variance(moments, population, given), self.repeats * moments.assumed
        records = np.broadcast_to(self.records, variance.shape)
        total = np.maximum(variance, 0.0) + _further(records) * assumed
        return Sums(*(table.T.reshape(self.shape) for table in (moments.first, total, records)))

    def _variance(self, moments: _Moments, population: Population, given: bool) -> Floats:
        """Of what each group adds to each sum: (k, cells)."""
        variance = moments.second - moments.drawn
        if population == "super":
            variance = variance + self._sampled(moments, given)
        return np.asarray(self.repeats * variance, dtype=np.float64)

    def intervals(
        self, contrasts: Floats, level: float, population: Population, given: bool, bounds: tuple[Floats, Floats] | None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Value, standard error and limits of sums, within these bounds.

        An estimate beyond a bound is moved to it, and some room is left on the inner side.
        """
        found = self(contrasts, population, given)
        reach, value = found.reach(level), found.values if bounds is None else np.clip(found.values, *bounds)
        low, high = widened(value, found.values - reach, found.values + reach)
        if bounds is not None:
            low, high = np.clip(low, *bounds), np.clip(high, *bounds)
        return value, found.errors, low, high

    def roof(self) -> Floats:
        """The most that each cell can hold: where sets hold the truth, the weight of its reports."""
        out = np.zeros(self.shape)
        for part in self.parts:
            counts, records = containment(part.reports, part.mechanisms), part.totals()
            whole = np.broadcast_to(records.reshape(-1, *[1] * len(part.axes)), counts.shape)
            part.added(out, whole if may_lie(part.mechanisms) else counts)
        return out

    def _moments(self, contrasts: Floats) -> _Moments:
        moments = _Moments.none(len(contrasts), self.shape[0])
        for part, pair in zip(self.parts, self.halves):
            inside = contrasts[np.ix_(np.arange(len(contrasts)), part.cells, *part.axes)]
            for place, cell in enumerate(part.cells):
                used = np.flatnonzero(inside[:, place].reshape(len(inside), -1).any(axis=1))
                rows = part.reports.rows(place)
                if not used.size or not rows.size:
                    continue
                here = inside[used, place]
                for half in pair:
                    self._add(moments, used, cell, part, half, rows, here)
        return moments

    def _add(
        self, moments: _Moments, used: Ints, cell: int, part: Part, half: Half, rows: Ints, contrasts: Floats
    ) -> None:
        """What one half of the reports of one group adds to some sums: (k, F_1, ..., F_q)."""
        pulled, squared = _pulled(half.maps, contrasts).T, _pulled(half.maps, contrasts**2).T
        assumed = _assumed(half.maps, contrasts)
        step = max(1, _CHUNK // max(2 * len(contrasts), 1))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            matrix = _rows(half.maps, [sets[some] for sets in part.reports.sets])
            weights = np.ones(len(some)) if part.reports.weights is None else part.reports.weights[some]
            held = half.counts[some].astype(np.float64)
            moments.add(used, cell, held, weights, matrix @ pulled, matrix @ squared, assumed)

    def _add_groups(self, moments: _Moments, part: Part, half: Half, units: Floats) -> None:
        """What one half of the reports of a part adds to every cell of each of its groups."""
        from scipy import sparse

        reports, order = part.reports, part.reports.ordered()
        pulled, squared = _pulled(half.maps, units).T, _pulled(half.maps, units**2).T
        assumed, flat = _assumed(half.maps, units), part.flat(self.shape)
        step = max(1, _CHUNK // max(2 * len(units), 1))
        for start in range(0, len(order), step):
            some = order[start : start + step]
            first, last = int(reports.cell[some[0]]), int(reports.cell[some[-1]])
            matrix = _rows(half.maps, [sets[some] for sets in reports.sets])
            weights = np.ones(len(some)) if reports.weights is None else reports.weights[some]
            h, g, held = matrix @ pulled, matrix @ squared, half.counts[some].astype(np.float64)
            squares, shape = held * weights**2, (last - first + 1, len(some))
            place = (reports.cell[some] - first, np.arange(len(some)))
            by_count = sparse.csr_array((held * weights, place), shape=shape)
            by_square = sparse.csr_array((squares, place), shape=shape)
            at = np.ix_(flat, part.cells[first : last + 1])
            moments.first[at] += (by_count @ h).T
            moments.second[at] += (by_square @ h**2).T
            moments.drawn[at] += (by_square @ g).T
            moments.weighted[at] += (by_square @ h).T
            moments.assumed[at] += assumed[:, None] * np.bincount(place[0], weights=squares, minlength=shape[0])

    def _sampled(self, moments: _Moments, given: bool) -> Floats:
        """What drawing the records from a population adds to the variance of each group."""
        sums = moments.first
        if not self.weighted:
            expected = _ratio(sums**2, self.totals)
        elif not given:
            expected = _ratio(sums**2, self.counted)
        else:
            mean = _ratio(sums, self.totals)
            expected = 2.0 * mean * moments.weighted - mean**2 * self.squares
        return np.asarray(moments.drawn - expected, dtype=np.float64)

    @cached_property
    def weighted(self) -> bool:
        """Whether records have weights."""
        return any(part.reports.weights is not None for part in self.parts)

    @cached_property
    def uneven(self) -> bool:
        """Whether these weights differ."""
        given = [part.reports.weights for part in self.parts if part.reports.weights is not None]
        return bool(given) and float(np.ptp(np.concatenate(given))) > 0.0

    def _added_up(self, power: int) -> Floats:
        """The sums of this power of the weights of each cell."""
        out = np.zeros(self.shape[0])
        for part in self.parts:
            weights = part.reports.weights
            held = part.reports.counts * (1.0 if weights is None else weights**power)
            np.add.at(out, part.cells[part.reports.cell], held)
        return out

    @cached_property
    def counted(self) -> Floats:
        """How many records each cell has."""
        return self._added_up(0)

    @cached_property
    def totals(self) -> Floats:
        """What the records of each cell weigh."""
        return self._added_up(1)

    @cached_property
    def squares(self) -> Floats:
        """The sum of the squared weights of each cell."""
        return self._added_up(2)

    @cached_property
    def records(self) -> Floats:
        """How many independent records of equal weight say as much, by cell (Kish's effective size)."""
        return _ratio(self.totals**2, self.squares) / self.repeats

    @cached_property
    def repeats(self) -> Floats:
        """The design effect of each cell, by its squared weights."""
        if all(part.reports.repeats == 1.0 for part in self.parts):
            return np.ones(self.shape[0])
        effects, squares = np.zeros(self.shape[0]), np.zeros(self.shape[0])
        for part in self.parts:
            for place, cell in enumerate(part.cells):
                rows = part.reports.rows(place)
                weights = None if part.reports.weights is None else part.reports.weights[rows]
                counts = part.reports.counts[rows]
                here = float(counts.sum() if weights is None else counts @ weights**2)
                effects[cell] += here * self._effect(part, rows, counts, weights)
                squares[cell] += here
        return np.maximum(_ratio(effects, squares), 1.0)

    def _effect(self, part: Part, rows: Ints, counts: Ints, weights: Floats | None) -> float:
        """The design effect of one group of a part; the declared one ignores groups and weights."""
        declared, known = part.reports.repeats, weights is None and self.shape[0] == 1
        if len(part.mechanisms) > 1 or known:
            return declared
        return draw_effect(part.reports.sets[0][rows], counts, weights, part.mechanisms[0], declared)

    @property
    def effective(self) -> float:
        """How many independent records of equal weight would say as much about the whole table."""
        squares = float(self.squares @ self.repeats)
        return float(self.totals.sum()) ** 2 / squares if squares > 0.0 else 0.0


def asks_unbiased(parts: Sequence[Part], values: Floats) -> bool:
    """Whether some cells of a table need their unbiased estimates: see `cell_limits`."""
    weighted = any(part.reports.weights is not None for part in parts)
    return weighted or bool(values.max(initial=0.0) >= _INSIDE * _ROUGH)


def cell_limits(
    values: Floats, fit: Fit, sums: UnbiasedSums | None, level: float, population: Population
) -> tuple[Floats, Floats, Floats]:
    """Standard errors and limits of the cells of a table.

    Cells that are well away from zero, and all cells of records with weights, have those of their unbiased estimates,
    widened where needed to hold the value, see `holding`. The others have the limits of the fit, and an error that is
    not smaller than these say: at the boundary the curvature of a likelihood tells nothing.
    """
    low, high = intervals(fit, level, population)
    errors, quantile = standard_errors(fit, population), normal_quantile(level)
    if fit.limits is not None:
        if population == "super" and fit.given is None:
            high = np.maximum(high, _drawn_limit(values, errors, quantile, fit))
        errors = np.maximum(errors, (high - low) / (2.0 * quantile))
    if sums is not None and sums.has_cells:
        found = sums.cells(population, given=fit.given is None)
        clear = is_clear(values, found.errors) & (found.records >= NORMAL_RECORDS)
        inside = np.full(values.shape, fill_value=True) if sums.uneven else clear
        reach = found.reach(level)
        left, right = holding(values, found.values - reach, found.values + reach, clear, level)
        if population == "finite":
            right = np.minimum(right, np.maximum(sums.roof(), values))
        low, high = np.where(inside, np.maximum(left, 0.0), low), np.where(inside, right, high)
        errors = np.where(inside, found.errors, errors)
        values = np.where(clear, np.clip(values, low, high), values)
    return presented(values, errors, low, high, level)


def is_clear(values: Floats, errors: Floats) -> Bools:
    """Which cells are so far from zero that their unbiased estimates are about normal."""
    return np.asarray((errors >= _ROUGH) & (values >= _INSIDE * errors), dtype=np.bool_)


def _drawn_limit(values: Floats, errors: Floats, quantile: float, fit: Fit) -> Floats:
    """Wilson's upper limit: counts of a value vary more where it is more frequent."""
    half = fit.repeats * quantile**2 / 2.0
    total = values.reshape(len(values), -1).sum(axis=1).reshape(-1, *[1] * (values.ndim - 1))
    known = np.where((values > 0.0) & (errors > 0.0), errors, np.nan)
    limit = values + half + np.sqrt((quantile * known) ** 2 + half**2)
    return np.where(np.isnan(limit), 0.0, np.minimum(limit, total))


def _divided(part: Part, cells: int) -> list[Part]:
    """A part with its large groups separated, so that each has its own working distribution."""
    size = max((mechanism.size for mechanism in part.mechanisms), default=0)
    large = replace(part.reports, weights=None).totals(part.mechanisms) >= _OWN * size
    if len(part.cells) == 1 or float(size) ** 2 * cells > _OWN_WORK or not large.any():
        return [part]
    alone = [_only(part, place) for place in np.flatnonzero(large).tolist()]
    wanted = np.zeros(int(part.cells.max()) + 1, dtype=np.bool_)
    wanted[part.cells[~large]] = True
    return [*alone, part.among(wanted)] if not large.all() else alone


def _only(part: Part, place: int) -> Part:
    """One group of a part."""
    rows, reports = part.reports.rows(place), part.reports
    own = replace(
        reports,
        sets=tuple(sets[rows] for sets in reports.sets),
        cell=np.zeros(len(rows), dtype=np.int64),
        counts=reports.counts[rows],
        cells=1,
        finer=None,
        weights=None if reports.weights is None else reports.weights[rows],
    )
    return replace(part, reports=own, cells=part.cells[place : place + 1])


def _pulled(maps: Sequence[UnbiasedMap], contrasts: Floats) -> Floats:
    """Contrasts (k, F_1, ..., F_q) as numbers for the members of sets: (k, entries)."""
    for axis, each in enumerate(maps, start=1):
        contrasts = each.pulled(contrasts, axis)
    return contrasts.reshape(len(contrasts), -1)


def _assumed(maps: Sequence[UnbiasedMap], contrasts: Floats) -> Floats:
    """The variance of one record's addition under the working distribution; 0 without one."""
    spread, people = contrasts, contrasts**2
    for axis, each in enumerate(maps, start=1):
        if each.working is None or each.inverse is None:
            return np.zeros(len(contrasts))
        spread, people = along(each.inverse, spread, axis), np.tensordot(people, each.working, axes=(1, 0))
    variance = (contrasts * spread).reshape(len(contrasts), -1).sum(axis=1) - people
    return np.asarray(np.maximum(variance, 0.0), dtype=np.float64)


def _rows(maps: Sequence[UnbiasedMap], sets: Sequence[Ints]) -> sparse.csr_array:
    """The weights of the members of each row's sets: (n, entries)."""
    from scipy import sparse

    found = [each.members(codes) for each, codes in zip(maps, sets)]
    sizes = [each.mechanism.size + 1 for each in maps]
    flat, weights = members([codes for codes, _ in found], sizes), found[0][1]
    for _, more in found[1:]:
        weights = (weights[:, :, None] * more[:, None, :]).reshape(len(weights), -1)
    starts = np.arange(len(flat) + 1, dtype=np.int64) * flat.shape[1]
    return sparse.csr_array((weights.ravel(), flat.ravel(), starts), shape=(len(flat), int(np.prod(sizes))))


def _further(records: Floats) -> Floats:
    """The weight of the working distribution in a variance estimated from these records."""
    return np.asarray(_FURTHER / (_FURTHER + records), dtype=np.float64)


def _effective(variance: Floats, records: Floats, used: Bools) -> Floats:
    """How many records the variance of each sum is estimated from, given its cells: (k,)."""
    total, spread = variance.sum(axis=1), _ratio(variance**2, records).sum(axis=1)
    return np.where(spread > 0.0, _ratio(total**2, spread), used @ records)


def _ratio(numerator: Floats, records: Floats) -> Floats:
    divided = np.divide(numerator, records, out=np.zeros(np.broadcast(numerator, records).shape), where=records > 0)
    return np.asarray(divided, dtype=np.float64)
