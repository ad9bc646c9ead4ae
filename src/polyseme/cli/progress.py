"""While a command runs: its progress, and the signals that stop it.

Progress is shown as bars on a terminal with totals and remaining time, or as JSON lines for programs.

Ctrl-C, termination and a closed terminal stop a command even where the interruption itself gets lost.

Python raises an interruption wherever it happens to be. Inside a callback of a library it is printed or dropped, and
the work goes on. So the signal also cancels the token in whose context the command works, which is asked between
batches and before a finished file takes its place.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING

import click

from polyseme.kernel.work import Cancellation, current_cancellation, listening
from polyseme.kernel.work import Progress as Step

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, ProgressColumn, Task, TaskID

__all__ = ["Interruption", "ProgressLines", "keeping_best", "shown_progress"]

_BETWEEN = 0.1
"""Seconds between two lines about the same stage: more would only slow down their reader."""


class _Bars:
    """Draws a bar for each stage, as long as it lasts."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars

    def begin(self, name: str, total: int | None) -> TaskID:
        return self._bars.add_task(name, total=total)

    def reach(self, task: TaskID, done: int) -> None:
        self._bars.update(task, completed=done)

    def end(self, task: TaskID) -> None:
        self._bars.remove_task(task)


def _columns() -> Iterator[ProgressColumn]:
    """What stands beside the name of a stage: a bar where its total is known, and its time where it is not."""
    from rich import progress
    from rich.text import Text

    class OfTotal(progress.ProgressColumn):
        """A column of those stages only whose total is known, or is not."""

        def __init__(self, column: ProgressColumn, known: bool = True) -> None:
            super().__init__()
            self._column, self._known = column, known

        def render(self, task: Task) -> RenderableType:
            return self._column.render(task) if (task.total is not None) is self._known else Text()

    yield progress.SpinnerColumn()
    yield progress.TextColumn("{task.description}", markup=False)
    yield OfTotal(progress.BarColumn(bar_width=20))
    yield OfTotal(progress.MofNCompleteColumn())
    yield OfTotal(progress.TimeRemainingColumn())
    yield OfTotal(progress.TimeElapsedColumn(), known=False)


@contextmanager
def shown_progress(label: str) -> Iterator[None]:
    """What the block does, on standard error; nothing of it is left afterwards."""
    from rich.console import Console
    from rich.progress import Progress

    # Where standard output is a pipe, its text goes there, and nothing of it goes to the bars.
    shared = sys.stdout.isatty()
    display = Progress(*_columns(), console=Console(stderr=True), transient=True, redirect_stdout=shared)
    with display as bars, listening(_Bars(bars)):
        bars.add_task(label, total=None)
        yield


class ProgressLines:
    """Writes every step of the work to standard error, as one JSON document a line.

    The beginning and end of a stage are always reported; its progress, a few times a second.
    """

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, step: Step) -> None:
        now = time.monotonic()
        if step.state == "going" and now - self._last < _BETWEEN:
            return
        self._last = now
        click.echo(json.dumps(asdict(step), ensure_ascii=False), err=True)


@contextmanager
def keeping_best() -> Iterator[None]:
    """In the block, Ctrl-C ends a search with the best that it has found.

    Without a search, or again, it stops the command.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    token, before = current_cancellation(), signal.getsignal(signal.SIGINT)

    def settle(number: int, frame: FrameType | None) -> None:
        if token.settle():
            # Straight to the file: the signal may come in the middle of a print.
            os.write(2, b"The best levels found so far are taken. Ctrl-C again stops the command.\n")
        elif callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, settle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Interruption:
    """The signals that came while a command ran."""

    def __init__(self) -> None:
        self.cancellation = Cancellation()
        self._number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """128 + the signal's number: what a shell would say."""
        return 128 + self._number

    def listen(self) -> None:
        """From now on a signal stops the command.

        Under nohup a closed terminal means nothing; other platforms do not tell of it.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        closed = getattr(signal, "SIGHUP", None)
        if closed is not None and signal.getsignal(closed) is not signal.SIG_IGN:
            signal.signal(closed, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        self.cancellation.cancel(f"stopped by signal {number}")
        raise SystemExit(self.exit_code)
