"""Where the work of `anonymize` is done: the engines, by name.

An engine is imported when it is asked for, so that their names cost nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from polyseme.errors import Problem, QuestionError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from polyseme.engines.run import Run
    from polyseme.release import Release

__all__ = ["ENGINES", "Engine", "Target", "Watch", "engine_named"]

ENGINES: Mapping[str, str] = {"local": "polyseme.engines.local", "spark": "polyseme.spark.engine"}
"""The module of each engine, which has a function `publish`."""


class Watch(Protocol):
    """An observer of the rows on their way out.

    names  the columns by which people can be told apart; nothing else is looked at
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


class Engine(Protocol):
    """Publishes a run: rows in random order go to the target and the watch, and the outcome is filled.

    What it returns says how the release that was written is best read.
    """

    def __call__(self, run: Run, target: Target, watch: Watch) -> Callable[[Release], Release]: ...


def engine_named(name: str) -> Engine:
    """The engine of that name."""
    if name not in ENGINES:
        raise QuestionError(Problem("engine", f"unknown engine '{name}'", nearest(str(name), ENGINES)))
    return cast("Engine", importlib.import_module(ENGINES[name]).publish)
