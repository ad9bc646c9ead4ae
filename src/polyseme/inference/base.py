"""What every estimator takes and gives, and how a question is to be answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError, nearest
from polyseme.results.table import Population, Target
from polyseme.semantics.distances.base import Distance

__all__ = [
    "EstimateOptions",
    "Estimator",
    "Finer",
    "Fit",
    "Limits",
    "Nonnegative",
    "Population",
    "Reports",
    "Spread",
    "check",
    "refuse_unknown",
]


@dataclass(frozen=True, eq=False)
class Reports:
    """Released sets of the target attributes, grouped, in cells of the untouched attributes.

    sets       one (n, l_j) array of codes for each target attribute j, rows ascending
    cell       which cell of the untouched attributes each row belongs to: (n,), values 0 ... cells-1
    counts     how many records reported exactly this combination in this cell: (n,)
    cells      the number of cells
    paired     False for the long form, where it is not known which values were published together: then there is one
               target, sets has one column and counts are containment counts
    distances  of the values of each target, where they have one: estimators may use that near values are alike
    finer      the same reports split further, where columns help: `smooth` uses it
    repeats    the design effect of sticky decoys: records of one person with the same value are one draw, so variances
               are this many times those of as many independent draws
    weights    the survey weight of each row's records, and the table then estimates sums of them: (n,); None where
               records are counted
    """

    sets: tuple[Ints, ...]
    cell: Ints
    counts: Ints
    cells: int
    paired: bool = True
    distances: tuple[Distance | None, ...] | None = None
    finer: Finer | None = None
    repeats: float = 1.0
    weights: Floats | None = None

    def by_cell(self) -> Iterator[tuple[int, tuple[Ints, ...], Ints]]:
        """Each cell with its own rows: (cell, sets, counts)."""
        for cell in range(self.cells):
            yield cell, *self.within(cell)

    def within(self, cell: int) -> tuple[tuple[Ints, ...], Ints]:
        """The rows of one cell: (sets, counts)."""
        rows = self.rows(cell)
        return tuple(sets[rows] for sets in self.sets), self.counts[rows]

    def rows(self, cell: int) -> Ints:
        """The rows of one cell, ascending, as places."""
        order, bounds = self._sorted
        return order[bounds[cell] : bounds[cell + 1]]

    def ordered(self) -> Ints:
        """The places of all rows, cell by cell."""
        return self._sorted[0]

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        """The rows cell by cell, and where each cell begins."""
        order = np.argsort(self.cell, kind="stable")
        return order, np.searchsorted(self.cell[order], np.arange(self.cells + 1))

    def totals(self, mechanisms: Sequence[Mechanism]) -> Floats:
        """How many records each cell has, or their weight: (cells,).

        In the long form each is counted l times.
        """
        held = self.counts.astype(np.float64) if self.weights is None else self.counts * self.weights
        rows = np.bincount(self.cell, weights=held, minlength=self.cells)
        return np.asarray(rows if self.paired else rows / mechanisms[0].l, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Finer:
    """The same reports with their records split further by helping columns outside the question.

    names    of the columns
    reports  each cell is a part of a cell of the table
    whole    the cell of the table that each part belongs to: (parts,)
    groups   the group of each part in each of these columns, from 0 up: (parts, columns)
    idle     columns that were named, but tell nothing
    concentrated  columns that were named, but for which there is no room
    """

    names: tuple[str, ...]
    reports: Reports
    whole: Ints
    groups: Ints
    idle: tuple[str, ...] = ()
    concentrated: tuple[str, ...] = ()

    def unused(self) -> list[str]:
        """What is to be said of columns that were not used."""
        reasons = ((self.idle, "it adds too little"), (self.concentrated, "the table would become too large with it"))
        return [f"without the help of {', '.join(names)}: {why}" for names, why in reasons if names]


class Spread(Protocol):
    """Variances of sums of cells of an estimated table."""

    def __call__(self, contrasts: Floats, population: Population) -> Floats:
        """Variance of `sum(contrast * values)` for each contrast: (k, cells, F_1, ..., F_q) -> (k,)."""
        ...


class Limits(Protocol):
    """Interval limits of sums of cells of an estimated table, where normal ones would be wrong."""

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of `sum(contrast * values)`: (k, cells, F_1, ..., F_q) -> two arrays (k,)."""
        ...

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Lower and upper limits of every cell of the table."""
        ...


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimated table.

    values    estimated numbers of records: (cells, F_1, ..., F_q), of the people in the table
    expected  the numbers to expect of as many people of the population, where an estimator tells the two apart
    variance  of each of them about the people in the table (finite population), same shape; nan where there is none
    gap       for likelihood estimators: an upper bound on the log-likelihood per record that is still missing
    notes     what the reader must know: not converged, too little data ...
    totals    how many records each cell has: (cells,)
    spread    variances of sums of cells; None where an estimator has none
    limits    interval limits that respect the boundary; None where normal limits are right
    repeats   the design effect of repeated draws, already in the variances
    sampled   of a weighted table: the variance of each cell about the population; None where it is multinomial
    given     of a weighted table: the same with the weight of every group taken as given, as for shares and means;
              None where that makes no difference
    """

    values: Floats
    variance: Floats
    gap: float | None = None
    notes: tuple[str, ...] = field(default=())
    totals: Floats | None = None
    spread: Spread | None = None
    limits: Limits | None = None
    expected: Floats | None = None
    repeats: float = 1.0
    sampled: Floats | None = None
    given: Fit | None = None

    def about(self, population: Population) -> Fit:
        """The same fit with the values that are about the given population."""
        return self if population == "finite" or self.expected is None else replace(self, values=self.expected)


class Estimator(ABC):
    """Recovers the table of true values from reports."""

    name: str

    @abstractmethod
    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        """The estimated table; one mechanism for each target attribute."""


def check(reports: Reports, mechanisms: Sequence[Mechanism]) -> None:
    """Raise unless the reports fit the mechanisms; every problem at once."""
    problems = []
    if not mechanisms or len(reports.sets) != len(mechanisms):
        problems.append(
            Problem("reports", f"{len(reports.sets)} target attributes for {len(mechanisms)} mechanisms", "one each")
        )
    if not reports.paired and len(reports.sets) != 1:
        problems.append(
            Problem("reports", "a table of several attributes needs the set form", "release in set form, not long form")
        )
    for place, (sets, mechanism) in enumerate(zip(reports.sets, mechanisms)):
        columns = mechanism.l if reports.paired else 1
        if sets.ndim != 2 or sets.shape[1] != columns:
            problems.append(Problem(f"sets[{place}]", f"expected {columns} columns, found shape {sets.shape}"))
        elif len(sets) != len(reports.counts):
            problems.append(Problem(f"sets[{place}]", f"{len(sets)} rows for {len(reports.counts)} counts"))
        elif sets.size and not (sets.min() >= 0 and sets.max() < mechanism.size):
            problems.append(Problem(f"sets[{place}]", f"codes must lie in 0 ... {mechanism.size - 1}"))
    given = reports.distances if reports.distances is not None else (None,) * len(mechanisms)
    sizes = [mechanism.size if distance is None else distance.size for distance, mechanism in zip(given, mechanisms)]
    if len(given) != len(mechanisms) or sizes != [mechanism.size for mechanism in mechanisms]:
        problems.append(Problem("distances", "they are not those of the target attributes", "one each, or None"))
    if len(reports.cell) != len(reports.counts):
        problems.append(Problem("cell", f"{len(reports.cell)} rows for {len(reports.counts)} counts"))
    elif len(reports.cell) and not (reports.cell.min() >= 0 and reports.cell.max() < reports.cells):
        problems.append(Problem("cell", f"cells must lie in 0 ... {reports.cells - 1}"))
    if len(reports.counts) and reports.counts.min() < 0:
        problems.append(Problem("counts", "a count is negative"))
    if problems:
        raise QuestionError(problems)


Nonnegative: TypeAlias = Literal["no", "project"]


@dataclass(frozen=True)
class EstimateOptions:
    """How a question is to be answered.

    estimator    a name or an estimator; None lets the data choose between `ml`, `shrink` and `smooth`
    level        of the intervals
    population   "finite": the people in the table; "super": the population they were drawn from
    nonnegative  for linear estimators: "project" gives the nearest table without negative cells
    unweighted   whether records are counted also where the release has a weight for each
    target       "published": the published records; "table": all records, also those that are left out
    """

    estimator: str | Estimator | None = None
    level: float = 0.95
    population: Population = "finite"
    nonnegative: Nonnegative = "no"
    unweighted: bool = False
    target: Target = "published"

    def problems(self) -> Iterator[Problem]:
        """What is wrong with them.

        An estimator that does not exist is refused where it is looked up.
        """
        level: Any = self.level  # whatever a caller without a type checker hands in
        if not isinstance(level, int | float) or not 0.0 < level < 1.0:
            yield Problem("level", f"a level lies between 0 and 1, not {level!r}")
        for word, given, choices in (
            ("population", self.population, get_args(Population)),
            ("nonnegative", self.nonnegative, get_args(Nonnegative)),
            ("target", self.target, get_args(Target)),
        ):
            if given not in choices:
                yield Problem(word, f"'{given}' is not a choice", nearest(given, choices))


def refuse_unknown(unknown: Mapping[str, object], *further: str) -> None:
    """Raise for options that do not exist, naming those that do, with further ones of a verb."""
    known = ", ".join([item.name for item in fields(EstimateOptions)] + list(further))
    if unknown:
        raise QuestionError(Problem(name, "there is no such option", f"known: {known}") for name in unknown)
