"""Where the work of `anonymize` is done: the engines, by name.

An engine is imported when it is asked for, so that their names cost nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from polyseme.errors import Problem, QuestionError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from polyseme.engines.run import Run

__all__ = ["ENGINES", "Engine", "engine_named"]

ENGINES: Mapping[str, str | None] = {"local": "polyseme.engines.local", "spark": None}
"""The module of each engine, which has a function `published_tables`; None for one that is not in this version."""


class Engine(Protocol):
    """The published rows of a run, in random order, while its outcome is filled. Temporary files are in the folder."""

    def __call__(self, run: Run, folder: Path) -> Iterator[pa.Table]: ...


def engine_named(name: str) -> Engine:
    """The engine of that name."""
    if name not in ENGINES:
        raise QuestionError(Problem("engine", f"unknown engine '{name}'", nearest(str(name), ENGINES)))
    module = ENGINES[name]
    if module is None:
        raise QuestionError(
            Problem(
                "engine",
                f"the {name.capitalize()} engine is not part of this version",
                "use the local engine: it streams a table of any size through one machine",
            )
        )
    return cast("Engine", importlib.import_module(module).published_tables)
