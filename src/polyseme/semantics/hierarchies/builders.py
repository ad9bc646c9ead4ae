"""Builders of hierarchies: rules for any value, and hierarchies that are written out.

A rule gives the labels of values at each level between the value itself and `*`, null where a value has no place.

Written out are rows of a file in the format of ARX, or a nested tree.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from polyseme.kernel.arrays import period_labels
from polyseme.kernel.delimited import SEPARATORS, Row, read_rows, text_rows, written_rows
from polyseme.kernel.documents import is_document, read_document
from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, TableError, nearest
from polyseme.kernel.spelling import spellings
from polyseme.semantics.distances.taxonomy import Taxonomy, load_taxonomy
from polyseme.semantics.hierarchies.hierarchy import TOP, Hierarchy
from polyseme.semantics.taxonomies import nested_places

__all__ = [
    "PERIODS",
    "Dates",
    "Intervals",
    "Listed",
    "Prefixes",
    "Rule",
    "Suppression",
    "TaxonomyRule",
    "arx_text",
    "read_listed",
]

PERIODS = ("day", "month", "quarter", "year", "decade")
"""The periods of a calendar that lie within each other, the shortest first. Weeks do not lie within months or years."""


class Rule(ABC):
    """How values generalize."""

    wants = "values that it knows"
    """What a value must be to have a place, for messages."""

    @property
    def listed(self) -> tuple[str, ...] | None:
        """All the values it knows, as they are spelled; None where they follow from a column."""
        return None

    @abstractmethod
    def labels(self, leaves: pl.Series) -> list[pl.Series]:
        """The label of each value, given as it is spelled, at each level between 0 and `*`.

        Null without a place.
        """

    def known(self, leaves: pl.Series) -> pl.Series:
        """Whether each value has a place."""
        return self.labels(leaves)[0].is_not_null()


@dataclass(frozen=True)
class Suppression(Rule):
    """The value itself, or nothing.

    >>> Suppression().labels(pl.Series(["a"])), Suppression().known(pl.Series(["a"])).to_list()
    ([], [True])
    """

    wants = "anything"

    def labels(self, leaves: pl.Series) -> list[pl.Series]:
        return []

    def known(self, leaves: pl.Series) -> pl.Series:
        return leaves.is_not_null()


@dataclass(frozen=True)
class Intervals(Rule):
    """Half-open intervals from 0 in both directions, of the given widths.

    Each width is a multiple of the one before.

    >>> [level.to_list() for level in Intervals((5, 20)).labels(pl.Series(["31", "-1"]))]
    [['[30, 35)', '[-5, 0)'], ['[20, 40)', '[-20, 0)']]
    """

    widths: tuple[float, ...]
    wants = "numbers"

    def __post_init__(self) -> None:
        widths = [Decimal(str(width)) for width in self.widths]
        problems = [
            Problem(f"[{place}]", "a width must be a number above 0")
            for place, width in enumerate(widths)
            if not (width.is_finite() and width > 0)
        ]
        if not problems:
            problems = [
                Problem(
                    f"[{place}]",
                    f"{self.widths[place]:g} is no larger multiple of {self.widths[place - 1]:g}",
                    "each interval must be made of whole intervals of the level below: [5, 10, 20]",
                )
                for place in range(1, len(widths))
                if widths[place] <= widths[place - 1] or widths[place] % widths[place - 1]
            ]
        if problems or not widths:
            raise PolicyError(problems or [Problem("", "no width", "intervals: [5, 10, 20]")])

    def labels(self, leaves: pl.Series) -> list[pl.Series]:
        widths = [Decimal(str(width)) for width in self.widths]
        steps = _steps(leaves, widths[0])
        return [_named(steps // int(width / widths[0]), width) for width in widths]

    def known(self, leaves: pl.Series) -> pl.Series:
        return _steps(leaves, Decimal(str(self.widths[0]))).is_not_null()


def _steps(leaves: pl.Series, width: Decimal) -> pl.Series:
    """How many widths each number is above 0, rounded down; null for what is no number."""
    whole = leaves.cast(pl.Int64, strict=False)
    if width == int(width) and not whole.null_count():
        return whole // int(width)
    return pl.Series([_step(text, width) for text in leaves.to_list()], dtype=pl.Int64)


def _step(text: str, width: Decimal) -> int | None:
    """Of a number exactly as it is written: in binary, 0.3 would lie below three times 0.1."""
    try:
        number = Decimal(text)
        steps = number // width  # toward zero
    except InvalidOperation:  # no number, or more digits than a table can mean
        return None
    if "_" in text or not number.is_finite() or abs(steps) >= _MOST_STEPS:
        return None
    return int(steps) - (1 if steps * width > number else 0)


_MOST_STEPS = 1 << 62
"""More steps than this from 0 do not fit into an integer with room to spare."""


def _named(steps: pl.Series, width: Decimal) -> pl.Series:
    """The interval that begins so many widths above 0; each is written once."""
    found = steps.drop_nulls().unique()
    labels = [f"[{_short(step * width)}, {_short((step + 1) * width)})" for step in found.to_list()]
    return steps.replace_strict(found, pl.Series(labels, dtype=pl.String), default=None, return_dtype=pl.String)


def _short(edge: Decimal) -> str:
    """A bound as people write it.

    >>> _short(Decimal("1E+1")), _short(Decimal("2.50")), _short(Decimal("-0"))
    ('10', '2.5', '0')
    """
    return format(edge.normalize() + 0, "f")


@dataclass(frozen=True)
class Dates(Rule):
    """Periods of the calendar; a time of day is left out from the first level on.

    >>> [level.to_list() for level in Dates(("month", "decade")).labels(pl.Series(["2024-03-31", "soon"]))]
    [['2024-03', None], ['2020s', None]]
    """

    periods: tuple[str, ...]
    wants = "dates (2024-03-31)"

    def __post_init__(self) -> None:
        problems = [
            Problem(f"[{place}]", f"unknown period '{period}'", nearest(str(period), PERIODS))
            for place, period in enumerate(self.periods)
            if period not in PERIODS
        ]
        order = [PERIODS.index(period) for period in self.periods if period in PERIODS]
        if order != sorted(set(order)) or not self.periods:
            problems.append(Problem("", "periods become longer from level to level", "dates: [day, month, year]"))
        if problems:
            raise PolicyError(problems)

    def labels(self, leaves: pl.Series) -> list[pl.Series]:
        return [_periods(leaves, period) for period in self.periods]


def _periods(leaves: pl.Series, period: str) -> pl.Series:
    if period != "decade":
        return period_labels(leaves, period)
    return period_labels(leaves, "year").str.replace(r".$", "0s")


@dataclass(frozen=True)
class Prefixes(Rule):
    """The first characters of codes; the rest is masked.

    lengths  how many characters are left at each level
    width    the characters of a label, filled up with `*`; a label that was cut has at least one

    >>> [level.to_list() for level in Prefixes.masking(3).labels(pl.Series(["812", "81"]))]
    [['81*', '81'], ['8**', '8**']]
    """

    lengths: tuple[int, ...]
    width: int = 0
    wants = "codes"

    def __post_init__(self) -> None:
        whole = all(type(length) is int and length > 0 for length in self.lengths)
        if not whole or list(self.lengths) != sorted(set(self.lengths), reverse=True):
            raise PolicyError(
                "expected how many characters are left at each level, fewer from level to level", "prefix: [3, 1]"
            )

    @classmethod
    def masking(cls, characters: int) -> Prefixes:
        """One character more is masked at each level, in codes of so many characters."""
        if type(characters) is not int or not 0 < characters <= _LONGEST:
            raise PolicyError(f"expected a number of characters from 1 to {_LONGEST}", "prefix: 5, or prefix: [3, 1]")
        return cls(tuple(range(characters - 1, 0, -1)), characters)

    def labels(self, leaves: pl.Series) -> list[pl.Series]:
        return [self._cut(leaves, length) for length in self.lengths]

    def known(self, leaves: pl.Series) -> pl.Series:
        return leaves.is_not_null()

    def _cut(self, leaves: pl.Series, length: int) -> pl.Series:
        filled = leaves.str.slice(0, length) + TOP * max(1, self.width - length)
        return filled.zip_with(leaves.str.len_chars() > length, leaves)


_LONGEST = 40
"""A judgment: longer codes are masked with a list of lengths."""


@dataclass(frozen=True)
class TaxonomyRule(Rule):
    """The categories of a built-in classification.

    unknown  the category, at every level, of values that it does not know; without one they have no place

    >>> [level.to_list() for level in TaxonomyRule("icd10").labels(pl.Series(["J45.0"]))]
    [['J45'], ['J40-J47'], ['X']]
    >>> [level.to_list() for level in TaxonomyRule("countries", "other").labels(pl.Series(["Peru", "Atlantis"]))]
    [['south-america', 'other'], ['americas', 'other']]
    """

    name: str
    unknown: str | None = None
    wants = "values of the taxonomy"

    def __post_init__(self) -> None:
        if self.unknown in load_taxonomy(self.name).nodes:
            raise PolicyError("a category of the taxonomy is not for values that it does not know", "unknown: other")

    def labels(self, leaves: pl.Series) -> list[pl.Series]:
        taxonomy = load_taxonomy(self.name)
        paths = [_path(taxonomy, value) for value in leaves.to_list()]
        return [
            pl.Series([path[level] if path else self.unknown for path in paths], dtype=pl.String)
            for level in range(1, len(taxonomy.levels))
        ]


def _path(taxonomy: Taxonomy, value: str) -> Sequence[str]:
    return taxonomy.find(value) or ()


_LEVEL_HINT = "every value needs a cell for every level: repeat a category where it has no finer one"


@dataclass(frozen=True)
class Listed(Rule):
    """A path for each value, the value first, all of the same length.

    paths  the labels above each value, without the root `*`

    >>> rule = Listed.of([("flu", "lung", "*"), ("asthma", "lung", "*")])
    >>> [level.to_list() for level in rule.labels(pl.Series(["flu", "cold"]))]
    [['lung', None]]
    """

    paths: Mapping[str, tuple[str, ...]] = field(repr=False)
    wants = "values that it lists"

    @classmethod
    def of(cls, paths: Sequence[tuple[str, ...]], where: Sequence[str] = ()) -> Listed:
        """From the paths; every problem at once.

        No message quotes a label: they may come from a file.

        where  what to call each path in messages: `line 3`
        """
        where = where or [f"path {place}" for place in range(1, len(paths) + 1)]
        problems = _problems(paths, where)
        if problems:
            raise PolicyError(problems)
        # The root `*` is the last level of every hierarchy.
        end = -1 if len(paths[0]) > 1 and all(path[-1] == TOP for path in paths) else None
        leaves, *groups = (list(level) for level in zip(*paths))
        above = list(zip(*map(_written_first, groups[:end]))) or [()] * len(paths)
        return cls(dict(zip(spellings(leaves), above)))

    @property
    def listed(self) -> tuple[str, ...]:
        return tuple(self.paths)

    def labels(self, leaves: pl.Series) -> list[pl.Series]:
        found = [self.paths.get(leaf, ()) for leaf in leaves.to_list()]
        depth = len(next(iter(self.paths.values())))
        return [pl.Series([path[level] if path else None for path in found], dtype=pl.String) for level in range(depth)]

    def known(self, leaves: pl.Series) -> pl.Series:
        return leaves.is_in(list(self.paths))


def read_listed(file: Path) -> Listed:
    """The hierarchy in a CSV file (`leaf;...;root`, no header), or a tree in YAML or JSON."""
    if is_document(file):
        return from_tree(read_document(file))
    rows = read_rows(file)
    if not rows:
        raise PolicyError(f"{file.name} is empty", "one line for each value: leaf;...;root")
    return _from_rows(rows)


def _from_rows(rows: Sequence[Row]) -> Listed:
    paths = [tuple(cell.strip() for cell in cells) for _, cells in rows]
    return Listed.of(paths, [f"line {line}" for line, _ in rows])


def from_tree(tree: Any) -> Listed:
    """From a tree of mappings and lists: its leaves are the values."""
    if not isinstance(tree, Mapping | list) or not tree:
        raise PolicyError("a tree is a nested mapping, or the name of a file")
    places = [path for paths in nested_places(tree).values() for path in paths]
    above = {path[start:] for path in places for start in range(1, len(path))}
    return Listed.of(sorted(path for path in places if path not in above))


def arx_text(hierarchy: Hierarchy) -> str:
    """A hierarchy as ARX writes it: one line for each value, `leaf;...;root`, no header.

    Missing values have no line.

    Readers guess the separator: where values are full of semicolons or commas, it is another one. Every text is read
    back before it is handed out.
    """
    paths = [path for path, _ in zip(hierarchy.paths(), hierarchy.leaves)]
    for separator in sorted(SEPARATORS, key=lambda mark: mark != ";"):
        text = written_rows(paths, separator)
        if _reads_as(text, paths):
            return text
    raise TableError("some values cannot be written in lines (empty ones, or with tabs in front), or there are none")


def _reads_as(text: str, paths: Sequence[tuple[str, ...]]) -> bool:
    try:
        found = _from_rows(text_rows(text))
    except (InvalidInput, csv.Error, IndexError):
        return False
    return [(leaf, *above, TOP) for leaf, above in found.paths.items()] == paths


def _written_first(labels: Sequence[str]) -> list[str]:
    """The labels of a level: a group with several spellings is called by the first."""
    first: dict[str, str] = {}
    return [first.setdefault(name, label) for name, label in zip(spellings(labels), labels)]


def _problems(paths: Sequence[tuple[str, ...]], where: Sequence[str]) -> list[Problem]:
    depth = Counter(map(len, paths)).most_common(1)[0][0]
    uneven = [place for place, path in zip(where, paths) if len(path) != depth or not all(path)]
    if uneven:
        what = f"uneven depth: {len(uneven):,} of {len(paths):,} values do not have {depth:,} levels"
        return [Problem("", f"{what}, the first in {uneven[0]}", _LEVEL_HINT)]
    if len(paths) > 2 and depth > 1 and len({path[-1] for path in paths[1:]}) == 1 and paths[0][-1] != paths[1][-1]:
        return [Problem("", f"{where[0]} has another root than all the others", "a hierarchy has no header: remove it")]
    return list(_twice(paths, where))


def _twice(paths: Sequence[tuple[str, ...]], where: Sequence[str]) -> Iterable[Problem]:
    """Values with two places, and groups with two parents."""
    levels = [spellings(labels) for labels in zip(*paths)]
    for level, (names, parents) in enumerate(pairwise(levels)):
        first: dict[str, int] = {}
        found = []
        for place, name in enumerate(names):
            before = first.setdefault(name, place)
            if parents[before] != parents[place]:
                found.append((before, place))
        if found:
            before, place = found[0]
            many = "1 entry is" if len(found) == 1 else f"{len(found):,} entries are"
            what = f"two parents: at level {level}, {many} below another group than before"
            hint = "a value or group lies in one group of the next level; give groups that differ different names"
            yield Problem("", f"{what}, the first in {where[before]} and {where[place]}", hint)
