"""Paths of values through a tree, from the forms in which people write trees.

A path is a tuple of labels, the value first, the root last. `Places` lists every path a tree has for a label, so that
a label written twice is noticed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from polyseme.errors import PolicyError, Problem, nearest

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
    places: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        path = tuple(filter(None, (cell.strip() for cell in row)))
        if path:
            places.setdefault(path[0], []).append(path)
    return places


def nested_places(tree: Any) -> Places:
    """From a tree of mappings (node: what is below it) and lists; a leaf is a plain label or a node with nothing below.

    >>> nested_places({"lung": ["flu", "asthma"]})["flu"]
    [('flu', 'lung', '*')]
    """
    leaves: dict[str, list[tuple[str, ...]]] = {}
    inner: dict[str, list[tuple[str, ...]]] = {}
    pending: list[tuple[Any, tuple[str, ...]]] = [(tree, ("*",))]
    while pending:
        below, above = pending.pop()
        if isinstance(below, Mapping):
            for label, children in below.items():
                path = (str(label), *above)
                if children is None or children in ([], {}):
                    leaves.setdefault(path[0], []).append(path)
                else:
                    inner.setdefault(path[0], []).append(path)
                    pending.append((children, path))
        elif isinstance(below, list | tuple):
            pending.extend((child, above) for child in below)
        else:
            leaves.setdefault(str(below), []).append((str(below), *above))
    # An inner node is a possible value too, unless the same word is a leaf.
    return {**inner, **leaves}


def cut_paths(values: Sequence[Hashable], lengths: Sequence[int]) -> list[tuple[str, ...]]:
    """Paths of codes whose first so many characters name the categories above them.

    >>> cut_paths(["J45.0"], [1, 3])
    [('J45.0', 'J45', 'J', '*')]
    """
    longest_first = sorted(lengths, reverse=True)
    return [(str(value), *(str(value)[:length] for length in longest_first), "*") for value in values]


def split_paths(values: Sequence[Hashable], separator: str) -> list[tuple[str, ...]]:
    """Paths of codes whose parts are set apart by a separator.

    >>> split_paths(["a.b.c"], ".")
    [('a.b.c', 'a.b', 'a', '*')]
    """
    paths = []
    for value in values:
        parts = str(value).split(separator)
        paths.append((*(separator.join(parts[:end]) for end in range(len(parts), 0, -1)), "*"))
    return paths


def value_paths(
    places: Places, values: Sequence[Hashable], file: str = "", lines: Mapping[str, Sequence[int]] | None = None
) -> list[tuple[str, ...]]:
    """The path of each value of the domain; every missing or repeated value is named.

    file   the file that holds the tree, if it is not in the policy: its labels are then not shown
    lines  in which lines of the file each label is
    """
    labels = [str(value) for value in values]
    source = f"the tree {file}" if file else "the tree"
    problems = []
    missing = [label for label in labels if label not in places]
    if missing:
        what = f"{len(missing)} of {len(labels)} values are not in {source}: {named(missing)}"
        hint = "" if file else f"for '{missing[0]}': {nearest(missing[0], places)}"
        problems.append(Problem("", what, hint))
    repeated = [label for label in labels if len(places.get(label, ())) > 1]
    if repeated:
        what = f"{len(repeated)} of {len(labels)} values are in {source} more than once"
        if not file:
            what += f": {named([f'{label} ({len(places[label])} times)' for label in repeated])}"
        elif lines is not None:
            what += f", the first of them in lines {named(list(map(str, lines[repeated[0]])))}"
        problems.append(Problem("", what, "each value has one place in a tree; use a lattice for several parents"))
    if problems:
        raise PolicyError(problems)
    return [places[label][0] for label in labels]


def named(labels: Sequence[str]) -> str:
    """The first few labels, and how many more there are.

    >>> named(["a", "b"])
    'a, b'
    """
    more = len(labels) - SHOWN
    return ", ".join(labels[:SHOWN]) + (f" and {more} more" if more > 0 else "")
