"""The answer to a question: a table of estimated counts with intervals, and its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import EstimateOptions, Estimator, Fit, Nonnegative, Population, Reports
from polyseme.inference.counts import Part
from polyseme.inference.intervals.intervals import intervals, possible_sums, presented, project, sum_intervals
from polyseme.inference.sets.independence import Independence, independence_test
from polyseme.inference.sets.registry import estimator_given
from polyseme.inference.sets.stratified import is_likely
from polyseme.inference.sets.sums import UnbiasedSums, asks_unbiased, cell_limits
from polyseme.inference.sets.weighted import fit_table
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError, nearest, numbered
from polyseme.results.table import Summary, Table

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

__all__ = ["Estimate", "estimate_parts", "estimate_table", "reached"]

DEFAULT = EstimateOptions()

_CONTRASTS = 20_000_000
"""Numbers in memory at a time (160 MB), so that large tables of differences go in blocks."""
_SCALE = 5
"""Different numbers from which on a column of groups is a scale. A judgment."""
_FEW_RECORDS = 100.0
"""Effective records below which it is said that they are few. A judgment."""
_ROUNDING = 1e-12
"""What a sum of shares may be off by."""

MOMENTS = "correlations and variances computed from these cells are biased; sums, means and differences are not"
NO_SUMS = "sums of cells have no standard errors and no limits here: the covariances of the cells are not known"


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Table):
    """An estimated table with the reports it was made from.

    A stored one (`to_dict`, `from_dict`) has its cells, intervals and notes, and can be shown, drawn and turned into
    other tables; `top` works too. Margins, sums, means, quantiles, differences and tests need the release.

    Sums over groups and attributes, differences and tests go back to the reports: what is estimated group by group has
    small biases that add up, while errors add up in squares. So a sum is fitted at its own grouping, exactly as if it
    had been asked for directly. It need not equal the sum of the groups' estimates.

    fit     the fitted table, before shares were taken
    parts   the reports; none for a table read from a file
    requested  the estimator that was asked for; None let the data choose
    factor  of each cell, where the table holds shares
    caveats what must be said of every table that is made from these reports
    unbiased  unbiased sums over the table, where its cells needed them already
    """

    fit: Fit | None = field(default=None)
    parts: tuple[Part, ...] = field(default=())
    requested: str | Estimator | None = field(default=None)
    nonnegative: Nonnegative = field(default="no")
    factor: Floats | None = field(default=None)
    caveats: tuple[str, ...] = field(default=())
    unbiased: UnbiasedSums | None = field(default=None)

    def warned(self, *caveats: str) -> Self:
        """The same with further caveats, which every margin of it has too."""
        return replace(self, notes=(*caveats, *self.notes), caveats=(*caveats, *self.caveats))

    # -- sums of cells -------------------------------------------------------------------------------------------

    def _regrouped(self, group: Ints, kept: Sequence[int], by: Mapping[str, tuple[Any, ...]]) -> Estimate:
        """The table of these attributes with several cells in one, estimated again.

        group  the new cell of each cell, from 0 up; cells with -1 are left out
        """
        parts = [part.among(group >= 0).coarser(group, kept) for part in self.parts]
        table = estimate_parts(
            [part for part in parts if part.reports.cells],
            max(int(group.max(initial=-1)) + 1, 1),
            [self.of[axis] for axis in kept],
            [self.labels[axis] for axis in kept],
            by,
            EstimateOptions(self.requested, self.level, self.population, self.nonnegative),
        )
        return replace(table, weight=self.weight, left_out=self.left_out).warned(*self.caveats)

    def sums(self, contrasts: Floats, given: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
        """Value, standard error and limits of `sum(contrast * table)` for each contrast.

        Contrasts are (k, cells, F_1, ..., F_q).

        Cells that all contrasts treat alike are estimated as one.

        given  whether what the records of each cell weigh is taken as given, as for shares
        """
        if self.fit is None:
            raise QuestionError("this table was read from a file: sums with intervals need the release itself")
        if self.factor is not None:
            contrasts, given = contrasts * self.factor.reshape(-1, *[1] * len(self.of)), True
        slices = np.moveaxis(contrasts, 1, 0).reshape(len(self.values), -1)
        distinct, first, group = np.unique(slices, axis=0, return_index=True, return_inverse=True)
        used = distinct.any(axis=1)
        if used.sum() == slices.any(axis=1).sum():
            return self._own_sums(contrasts, given)
        number = np.where(used, np.cumsum(used) - 1, -1)
        coarse = self._regrouped(number[group.ravel()], range(len(self.of)), {})
        return coarse._own_sums(contrasts[:, first[used]], given)

    def _own_sums(self, contrasts: Floats, given: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
        """The same of the cells as they are."""
        assert self.fit is not None  # noqa: S101 - only for tables with reports
        fit = self.fit.given or self.fit if given else self.fit
        step = max(1, _CONTRASTS // max(fit.values.size, 1))
        parts = [self._block(fit, contrasts[start : start + step], given) for start in range(0, len(contrasts), step)]
        value, error, low, high = (np.concatenate(column) for column in zip(*parts))
        return value, *presented(value, error, low, high, self.level)

    def _block(self, fit: Fit, contrasts: Floats, given: bool) -> tuple[Floats, Floats, Floats, Floats]:
        """Value, standard error and limits of some sums."""
        if self._unbiased is None:
            return sum_intervals(fit, contrasts, self.level, self.population)
        bounds = possible_sums(fit, contrasts, self.population)
        return self._unbiased.intervals(contrasts, self.level, self.population, given, bounds)

    @cached_property
    def _unbiased(self) -> UnbiasedSums | None:
        """Sums without the bias of a likelihood; None for other estimators, or where there are none."""
        if self.unbiased is not None or not self.parts or not is_likely(estimator_given(self.requested)):
            return self.unbiased
        with _linear_algebra().limit(limits=1, user_api="blas"):
            return UnbiasedSums.of(self.parts, self.values.shape)

    def margin(self, of: Sequence[str] | str | None = None, by: Sequence[str] | str | None = None) -> Estimate:
        """The table of fewer attributes or groups, as if it had been asked for directly."""
        self._refuse_shares("margin", "take the margin first, then the proportions")
        kept = self._places("of", self.of, self.of if of is None else of)
        names = tuple(self.by)
        group_names = [names[place] for place in self._places("by", names, names if by is None else by)]
        group, columns = _groups(self.by, group_names, len(self.values))
        if self.fit is None:
            raise QuestionError("this table was read from a file: sums with intervals need the release itself")
        if len(kept) == len(self.of) and len(group_names) == len(names):
            return self
        return self._regrouped(group, kept, columns) if kept else self._records(group, columns)

    def _refuse_shares(self, what: str, hint: str) -> None:
        if self.factor is not None:
            raise QuestionError(Problem(what, "this table holds shares", hint))

    def _records(self, group: Ints, by: Mapping[str, tuple[Any, ...]]) -> Estimate:
        """How many records each group has, which is known without error."""
        totals = np.bincount(group, weights=self.totals).astype(np.float64)
        if self.fit is not None and self.fit.given is not None and self.population == "super":
            return self._weighed(group, by, totals)
        known, exact = replace(self, values=totals, low=totals, high=totals, totals=totals), np.zeros_like(totals)
        return replace(known, of=(), labels=(), by=by, notes=(), stderr=exact, fit=Fit(totals, exact, totals=totals))

    def _weighed(self, group: Ints, by: Mapping[str, tuple[Any, ...]], totals: Floats) -> Estimate:
        """How many people of the population each group stands for: weights are part of the sample."""
        member = (group == np.arange(len(totals))[:, None]).astype(np.float64)
        contrasts = np.broadcast_to(
            member.reshape(*member.shape, *[1] * len(self.of)), (len(totals), *self.values.shape)
        )
        value, error, low, high = self.sums(contrasts)
        fit = Fit(value, error**2, totals=totals, sampled=error**2)
        shown = replace(self, values=value, stderr=error, low=low, high=high, totals=totals)
        return replace(shown, of=(), labels=(), by=by, notes=(), fit=fit)

    def proportions(self) -> Estimate:
        """The same table as shares of the records of each cell."""
        if self.fit is not None and self.fit.given is not None and self.population == "super":
            return self._with(self.fit.given).proportions()
        share = np.divide(1.0, self.totals, out=np.zeros_like(self.totals), where=self.totals > 0)
        spread = share.reshape(-1, *[1] * len(self.of))
        factor = share if self.factor is None else share * self.factor
        return replace(
            self,
            values=self.values * spread,
            stderr=self.stderr * spread,
            low=self.low * spread,
            high=self.high * spread,
            totals=np.where(self.totals > 0, 1.0, 0.0),
            factor=factor,
        )

    def _with(self, fit: Fit) -> Estimate:
        """The same table with the errors and limits of this fit."""
        stderr, low, high = cell_limits(self.values, fit, self._unbiased, self.level, self.population)
        return replace(self, fit=fit, stderr=stderr, low=low, high=high)

    def _places(self, word: str, names: Sequence[str], wanted: Sequence[str] | str) -> list[int]:
        wanted = [wanted] if isinstance(wanted, str) else list(wanted)
        problems = [
            Problem(word, f"'{name}' is not in this table", nearest(name, names))
            for name in wanted
            if name not in names
        ]
        problems.extend(
            Problem(word, f"'{name}' is named twice", "name each once")
            for name, times in Counter(wanted).items()
            if times > 1
        )
        if problems:
            raise QuestionError(problems)
        return sorted(names.index(name) for name in wanted)

    # -- beyond counts -------------------------------------------------------------------------------------------

    def _numeric(self, of: str | None, positions: Sequence[float] | None) -> tuple[Estimate, Floats]:
        name = self.of[0] if of is None else of
        table = self if self.of == (name,) else self.margin(of=[name])
        given = table.labels[0] if positions is None else positions
        try:
            places = np.asarray([float(place) for place in given])
        except (TypeError, ValueError):
            raise QuestionError(
                Problem(name, "its labels are not numbers", "pass positions=[...], one number for each value")
            ) from None
        if len(places) != table.values.shape[1]:
            raise QuestionError(
                Problem(
                    name, f"{len(places)} positions for {table.values.shape[1]} values", "one number for each value"
                )
            )
        return table, places

    def mean(self, of: str | None = None, positions: Sequence[float] | None = None) -> Summary:
        """The mean of a numeric attribute in each cell, with its interval."""
        table, places = self._numeric(of, positions)
        cells = np.eye(len(table.values))
        share = np.divide(1.0, table.totals, out=np.zeros_like(table.totals), where=table.totals > 0)
        return table._summary(*table.sums((cells * share)[:, :, None] * places, given=True))

    def quantile(self, q: float = 0.5, of: str | None = None, positions: Sequence[float] | None = None) -> Summary:
        """The smallest value that at least a share q of the records do not exceed.

        Limits from those of the shares.

        The interval holds every value at which the share of records up to it may be q (Woodruff's method).
        """
        if not 0.0 <= q <= 1.0:
            raise QuestionError(Problem("q", f"a share lies between 0 and 1, not {q}"))
        table, places = self._numeric(of, positions)
        order = np.argsort(places, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        steps = (rank[None, :] <= np.arange(len(order))[:, None]).astype(np.float64)
        out = []
        for cell, total in enumerate(table.totals):
            if total <= 0:
                out.append([np.nan] * 3)
                continue
            contrasts = np.zeros((len(order), *table.values.shape))
            contrasts[:, cell] = steps / total
            _, _, low, high = table._own_sums(contrasts, given=True)
            # A share up to a value is not smaller than one up to an earlier value.
            shares = steps @ table.values[cell] / total, high, np.minimum.accumulate(low[::-1])[::-1]
            value, least, most = (reached(column, places[order], q) for column in shares)
            out.append([value, np.minimum(value, least), np.maximum(value, most)])
        value, low, high = np.array(out).T
        return table._summary(value, np.full(len(value), np.nan), low, high)

    def difference(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> Summary:
        """Shares in one group minus shares in another, for every combination of values.

        A group is named by values of untouched attributes, such as `{"sex": "F"}`.
        """
        self._refuse_shares("difference", "differences are computed from counts")
        rows = [self._group(group) for group in (left, right)]
        weight = np.zeros(len(self.values))
        for sign, here in zip((1.0, -1.0), rows):
            total = float(self.totals[here].sum())
            weight[here] += sign / total if total > 0 else 0.0
        size = int(np.prod(self.values.shape[1:]))
        units = np.eye(size).reshape(size, 1, *self.values.shape[1:])
        value, error, low, high = self.sums(units * weight.reshape(1, -1, *[1] * len(self.of)), given=True)
        grid = list(np.ndindex(*self.values.shape[1:]))
        columns = {
            name: [axis_labels[where[axis]] for where in grid]
            for axis, (name, axis_labels) in enumerate(zip(self.of, self.labels))
        }
        return Summary.of(columns, value, error, low, high, notes=self._unknown())

    def _group(self, group: Mapping[str, Any]) -> Ints:
        self._places("by", tuple(self.by), list(group))
        here = np.ones(len(self.values), dtype=np.bool_)
        for name, value in group.items():
            here &= np.array([label == value for label in self.by[name]], dtype=np.bool_)
        if not here.any():
            raise QuestionError(Problem("group", "no cell of the table matches it", "see .by for the cells there are"))
        return np.flatnonzero(here)

    def top(self, k: int = 10) -> Summary:
        """The k largest cells.

        Who is largest is so by luck, too: of k cells chosen among m as many as `1 - level` would miss the truth. So
        their limits have the level `1 - (1 - level) k / m`, which keeps the expected share of misses among the chosen
        (Benjamini and Yekutieli call it the false coverage rate).
        """
        order = np.argsort(-self.values.ravel(), kind="stable")[:k]
        low, high = self.low, self.high
        if self.fit is not None and self.fit.spread is not None and 0 < len(order) < self.values.size:
            strict = 1.0 - (1.0 - self.level) * len(order) / self.values.size
            low, high = intervals(self.fit, strict, self.population)
            if self.factor is not None:
                scale = self.factor.reshape(-1, *[1] * len(self.of))
                low, high = low * scale, high * scale
        low, high = np.minimum(low, self.low), np.maximum(high, self.high)
        flat = [column.ravel()[order] for column in (self.values, self.stderr, low, high)]
        return Summary.of(self._columns(order), *flat)

    def independence(self, left: str | None = None, right: str | None = None) -> Independence:
        """A test that two attributes, or a protected one and the groups, are independent.

        It is about the population the records were drawn from, and made from the published sets, whichever estimator
        made the table. With one name, the other attribute is the first of the rest.
        """
        if not self.parts:
            raise QuestionError("this table was read from a file: a test of independence needs the release itself")
        if self.weight is not None:
            raise QuestionError(
                Problem("independence", "a weighted table is not tested", "ask with unweighted=True, and test that")
            )
        given = [name for name in (left, right) if name is not None]
        self._places("independence", self.of, given)
        pair = [*given, *(name for name in self.of if name not in given)][:2]
        if not pair:
            raise QuestionError(Problem("independence", "this table has no protected attribute", "keep one in `of`"))
        sides = [self.of.index(name) for name in pair]
        groups = np.arange(len(self.values))
        with _linear_algebra().limit(limits=1, user_api="blas"):
            return independence_test(self.parts, sides[0], sides[1] if len(sides) == 2 else groups)

    def _summary(self, value: Floats, error: Floats, low: Floats, high: Floats) -> Summary:
        # A group without records has no mean and no median.
        known = np.where(self.totals > 0, 1.0, np.nan)
        columns = {name: list(cells) for name, cells in self.by.items()}
        return Summary.of(columns, *(known * column for column in (value, error, low, high)), notes=self._unknown())

    def _unknown(self) -> tuple[str, ...]:
        """What must be said of sums of cells of this table."""
        remarks = (f"of {self.counted}",) if self.left_out else ()
        return (*remarks, NO_SUMS) if self.fit is not None and self.fit.spread is None else remarks


@lru_cache(maxsize=1)
def _linear_algebra() -> ThreadpoolController:
    """The libraries of the process. To look for them takes as long as a small estimate."""
    from threadpoolctl import ThreadpoolController

    # Scipy has a library of its own, which is found only once it is there.
    import_module("scipy.linalg")
    return ThreadpoolController()


def estimate_table(
    reports: Reports,
    mechanisms: Sequence[Mechanism],
    names: Sequence[str],
    labels: Sequence[Sequence[Any]],
    by_cells: Mapping[str, Sequence[Any]] | None = None,
    estimator: str | Estimator | None = None,
    level: float = 0.95,
    population: Population = "finite",
    nonnegative: Nonnegative = "no",
) -> Estimate:
    """Estimate a cross-tabulation of protected attributes within cells of untouched ones.

    names, labels  of the protected attributes, one for each mechanism
    by_cells       the untouched attributes as columns: the value of each cell of `reports`
    estimator ...   see `EstimateOptions`
    """
    options = EstimateOptions(estimator, level, population, nonnegative)
    return estimate_parts([Part.whole(reports, mechanisms)], reports.cells, names, labels, by_cells, options)


def estimate_parts(
    parts: Sequence[Part],
    cells: int,
    names: Sequence[str],
    labels: Sequence[Sequence[Any]],
    by_cells: Mapping[str, Sequence[Any]] | None = None,
    options: EstimateOptions = DEFAULT,
) -> Estimate:
    """The same from records that were published through different mechanisms, part by part.

    cells  the number of cells of the whole table
    """
    _check_question(parts, names, labels, options)
    level, population = options.level, options.population
    by = {name: tuple(column) for name, column in (by_cells or {}).items()}
    # The matrices are too small to share: a second thread of the linear algebra library doubles the time.
    with _linear_algebra().limit(limits=1, user_api="blas"):
        name, fit = fit_table(parts, (cells, *(len(axis) for axis in labels)), options.estimator)
        fit = fit.about(population)
        assert fit.totals is not None  # noqa: S101 - every estimator gives them
        values, totals, notes = fit.values, fit.totals, list(fit.notes)
        if options.nonnegative == "project" and values.min(initial=0.0) < 0.0:
            values = project(values, totals)
            notes.append("negative cells were removed by projection on the tables of the same total")
        fit = replace(fit, values=values, notes=tuple(notes))
        likely = is_likely(estimator_given(options.estimator)) and asks_unbiased(parts, values)
        sums = UnbiasedSums.of(parts, values.shape) if likely else None
        stderr, low, high = cell_limits(values, fit, sums, level, population)
    notes.extend(_warnings(values, low, high, totals))
    notes.extend(_outside(values, low, high, level))
    if any(_is_scale(column) for column in by.values()):
        notes.append(MOMENTS)
    notes.extend(_uneven(sums, sum(float(part.records()) for part in parts)))
    unknown = int(np.isnan(stderr).sum())
    if unknown:
        notes.append(
            f"{numbered(unknown, 'cells have an interval, but no standard error')}: too few sets tell values apart"
        )
    return Estimate(
        of=tuple(names),
        labels=tuple(tuple(axis) for axis in labels),
        by=by,
        values=values,
        stderr=stderr,
        low=low,
        high=high,
        estimator=name,
        records=round(sum(float(part.records()) for part in parts)),
        totals=totals,
        gap=fit.gap,
        notes=tuple(notes),
        level=level,
        population=population,
        fit=fit,
        parts=tuple(parts),
        requested=options.estimator,
        nonnegative=options.nonnegative,
        unbiased=sums,
    )


def _outside(values: Floats, low: Floats, high: Floats, level: float) -> list[str]:
    """That estimates lie outside their intervals, where they do."""
    outside = int(((values < low - _ROUNDING) | (values > high + _ROUNDING)).sum())
    if not outside:
        return []
    many = numbered(outside, "estimates are outside their limits")
    return [f"{many} of {level:.0%}: limits do not depend on the simpler table that estimates are drawn toward"]


def _check_question(
    parts: Sequence[Part], names: Sequence[str], labels: Sequence[Sequence[Any]], options: EstimateOptions
) -> None:
    problems = []
    targets = len(parts[0].axes)
    if not len(names) == len(labels) == targets:
        problems.append(Problem("of", f"{len(names)} names and {len(labels)} lists of labels for {targets}"))
    sizes = [max(int(part.axes[axis].max(initial=-1)) + 1 for part in parts) for axis in range(targets)]
    problems.extend(
        Problem(name, f"{len(axis)} labels for {size} values")
        for name, axis, size in zip(names, labels, sizes)
        if len(axis) < size or (len(axis) > size and len(parts) == 1)
    )
    problems.extend(options.problems())
    if problems:
        raise QuestionError(problems)


def _warnings(values: Floats, low: Floats, high: Floats, totals: Floats) -> list[str]:
    nonempty = np.broadcast_to(totals.reshape(-1, *[1] * (values.ndim - 1)) > 0, values.shape)
    weak = nonempty & ((high - low) / 2.0 > np.maximum(values, 0.5))
    notes = []
    if weak.any():
        notes.append(
            f"half the interval is longer than the cell itself in {int(weak.sum()):,} of {int(nonempty.sum()):,} cells"
            ": there are too few records for a table this detailed"
        )
    if (totals == 0).any():
        notes.append(numbered(int((totals == 0).sum()), "groups have no records"))
    return notes


def _is_scale(column: tuple[Any, ...]) -> bool:
    """Whether groups are named by numbers that moments could be computed over, such as ages."""
    numbers = {value for value in column if isinstance(value, int | float) and not isinstance(value, bool)}
    return len(numbers) >= _SCALE


def _uneven(sums: UnbiasedSums | None, records: float) -> list[str]:
    """What uneven weights mean for errors, where they mean much."""
    if sums is None or not sums.uneven or sums.effective >= max(_FEW_RECORDS, records / 4.0):
        return []
    few = f"{sums.effective:,.0f} records of equal weight"
    return [f"a few records have most of the weight: errors are those of about {few}"]


def _groups(
    by: Mapping[str, tuple[Any, ...]], names: Sequence[str], cells: int
) -> tuple[Ints, dict[str, tuple[Any, ...]]]:
    keys = list(zip(*(by[name] for name in names))) if names else [()] * cells
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    group = np.array([order[key] for key in keys], dtype=np.int64)
    return group, {name: tuple(key[place] for key in order) for place, name in enumerate(names)}


def reached(shares: Floats, places: Floats, q: float) -> float:
    """The first of ascending places at which the cumulative share is at least q.

    Nan where shares are not known.
    """
    if np.isnan(shares).any():
        return float("nan")
    reached = np.flatnonzero(shares >= q - _ROUNDING)
    return float(places[reached[0] if reached.size else -1])
