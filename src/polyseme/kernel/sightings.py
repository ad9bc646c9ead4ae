"""Where something was seen in a table: how often, in which rows first, and which values.

Counts and rows may stand in messages. The values are for the owner of the table alone: no text, comparison, copy or
pickle of a sighting has them, and only `--show-values` asks for them, for a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["Numbering", "Sightings"]

_ROWS = 5
"""Rows that are named."""
_VALUES = 1_000
"""Different values that are remembered: more than a user reads, and little memory."""

Numbering: TypeAlias = Callable[[Sequence[int]], tuple[str, Sequence[int]]]
"""How a table counts its rows (from 0): what a number is called, and the numbers."""

Values: TypeAlias = Mapping[str, tuple[int, int]] | Mapping[str | None, tuple[int, int]]
"""How many records have each value, and which is the first; None is a missing value."""


class Sightings:
    """How many records, the first of them, and the same for each value.

    rows  from 0; once they are numbered, as the table counts them
    unit  "row", or what else the numbers are

    >>> seen = Sightings.of({"flue": (2, 3), "cough": (1, 8)}, [3, 5, 8])
    >>> seen, seen.words()
    (<Sightings: 3 records>, 'in rows 3, 5 and 8')
    >>> (seen + seen.moved(10)).words()
    'first in rows 3, 5, 8, 13 and 15'
    """

    __slots__ = ("_values", "count", "rows", "unit")

    def __init__(self, count: int = 0, rows: Sequence[int] = (), unit: str = "row") -> None:
        self.count, self.rows, self.unit = count, tuple(rows)[:_ROWS], unit
        self._values: dict[str | None, tuple[int, int]] = {}

    @classmethod
    def of(cls, values: Values, rows: Sequence[int], count: int | None = None) -> Sightings:
        """From the values, and the first rows of all."""
        found = cls(sum(number for number, _ in values.values()) if count is None else count, rows)
        found._remember(values)
        return found

    @property
    def values(self) -> Mapping[str | None, tuple[int, int]]:
        """For the eyes of the owner only: how many records have each value, and which is the first."""
        return dict(self._values)

    def _remember(self, values: Values) -> None:
        for value, (count, first) in values.items():
            if value in self._values:
                before, least = self._values[value]
                self._values[value] = (before + count, min(least, first))
            elif len(self._values) < _VALUES:
                self._values[value] = (count, first)

    def __add__(self, other: Sightings) -> Sightings:
        found = Sightings.of(self._values, sorted((*self.rows, *other.rows)), self.count + other.count)
        found._remember(other._values)
        return found

    def moved(self, by: int) -> Sightings:
        """The same so many rows further down."""
        values = {value: (count, first + by) for value, (count, first) in self._values.items()}
        return Sightings.of(values, [row + by for row in self.rows], self.count)

    def numbered(self, numbering: Numbering) -> Sightings:
        """The same with rows as a table counts them."""
        wanted = sorted({*self.rows, *(first for _, first in self._values.values())})
        unit, numbers = numbering(wanted)
        place = dict(zip(wanted, numbers, strict=True))
        values = {value: (count, place[first]) for value, (count, first) in self._values.items()}
        found = Sightings.of(values, [place[row] for row in self.rows], self.count)
        found.unit = unit
        return found

    def words(self) -> str:
        """Where they are; empty where that is not known."""
        if not self.rows:
            return ""
        *most, last = map(str, self.rows)
        named = f"{self.unit}s {', '.join(most)} and {last}" if most else f"{self.unit} {last}"
        return f"in {named}" if len(self.rows) >= self.count else f"first in {named}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sightings) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.count, self.rows, self.unit))

    def __reduce__(self) -> tuple[Any, ...]:
        return Sightings, (self.count, self.rows, self.unit)

    def __repr__(self) -> str:
        return f"<Sightings: {self.count:,} records>"
