"""Sets on a circle: seen from one of its values, the others are a chain of offsets that ends before it comes round.

Without weights all values are alike and equally spaced, so one chain serves them all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

from polyseme.device.chain import Chain, least_between
from polyseme.device.fields import LARGEST, Fields
from polyseme.device.line import places, read_order
from polyseme.device.stream import KeyStream

__all__ = ["Circle"]

_KEPT = 64
"""Chains that are kept for values to come: 2 MB for circles of a year's days."""


class Circle:
    """Sets of `l` values on a circle.

    order    the code at each place
    ahead    the first place further on that may stand in a set with each, counting on past the last place
    weights  by place; None where values are alike and equally spaced
    """

    fields = ("order", "ahead", "weights")

    def __init__(self, l: int, order: Sequence[int], ahead: Sequence[int], weights: Sequence[int] | None) -> None:
        self.l, self.size, self.order, self.ahead, self.weights = l, len(order), order, ahead, weights
        self._place = places(order)
        self._others = lru_cache(maxsize=_KEPT)(self._make_others)

    @classmethod
    def read(cls, fields: Fields, l: int, declared: bool) -> Circle:
        order = read_order(fields)
        size = len(order)
        ahead = fields.integers("ahead", 1, max(2 * size, 1), size)
        if any(not place < first <= place + size for place, first in enumerate(ahead)) or ahead != sorted(ahead):
            fields.wrong("ahead", "expected places within one turn, never descending")
        if ahead and ahead[-1] > ahead[0] + size:
            fields.wrong("ahead", "the last place looks further ahead than the first one a turn later")
        weights = fields.integers("weights", 1, LARGEST, size) if "weights" in fields.given else None
        if weights is None and len({first - place for place, first in enumerate(ahead)}) > 1:
            fields.wrong("weights", "missing: values are not equally spaced")
        fields.done()
        # With weights, and for a prior, each value has a chain of its own.
        fields.charge(l * l * size * (2 * size if weights or declared else 1))
        made = cls(l, order, ahead, weights)
        if any(made._reach(root) > root + size for root in range(size)):
            fields.wrong("l", f"some value is in no set of {l:,} candidates")
        fields.done()
        return made

    def _reach(self, root: int) -> int:
        """Where the closest set from a place on ends: what stands there is compatible with all of it."""
        for _ in range(self.l):
            root = self._ahead(root)
        return root

    def _span(self, root: int) -> tuple[int, int]:
        """The first offset from a place that is compatible with it, and one past the last."""
        end = self.size
        while end > 0 and self._ahead(root + end - 1) > root + self.size:
            end -= 1
        return self.ahead[root] - root, end

    def _ahead(self, place: int) -> int:
        """The same for places of the next turn."""
        return self.ahead[place % self.size] + place // self.size * self.size

    def _make_others(self, root: int) -> Chain:
        """The chains of the other values, as offsets from the first compatible one."""
        first, end = self._span(root)
        size = max(end - first, 0)
        low = [min(self._ahead(root + first + step) - root - first, size) for step in range(size)]
        weights = [self._weight(root + first + step) for step in range(size)]
        return Chain(self.l - 1, low, (), weights)

    def _weight(self, place: int) -> int:
        return 1 if self.weights is None else self.weights[place % self.size]

    def _chain(self, root: int) -> Chain:
        return self._others(0 if self.weights is None else root)

    @cached_property
    def totals(self) -> list[int]:
        """The weight of all sets that hold each place, up to a factor."""
        if self.weights is None:
            return [1] * self.size
        return [self._weight(root) * (self._chain(root).total if self.l > 1 else 1) for root in range(self.size)]

    def _from(self, root: int, stream: KeyStream) -> list[int]:
        """The codes of a set that holds a place: the others are walked from it on."""
        offsets = list[int]()
        if self.l > 1:
            first, _ = self._span(root)
            offsets = [first + step for step in self._chain(root).blind(stream)]
        return sorted(self.order[(root + offset) % self.size] for offset in [0, *offsets])

    def given(self, code: int, stream: KeyStream) -> list[int]:
        return self._from(self._place[code], stream)

    def blind(self, stream: KeyStream) -> list[int]:
        if self.weights is None:
            return self._from(stream.below(self.size), stream)
        return self._from(stream.between(self._total_sums, 0, self.size), stream)

    @cached_property
    def _total_sums(self) -> list[int]:
        return [0, *accumulate(self.totals)]

    def inclusion(self) -> list[float]:
        # Every set is counted once from each of its values.
        everything = sum(self.totals)
        return [self.l * self.totals[place] / everything for place in self._place]

    def lightest(self, cost: Sequence[float]) -> list[float]:
        if self.l == 1 or min(cost) == max(cost):
            return [self.l * one for one in cost]
        along = [cost[code] for code in self.order]
        return [along[place] + self._least(place, along) for place in self._place]

    def partners(self, values: Sequence[float]) -> list[float]:
        size, turns = self.size, [self._ahead(place) for place in range(2 * self.size)]
        costs = [-values[code] for code in self.order] * 2
        nearest, furthest = [list(range(size))], [list(range(size, 2 * size))]
        for _ in range(1, self.l):
            nearest.append([self._ahead(place) for place in nearest[-1]])
            furthest.append([bisect_right(turns, place) - 1 for place in furthest[-1]])
        # The m-th of the others, from a place on: from as near as m steps allow to as far as the l - m after it allow.
        found = [-value for value in costs[:size]]
        for steps in range(1, self.l):
            ends = [place + 1 for place in furthest[self.l - steps]]
            least = least_between(costs, nearest[steps], ends)
            found = [max(one, -other) for one, other in zip(found, least)]
        return [found[place] for place in self._place]

    def _least(self, root: int, along: Sequence[float]) -> float:
        """The least cost of the other values of a set that holds a place."""
        first, _ = self._span(root)
        chain = self._chain(root)
        return min(chain.lightest([along[(root + first + step) % self.size] for step in range(chain.size)]))
