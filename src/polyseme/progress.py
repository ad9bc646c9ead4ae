"""Progress of long work: stages with a total, reported to a listener. There is none unless one is set.

    with listening(listener):
        evaluate(...)

    for question in tracked(questions, "Comparing"):
        ...

A stage is named in words of our own: like a log line it holds no value and no name of a column. Who listens is known to
the thread that asked, so that two calls in two threads do not speak into each other; work that a helper thread does is
reported by the thread that waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

__all__ = ["Listener", "Stage", "listening", "stage", "tracked"]

Item = TypeVar("Item")


class Listener(Protocol):
    """The receiver of progress."""

    def begin(self, name: str, total: int | None) -> Any:
        """A stage begins; what is returned names it from now on."""
        ...

    def reach(self, task: Any, done: int) -> None:
        """So much of it is done."""
        ...

    def end(self, task: Any) -> None: ...


_listening: ContextVar[Listener | None] = ContextVar("polyseme listener", default=None)


class Stage:
    """One stage of some work; silent without a listener."""

    def __init__(self, listener: Listener | None = None, task: Any = None) -> None:
        self._listener, self._task, self._done = listener, task, 0

    def advance(self, steps: int = 1) -> None:
        """So much more is done."""
        self.reach(self._done + steps)

    def reach(self, done: int) -> None:
        """So much is done in all."""
        self._done = done
        if self._listener is not None:
            self._listener.reach(self._task, done)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Whatever this thread does in the block is told to the listener."""
    before = _listening.set(listener)
    try:
        yield
    finally:
        _listening.reset(before)


@contextmanager
def stage(name: str, total: int | Callable[[], int | None] | None = None) -> Iterator[Stage]:
    """One stage of some work; a total that has to be computed is computed only for a listener."""
    listener = _listening.get()
    if listener is None:
        yield Stage()
        return
    task = listener.begin(name, total() if callable(total) else total)
    try:
        yield Stage(listener, task)
    finally:
        listener.end(task)


def tracked(items: Sequence[Item], name: str) -> Iterator[Item]:
    """The items one by one, as a stage of which each is a step.

    >>> list(tracked([1, 2], "Counting"))
    [1, 2]
    """
    with stage(name, len(items)) as told:
        for item in items:
            yield item
            told.advance()
