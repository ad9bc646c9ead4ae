"""Distance around a circle: hours of the day, months, angles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import PolicyError
from polyseme.semantics.distances.base import Circle, Clusters, Distance, Structure, numbers

__all__ = ["CircleDistance"]


class CircleDistance(Distance):
    """The shorter way round: `min(|x_u - x_v|, L - |x_u - x_v|)`.

    where
        x    positions, one for each value, taken modulo L
        L    length of the whole circle

    >>> hours = CircleDistance([22, 23, 0, 1], length=24)
    >>> hours.between(np.array([0]), np.array([3]))
    array([3.])
    """

    kind = "circle"

    def __init__(self, positions: Sequence[float] | Floats, length: float) -> None:
        self.length = float(length)
        if not (np.isfinite(self.length) and self.length > 0):
            raise PolicyError(f"the length of a circle is a positive number, not {length}")
        given = numbers(positions, "a circle distance needs one finite number for each value")
        turned = np.mod(given, self.length)
        # A tiny negative number leaves a remainder that rounds to the length itself, which is the origin again.
        self.positions: Floats = np.where(turned >= self.length, 0.0, turned)
        same = self.size - len(np.unique(self.positions))
        if same:
            raise PolicyError(
                f"{same} of {self.size} values repeat the position of another on a circle of length {self.length:g}",
                "positions are taken modulo the length; values at distance zero count as one value: merge them",
            )
        self._order: Ints = np.argsort(self.positions, kind="stable").astype(np.int64)
        self._places: Ints | None = self._even_places()

    @classmethod
    def ranks(cls, size: int) -> CircleDistance:
        """The order of the domain, closed: neighbors are 1 apart, and so are the last and the first."""
        return cls.equally_spaced(size, float(size))

    @classmethod
    def equally_spaced(cls, size: int, length: float) -> CircleDistance:
        """The order of the domain, spread evenly over a circle of this length."""
        return cls(np.arange(size, dtype=np.float64) * length / max(size, 1), length)

    @property
    def size(self) -> int:
        return len(self.positions)

    def between(self, left: Ints, right: Ints) -> Floats:
        if self._places is not None:
            steps = np.abs(self._places[left] - self._places[right])
            return np.asarray(np.minimum(steps, self.size - steps) * self.length / self.size, dtype=np.float64)
        straight = np.abs(self.positions[left] - self.positions[right])
        return np.minimum(straight, self.length - straight)

    def among(self, codes: Ints) -> CircleDistance:
        return CircleDistance(self.positions[codes], self.length)

    def structure(self, threshold: float) -> Structure:
        order = self._order
        if self.size < 2 or np.all(self.between(order, np.roll(order, -1)) >= threshold):
            return Clusters(np.arange(self.size, dtype=np.int64))
        return Circle(order, self.positions[order], self.length, float(threshold), self._spacing(threshold))

    def _even_places(self) -> Ints | None:
        """The rank of each value around the circle if the values are equally spaced.

        Then distances are counted in steps, so that pairs equally many steps apart are equally far to the last bit,
        which differences of rounded positions are not.
        """
        if not self.size:
            return None
        along = self.positions[self._order]
        even = along[0] + np.arange(self.size) * self.length / self.size
        if not np.allclose(along, even, rtol=0.0, atol=1e-12 * self.length):
            return None
        return np.argsort(self._order).astype(np.int64)

    def _spacing(self, threshold: float) -> int | None:
        """How many steps apart equally spaced values are compatible; over half the circle if none."""
        if self._places is None:
            return None
        half = self.size // 2
        far = np.arange(1, half + 1) * self.length / self.size >= threshold
        return int(far.argmax()) + 1 if far.any() else half + 1

    def parameters(self) -> Mapping[str, Any]:
        if self.length == self.size and np.array_equal(self.positions, np.arange(self.size)):
            return {"circle": "rank"}
        return {"circle": {"length": self.length, "positions": self.positions.tolist()}}
