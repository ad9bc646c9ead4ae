"""Stopping work from outside: a token that is handed in, and asked between batches and before a file takes its place.

    token = Cancellation()
    threading.Thread(target=anonymize, args=(data, policy, out), kwargs={"cancellation": token}).start()
    token.cancel("the user left")      # from any thread, or from a signal handler

The work then ends with `Cancelled` and leaves nothing behind. Libraries never exit the process: that is up to its
owner, and the command line does (see `cli/interruption.py`).
"""

from __future__ import annotations

from polyseme.errors import Cancelled

__all__ = ["Cancellation"]


class Cancellation:
    """Whether some work should stop, and why. Any thread may cancel it; it cannot be taken back.

    There is no lock on purpose: all of it is one reference that is set and read at once, and a signal handler may come
    at any moment, also while the same thread is in here.

    >>> token = Cancellation()
    >>> token.check()
    >>> token.cancel("the user left")
    >>> token.cancelled, token.reason
    (True, 'the user left')
    """

    def __init__(self) -> None:
        self._reason: str | None = None

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask the work to stop; the first reason stays. It is shown to people, so it must not hold data."""
        if self._reason is None:
            self._reason = reason

    @property
    def cancelled(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> str:
        """Why, or nothing as long as no caller has cancelled."""
        return self._reason or ""

    def check(self) -> None:
        """Raise `Cancelled` if a caller has cancelled."""
        if self._reason is not None:
            raise Cancelled(self._reason)
