"""A signal in the middle of Spark's work stops Spark too; no Spark is needed to see that."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from typing import Any

import pytest

from polyseme.cancellation import Cancellation
from polyseme.errors import Cancelled
from polyseme.spark import jobs


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

    def work(self) -> bool:
        return self.interrupted.wait(20)


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


def test_a_token_stops_spark() -> None:
    session, token = Session(), Cancellation()
    token.cancel()
    with pytest.raises(Cancelled):
        jobs.finished(session, token, session.work)  # type: ignore[arg-type]
    assert session.interrupted.is_set()


def test_work_that_nobody_stops_gives_its_result() -> None:
    session: Any = Session()
    assert jobs.finished(session, Cancellation(), lambda: 7) == 7
    assert not session.interrupted.is_set()
