"""Pieces of a table that can be read one without the others, by another thread, process or machine."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Part", "RowIn"]


@dataclass(frozen=True)
class Part:
    """A piece of a table.

    file    where it is stored; the name of the table where that is no file
    groups  the row groups of a Parquet file, from the first to before the last; None for all there is
    rows    how many it has, where that is known without reading them
    """

    file: str
    groups: tuple[int, int] | None = None
    rows: int | None = None


class RowIn(int):
    """The number of a row, or of a line, in one of several files: people must know which.

    >>> print(RowIn(3, "b.csv"), RowIn(3, "b.csv") == 3)
    3 of b.csv True
    """

    file: str

    def __new__(cls, number: int, file: str) -> RowIn:
        made = super().__new__(cls, number)
        made.file = file
        return made

    def __str__(self) -> str:
        return f"{int(self)} of {self.file}"

    def __format__(self, spec: str) -> str:
        return f"{int(self):{spec}} of {self.file}"

    def __reduce__(self) -> tuple[type[RowIn], tuple[int, str]]:
        return RowIn, (int(self), self.file)
