"""Sets on a line: chains of places."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.device.chain import Chain
from polyseme.device.fields import LARGEST, Fields
from polyseme.device.stream import KeyStream
from polyseme.device.workload import MOST_VALUES

__all__ = ["Line", "read_order"]


class Line:
    """Sets of `l` values on a line.

    order    the code at each place
    ahead    the first place that may follow each
    weights  by place
    tight    first places of windows that hold one value of every set
    """

    fields = ("order", "ahead", "weights", "tight")

    def __init__(
        self, l: int, order: Sequence[int], ahead: Sequence[int], weights: Sequence[int], tight: Sequence[int]
    ) -> None:
        self.l, self.size, self.order = l, len(order), order
        self.chain = Chain(l, ahead, tight, weights)
        self._place = places(order)

    @classmethod
    def read(cls, fields: Fields, l: int, declared: bool) -> Line:
        order = read_order(fields)
        size = len(order)
        ahead = fields.integers("ahead", 1, max(size, 1), size)
        if any(first <= place for place, first in enumerate(ahead)) or ahead != sorted(ahead):
            fields.wrong("ahead", "expected later places that never descend")
        weights = fields.integers("weights", 1, LARGEST, size)
        tight = fields.ascending("tight", size)
        fields.done()
        fields.charge(l * l * size)
        made = cls(l, order, ahead, weights, tight)
        if not all(any(made.chain.splits(place)) for place in range(size)):
            fields.wrong("l", f"some value is in no set of {l:,} candidates")
        fields.done()
        return made

    def given(self, code: int, stream: KeyStream) -> list[int]:
        return sorted(self.order[place] for place in self.chain.given(self._place[code], stream))

    def blind(self, stream: KeyStream) -> list[int]:
        return sorted(self.order[place] for place in self.chain.blind(stream))

    def inclusion(self) -> list[float]:
        return self._by_code(self.chain.inclusion())

    def lightest(self, cost: Sequence[float]) -> list[float]:
        return self._by_code(self.chain.lightest([cost[code] for code in self.order]))

    def partners(self, values: Sequence[float]) -> list[float]:
        return self._by_code(self.chain.partners([values[code] for code in self.order]))

    def _by_code(self, values: Sequence[float]) -> list[float]:
        return [values[place] for place in self._place]


def read_order(fields: Fields) -> list[int]:
    """The code at each place: every code once."""
    order = fields.integers("order", 0, MOST_VALUES - 1)
    if not 0 < len(order) <= MOST_VALUES or sorted(order) != list(range(len(order))):
        fields.wrong("order", f"expected each of 1 to {MOST_VALUES:,} codes once")
        return []
    return order


def places(order: Sequence[int]) -> list[int]:
    """The place of each code."""
    found = [0] * len(order)
    for place, code in enumerate(order):
        found[code] = place
    return found
