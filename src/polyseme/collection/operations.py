"""What the operators of a campaign do with it, from the command line or the admin listener.

Campaigns of a store can be shown on the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from polyseme.collection.credentials import code_hash, new_codes
from polyseme.collection.store import Counts, State, Store
from polyseme.collection.survey import Survey
from polyseme.device.campaign import Campaign
from polyseme.kernel.errors import CampaignError, CollectionError, Problem
from polyseme.results.views.formats import plain
from polyseme.results.views.terminal import FittedTable

__all__ = [
    "Standing",
    "add_document",
    "invite",
    "open_document",
    "open_draft",
    "require_answerable",
    "standing",
    "standings",
    "standings_view",
]

_SIGNATURE = re.compile(rb"[A-Za-z0-9_-]{86}")
"""Ed25519 in base64url."""
MOST_INVITATIONS = 1_000_000
"""At a time: they are written to one file."""


@dataclass(frozen=True)
class Standing:
    """How far a campaign has come."""

    id: str
    name: str
    state: State
    minimum: int
    planned: int
    tokens: str
    wave: int
    counts: Counts

    @property
    def enough(self) -> bool:
        """Whether it may be released, once it is closed."""
        return self.counts.reports >= self.minimum

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        counts = self.counts
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state.value,
            "reports": counts.reports,
            "withdrawn": counts.withdrawn,
            "invited": counts.invited,
            "spent": counts.spent,
            "minimum": self.minimum,
            "planned": self.planned,
            "enough": self.enough,
            "tokens": self.tokens,
            "wave": self.wave,
        }


def add_document(store: Store, document: bytes, signature: bytes | None = None) -> str:
    """Keep a campaign as a draft, if devices would answer it; its id."""
    survey = Survey.read(document)
    _require_answerable(survey.campaign)
    if signature is not None and not _SIGNATURE.fullmatch(signature):
        raise CollectionError("the signature is not one that polyseme campaign sign writes")
    store.add_campaign(survey.id, document, signature)
    return survey.id


def open_document(store: Store, document: bytes, signature: bytes | None = None) -> str:
    """Keep a campaign and take reports for it from now on; its id."""
    campaign = add_document(store, document, signature)
    store.move(campaign, State.OPEN)
    return campaign


def open_draft(store: Store, campaign: str) -> None:
    """Take reports for a campaign that is kept as a draft, if devices would answer it."""
    require_answerable(store, campaign)
    store.move(campaign, State.OPEN)


def require_answerable(store: Store, campaign: str) -> None:
    """Refuse a campaign of the store that devices would not answer."""
    _require_answerable(Campaign.read(store.campaign(campaign).document))


def _require_answerable(campaign: Campaign) -> None:
    try:
        campaign.require_promises()
    except CampaignError as error:
        hint = "devices refuse this campaign: make it again with polyseme campaign new"
        raise CampaignError(Problem(item.where, item.what, hint) for item in error.problems) from None


def standing(store: Store, campaign: str) -> Standing:
    """How far one campaign has come."""
    kept = store.campaign(campaign)
    survey = Survey.read(kept.document)
    settings = survey.settings
    counts = store.counts(campaign)
    name = survey.campaign.name
    return Standing(
        kept.id, name, kept.state, settings.minimum, settings.planned, settings.tokens, settings.wave, counts
    )


def standings(store: Store) -> list[Standing]:
    """All of them."""
    return [standing(store, kept.id) for kept in store.campaigns()]


def invite(store: Store, campaign: str, count: int) -> Sequence[str]:
    """Fresh invitations, seen only this once: the store keeps only their hashes."""
    kept = store.campaign(campaign)
    if Survey.read(kept.document).tokens != "invitation":
        raise CollectionError(Problem(f"campaign {campaign}", "it does not ask for invitations"))
    if kept.state not in (State.DRAFT, State.OPEN):
        raise CollectionError(Problem(f"campaign {campaign}", f"it is {kept.state.value} and takes no more reports"))
    if not 1 <= count <= MOST_INVITATIONS:
        raise CollectionError(Problem("count", f"expected a number from 1 to {MOST_INVITATIONS:,}"))
    codes = new_codes(count)
    store.invite(campaign, sorted(found for code in codes if (found := code_hash(campaign, code)) is not None))
    return codes


_HEAD = (
    ("name", False),
    ("state", False),
    ("reports", True),
    ("at least", True),
    ("planned", True),
    ("withdrawn", True),
    ("invitations used", True),
)
_LEGEND = "at least: fewer reports are never released; withdrawn: reports that were taken back"


def standings_view(found: Sequence[Standing]) -> RenderableType:
    """How far campaigns have come; their ids are below, being longer than a column."""
    if not found:
        return Text("No campaigns yet.")
    rows = [_row(item) for item in found]
    ids = [Text(f"{plain(item.name)}  {item.id}", overflow="fold") for item in found]
    return Group(FittedTable(_HEAD, rows), Text(_LEGEND + "\n", style="dim"), *ids)


def _row(item: Standing) -> tuple[str, ...]:
    counts = item.counts
    used = f"{counts.spent:,} of {counts.invited:,}" if item.tokens == "invitation" else "–"
    numbers = (counts.reports, item.minimum, item.planned, counts.withdrawn)
    return (plain(item.name), item.state.value, *(f"{number:,}" for number in numbers), used)
