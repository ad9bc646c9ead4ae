"""Paths of values through a tree, from the forms in which people write trees.

A path is a tuple of labels, the value first, the root last, as they are written. `Places` lists every path a tree has
for the spelling of a label, so that a value that is there twice, as 30 and as 30.0, is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from polyseme.errors import PolicyError, Problem, nearest
from polyseme.spelling import Label, spellings, written

__all__ = [
    "Places",
    "cut_paths",
    "named",
    "nested_places",
    "row_places",
    "split_paths",
    "value_paths",
]

Places: TypeAlias = Mapping[str, Sequence[tuple[str, ...]]]

SHOWN = 12
"""How many labels an error names before it only counts."""


def row_places(rows: Iterable[Sequence[str]]) -> Places:
    """From rows as ARX writes hierarchies: value, its generalizations, the root. Empty cells are left out."""
    paths = (tuple(filter(None, (cell.strip() for cell in row))) for row in rows)
    return _by_value([path for path in paths if path])


def nested_places(tree: Any) -> Places:
    """From a tree of mappings (node: what is below it) and lists; a leaf is a plain label or a node with nothing below.

    >>> nested_places({"lung": ["flu", "asthma"]})["flu"]
    [('flu', 'lung', '*')]
    """
    leaves: list[tuple[str, ...]] = []
    inner: list[tuple[str, ...]] = []
    pending: list[tuple[Any, tuple[str, ...]]] = [(tree, ("*",))]
    while pending:
        below, above = pending.pop()
        if isinstance(below, Mapping):
            for label, children in below.items():
                path = (written(label), *above)
                if children is None or children in ([], {}):
                    leaves.append(path)
                else:
                    inner.append(path)
                    pending.append((children, path))
        elif isinstance(below, list | tuple):
            pending.extend((child, above) for child in below)
        else:
            leaves.append((written(below), *above))
    # An inner node is a possible value too, unless the same word is a leaf.
    return {**_by_value(inner), **_by_value(leaves)}


def _by_value(paths: Sequence[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    places: dict[str, list[tuple[str, ...]]] = {}
    for name, path in zip(spellings(path[0] for path in paths), paths):
        places.setdefault(name, []).append(path)
    return places


def cut_paths(values: Sequence[Label], lengths: Sequence[int]) -> list[tuple[str, ...]]:
    """Paths of codes whose first so many characters, as they are spelled, name the categories above them.

    >>> cut_paths(["J45.0"], [1, 3])
    [('J45.0', 'J45', 'J', '*')]
    """
    longest_first = sorted(lengths, reverse=True)
    return [(code, *(code[:length] for length in longest_first), "*") for code in spellings(values)]


def split_paths(values: Sequence[Label], separator: str) -> list[tuple[str, ...]]:
    """Paths of codes whose parts, as they are spelled, are set apart by a separator.

    >>> split_paths(["a.b.c"], ".")
    [('a.b.c', 'a.b', 'a', '*')]
    """
    paths = []
    for code in spellings(values):
        parts = code.split(separator)
        paths.append((*(separator.join(parts[:end]) for end in range(len(parts), 0, -1)), "*"))
    return paths


def value_paths(
    places: Places, values: Sequence[Label], file: str = "", lines: Mapping[str, Sequence[int]] | None = None
) -> list[tuple[str, ...]]:
    """The path of each value of the domain; every missing or repeated value is named.

    file   the file that holds the tree, if it is not in the policy: its labels are then not shown
    lines  in which lines of the file each value is, by its spelling
    """
    names = spellings(values)
    source = f"the tree {file}" if file else "the tree"
    problems = []
    missing = [written(value) for value, name in zip(values, names) if name not in places]
    if missing:
        what = f"{len(missing)} of {len(names)} values are not in {source}: {named(missing)}"
        hint = "" if file else f"for '{missing[0]}': {nearest(missing[0], _words(places))}"
        problems.append(Problem("", what, hint))
    repeated = [name for name in names if len(places.get(name, ())) > 1]
    if repeated:
        what = f"{len(repeated)} of {len(names)} values are in {source} more than once"
        if not file:
            what += f": {named([_times(places[name]) for name in repeated])}"
        elif lines is not None:
            what += f", the first of them in lines {named(list(map(str, lines[repeated[0]])))}"
        problems.append(Problem("", what, "each value has one place in a tree; use a lattice for several parents"))
    if problems:
        raise PolicyError(problems)
    return [places[name][0] for name in names]


def _words(places: Places) -> list[str]:
    return [path[0] for paths in places.values() for path in paths]


def _times(paths: Sequence[tuple[str, ...]]) -> str:
    """A value that has several places, in every way it is written there."""
    return f"{' = '.join(dict.fromkeys(path[0] for path in paths))} ({len(paths)} times)"


def named(labels: Sequence[str]) -> str:
    """The first few labels, and how many more there are.

    >>> named(["a", "b"])
    'a, b'
    """
    more = len(labels) - SHOWN
    return ", ".join(labels[:SHOWN]) + (f" and {more} more" if more > 0 else "")
