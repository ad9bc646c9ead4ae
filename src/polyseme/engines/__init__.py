"""Where the work of `anonymize` is done: the engines, by name.

An engine is imported when it is used, so that their names cost nothing.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, ClassVar, Protocol

from polyseme.kernel.errors import Problem, QuestionError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from polyseme.engines.run import Run
    from polyseme.grouping.division import Workers
    from polyseme.kernel.work import Cancellation
    from polyseme.release import Release
    from polyseme.tables.io.source import Source

__all__ = ["ENGINES", "Engine", "Target", "Watch", "engine_given", "engine_named"]

ENGINES: Mapping[str, str] = {"local": "polyseme.engines.local", "spark": "polyseme.engines.spark.engine"}
"""The module of each engine, which has an engine or a function `publish`."""


class Watch(Protocol):
    """An observer of the rows on their way out.

    names  the columns by which people can be distinguished; no other is read
    safe   records that should share a combination of them
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def safe(self) -> int: ...

    def seen(self, table: pa.Table) -> None:
        """Some more rows."""

    def counted(self, rows: int, small: Mapping[int, int]) -> None:
        """In place of rows: how many there are, and how many combinations have each number of rows that is unsafe."""


class Target(Protocol):
    """Where published rows go: a release on its way into a folder, or a table in memory.

    folder  for temporary files, which must be gone at the end; None where there is no place for files
    """

    @property
    def folder(self) -> Path: ...

    def write(self, table: pa.Table) -> None:
        """Append rows."""

    def adopt_files(self, paths: list[Path]) -> None:
        """Take over data files that are already in the folder, in this order."""


class Engine(ABC):
    """Publishes a run: rows in random order go to the target, the watch sees them, the outcome is filled.

    An engine states what else it can do; what it does not state, it cannot.
    """

    formats: ClassVar[tuple[str, ...]] = ("parquet", "csv")
    """The formats of the data files that it writes; the first is proposed in place of others."""
    scaled: ClassVar[bool] = False
    """No machine has to hold all records: methods that look at the whole table look at counts."""
    deals: ClassVar[bool] = False
    """It assigns records to groups that were planned from counts."""

    @abstractmethod
    def __call__(self, run: Run, target: Target, watch: Watch) -> Callable[[Release], Release]:
        """Publish a run; what is returned says how the release that was written is best read."""

    def workers(self, source: Source, cancellation: Cancellation, columns: Sequence[str]) -> Workers | None:
        """Those who read these columns where the rows of a table are; None where there are none."""
        return None


@dataclass(frozen=True)
class _Function(Engine):
    """A function that publishes a run, and can do nothing else."""

    publish: Callable[[Run, Target, Watch], Callable[[Release], Release]]

    def __call__(self, run: Run, target: Target, watch: Watch) -> Callable[[Release], Release]:
        return self.publish(run, target, watch)


def engine_named(name: str) -> Engine:
    """The engine of that name."""
    if name not in ENGINES:
        raise QuestionError(Problem("engine", f"unknown engine '{name}'", nearest(str(name), ENGINES)))
    return engine_given(importlib.import_module(ENGINES[name]).publish)


def engine_given(engine: object) -> Engine:
    """The engine that a caller names or hands in; a function is one without further capabilities."""
    if isinstance(engine, str):
        return engine_named(engine)
    if isinstance(engine, Engine):
        return engine
    if isinstance(engine, FunctionType):
        return _Function(engine)
    hint = "a name, a function, or a subclass of polyseme.engines.Engine, which states what it can do"
    raise QuestionError(Problem("engine", f"'{type(engine).__name__}' is no engine", hint))
