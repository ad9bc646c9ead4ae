"""Axes: quasi-identifiers in Mondrian, along which classes have a width, are cut and shown."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.kernel.arrays import Floats, Ints
from polyseme.methods.microdata import Cells, Ladder
from polyseme.semantics.hierarchies.hierarchy import MISSING_LABEL

__all__ = ["Axis", "Hierarchical", "Ordered", "axis_of"]


@dataclass(frozen=True, eq=False)
class Axis(ABC):
    """A quasi-identifier.

    ladder  its levels
    codes   the leaf of each record, as small a number as will do: (n,)

    Classes are given as records one class after the other, and where each starts. `extent` of a class is a pair of
    numbers that says how far it reaches: (classes, 2).
    """

    ladder: Ladder
    codes: NDArray[np.unsignedinteger[Any]] = field(repr=False)

    @abstractmethod
    def extents(self, records: Ints, starts: Ints) -> Ints:
        """How far each class reaches."""

    @abstractmethod
    def widths(self, extents: Ints) -> Floats:
        """The share of the leaves that each class spans: 0 for one, 1 for all."""

    @abstractmethod
    def values(self, records: Ints, owner: Ints, extents: Ints) -> Ints:
        """What the records are cut by; `owner` is the class of each."""

    @abstractmethod
    def cells(self, extents: Ints) -> tuple[Ints, Cells]:
        """The cell of each class, and the different cells."""


def axis_of(ladder: Ladder, codes: Ints, ordered: bool | None = None) -> Axis:
    """An axis; ordered if that is not said and the leaves are ascending numbers."""
    kind = Ordered if (_ascending(ladder) if ordered is None else ordered) else Hierarchical
    # Records are looked up in any order all the time, which is quick as long as their codes stay in the cache.
    return kind(ladder, codes.astype(np.min_scalar_type(max(ladder.leaves - 1, 0))))


def _missing(ladder: Ladder) -> bool:
    """Whether the last leaf is a missing value."""
    return ladder.leaves > 0 and ladder.labels[0][-1] in (None, MISSING_LABEL)


def _ascending(ladder: Ladder) -> bool:
    labels = ladder.labels[0][:-1] if _missing(ladder) else ladder.labels[0]
    try:
        numbers = [float(str(label)) for label in labels]
    except ValueError:
        return False
    return all(one < other for one, other in itertools.pairwise(numbers))


@dataclass(frozen=True, eq=False)
class Ordered(Axis):
    """Leaves in their order. The extent of a class is its lowest and its highest leaf."""

    def extents(self, records: Ints, starts: Ints) -> Ints:
        codes = self.codes[records]
        return np.column_stack([at.reduceat(codes, starts) for at in (np.minimum, np.maximum)]).astype(np.int64)

    def widths(self, extents: Ints) -> Floats:
        return (extents[:, 1] - extents[:, 0]) / max(self.ladder.leaves - 1, 1)

    def values(self, records: Ints, owner: Ints, extents: Ints) -> Ints:
        return self.codes[records].astype(np.int64)

    def cells(self, extents: Ints) -> tuple[Ints, Cells]:
        shown = extents.copy()
        last = self.ladder.leaves - 1
        if _missing(self.ladder):
            # A missing value meets others at the last level only.
            shown[(shown[:, 1] == last) & (shown[:, 0] < last)] = 0, last
        pairs, cell = _different(shown, self.ladder.leaves)
        labels = [self._label(low, high) for low, high in pairs.tolist()]
        # Ranges share the numbers that they are made of: there may be millions of them.
        leaves = np.arange(self.ladder.leaves)
        return cell, Cells(tuple(labels), tuple(leaves[low : high + 1] for low, high in pairs.tolist()))

    def _label(self, low: int, high: int) -> str | None:
        leaves = self.ladder.labels[0]
        if low == high:
            return leaves[low]
        if high == self.ladder.leaves - 1 and _missing(self.ladder):
            return self.ladder.labels[-1][0]
        return self._named.get((low, high), f"[{leaves[low]}, {leaves[high]}]")

    @cached_property
    def _named(self) -> dict[tuple[int, int], str | None]:
        """The ranges that are groups of a level between the leaves and the last; the lowest level has the name."""
        named: dict[tuple[int, int], str | None] = {}
        for level in range(1, self.ladder.height):
            for label, leaves in zip(self.ladder.labels[level], Cells.of_level(self.ladder, level).leaves):
                if len(leaves) and leaves[-1] - leaves[0] == len(leaves) - 1:
                    named.setdefault((int(leaves[0]), int(leaves[-1])), label)
        return named


@dataclass(frozen=True, eq=False)
class Hierarchical(Axis):
    """Nodes of the hierarchy.

    The extent of a class is the level and the group of the lowest node above its values.
    """

    @cached_property
    def _groups(self) -> Ints:
        return np.stack(self.ladder.groups)

    def extents(self, records: Ints, starts: Ints) -> Ints:
        codes = self.codes[records]
        extents = np.zeros((len(starts), 2), dtype=np.int64)
        open_ = np.ones(len(starts), dtype=bool)
        for level, groups in enumerate(self.ladder.groups):
            low, high = (at.reduceat(groups[codes], starts) for at in (np.minimum, np.maximum))
            found = open_ & (low == high)
            extents[found] = np.column_stack([np.full(int(found.sum()), level), low[found]])
            open_ &= ~found
            if not open_.any():
                break
        return extents

    @cached_property
    def _below(self) -> Ints:
        """Leaves below each group of each level."""
        sizes = np.zeros((self.ladder.height + 1, self.ladder.leaves), dtype=np.int64)
        for level, groups in enumerate(self.ladder.groups):
            sizes[level, : self.ladder.size(level)] = np.bincount(groups, minlength=self.ladder.size(level))
        return sizes

    def widths(self, extents: Ints) -> Floats:
        return (self._below[extents[:, 0], extents[:, 1]] - 1) / max(self.ladder.leaves - 1, 1)

    def values(self, records: Ints, owner: Ints, extents: Ints) -> Ints:
        children: Ints = self._groups[extents[owner, 0] - 1, self.codes[records]]
        return children

    def cells(self, extents: Ints) -> tuple[Ints, Cells]:
        pairs, cell = _different(extents, self.ladder.leaves)
        levels = {level: Cells.of_level(self.ladder, level) for level in np.unique(pairs[:, 0]).tolist()}
        found = [(levels[level].labels[group], levels[level].leaves[group], level) for level, group in pairs.tolist()]
        told = _told_apart([(label, level) for label, _, level in found])
        return cell, Cells(told, tuple(leaves for _, leaves, _ in found))


def _different(pairs: Ints, span: int) -> tuple[Ints, Ints]:
    """The different pairs of numbers, in order, and the place of each; the second number is below `span`."""
    found, place = np.unique(pairs[:, 0] * span + pairs[:, 1], return_inverse=True)
    return np.column_stack(np.divmod(found, max(span, 1))), place


def _told_apart(shown: list[tuple[str | None, int]]) -> tuple[str | None, ...]:
    """Labels that come at several levels with the level, since classes that look alike would be taken for one."""
    seen: set[str | None] = set()
    labels: list[str | None] = []
    for label, level in shown:
        labels.append(f"{label} (level {level})" if label in seen else label)
        seen.add(label)
    return tuple(labels)
