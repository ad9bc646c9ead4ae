"""Questions that a device has answered before: two independent sets of one answer can be intersected.

A device keeps no answers. It remembers which protected questions it sent sets for: the name of the column, a sketch of
its labels, and what the set was drawn from. Another campaign asks *the same question* where the column has the same
name, or where the domains have at least five labels and share at least half of them; upper case and blanks do not
count. Its set is independent of the earlier one unless both are sticky and drawn from the same document in the same
stratum.

The sketch holds the smallest hashes of the labels, so the share of labels in common is exact up to 64 labels and an
estimate beyond.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass

from polyseme.device.campaign import Campaign, label_text
from polyseme.device.protected import Protected
from polyseme.device.reports import Report

__all__ = ["Asked", "asked_by"]

_KEPT = 64
"""Hashes of a sketch."""
_FEW = 5
"""Domains with fewer labels, such as yes and no, are those of too many questions to tell which one it is."""


@dataclass(frozen=True)
class Asked:
    """A question for which a set was sent.

    labels  the smallest hashes of its labels, ascending
    drawn   what a sticky set was drawn from; empty for a fresh one, which is never drawn again
    """

    name: str
    labels: tuple[str, ...]
    drawn: str

    def adds_to(self, earlier: Asked) -> bool:
        """Whether a set for this question, after one for an earlier question, could be intersected with it."""
        return self._same(earlier) and not (self.drawn and self.drawn == earlier.drawn)

    def _same(self, other: Asked) -> bool:
        if _plain(self.name) == _plain(other.name):
            return True
        smallest = sorted({*self.labels, *other.labels})[:_KEPT]
        common = set(self.labels).intersection(other.labels, smallest)
        return min(len(self.labels), len(other.labels)) >= _FEW and 2 * len(common) >= len(smallest)


def asked_by(campaign: Campaign, report: Report) -> list[Asked]:
    """The protected questions of a report."""
    return [Asked(column.name, _sketch(column), _drawn(campaign, column, report)) for column in campaign.protected]


def _sketch(column: Protected) -> tuple[str, ...]:
    hashes = {hashlib.sha256(_plain(label_text(label)).encode()).hexdigest()[:16] for label in column.labels}
    return tuple(sorted(hashes)[:_KEPT])


def _drawn(campaign: Campaign, column: Protected, report: Report) -> str:
    number = column.placing.stratum(report.open)
    return f"{column.strata[number].fingerprint} {number}" if campaign.collection.sticky else ""


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
