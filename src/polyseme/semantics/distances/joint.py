"""Distance between combinations of values, from the distances of their attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.semantics.distances.base import MATRIX_LIMIT, Clusters, Distance, Line, Structure, recognize

__all__ = ["RULES", "DiscreteDistance", "JointDistance"]

RULES = ("min", "max", "sum")
"""The least, the largest and the sum of the members' distances."""


class DiscreteDistance(Distance):
    """1 between different values: for an attribute without a distance in a combination."""

    kind = "discrete"

    def __init__(self, size: int) -> None:
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def between(self, left: Ints, right: Ints) -> Floats:
        return np.asarray(left != right, dtype=np.float64)

    def structure(self, threshold: float) -> Structure:
        together = threshold > 1.0
        return Clusters(np.zeros(self.size, dtype=np.int64) if together else np.arange(self.size, dtype=np.int64))

    def parameters(self) -> Mapping[str, Any]:
        return {"discrete": self.size}


class JointDistance(Distance):
    """The least, largest or summed distance of the members of two combinations.

    rule     one of `RULES`
    members  the distances that count
    codes    for each of them, the code of every combination: combinations that differ only in members that do not count
             are at distance zero

    >>> levels = DiscreteDistance(2)
    >>> both = JointDistance("min", [levels, levels], [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])])
    >>> both.between(np.array([0, 0]), np.array([1, 3]))
    array([0., 1.])
    """

    kind = "joint"

    def __init__(self, rule: str, members: Sequence[Distance], codes: Sequence[Ints]) -> None:
        if rule not in RULES or not members or len(members) != len(codes):
            raise PolicyError("a joint distance needs one of min, max and sum, and codes for each of its members")
        self.rule, self.members, self.codes = rule, tuple(members), tuple(np.asarray(row) for row in codes)

    @property
    def size(self) -> int:
        return len(self.codes[0])

    def between(self, left: Ints, right: Ints) -> Floats:
        found = [member.between(codes[left], codes[right]) for member, codes in zip(self.members, self.codes)]
        fold = {"min": np.minimum, "max": np.maximum, "sum": np.add}[self.rule]
        return np.asarray(fold.reduce(found), dtype=np.float64)

    def among(self, codes: Ints) -> JointDistance:
        return JointDistance(self.rule, self.members, [row[codes] for row in self.codes])

    def structure(self, threshold: float) -> Structure:
        parts = [member.structure(threshold) for member in self.members]
        if len(parts) == 1:
            if isinstance(parts[0], Line):
                return _line(parts[0], self.codes[0])
            if isinstance(parts[0], Clusters):
                return _clusters([parts[0]], self.codes)
        clusters = [part for part in parts if isinstance(part, Clusters)]
        if self.rule == "max" and len(clusters) == len(parts):
            return _clusters(clusters, self.codes)
        if self.size > MATRIX_LIMIT:
            raise ImpossibleError(
                f"{self.size:,} combinations are too many for this distance (limit {MATRIX_LIMIT:,})",
                "distance: NAME of one attribute with a tree or a line has no such limit; or join coarser values",
            )
        places = np.arange(self.size)
        return recognize(self.compatible(places[:, None], places[None, :], threshold))

    def parameters(self) -> Mapping[str, Any]:
        stored = {
            "rule": self.rule,
            "members": [dict(member.parameters()) for member in self.members],
            "sizes": [member.size for member in self.members],
            "codes": [row.tolist() for row in self.codes],
        }
        return {"joint": stored}


def _line(line: Line, codes: Ints) -> Line:
    """Combinations on the line of their one member; those at the same place follow each other."""
    place = np.empty(line.size, dtype=np.int64)
    place[line.order] = np.arange(line.size)
    order = np.argsort(place[codes], kind="stable").astype(np.int64)
    places = place[codes][order]
    return Line(order, np.searchsorted(places, line.ahead[places], side="left").astype(np.int64))


def _clusters(parts: Sequence[Clusters], codes: Sequence[Ints]) -> Clusters:
    """Combinations are close when they are close in every member."""
    labels = np.stack([part.labels[row] for part, row in zip(parts, codes)])
    return Clusters(np.unique(labels, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64))
