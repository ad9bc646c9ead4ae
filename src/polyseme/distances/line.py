"""Distance along a line: ranks or representative values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.distances.base import Distance
from polyseme.distances.structure import Clusters, Floats, Ints, Line, Structure
from polyseme.errors import PolicyError

__all__ = ["LineDistance"]


class LineDistance(Distance):
    """`|x_u - x_v|` for positions `x`, one for each value of the domain; by default the ranks 0, 1, 2 ..

    >>> LineDistance([0.5, 1.5, 3.5]).between(np.array([0]), np.array([2]))
    array([3.])
    """

    kind = "line"

    def __init__(self, positions: Sequence[float] | Floats) -> None:
        self.positions: Floats = np.asarray(positions, dtype=np.float64)
        if self.positions.ndim != 1 or not np.all(np.isfinite(self.positions)):
            raise PolicyError("a line distance needs one finite number for each value")
        if len(np.unique(self.positions)) != len(self.positions):
            raise PolicyError(
                "two values have the same position on the line", "values at distance zero are one value: merge them"
            )

    @classmethod
    def ranks(cls, size: int) -> LineDistance:
        """The order of the domain itself: neighbours are 1 apart."""
        return cls(np.arange(size, dtype=np.float64))

    @property
    def size(self) -> int:
        return len(self.positions)

    def between(self, left: Ints, right: Ints) -> Floats:
        return np.abs(self.positions[left] - self.positions[right])

    def structure(self, threshold: float) -> Structure:
        order = np.argsort(self.positions, kind="stable").astype(np.int64)
        sorted_positions = self.positions[order]
        # Compare differences, not sums, so that the verifier's |x - y| >= d agrees to the last bit.
        ahead = np.searchsorted(sorted_positions, sorted_positions + threshold, side="left").astype(np.int64)
        ahead = _settle(ahead, sorted_positions, threshold)
        ahead = np.maximum(ahead, np.arange(1, self.size + 1))
        if np.array_equal(ahead, np.arange(1, self.size + 1)):
            return Clusters(np.arange(self.size, dtype=np.int64))
        return Line(order, ahead)

    def parameters(self) -> Mapping[str, Any]:
        if np.array_equal(self.positions, np.arange(self.size)):
            return {"line": "rank"}
        return {"line": self.positions.tolist()}


def _settle(ahead: Ints, positions: Floats, threshold: float) -> Ints:
    """Correct `ahead` by one place where rounding of `position + threshold` put it on the wrong side."""
    size = len(positions)
    places = np.arange(size)
    back = np.maximum(ahead - 1, 0)
    early = (ahead > 0) & (positions[back] - positions >= threshold) & (back > places)
    ahead = np.where(early, back, ahead)
    here = np.minimum(ahead, size - 1)
    late = (ahead < size) & (positions[here] - positions < threshold)
    return np.where(late, ahead + 1, ahead)
