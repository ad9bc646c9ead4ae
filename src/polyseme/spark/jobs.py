"""What Spark is asked to do can be stopped from outside."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from polyseme.kernel.work import Cancellation, current_cancellation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["finished"]

Found = TypeVar("Found")

_LOOK = 0.2
"""Seconds between two checks for cancellation."""


def finished(spark: SparkSession, cancellation: Cancellation, action: Callable[[], Found]) -> Found:
    """What an action of Spark gives; when the work should stop, by this token or the context's, so does Spark."""
    cancellation = Cancellation(cancellation, current_cancellation())
    tag = f"polyseme-{secrets.token_hex(8)}"

    def tagged() -> Found:
        # A server that knows no tags works to the end.
        with suppress(Exception):
            spark.addTag(tag)
        with suppress(Exception):
            spark.sparkContext.addJobTag(tag)
        return action()

    def stop() -> None:
        with suppress(Exception):
            spark.interruptTag(tag)
        # A classic session knows its tags only in the thread that set them; its context knows them in all.
        with suppress(Exception):
            spark.sparkContext.cancelJobsWithTag(tag)

    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(tagged)
        try:
            while not wait([doing], _LOOK).done:
                if cancellation.cancelled:
                    stop()
        except BaseException:
            # A signal raises wherever we are, and the pool would then wait until Spark is through with the work.
            while not wait([doing], _LOOK).done:
                stop()
            raise
        cancellation.check()
        return doing.result()
