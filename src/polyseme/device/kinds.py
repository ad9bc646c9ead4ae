"""The kinds of sampling documents: sets on a line, on a circle, in clusters, and listed.

*Line*: chains of places.

*Circle*: seen from one of its values, the others are a chain of offsets that ends before it comes round. Without
weights all values are alike and equally spaced, so one chain serves them all.

*Clusters*: at most one value of each. Clusters are drawn first, then a value of each. Where all clusters are alike, the
others are drawn one after the other among those that are left, by their rank there. Otherwise they form a chain in
which any cluster may follow.

*Listed*: sets that follow no simple order, all of them or all that hold the true value, in lexicographic order.
`Listed` makes the list from the pairs that may stand together; a set weighs the product of the weights of its values.
`Table` gets the sets with a weight each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from math import inf, prod
from typing import TypeVar

from polyseme.device.chain import Chain, KeyStream, least_between
from polyseme.device.fields import LARGEST, MOST_VALUES, Fields

__all__ = ["MOST_SETS", "Circle", "Clusters", "Line", "Listed", "Table", "read_order"]


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
        """Where the closest set from a place ends: the value there is compatible with all of it."""
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


class Clusters:
    """Sets of `l` values of different clusters.

    labels   the cluster of each value
    weights  of the clusters; None where they are alike
    shares   weights of the values within their clusters; None where they are alike
    full     clusters of which every set holds a value
    """

    fields = ("size", "labels", "weights", "shares", "full")

    def __init__(
        self,
        l: int,
        labels: Sequence[int],
        weights: Sequence[int] | None,
        shares: Sequence[int] | None,
        full: Sequence[int],
    ) -> None:
        self.l, self.size, self.labels, self.weights, self.shares = l, len(labels), labels, weights, shares
        self.members: list[list[int]] = [[] for _ in range(max(labels) + 1)]
        for code, label in enumerate(labels):
            self.members[label].append(code)
        count = len(self.members)
        self.chain = None if weights is None else Chain(l, range(1, count + 1), full, weights)

    @classmethod
    def read(cls, fields: Fields, l: int, declared: bool) -> Clusters:
        if ("size" in fields.given) is ("labels" in fields.given):
            fields.wrong("labels", "expected exactly one of size and labels")
        if "size" in fields.given:
            size = fields.integer("size", 1, MOST_VALUES)
            fields.charge(8 * size)
            labels = list(range(size))
        else:
            labels = fields.integers("labels", 0, MOST_VALUES - 1)
            fields.charge(8 * len(labels))
        count = max(labels, default=-1) + 1
        if not 0 < len(labels) <= MOST_VALUES or len(set(labels)) < count:
            fields.wrong("labels", f"expected 1 to {MOST_VALUES:,} values, and one at least in each cluster")
        weights = fields.integers("weights", 1, LARGEST, count) if "weights" in fields.given else None
        shares = fields.integers("shares", 1, LARGEST, len(labels)) if "shares" in fields.given else None
        full = fields.ascending("full", count) if "full" in fields.given else []
        if l > count:
            fields.wrong("l", f"sets of {l:,} candidates from {count:,} clusters")
        if (len(full) >= l and l < count) or (weights is None and 0 < len(full) < l):
            fields.wrong("full", "clusters that cannot all be in every set, or leave no room for others")
        fields.done()
        fields.charge(l * l * (1 if weights is None else count))
        return cls(l, labels, weights, shares, full)

    def given(self, code: int, stream: KeyStream) -> list[int]:
        own = self.labels[code]
        chosen = self.chain.given(own, stream) if self.chain else self._distinct([own], stream)
        return sorted(code if cluster == own else self._member(cluster, stream) for cluster in chosen)

    def blind(self, stream: KeyStream) -> list[int]:
        chosen = self.chain.blind(stream) if self.chain else self._distinct([], stream)
        return sorted(self._member(cluster, stream) for cluster in chosen)

    def _distinct(self, taken: list[int], stream: KeyStream) -> list[int]:
        """Clusters by their rank among those that are not taken, until there are `l`; ascending."""
        while len(taken) < self.l:
            number = stream.below(len(self.members) - len(taken))
            place = 0
            while place < len(taken) and taken[place] <= number:
                number, place = number + 1, place + 1
            taken.insert(place, number)
        return taken

    def _member(self, cluster: int, stream: KeyStream) -> int:
        members = self.members[cluster]
        if len(members) == 1:
            return members[0]
        if self.shares is None:
            return members[stream.below(len(members))]
        return members[stream.between(self._share_sums[cluster], 0, len(members))]

    @cached_property
    def _share_sums(self) -> list[list[int]]:
        shares = self.shares or ()
        return [[0, *accumulate(shares[code] for code in members)] for members in self.members]

    def inclusion(self) -> list[float]:
        count = len(self.members)
        rho = self.chain.inclusion() if self.chain else [self.l / count] * count
        if self.shares is None:
            return [rho[label] / len(self.members[label]) for label in self.labels]
        return [
            rho[label] * (share / self._share_sums[label][-1])
            for label, share in zip(self.labels, self.shares, strict=True)
        ]

    def lightest(self, cost: Sequence[float]) -> list[float]:
        cheapest = [min(cost[code] for code in members) for members in self.members]
        least = self.chain.lightest(cheapest) if self.chain else self._cheapest(cheapest)
        # The value itself in the place of the cheapest of its cluster.
        return [least[label] - cheapest[label] + cost[code] for code, label in enumerate(self.labels)]

    def partners(self, values: Sequence[float]) -> list[float]:
        largest = [max(values[code] for code in members) for members in self.members]
        found = self.chain.partners(largest) if self.chain else _largest_others(largest, self.l)
        return [found[label] for label in self.labels]

    def _cheapest(self, cost: Sequence[float]) -> list[float]:
        cheap = sorted(cost)[: self.l]
        # A cluster that is not among the cheapest takes the room of the dearest of them.
        return [max(one - cheap[-1], 0.0) + sum(cheap) for one in cost]


def _largest_others(values: Sequence[float], l: int) -> list[float]:
    """For each cluster, the largest value of another one; 0 where sets have one candidate."""
    first = max(range(len(values)), key=values.__getitem__)
    second = max((value for place, value in enumerate(values) if place != first), default=0.0)
    return [(second if place == first else values[first]) if l > 1 else 0.0 for place in range(len(values))]


MOST_SETS = 500_000
"""Most sets that a device lists, chosen by judgment."""


class Table:
    """Listed sets of `l` values with a weight each."""

    fields: tuple[str, ...] = ("size", "sets", "weights")

    def __init__(self, l: int, size: int, sets: Sequence[tuple[int, ...]], weights: Sequence[int]) -> None:
        self.l, self.size, self.sets, self.weights = l, size, sets, weights
        self._sums: dict[int, list[int]] = {}

    @classmethod
    def read(cls, fields: Fields, l: int, declared: bool) -> Table:
        size = fields.integer("size", 1, MOST_VALUES)
        given = fields.given.get("sets")
        _charge_sets(fields, len(given) if isinstance(given, list) else 0, l, "sets")
        fields.charge(8 * size)
        sets = fields.sets("sets", l, size)
        weights = fields.integers("weights", 1, LARGEST, len(sets))
        return _whole(cls(l, size, sets, weights), fields, "sets")

    @cached_property
    def holding(self) -> list[list[int]]:
        """The numbers of the sets that hold each value."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for number, members in enumerate(self.sets):
            for code in members:
                found[code].append(number)
        return found

    def given(self, code: int, stream: KeyStream) -> list[int]:
        numbers = self.holding[code]
        if code not in self._sums:
            self._sums[code] = [0, *accumulate(self.weights[number] for number in numbers)]
        return list(self.sets[numbers[stream.between(self._sums[code], 0, len(numbers))]])

    def blind(self, stream: KeyStream) -> list[int]:
        return list(self.sets[stream.between(self._all, 0, len(self.sets))])

    @cached_property
    def _all(self) -> list[int]:
        return [0, *accumulate(self.weights)]

    def inclusion(self) -> list[float]:
        return [sum(self.weights[number] for number in numbers) / self._all[-1] for numbers in self.holding]

    def lightest(self, cost: Sequence[float]) -> list[float]:
        least = [inf] * self.size
        for members in self.sets:
            total = sum(cost[code] for code in members)
            for code in members:
                least[code] = min(least[code], total)
        return least

    def partners(self, values: Sequence[float]) -> list[float]:
        largest = list(values)
        for members in self.sets:
            most = max(values[code] for code in members)
            for code in members:
                largest[code] = max(largest[code], most)
        return largest


_T = TypeVar("_T", bound=Table)


class Listed(Table):
    """All sets of `l` values that may stand together in pairs.

    neighbours  the greater codes that may stand in a set with each
    weights     of the values
    excluded    sets that are never drawn
    """

    fields = ("neighbours", "weights", "excluded")

    @classmethod
    def read(cls, fields: Fields, l: int, declared: bool) -> Listed:
        neighbors = _neighbors(fields)
        size = len(neighbors)
        weights = fields.integers("weights", 1, LARGEST, size)
        excluded = set(fields.sets("excluded", l, size))
        fields.done()
        sets = [members for members in _together(neighbors, l, fields) if members not in excluded]
        products = [prod(weights[code] for code in members) for members in sets]
        return _whole(cls(l, size, sets, products), fields, "neighbours")


def _whole(made: _T, fields: Fields, key: str) -> _T:
    fields.done()
    if not all(made.holding):
        fields.wrong(key, "some value is in no set")
    fields.done()
    return made


def _neighbors(fields: Fields) -> list[list[int]]:
    given = fields.given.get("neighbours")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_VALUES:
        fields.wrong("neighbours", f"expected a list for each of 1 to {MOST_VALUES:,} values")
        return []
    rows = Fields({str(code): row for code, row in enumerate(given)}, f"{fields.where}.neighbours", fields.problems)
    found = [rows.ascending(str(code), len(given)) for code in range(len(given))]
    if any(row and row[0] <= code for code, row in enumerate(found)):
        fields.wrong("neighbours", "expected greater codes only")
    return found


def _together(neighbors: Sequence[Sequence[int]], l: int, fields: Fields) -> list[tuple[int, ...]]:
    """All sets of compatible values in lexicographic order; the budget is charged first."""
    later = [frozenset(row) for row in neighbors]
    rows: list[tuple[tuple[int, ...], Sequence[int]]] = [((code,), row) for code, row in enumerate(neighbors)]
    for length in range(2, l + 1):
        if length == l:
            _charge_sets(fields, sum(len(left) for _, left in rows), l, "neighbours")
            return [(*members, code) for members, left in rows for code in left]
        fields.charge(sum(len(left) * (len(left) + 1) // 2 for _, left in rows))
        rows = [
            ((*members, code), [other for other in left[place + 1 :] if other in later[code]])
            for members, left in rows
            for place, code in enumerate(left)
        ]
    return [members for members, _ in rows]


def _charge_sets(fields: Fields, count: int, l: int, key: str) -> None:
    if count > MOST_SETS:
        fields.wrong(key, f"{count:,} sets, more than the {MOST_SETS:,} that a device lists")
        fields.done()
    fields.charge(l * l * count)
