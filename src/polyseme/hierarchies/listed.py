"""Hierarchies that are written out: rows of a file as ARX has them, or a nested tree."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from polyseme.distances.paths import nested_places
from polyseme.errors import InvalidInput, PolicyError, Problem, TableError
from polyseme.files.delimited import SEPARATORS, Row, read_rows, text_rows, written_rows
from polyseme.files.documents import is_document, read_document
from polyseme.hierarchies.hierarchy import TOP, Hierarchy
from polyseme.hierarchies.rules import Rule
from polyseme.spelling import spellings

__all__ = ["Listed", "arx_text", "read_listed"]

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
        """From the paths; every problem at once. No message quotes a label: they may come from a file.

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
    """The hierarchy in a CSV file (`leaf;...;root`, no header), or the tree in a YAML or JSON file."""
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
    """A hierarchy as ARX writes it: one line for each value, `leaf;...;root`, no header; missing values have no line.

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
    """The labels of a level: a group that is written in several ways is called by the first of them."""
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
