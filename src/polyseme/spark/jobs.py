"""What Spark is asked to do: it can be stopped from outside, and its errors are told without what they quote."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from polyseme.cancellation import Cancellation
from polyseme.errors import TableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["finished", "plain_errors"]

Found = TypeVar("Found")

_LOOK = 0.2
"""Seconds between two looks whether somebody wants us to stop."""
_THEIRS = ("pyspark", "py4j", "grpc")
"""Packages whose errors quote rows, code and paths."""


def finished(spark: SparkSession, cancellation: Cancellation, action: Callable[[], Found]) -> Found:
    """What an action of Spark gives; when somebody asks us to stop, so is Spark."""
    tag = f"polyseme-{secrets.token_hex(8)}"

    def tagged() -> Found:
        with suppress(Exception):
            # A server that knows no tags works to the end.
            spark.addTag(tag)
        return action()

    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(tagged)
        while not wait([doing], _LOOK).done:
            if cancellation.cancelled:
                with suppress(Exception):
                    spark.interruptTag(tag)
        cancellation.check()
        return doing.result()


@contextmanager
def plain_errors() -> Iterator[None]:
    """Errors of Spark without their messages, which quote rows."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(_THEIRS):
            raise
        named = error.getErrorClass() if hasattr(error, "getErrorClass") else None
        raise TableError(
            f"Spark could not do the work ({named or type(error).__name__})",
            "its own log says why; the workers need this version of polyseme, and the files of the table and of the "
            "release under the same names",
        ) from None
