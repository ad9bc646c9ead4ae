"""Sets that follow no simple order are listed: all of them, or all that hold the true value, in lexicographic order.

`Listed` makes the list from the pairs that may stand together; a set weighs the product of the weights of its values.
`Table` is given the sets with a weight each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from math import inf, prod
from typing import TypeVar

from polyseme.device.fields import LARGEST, Fields
from polyseme.device.stream import KeyStream
from polyseme.device.workload import MOST_VALUES

__all__ = ["MOST_SETS", "Listed", "Table"]

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
        neighbours = _neighbours(fields)
        size = len(neighbours)
        weights = fields.integers("weights", 1, LARGEST, size)
        excluded = set(fields.sets("excluded", l, size))
        fields.done()
        sets = [members for members in _together(neighbours, l, fields) if members not in excluded]
        products = [prod(weights[code] for code in members) for members in sets]
        return _whole(cls(l, size, sets, products), fields, "neighbours")


def _whole(made: _T, fields: Fields, key: str) -> _T:
    fields.done()
    if not all(made.holding):
        fields.wrong(key, "some value is in no set")
    fields.done()
    return made


def _neighbours(fields: Fields) -> list[list[int]]:
    given = fields.given.get("neighbours")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_VALUES:
        fields.wrong("neighbours", f"expected a list for each of 1 to {MOST_VALUES:,} values")
        return []
    rows = Fields({str(code): row for code, row in enumerate(given)}, f"{fields.where}.neighbours", fields.problems)
    found = [rows.ascending(str(code), len(given)) for code in range(len(given))]
    if any(row and row[0] <= code for code, row in enumerate(found)):
        fields.wrong("neighbours", "expected greater codes only")
    return found


def _together(neighbours: Sequence[Sequence[int]], l: int, fields: Fields) -> list[tuple[int, ...]]:
    """All sets whose values may stand together, in lexicographic order; the work is charged for before it is done."""
    later = [frozenset(row) for row in neighbours]
    rows: list[tuple[tuple[int, ...], Sequence[int]]] = [((code,), row) for code, row in enumerate(neighbours)]
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
