"""Spark jobs: tasks over the parts of a table, stopping them, and errors in our own words.

Spark's own messages quote rows of the table, and are pages long. A job can be stopped from outside.

Workers read a table themselves, as tasks: which parts of it each of them reads, and where their rows begin.

A task is one row of a frame with one partition for each row, so that it always reads the same parts and its records
keep their places in the table, on whatever machine and at whatever attempt.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from polyseme.kernel.errors import InvalidInput, Problem, TableError
from polyseme.kernel.version import __version__
from polyseme.kernel.work import Cancellation, current_cancellation
from polyseme.tables.io.dataset import CHANGED
from polyseme.tables.io.source import Part, Source

__all__ = [
    "RECOUNTED",
    "SAME_NAMES",
    "TASK_ROWS",
    "UNSEEN",
    "Task",
    "Tasks",
    "counted_by_workers",
    "finished",
    "named",
    "numbers",
    "of_spark",
    "plain_errors",
]

UNSEEN = "a worker cannot read this file"
"""What workers say of a file that is here, and not where they are."""
SAME_NAMES = (
    "workers open the files of a table themselves, under the names they have here: put them where all machines find "
    "them, or give a frame, or the name of a table that Spark knows"
)
RECOUNTED = "the table has changed since its rows were counted"
"""What workers say when a file has other rows than a moment ago."""
_THEIRS = frozenset({"pyspark", "py4j", "grpc"})
_MODULE = re.compile(r"No module named '([A-Za-z_][\w.]*)'")
_CHANGED_HINT = "run it again when nothing writes to the table"
_PROBLEMS = re.compile(r"polyseme-problems:([A-Za-z0-9+/=]+):")
"""Problems with a table in the text of Spark's error; encoded, since Spark breaks and indents what it quotes."""
_KNOWN = {
    UNSEEN: ("the workers cannot read the files of the table", SAME_NAMES),
    RECOUNTED: ("the table was changed while it was read", _CHANGED_HINT),
    CHANGED: ("the table was changed while it was read", _CHANGED_HINT),
    "PYTHON_VERSION_MISMATCH": (
        "the workers run another version of Python",
        "PYSPARK_PYTHON names the interpreter of the workers; it must be of the version that runs here",
    ),
    "PATH_NOT_FOUND": (
        "Spark does not find the files of the release",
        "it reads them under the names they have here: put the release where all machines find it",
    ),
    "StatusCode.UNAVAILABLE": ("the Spark Connect server no longer answers", "start it again, and see its log"),
}
_OTHERWISE = (
    "its own log says why (polyseme -v shows it); the workers need this version of polyseme, and the files of the "
    "table and of the release under the same names, which they may read and write"
)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Errors of Spark become one of ours, which says what to look at and quotes nothing."""
    try:
        yield
    except Exception as error:
        if not of_spark(error):
            raise
        raise _table_error(error) from None


@contextmanager
def counted_by_workers() -> Iterator[None]:
    """Problems that workers find with a table come back as they are, through Spark's error."""
    try:
        yield
    except InvalidInput as error:
        problems = [[problem.where, problem.what, problem.hint] for problem in error.problems]
        raise ValueError(f"polyseme-problems:{b64encode(json.dumps(problems).encode()).decode()}:") from None


def of_spark(error: Exception) -> bool:
    """Whether it comes from PySpark, or from what PySpark speaks through."""
    return any(kind.__module__.partition(".")[0] in _THEIRS for kind in type(error).__mro__)


def named(error: Exception) -> str:
    """What Spark calls an error."""
    found = error.getCondition() if hasattr(error, "getCondition") else None
    return str(found or type(error).__name__)


def _table_error(error: Exception) -> TableError:
    text = str(error)
    if found := _PROBLEMS.search(text):
        return TableError(Problem(*problem) for problem in json.loads(b64decode(found[1])))
    if lacking := _MODULE.search(text):
        hint = f"install polyseme {__version__} on every worker, for the interpreter that PYSPARK_PYTHON names there"
        return TableError(f"the workers do not have the Python package '{lacking[1].partition('.')[0]}'", hint)
    for mark, (what, hint) in _KNOWN.items():
        if mark in text:
            return TableError(what, hint)
    return TableError(f"Spark could not do the work ({named(error)})", _OTHERWISE)


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Found = TypeVar("Found")

_LOOK = 0.2
"""Seconds between two checks for cancellation."""


def finished(spark: SparkSession, cancellation: Cancellation, action: Callable[[], Found]) -> Found:
    """What an action of Spark gives.

    When the work should stop, by this token or the context's, so does Spark.
    """
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


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
