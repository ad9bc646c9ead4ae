"""The writer: what is waiting is one transaction, and is acknowledged only when it is over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from polyseme.collection.store import Entry, Outcome
from polyseme.collection.store.group_commit import Overloaded, Writer
from polyseme.kernel.errors import StoreUnavailable


class Slow:
    """A store that stores when it is let, and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fault: Exception | None = None
        self.closed = False
        self.begun = threading.Event()

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        self.begun.set()
        assert self.gate.wait(30)
        if self.fault is not None:
            raise self.fault
        self.batches.append([entry.id[0] for entry in entries])
        return [Outcome.STORED] * len(entries)

    def close(self) -> None:
        self.closed = True


def entry(number: int) -> Entry:
    return Entry("campaign", bytes([number]), b"payload")


Story = Callable[[Writer, Slow], Coroutine[Any, Any, None]]


def play(story: Story, **options: Any) -> Slow:
    store = Slow()

    async def whole() -> None:
        writer = Writer(store, **options)  # type: ignore[arg-type]
        writer.start()
        await story(writer, store)
        await writer.stop()

    asyncio.run(whole())
    assert store.closed
    return store


async def gathered(writer: Writer, count: int) -> None:
    """Wait until so many entries wait."""
    while writer.waiting < count:
        await asyncio.sleep(0)


def test_a_lonely_report_does_not_wait() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        assert await writer.submit(entry(1)) is Outcome.STORED
        assert store.batches == [[1]]

    play(story)


def test_what_comes_during_a_transaction_is_the_next_one() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        store.gate.clear()
        first = asyncio.create_task(writer.submit(entry(0)))
        await asyncio.to_thread(store.begun.wait)
        others = [asyncio.create_task(writer.submit(entry(number))) for number in range(1, 6)]
        await gathered(writer, 5)
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in (first, *others)), "acknowledged before it was stored"
        store.gate.set()
        assert await asyncio.gather(first, *others) == [Outcome.STORED] * 6

    assert play(story).batches == [[0], [1, 2, 3, 4, 5]]


def test_a_transaction_has_a_largest_size() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        await asyncio.gather(*(writer.submit(entry(number)) for number in range(7)))

    assert [len(batch) for batch in play(story, batch=3).batches] == [3, 3, 1]


def test_what_is_impossible_does_not_reach_the_store() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        outcomes = await asyncio.gather(*(writer.submit(entry(number)) for number in range(4)))
        assert outcomes == [Outcome.STORED, Outcome.IMPOSSIBLE] * 2

    assert play(story, check=lambda entries: [item.id[0] % 2 == 0 for item in entries]).batches == [[0, 2]]


def test_a_store_that_fails_is_asked_again_by_the_next() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        for fault in (StoreUnavailable("full"), RuntimeError("a value 4711")):
            store.fault = fault
            refused = await asyncio.gather(*(writer.submit(entry(n)) for n in range(3)), return_exceptions=True)
            assert {type(error) for error in refused} == {StoreUnavailable}
            assert "4711" not in str(refused)
        store.fault = None
        assert await writer.submit(entry(9)) is Outcome.STORED

    assert play(story).batches == [[9]]


def test_a_store_that_does_not_return_is_away_until_it_does() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        store.gate.clear()
        first = asyncio.create_task(writer.submit(entry(0)))
        await asyncio.to_thread(store.begun.wait)
        second = asyncio.create_task(writer.submit(entry(1)))
        for task in (first, second):
            with pytest.raises(StoreUnavailable):
                await task
        assert writer.away
        with pytest.raises(StoreUnavailable):
            await writer.submit(entry(2))
        store.gate.set()
        while writer.away:
            await asyncio.sleep(0.001)
        # The first was stored after all, which its device hears when it sends it again.
        assert await writer.submit(entry(3)) is Outcome.STORED

    assert play(story, patience=0.05).batches == [[0], [3]]


def test_more_than_may_wait_is_refused() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        store.gate.clear()
        first = asyncio.create_task(writer.submit(entry(0)))
        await asyncio.to_thread(store.begun.wait)
        others = [asyncio.create_task(writer.submit(entry(number))) for number in range(1, 4)]
        await gathered(writer, 3)
        with pytest.raises(Overloaded):
            await writer.submit(entry(9))
        store.gate.set()
        await asyncio.gather(first, *others)

    assert play(story, capacity=3).batches == [[0], [1, 2, 3]]


def test_stopping_stores_what_waits_and_takes_nothing_more() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        waiting = [asyncio.create_task(writer.submit(entry(number))) for number in range(5)]
        await gathered(writer, 5)
        await writer.stop()
        assert [task.result() for task in waiting] == [Outcome.STORED] * 5
        with pytest.raises(StoreUnavailable):
            await writer.submit(entry(9))

    async def whole() -> None:
        store = Slow()
        writer = Writer(store)  # type: ignore[arg-type]
        writer.start()
        await story(writer, store)
        assert store.closed

    asyncio.run(whole())


def test_a_device_that_hangs_up_disturbs_no_other() -> None:
    async def story(writer: Writer, store: Slow) -> None:
        tasks = [asyncio.create_task(writer.submit(entry(number))) for number in range(3)]
        await gathered(writer, 3)
        tasks[1].cancel()
        assert [await tasks[0], await tasks[2]] == [Outcome.STORED] * 2

    assert play(story).batches == [[0, 1, 2]]
