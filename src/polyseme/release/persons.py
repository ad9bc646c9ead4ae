"""How many people the records of a release are of: what its publisher says, since no key is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["People"]


@dataclass(frozen=True)
class People:
    """What the publisher counted.

    total           people with at least one published record
    smallest_class  people of the smallest equivalence class; suppressed records are in none
    """

    total: int
    smallest_class: int

    def to_dict(self) -> dict[str, int]:
        """The entry `people` of a manifest."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> People:
        """The inverse of `to_dict`; the manifest's schema has seen to the types."""
        return cls(int(entry["total"]), int(entry["smallest_class"]))

    def flaw(self, records: int) -> str:
        """What cannot be true of it; empty when all can."""
        if self.smallest_class > self.total:
            return "more people in a class than there are"
        return "more people than records" if self.total > records else ""
