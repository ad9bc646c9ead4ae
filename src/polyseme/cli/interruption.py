"""Ctrl-C, termination and a closed terminal, even where the interruption itself gets lost.

Python raises an interruption wherever it happens to be. Inside a callback of a library it is printed or dropped, and
the work goes on. So the signal also cancels the token in whose context the command works, which is asked between
batches and before a finished file takes its place.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

from polyseme.kernel.work import Cancellation

__all__ = ["Interruption"]


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
