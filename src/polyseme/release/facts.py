"""Facts of a manifest: title and owner, applied method, collection, and people.

Title and owner are stated by the owner, for readers and not for programs. A method that looks at the whole table leaves
what it did. Where devices drew the sets, the manifest says what readers must know of the senders: nothing here names a
sender, and nothing says when a respondent answered. How many people the records are of is the publisher's statement,
since no key is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date as day
from datetime import datetime
from typing import Any

from polyseme.device.protected import Channel, OnePerPerson, reported

__all__ = ["LONGEST", "LONGEST_CONTACT", "About", "Applied", "Collected", "People", "flaw_of"]

LONGEST = 200
"""Letters that a fact may have: it stands at the head of a page."""


@dataclass(frozen=True)
class About:
    """What the owner of a table says of it; empty where nothing was said.

    title      the name of the data set
    publisher  who answers for the release: a person or an office
    version    of the policy, in the owner's own counting
    date       of the release, as 2026-11-17
    """

    title: str = ""
    publisher: str = ""
    version: str = ""
    date: str = ""

    def __bool__(self) -> bool:
        return bool(self.to_dict())

    def to_dict(self) -> dict[str, str]:
        """The entry `about` of a manifest: what was said."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> About:
        return cls(**document)


def flaw_of(name: str, text: str) -> str:
    """Why a text cannot be this fact, in words; empty when it can.

    >>> flaw_of("date", "17.11.2026"), flaw_of("title", "Incomes")
    ('expected a date such as 2026-11-17', '')
    """
    if not text.strip():
        return "expected some text"
    if len(text) > LONGEST:
        return f"longer than {LONGEST} letters"
    if not text.isprintable():
        return "expected one line of printable text"
    return "expected a date such as 2026-11-17" if name == "date" and not _is_day(text) else ""


def _is_day(text: str) -> bool:
    try:
        return day.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@dataclass(frozen=True)
class Applied:
    """What was done.

    name        of the method, in the policy's words
    parameters  as requested, defaults filled in
    classes     how many classes or groups there are
    suppressed  records of which nothing is shown but sensitive values, or nothing at all
    withheld    whether suppressed records are left out; otherwise they show `*` in every quasi-identifier
    levels      for each quasi-identifier the level at which all records are shown; empty where they differ
    loss        by the measure that was minimized; None where none was
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


LONGEST_CONTACT = 1_000
"""Letters, as many as a campaign document may have there."""


@dataclass(frozen=True)
class Collected:
    """A campaign as the release of its reports states it.

    campaign        its id, which pins the document that people answered
    wave            which of several campaigns of the same people it is
    channel         whether devices sent straight to the collector, or through a relay
    one_per_person  what kept a person from reporting more than once
    minimum         the campaign promised that fewer reports than this are never released
    contact         whom people could ask
    opens, closes   as announced, with their zone; None where nothing was
    k               how many records share their open values at least, where rarer ones were left out; None otherwise
    reports         how many reports a device was allowed to send; None where nothing was said
    """

    campaign: str
    wave: int
    channel: Channel
    one_per_person: OnePerPerson
    minimum: int
    contact: str
    opens: str | None = None
    closes: str | None = None
    k: int | None = None
    reports: int | None = None

    @property
    def sentences(self) -> list[str]:
        """The way the reports took, and whether they count people, in plain words."""
        return [*reported(self.one_per_person, self.channel), *self._repeated]

    @property
    def _repeated(self) -> list[str]:
        """What several reports of a device mean for the numbers."""
        if (self.reports or 1) == 1:
            return []
        return [
            f"A device was allowed {self.reports:,} reports, with the same set for the same answer: intervals are wide "
            "enough for the case that every device sent as many."
        ]

    def to_dict(self) -> dict[str, Any]:
        """The entry `collected` of a manifest; what was not announced is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Collected:
        return cls(**document)

    def flaws(self) -> dict[str, str]:
        """What the schema cannot see to be wrong, by key."""
        found = {} if self.contact.isprintable() else {"contact": "expected one line of printable text"}
        moments = {key: _moment(text) for key, text in (("opens", self.opens), ("closes", self.closes)) if text}
        found |= {key: "expected a moment with its zone" for key, moment in moments.items() if moment is None}
        opens, closes = moments.get("opens"), moments.get("closes")
        if opens and closes and opens >= closes:
            found["closes"] = "not after it opens"
        return found


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


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
