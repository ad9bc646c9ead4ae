"""What the library logs, under the logger `polyseme`: which verb ran, on how much, for how long.

A log line holds counts, seconds and words of our own. It never holds a value of the data, and no column name either:
the first line of a table without a header is a record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import ParamSpec, TypeVar

__all__ = ["logged"]

P = ParamSpec("P")
R = TypeVar("R")


def logged(verb: Callable[P, R]) -> Callable[P, R]:
    """A verb that says when it begins, and how and after how many seconds it ends; of an error only its name."""
    log, name = logging.getLogger(verb.__module__), verb.__name__

    @wraps(verb)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        began = perf_counter()
        log.debug("%s: begins", name)
        try:
            result = verb(*arguments, **options)
        except BaseException as error:
            log.info("%s: ended by %s after %.2f s", name, type(error).__name__, perf_counter() - began)
            raise
        log.info("%s: done in %.2f s", name, perf_counter() - began)
        return result

    return run
