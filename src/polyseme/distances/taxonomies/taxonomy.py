"""A taxonomy: named categories in levels, and the rule by which codes below them find their place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain

from polyseme.errors import PolicyError, nearest
from polyseme.files.delimited import records

__all__ = ["Node", "Taxonomy", "load_taxonomy", "taxonomy_names"]


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
        """The path of a value: itself, the categories above it, up to the highest; None when it is unknown.

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
    source = files("polyseme.distances.taxonomies") / "data" / f"{name}.csv"
    with source.open(encoding="utf-8") as lines:
        rows = records(lines)
        _, header = next(rows)
        nodes = {
            row["code"]: Node(row["code"], row["parent"], row["name"], tuple(filter(None, row["also"].split("|"))))
            for row in (dict(zip(header, cells)) for _, cells in rows)
        }
    return Taxonomy(name, title, levels, nodes)
