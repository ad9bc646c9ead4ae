"""A table that the workers read themselves, as tasks: which parts of it each of them reads, and where their rows begin.

A task is one row of a frame with one partition for each row, so that it always reads the same parts and its records
keep their places in the table, on whatever machine and at whatever attempt.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from polyseme.errors import Problem, TableError
from polyseme.spark.failing import SAME_NAMES, UNSEEN
from polyseme.tables.io.parts import Part
from polyseme.tables.io.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TASK_ROWS", "Task", "Tasks", "numbers"]

TASK_ROWS = 1 << 20
"""Rows of a task, about: some seconds of work, so that little is lost with a worker."""


@dataclass(frozen=True)
class Task:
    """Some parts of a table that follow each other.

    first  the row of the table with which it begins; None until those before it are counted
    rows   how many it has, where that is known
    """

    parts: tuple[Part, ...]
    first: int | None = None
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class Tasks:
    """All tasks of a table; it can be pickled and is what workers get."""

    source: Source
    tasks: tuple[Task, ...]

    @classmethod
    def of(cls, source: Source) -> Tasks:
        found: list[list[Part]] = []
        room = 0
        for part in source.parts():
            # Where rows are not known, a part is a file of unknown size: nothing is put beside it.
            rows = TASK_ROWS if part.rows is None else part.rows
            if not found or rows > room:
                found.append([])
                room = TASK_ROWS
            found[-1].append(part)
            room -= rows
        made = cls(source, tuple(Task(tuple(parts)) for parts in found))
        known = [[part.rows for part in task.parts] for task in made.tasks]
        if any(rows is None for several in known for rows in several):
            return made
        return made.numbered([sum(rows for rows in several if rows is not None) for several in known])

    def numbered(self, rows: Sequence[int]) -> Tasks:
        """The same tasks, knowing where they begin; `rows` are those of each task."""
        begins = accumulate(rows, initial=0)
        tasks = tuple(replace(task, first=first, rows=count) for task, first, count in zip(self.tasks, begins, rows))
        return replace(self, tasks=tasks)

    @property
    def rows(self) -> int | None:
        """The rows of the whole table, where those of every task are known."""
        known = [task.rows for task in self.tasks if task.rows is not None]
        return sum(known) if len(known) == len(self.tasks) else None

    def frame(self, spark: SparkSession) -> DataFrame:
        """One row for each task, in a partition of its own."""
        count = len(self.tasks)
        return spark.range(0, count, 1, max(count, 1))

    def batches(self, number: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """What a task reads, on the worker that does it."""
        for part in self.tasks[number].parts:
            try:
                yield from self.source.read_part(part, columns)
            except (TableError, OSError):
                if not os.path.isabs(part.file) or os.access(part.file, os.R_OK):  # noqa: PTH117 - a plain text
                    raise
                raise TableError(Problem(part.file, UNSEEN, SAME_NAMES)) from None


def numbers(batches: Iterator[Any]) -> Iterator[int]:
    """The numbers of the tasks that a worker is given."""
    for batch in batches:
        yield from batch.column(0).to_pylist()
