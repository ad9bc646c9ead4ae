"""What the endpoints share: known campaigns, the writer, and who may do what."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from time import monotonic, time
from typing import TypeVar

from polyseme.collection.server.requests import Refused
from polyseme.collection.store import Entry, Kept, State, Store, UnknownCampaign
from polyseme.collection.store.group_commit import BATCH, CAPACITY, PATIENCE, Writer
from polyseme.collection.survey import Checker, Survey, possible_entries
from polyseme.collection.telemetry import Limits, Metrics
from polyseme.kernel.errors import InvalidInput, StoreUnavailable

__all__ = ["Collector", "Known"]

FRESH = 1.0
"""Seconds for which a state that may change is taken from memory; whether a report is taken is read in the store."""
_ID = re.compile(r"[A-Za-z0-9_-]{43}")
_LATER = 3_600.0

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Known:
    """A campaign as it was when it was last looked at."""

    kept: Kept
    checker: Checker
    seen: float

    @property
    def survey(self) -> Survey:
        return self.checker.survey


class Collector:
    """One process that takes reports.

    writing  a store for the writer alone
    reading  another one, for everything else
    clock    seconds since 1970: campaigns may say when they open and close
    """

    def __init__(
        self,
        writing: Store,
        reading: Store,
        limits: Limits | None = None,
        clock: Callable[[], float] = time,
        capacity: int = CAPACITY,
        batch: int = BATCH,
        patience: float = PATIENCE,
    ) -> None:
        self.metrics, self.limits = Metrics(), limits or Limits(0)
        self.writer = Writer(writing, self._possible, self.metrics.stored, capacity, batch, patience)
        self._reading, self._clock = reading, clock
        self._known: dict[str, Known] = {}
        self._looking: dict[str, asyncio.Future[Known]] = {}
        self._thread = ThreadPoolExecutor(1, "polyseme-reader")

    def start(self) -> None:
        """Begin to work, in the event loop that runs."""
        self.writer.start()

    async def stop(self) -> None:
        """Store what was taken, and let go of the stores."""
        await self.writer.stop()
        await self.read(lambda store: store.close())
        self._thread.shutdown(wait=False)

    def _possible(self, entries: Sequence[Entry]) -> list[bool]:
        known = dict(self._known)
        return possible_entries(entries, {entry.campaign: known[entry.campaign].checker for entry in entries})

    async def read(self, ask: Callable[[Store], R]) -> R:
        """Ask the store something, without holding up the others."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: ask(self._reading))

    async def known(self, campaign: str, fresh: bool = False) -> Known:
        """A campaign that is public; `Refused` where there is none.

        fresh  whether its state must be that in the store; a writer learns it anyway
        """
        found = self._known.get(campaign)
        if found is not None and (found.kept.state is State.PURGED or monotonic() - found.seen < FRESH):
            return found
        looking = self._looking.get(campaign)
        if looking is None:
            # However many requests come at the same time, the store is read once.
            looking = self._looking[campaign] = asyncio.ensure_future(self._look(campaign, found))
            looking.add_done_callback(lambda done: self._looked(campaign, done))
        if found is not None and found.kept.state is State.OPEN and not fresh:
            return found
        return await asyncio.shield(looking)

    def _looked(self, campaign: str, done: asyncio.Future[Known]) -> None:
        del self._looking[campaign]
        if not done.cancelled():
            done.exception()  # the caller that waits for it gets the error

    async def _look(self, campaign: str, found: Known | None) -> Known:
        if not _ID.fullmatch(campaign):
            raise Refused("unknown")
        try:
            kept = await self.read(lambda store: store.campaign(campaign))
        except StoreUnavailable:
            if found is not None:
                return found
            raise Refused("unavailable", retry=5) from None
        except UnknownCampaign:
            raise Refused("unknown") from None
        if found is None or found.kept.document != kept.document:
            found = Known(kept, await self.read(lambda _: _checker(kept)), 0.0)
        self._known[campaign] = Known(kept, found.checker, monotonic())
        return self._known[campaign]

    def forget(self, campaign: str) -> None:
        """Look at a campaign again before it is next used.

        Its checker stays, for what is on its way.
        """
        found = self._known.get(campaign)
        if found is not None:
            self._known[campaign] = Known(found.kept, found.checker, 0.0)

    def public_state(self, known: Known) -> str:
        """draft, open or closed, as the campaign's own dates and its owner have it."""
        if known.kept.state is not State.OPEN:
            return "draft" if known.kept.state is State.DRAFT else "closed"
        if self._seconds_to(known, "closes") <= 0:
            return "closed"
        return "draft" if 0 < self._seconds_to(known, "opens") < float("inf") else "open"

    def require_open(self, known: Known) -> None:
        """Raise unless a campaign takes reports now."""
        state = self.public_state(known)
        if state == "closed":
            raise Refused("closed")
        if state == "draft":
            raise Refused("not-yet", retry=min(self._seconds_to(known, "opens"), _LATER))

    def _seconds_to(self, known: Known, moment: str) -> float:
        """Until a campaign opens or closes by itself; infinite where it says nothing."""
        text = known.survey.settings.opens if moment == "opens" else known.survey.settings.closes
        return datetime.fromisoformat(text).timestamp() - self._clock() if text else float("inf")


def _checker(kept: Kept) -> Checker:
    """The checker of a stored document; a document with another hash than its id is refused."""
    try:
        return Checker(Survey.read(kept.document, kept.id))
    except InvalidInput:
        raise Refused("internal", "the stored document is not the one that the link pins") from None
