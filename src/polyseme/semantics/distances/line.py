"""Distance along a line: ranks or representative values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import PolicyError
from polyseme.semantics.distances.base import Clusters, Distance, Line, Structure, numbers

__all__ = ["LineDistance"]


class LineDistance(Distance):
    """`|x_u - x_v|` for positions `x`, one for each value of the domain.

    By default the ranks 0, 1, 2 ...

    >>> LineDistance([0.5, 1.5, 3.5]).between(np.array([0]), np.array([2]))
    array([3.])
    """

    kind = "line"

    def __init__(self, positions: Sequence[float] | Floats) -> None:
        self.positions: Floats = numbers(positions, "a line distance needs one finite number for each value")
        # Halved first: the span of two huge numbers of opposite sign is beyond what a float holds.
        if self.size and self.positions.max() / 2.0 - self.positions.min() / 2.0 > np.finfo(np.float64).max / 2.0:
            raise PolicyError("the positions on the line are too far apart for their difference to be a number")
        same = self.size - len(np.unique(self.positions))
        if same:
            raise PolicyError(
                f"{same} of {self.size} values repeat the position of another on the line",
                "values at distance zero count as one value: merge them",
            )

    @classmethod
    def ranks(cls, size: int) -> LineDistance:
        """The order of the domain itself: neighbors are 1 apart."""
        return cls(np.arange(size, dtype=np.float64))

    @property
    def size(self) -> int:
        return len(self.positions)

    def between(self, left: Ints, right: Ints) -> Floats:
        return np.abs(self.positions[left] - self.positions[right])

    def among(self, codes: Ints) -> LineDistance:
        return LineDistance(self.positions[codes])

    def structure(self, threshold: float) -> Structure:
        order = np.argsort(self.positions, kind="stable").astype(np.int64)
        ahead = _first_far_enough(self.positions[order], threshold)
        if np.array_equal(ahead, np.arange(1, self.size + 1)):
            return Clusters(np.arange(self.size, dtype=np.int64))
        return Line(order, ahead)

    def parameters(self) -> Mapping[str, Any]:
        if np.array_equal(self.positions, np.arange(self.size)):
            return {"line": "rank"}
        return {"line": self.positions.tolist()}


def _first_far_enough(positions: Floats, threshold: float) -> Ints:
    """The first later place at least `threshold` away from each position; their number if none.

    All places are bisected at once on the difference itself. A search for `position + threshold` would round
    otherwise than the `|x - y| >= d` by which a release is checked.
    """
    size = len(positions)
    low = np.arange(1, size + 1, dtype=np.int64)
    high = np.full(size, size, dtype=np.int64)
    while np.any(low < high):
        middle = (low + high) // 2
        far = positions[np.minimum(middle, size - 1)] - positions >= threshold
        open_ = low < high
        high = np.where(open_ & far, middle, high)
        low = np.where(open_ & ~far, middle + 1, low)
    return low
