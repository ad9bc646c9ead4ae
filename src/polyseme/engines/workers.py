"""Workers: who has the rows of a table, where no machine holds even those that differ.

A verb hands them small functions that can be pickled. Whatever is done may be done again, or twice at the same time, so
that nothing is drawn there but the sample, which is drawn once and brought here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa

__all__ = ["Hire", "Work", "Workers"]

Found = TypeVar("Found")


class Work(Protocol):
    """What becomes of any batch of a table: rows of whole numbers, the last of which is how often the others occur."""

    @property
    def names(self) -> Sequence[str]:
        """Of the columns that come of it."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...


class Workers(Protocol):
    """Some columns of a table, read where its rows are."""

    def different(self) -> int:
        """How many different rows there are."""

    def sample(self, share: float, seed: int) -> Iterable[pa.RecordBatch]:
        """About this share of the rows, each drawn for itself; all of them from 1 on."""

    def summed(self, work: Work) -> Iterable[pa.RecordBatch]:
        """What comes of all batches; rows that are alike are put together, and their counts summed."""

    def finished(self, work: Work, finish: Callable[[pa.RecordBatch], Found], parts: int) -> Iterable[Found]:
        """The same rows, put together by the first column, and what a function makes of all rows of each of its values.

        parts  how many values there are, about
        """


Hire: TypeAlias = Callable[[Sequence[str]], Workers | None]
"""Finds workers for some columns of a table; None where there are none that could read them."""
