"""Being told to stop, even where the interruption itself got lost.

Python raises an interruption wherever it happens to be. Inside a callback of a library it is printed or dropped, and
the work goes on. So what was asked is kept, and asked again between batches and before a finished file takes its place.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

__all__ = ["asked", "check", "listen"]

_asked: list[int] = []


def listen() -> None:
    """From now on Ctrl-C, the wish to terminate and a closed terminal leave with 128 + the signal's number.

    That is what a shell would say. Under nohup a closed terminal means nothing; other platforms do not tell of it.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        closed = getattr(signal, "SIGHUP", None)
        if closed is not None and signal.getsignal(closed) is not signal.SIG_IGN:
            signal.signal(closed, _stop)


def asked() -> bool:
    """Whether somebody wants us to stop."""
    return bool(_asked)


def check() -> None:
    """Stop now if that was asked for and did not happen."""
    if _asked:
        raise SystemExit(128 + _asked[-1])


def _stop(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
    check()
