"""How the sets of a release were collected, where devices drew them: what its readers must know of the senders.

Nothing here names a sender, and nothing says when a respondent answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from polyseme.device.statements import Channel, OnePerPerson, reported

__all__ = ["LONGEST_CONTACT", "Collected"]

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
