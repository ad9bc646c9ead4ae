"""Taxonomies: named categories in levels, and the rule that places codes below them.

Paths of values through a tree come from the forms in which people write trees.

A path is a tuple of labels, the value first, the root last, as they are written. `Places` lists every path a tree has
for the spelling of a label, so that a value that is there twice, as 30 and as 30.0, is noticed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from typing import Any, TypeAlias

from polyseme.kernel.delimited import records
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.spelling import Label, spellings, written

__all__ = [
    "Node",
    "Places",
    "Taxonomy",
    "cut_paths",
    "load_taxonomy",
    "named",
    "nested_places",
    "row_places",
    "split_paths",
    "taxonomy_names",
    "value_paths",
]


@dataclass(frozen=True)
class Node:
    """One category; `also` are other words for it (in ICD-10: further codes or ranges that belong to it)."""

    code: str
    parent: str
    name: str
    also: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A tree of categories whose values all have as many levels, named from the value upwards in `levels`."""

    name: str
    title: str
    levels: tuple[str, ...]
    nodes: Mapping[str, Node] = field(repr=False)

    def find(self, value: str) -> tuple[str, ...] | None:
        """The path of a value: itself, the categories above it, up to the highest.

        None when it is unknown.

        >>> load_taxonomy("icd10").find("j450")
        ('J45.0', 'J45', 'J40-J47', 'X')
        """
        by_structure = _STRUCTURES.get(self.name)
        path = by_structure(self, value.strip().upper()) if by_structure else None
        if path is None:
            code = self._codes.get(_key(value))
            path = self.line(code) if code is not None else None
        # A category above the lowest level stands for a leaf of its own below it.
        return None if path is None else (path[0],) * (len(self.levels) - len(path)) + path

    def line(self, code: str) -> tuple[str, ...]:
        """A category and all those above it."""
        line = [code]
        while parent := self.nodes[line[-1]].parent:
            line.append(parent)
        return tuple(line)

    def children(self, code: str = "") -> tuple[Node, ...]:
        """The categories directly below one, or the highest ones."""
        return tuple(node for node in self.nodes.values() if node.parent == code)

    def hint(self, value: str) -> str:
        """What may have been meant by an unknown value."""
        words = chain.from_iterable((node.code, node.name, *node.also) for node in self.nodes.values())
        hint = nearest(value, words)
        return hint if hint.startswith("did you mean") else f"see 'polyseme taxonomy show {self.name}'"

    @cached_property
    def _codes(self) -> Mapping[str, str]:
        """Codes by every word for them, without case, accents, blanks and punctuation."""
        return {
            _key(word): node.code for node in self.nodes.values() for word in (*node.also, node.name, node.code) if word
        }

    @cached_property
    def _category_of(self) -> Mapping[str, str]:
        """ICD-10: block (or chapter, where no block has it) of each three-character category."""
        chapters_first = sorted(self.nodes.values(), key=lambda node: bool(node.parent))
        return {
            category: node.code
            for node in chapters_first
            for given in (*([node.code] if node.parent else []), *node.also)
            for category in _categories(given)
        }


def _key(word: str) -> str:
    folded = unicodedata.normalize("NFKD", word).casefold()
    return "".join(letter for letter in folded if letter.isalnum())


def _categories(given: str) -> list[str]:
    """All categories in a range such as X85-Y09, or the one that is given."""
    first, _, last = given.partition("-")
    if not last or not (first[1:] + last[1:]).isdigit():
        return [first]
    low, high = ((ord(code[0]) * 100 + int(code[1:])) for code in (first, last))
    return [f"{chr(number // 100)}{number % 100:02d}" for number in range(low, high + 1)]


_ICD_CODE = re.compile(r"([A-Z][0-9][0-9AB])(?:\.?([0-9A-Z]{1,4})|\.-?)?[*+†]?")


def _icd10(taxonomy: Taxonomy, value: str) -> tuple[str, ...] | None:
    """Chapter, block, three-character category and code from the shape of a code.

    A category that no block lists, as national editions have some, is a block by itself within its chapter.
    """
    match = _ICD_CODE.fullmatch(value)
    if match is None:
        return None
    category, rest = match.groups()
    # A third character that is a letter comes after the digits: C4A belongs where C49 is, if no block says otherwise.
    place = taxonomy._category_of.get(category) or taxonomy._category_of.get(f"{category[:2]}9")
    if place is None:
        return None
    code = f"{category}.{rest}" if rest else category
    line = taxonomy.line(place)
    return (code, category, *line) if len(line) == 2 else (code, category, category, *line)


def _isco(taxonomy: Taxonomy, value: str) -> tuple[str, ...] | None:
    """Unit group, minor group, sub-major group, major group: one digit fewer each.

    No minor group ends in zero: 110 is the unit group 0110 that lost its first digit, and is not guessed at.
    """
    shaped = re.fullmatch(r"[0-9]{2}[1-9][0-9]?|[0-9]{4}", value)
    if shaped is None or value[:2] not in taxonomy.nodes:
        return None
    return (value, value[:3], value[:2], value[0])


_STRUCTURES: Mapping[str, Callable[[Taxonomy, str], tuple[str, ...] | None]] = {"icd10": _icd10, "occupation": _isco}

_TITLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "countries": (
        "Countries by United Nations region (ISO 3166 codes or English names)",
        ("country", "subregion", "region"),
    ),
    "education": (
        "Levels of education after ISCED 2011, with school grades and degrees",
        ("education", "level", "stage"),
    ),
    "icd10": (
        "International Classification of Diseases, 10th revision",
        ("code", "category", "block", "chapter"),
    ),
    "occupation": (
        "International Standard Classification of Occupations, ISCO-08",
        ("unit group", "minor group", "sub-major group", "major group"),
    ),
}


def taxonomy_names() -> tuple[str, ...]:
    """The taxonomies there are.

    >>> taxonomy_names()
    ('countries', 'education', 'icd10', 'occupation')
    """
    return tuple(_TITLES)


@cache
def load_taxonomy(name: str) -> Taxonomy:
    """A taxonomy of the package by its name."""
    if name not in _TITLES:
        raise PolicyError(f"unknown taxonomy '{name}'", nearest(name, _TITLES))
    title, levels = _TITLES[name]
    source = files("polyseme.semantics.taxonomies") / "data" / f"{name}.csv"
    with source.open(encoding="utf-8") as lines:
        rows = records(lines)
        _, header = next(rows)
        nodes = {
            row["code"]: Node(row["code"], row["parent"], row["name"], tuple(filter(None, row["also"].split("|"))))
            for row in (dict(zip(header, cells)) for _, cells in rows)
        }
    return Taxonomy(name, title, levels, nodes)


Places: TypeAlias = Mapping[str, Sequence[tuple[str, ...]]]

SHOWN = 12
"""How many labels an error names before it only counts."""


def row_places(rows: Iterable[Sequence[str]]) -> Places:
    """From rows as ARX writes hierarchies: value, its generalizations, the root.

    Empty cells are left out.
    """
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
