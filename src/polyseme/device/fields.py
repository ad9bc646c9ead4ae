"""Fields of an untrusted document, with every problem found, and the work it may cause.

A `Fields` collects what is wrong. Its methods return something harmless where a field is wrong, so that the fields
after it are read too; `done` raises.

A small document can ask for tables that no device holds. So every sampling document is charged for the work that it
means, before anything is computed or allocated, in units that are the same in every implementation. All documents of a
campaign share one allowance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeGuard

from polyseme.kernel.errors import CampaignError, Problem

__all__ = ["ALLOWANCE", "LARGEST", "MOST_BYTES", "MOST_CANDIDATES", "MOST_COLUMNS", "MOST_VALUES", "Fields", "Workload"]

ALLOWANCE = 16_000_000
"""Units of work that the sampling documents of a campaign may mean together: seconds on a small device."""
MOST_BYTES = 16_000_000
"""Of a campaign document."""
MOST_CANDIDATES = 1_000
"""Of a set: more do not fit into a report."""
MOST_COLUMNS = 1_000
"""Of a campaign, and most languages: more do not fit into a report, or on a page."""
MOST_VALUES = 1_000_000
"""Of an attribute."""


class Workload:
    """What is left of the allowance."""

    def __init__(self, left: int = ALLOWANCE) -> None:
        self.left = left

    def take(self, units: int) -> bool:
        """Whether so much work may still be done; it then counts as done."""
        self.left -= units
        return self.left >= 0


LARGEST = (1 << 53) - 1
"""The largest whole number that every program reads exactly from JSON."""


class Fields:
    """The fields of one object of a document.

    where     its place in the document, for messages
    workload  what the documents of a campaign may still ask of a device
    """

    def __init__(
        self,
        given: object,
        where: str,
        problems: list[Problem] | None = None,
        workload: Workload | None = None,
    ) -> None:
        self.where, self.problems = where, [] if problems is None else problems
        self.workload = Workload() if workload is None else workload
        self.given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        if not isinstance(given, Mapping):
            self.problems.append(Problem(where, "expected an object"))

    def wrong(self, key: str, what: str, hint: str = "") -> None:
        """Note a problem."""
        self.problems.append(Problem(self.place(key), what, hint))

    def only(self, *known: str) -> None:
        """Refuse all fields but these."""
        for key in self.given:
            if key not in known:
                self.wrong(key, "no such field", f"known here: {', '.join(known)}")

    def inner(self, key: str) -> Fields:
        """An object in this one."""
        return Fields(self.given.get(key), self.place(key), self.problems, self.workload)

    def integer(self, key: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = self.given.get(key)
        if not _whole(value) or not low <= value <= high:
            self.wrong(key, f"expected a whole number from {low:,} to {high:,}")
            return low
        return value

    def integers(self, key: str, low: int, high: int, count: int | None = None) -> list[int]:
        """A list of whole numbers from `low` to `high`, `count` of them where that is known."""
        value = self.given.get(key)
        if not isinstance(value, list) or not all(_whole(item) and low <= item <= high for item in value):
            self.wrong(key, f"expected a list of whole numbers from {low:,} to {high:,}")
            return []
        if count is not None and len(value) != count:
            self.wrong(key, f"expected {count:,} numbers, found {len(value):,}")
        return [int(item) for item in value]

    def text(self, key: str, most: int = 10_000) -> str:
        """A text that is not empty."""
        value = self.given.get(key)
        if not isinstance(value, str) or not 0 < len(value) <= most or not _has_characters(value):
            self.wrong(key, f"expected text of 1 to {most:,} characters")
            return ""
        return value

    def choice(self, key: str, options: Sequence[str]) -> str:
        """One of some words."""
        value = self.given.get(key)
        if not isinstance(value, str) or value not in options:
            self.wrong(key, f"expected one of: {', '.join(options)}")
            return options[0]
        return value

    def spoken(self, key: str, languages: Sequence[str]) -> dict[str, str]:
        """A text in each of the languages."""
        inner = self.inner(key)
        inner.only(*languages)
        return {language: inner.text(language) for language in languages}

    def objects(self, key: str) -> list[Fields]:
        """The objects of a list."""
        value = self.given.get(key)
        if not isinstance(value, list) or not value:
            self.wrong(key, "expected a list that is not empty")
            return []
        return [
            Fields(item, f"{self.place(key)}[{number}]", self.problems, self.workload)
            for number, item in enumerate(value)
        ]

    def place(self, key: str) -> str:
        """The place of a field in the document."""
        return f"{self.where}.{key}" if self.where else key

    def ascending(self, key: str, high: int) -> list[int]:
        """Whole numbers below `high`, each once and ascending."""
        found = self.integers(key, 0, max(high - 1, 0))
        if not _rising(found):
            self.wrong(key, "expected ascending numbers, each of them once")
        return found

    def sets(self, key: str, l: int, size: int) -> list[tuple[int, ...]]:
        """Sets of `l` codes, each ascending, in lexicographic order."""
        value = self.given.get(key)
        if not isinstance(value, list) or not all(_is_set(item, l, size) for item in value):
            self.wrong(key, f"expected a list of sets of {l} ascending codes below {size:,}")
            return []
        found = [tuple(item) for item in value]
        if any(one >= other for one, other in pairwise(found)):
            self.wrong(key, "expected each set once, in lexicographic order")
        return found

    def charge(self, units: int) -> None:
        """Count work that is about to be done; raises where it is more than the campaign has left."""
        if not self.workload.take(units):
            what = "too much to compute for a device: too many candidates, values or sets"
            self.problems.append(Problem(self.where, what, "fewer candidates, a smaller domain or fewer groups"))
            self.done()

    def done(self) -> None:
        """Raise what was found wrong."""
        if self.problems:
            raise CampaignError(self.problems)


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _has_characters(text: str) -> bool:
    """Whether there is no half of a surrogate pair in it."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _rising(numbers: Sequence[int]) -> bool:
    return all(one < other for one, other in pairwise(numbers))


def _is_set(value: object, l: int, size: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == l
        and all(_whole(item) and 0 <= item < size for item in value)
        and _rising(value)
    )
