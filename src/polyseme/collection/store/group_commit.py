"""Group commit: waiting reports are stored in one transaction, then acknowledged.

There is no timer. While a transaction is on its way to the disk reports gather, and they are the next one: a single
report does not wait, and many share the cost of one sync. What cannot be stored now is refused at once, by
`Overloaded` or `StoreUnavailable`; nothing is ever acknowledged from memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TypeVar

from polyseme.collection.store.base import Entry, Outcome, Store
from polyseme.kernel.errors import CollectionError, StoreUnavailable

__all__ = ["Check", "Overloaded", "Watch", "Writer"]

CAPACITY = 10_000
"""Reports that may wait: some seconds of work. Beyond that a device is better served by asking again later."""
BATCH = 2_000
"""Most reports of one transaction, so that the first of them does not wait for too many others."""
PATIENCE = 15.0
"""Seconds after which a store that does not return is taken to be away."""

R = TypeVar("R")
Check = Callable[[Sequence[Entry]], Sequence[bool]]
"""Which of the entries a device can have drawn."""
Watch = Callable[[int, float], None]
"""Told of every transaction: how many entries, how many seconds."""

_log = logging.getLogger(__name__)


class Overloaded(CollectionError):
    """More reports wait than will be stored soon."""


class Writer:
    """The only one who writes reports into a store.

    Lives in one event loop, works in one thread.

    store     used by this writer only
    check     says which entries are possible; the others never reach the store
    capacity  entries that may wait
    batch     most entries of one transaction
    """

    def __init__(
        self,
        store: Store,
        check: Check = lambda entries: [True] * len(entries),
        watch: Watch = lambda entries, seconds: None,
        capacity: int = CAPACITY,
        batch: int = BATCH,
        patience: float = PATIENCE,
    ) -> None:
        self._store, self._check, self._watch = store, check, watch
        self._capacity, self._batch, self._patience = capacity, batch, patience
        self._waiting: list[tuple[Entry, asyncio.Future[Outcome]]] = []
        self._some = asyncio.Event()
        self._away = False
        self._stopping = False
        self._thread = ThreadPoolExecutor(1, "polyseme-writer")
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Entries that wait for a transaction."""
        return len(self._waiting)

    def start(self) -> None:
        """Begin to work, in the event loop that runs."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Take nothing more, store what waits, and let go of the store."""
        self._stopping = True
        self._some.set()
        if self._task is not None:
            await self._task
        await self.alone_with(lambda store: store.close())
        self._thread.shutdown(wait=False)

    async def submit(self, entry: Entry) -> Outcome:
        """What became of an entry, when that is on the disk."""
        if self._stopping or self._away:
            raise StoreUnavailable("the store does not answer now")
        if len(self._waiting) >= self._capacity:
            raise Overloaded("too many reports wait already")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, future))
        self._some.set()
        return await future

    @property
    def away(self) -> bool:
        """Whether the store has not returned for so long that nothing is sent there any more."""
        return self._away

    async def alone_with(self, work: Callable[[Store], R]) -> R:
        """Do something with the store between two transactions."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._store))

    async def _work(self) -> None:
        while self._waiting or not self._stopping:
            if not self._waiting:
                self._some.clear()
                await self._some.wait()
                continue
            batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            await self._store_batch(batch)

    async def _store_batch(self, batch: Sequence[tuple[Entry, asyncio.Future[Outcome]]]) -> None:
        began = perf_counter()
        entries = [entry for entry, _ in batch]
        work = asyncio.ensure_future(self.alone_with(lambda _: self._commit(entries)))
        await asyncio.wait([work], timeout=self._patience)
        if not work.done():
            _log.warning("the store does not return: reports are refused until it does")
            self._away = True
            _refuse([*batch, *self._waiting], StoreUnavailable("the store does not answer now"))
            self._waiting = []
            # Whether these reports were stored is not known yet; devices send them again, and the key knows.
            await asyncio.wait([work])
            self._away = False
        error = work.exception()
        if error is not None:
            _log.warning("a transaction failed: %s", type(error).__name__)
            _refuse(batch, error if isinstance(error, StoreUnavailable) else StoreUnavailable("a transaction failed"))
            return
        for (_, future), outcome in zip(batch, work.result()):
            if not future.done():
                future.set_result(outcome)
        self._watch(len(batch), perf_counter() - began)

    def _commit(self, entries: Sequence[Entry]) -> list[Outcome]:
        """In the thread: sort out what is impossible, store the rest in one transaction."""
        possible = self._check(entries)
        if all(possible):
            return self._store.append(entries)
        stored = iter(self._store.append([entry for entry, well in zip(entries, possible) if well]))
        return [next(stored) if well else Outcome.IMPOSSIBLE for well in possible]


def _refuse(batch: Sequence[tuple[Entry, asyncio.Future[Outcome]]], error: StoreUnavailable) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
