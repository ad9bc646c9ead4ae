"""A signal in the middle of Spark's work stops Spark too; no Spark is needed to see that."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import wait
from types import SimpleNamespace
from typing import Any

import pytest

from polyseme.engines.spark import jobs
from polyseme.engines.spark.session import _own_interruption
from polyseme.kernel.errors import Cancelled
from polyseme.kernel.work import Cancellation, working


class Session:
    """A session whose work ends only when it is interrupted."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.interrupted = threading.Event()

    def addTag(self, tag: str) -> None:  # noqa: N802 - the name is Spark's
        self.tags.append(tag)

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        if tag in self.tags:
            self.interrupted.set()

    @property
    def sparkContext(self) -> Any:  # noqa: N802
        raise AttributeError("not with Connect")

    def work(self) -> bool:
        return self.interrupted.wait(20)


class ClassicSession(Session):
    """A session that finds no tags of other threads, as PySpark's classic one."""

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        pass

    @property
    def sparkContext(self) -> Any:  # noqa: N802
        return SimpleNamespace(addJobTag=self.addTag, cancelJobsWithTag=super().interruptTag)


def test_a_signal_does_not_wait_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = [SystemExit(130)]

    def interrupted(futures: Any, timeout: float) -> Any:
        if signals:
            raise signals.pop()
        return wait(futures, timeout)

    monkeypatch.setattr(jobs, "wait", interrupted)
    session: Any = Session()
    with pytest.raises(SystemExit):
        jobs.finished(session, Cancellation(), session.work)
    assert session.interrupted.is_set()


@pytest.mark.parametrize("kind", [Session, ClassicSession])
def test_a_token_stops_spark(kind: type[Session]) -> None:
    session, token = kind(), Cancellation()
    token.cancel()
    with pytest.raises(Cancelled):
        jobs.finished(session, token, session.work)  # type: ignore[arg-type]
    assert session.interrupted.is_set()


def test_the_token_of_the_context_stops_spark() -> None:
    session, token = Session(), Cancellation()
    token.cancel("the user left")
    with pytest.raises(Cancelled, match="the user left"), working(cancellation=token):
        jobs.finished(session, Cancellation(), session.work)  # type: ignore[arg-type]
    assert session.interrupted.is_set()


def test_work_that_is_not_stopped_gives_its_result() -> None:
    session: Any = Session()
    assert jobs.finished(session, Cancellation(), lambda: 7) == 7
    assert not session.interrupted.is_set()


def test_a_handler_of_interruptions_stays_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark puts a handler of its own in the place of ours, unless there was none."""
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "getsignal", handlers.get)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    for ours, left in ((print, print), (signal.default_int_handler, repr), (None, repr), (signal.SIG_DFL, repr)):
        handlers[signal.SIGINT] = ours
        with _own_interruption():
            handlers[signal.SIGINT] = repr
        assert handlers[signal.SIGINT] is left
