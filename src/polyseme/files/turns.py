"""Taking turns at a file that several processes read, change and write again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["turn"]


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait until no other process has a turn at the file, and keep others waiting until the block ends.

    The system ends a turn with its process, so nothing is left behind by one that was killed. A process that takes a
    second turn inside its first waits for itself, for ever.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    try:
        descriptor = _taken(lock)
    except OSError as error:
        error.filename = str(path)  # users do not know the name of the lock
        raise
    try:
        yield
    finally:
        _given_back(lock, descriptor)


if sys.platform == "win32":
    import msvcrt
    import time

    _AGAIN = 0.05
    """Seconds between two attempts."""

    def _taken(lock: Path) -> int:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(_AGAIN)
            else:
                return descriptor

    def _given_back(lock: Path, descriptor: int) -> None:
        os.close(descriptor)

else:
    import fcntl

    def _taken(lock: Path) -> int:
        while True:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except BaseException:
                os.close(descriptor)
                raise
            if _names(lock, descriptor):
                return descriptor
            os.close(descriptor)  # the process before has removed the file that this one waited at

    def _names(lock: Path, descriptor: int) -> bool:
        try:
            return os.path.samestat(lock.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _given_back(lock: Path, descriptor: int) -> None:
        # Removed before it is given back: those who wait at it notice, and take a new one.
        lock.unlink(missing_ok=True)
        os.close(descriptor)
