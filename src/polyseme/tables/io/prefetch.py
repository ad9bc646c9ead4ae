"""Two hands: the next piece of work is prepared while the last one is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["ahead"]

Item = TypeVar("Item")


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
