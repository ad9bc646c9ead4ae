"""What it says about a person to be left out of a release: for the data holder, never for publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from polyseme.arrays import Ints
from polyseme.errors import numbered

__all__ = ["LeftOut"]


@dataclass(frozen=True)
class LeftOut:
    """The suppressed records of a table, as an attacker meets them who knows that a person is in the table.

    attribute  the sensitive attribute that the attacker wants to know
    records    how many are left out
    values     how many different values they have; for buckets, values that mean the same count once
    success    the share of the most frequent one: how often the attacker is right who does not find the person
    baseline   its largest share in the whole table: how often an attacker is right without the release
    bound      what groups promise: 1/l; None where only models say something
    extra      how many are left out only so that what is left out has several values
    """

    attribute: str
    records: int
    values: int
    success: float
    baseline: float
    bound: float | None = None
    extra: int = 0

    @classmethod
    def of(cls, attribute: str, left: Ints, whole: Ints, bound: float | None = None, extra: int = 0) -> Self:
        """From how many records of each kind are left out, and how many there are."""
        records = int(left.sum())
        success, baseline = (float(counts.max() / counts.sum()) for counts in (left, whole))
        return cls(attribute, records, int(np.count_nonzero(left)), success, baseline, bound, extra)

    @property
    def exceeded(self) -> bool:
        """Whether being left out tells more than groups promise, and more than the table as a whole."""
        return self.bound is not None and self.success > max(self.bound, self.baseline)

    @property
    def in_words(self) -> str:
        """What an attacker learns."""
        kinds = "1 value" if self.values == 1 else f"{self.values:,} values"
        guess = f"{self.success:.1%} of these people ({self.baseline:.1%} without the release)"
        return (
            f"{numbered(self.records, 'records are left out')}, with {kinds} of {self.attribute}: an attacker who "
            f"knows that a person is in the table, and finds no record, guesses {self.attribute} right for {guess}"
        )

    @property
    def remedy(self) -> str:
        """What was done about it, and what else could be."""
        done = f"{numbered(self.extra, 'records are left out')} only to mix the values. " if self.extra else ""
        alone = "No records could be added to mix the values. " if self.values == 1 and self.bound is not None else ""
        return (
            f"{done}{alone}No choice of suppressed records brings this down to {self.bound:.1%}; a smaller share costs "
            f"more records: left-out: {self.advised:.2f} in the policy, or a smaller l, or broader values"
        )

    @property
    def advised(self) -> float:
        """A share between what the table has anyway and what was left out."""
        return (self.success + self.baseline) / 2.0

    def to_dict(self) -> dict[str, Any]:
        """An entry under `method.left_out` of `plan --json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(**document)
