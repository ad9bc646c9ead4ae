"""Many hands: pieces of work are prepared in other threads while the last one is used.

Arrow, polars, numpy and the cipher work outside the interpreter's lock most of the time, so threads fill the cores. In
each case only a few pieces wait, however many there are.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["ahead", "in_parallel"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 8
"""Beyond that, the consumer of the pieces is the slowest, and memory would grow for nothing."""


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items in the same order, each made in another thread while the one before it is used.

    >>> list(ahead(range(3)))
    [0, 1, 2]
    """
    source = iter(items)

    def following() -> list[Item]:
        return list(islice(source, 1))

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(following)
        while item := coming.result():
            coming = pool.submit(following)
            yield item[0]


def in_parallel(work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> Iterator[Result]:
    """What `work` makes of each item, in the same order, in several threads; as many as there are cores by default.

    The items themselves are made by the consumer of the results.

    >>> list(in_parallel(str, range(3)))
    ['0', '1', '2']
    """
    threads = threads or min(_cores(), _MOST_THREADS)
    coming: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                coming.append(pool.submit(work, item))
                if len(coming) > threads:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
