"""What a method that looks at the whole table did to it, as the manifest tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Applied"]


@dataclass(frozen=True)
class Applied:
    """What was done.

    name        of the method, in the policy's words
    parameters  as asked for, defaults filled in
    classes     how many classes or groups there are
    suppressed  records of which nothing is shown but sensitive values, or nothing at all
    withheld    whether suppressed records are left out; otherwise they show `*` in every quasi-identifier
    levels      for each quasi-identifier the level at which all records are shown; empty where they differ
    loss        by the measure that was minimised; None where none was
    gap         how much smaller the least loss could be, at the most; 0 for an optimum, None where nothing is proved
    actions     to how many classes each action was applied, for a method that takes several
    people      who have a suppressed record, where people were counted; None where records were
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    classes: int = 0
    suppressed: int = 0
    withheld: bool = False
    levels: Mapping[str, int] = field(default_factory=dict)
    loss: float | None = None
    gap: float | None = None
    actions: Mapping[str, int] = field(default_factory=dict)
    people: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON objects."""
        return {
            "name": self.name,
            "parameters": {key: value for key, value in self.parameters.items() if value is not None},
            "classes": self.classes,
            "suppressed": self.suppressed,
            "withheld": self.withheld,
            "levels": dict(self.levels),
            "loss": self.loss,
            "gap": self.gap,
            **({"actions": dict(self.actions)} if self.actions else {}),
            **({} if self.people is None else {"people": self.people}),
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Applied:
        """The inverse of `to_dict`; the manifest's schema has seen to the types."""
        return cls(**entry)
