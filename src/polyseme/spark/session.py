"""The Spark session: the one that is handed in or runs already, or a new one for an address."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from polyseme.errors import Problem, QuestionError, TableError
from polyseme.extras import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["BATCH_ROWS", "refuse_alike", "session", "settings"]

BATCH_ROWS = 100_000
"""Rows of an Arrow batch between Spark and Python: with its default of 10,000 the map takes twice as long."""


def session(spark: Any = None, master: str | None = None) -> SparkSession:
    """A session to work with.

    spark   one that the caller has
    master  where to work otherwise: `local[4]` or `spark://host:7077` for a classic one, `sc://host:15002` for a Spark
            Connect server; the running session, or all cores of this machine, when None
    """
    if spark is not None:
        return cast("SparkSession", spark)
    require("spark", "the Spark engine")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession() if master is None else None
    if found is not None:
        return found
    builder: Any = SparkSession.builder
    try:
        if master is not None and master.startswith("sc://"):
            return cast("SparkSession", builder.remote(master).getOrCreate())
        where = master or "local[*]"
        made = builder.appName("polyseme").master(where).config("spark.ui.showConsoleProgress", "false")
        if where.startswith("local"):
            # Its workers are on this machine: they find what this interpreter finds.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return cast("SparkSession", made.getOrCreate())
    except (PySparkException, RuntimeError, OSError) as error:
        where = master or "this machine"
        raise QuestionError(
            f"no Spark session on {where}: {type(error).__name__}",
            "a classic session needs Java 17 or 21 (JAVA_HOME); a Spark Connect server is named sc://HOST:PORT",
        ) from None


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """SQL settings for a while; a server that does not let them be changed works with its own."""
    before: dict[str, str | None] = {}
    for name, value in wanted.items():
        try:
            before[name] = spark.conf.get(name, None)
            spark.conf.set(name, value)
        except Exception:  # noqa: BLE001 - each kind of server has errors of its own, and none of them matters here
            before.pop(name, None)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)


def refuse_alike(spark: SparkSession, names: Sequence[str]) -> None:
    """Raise for names that differ in their case only, which a session takes for one unless told otherwise."""
    if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    alike = [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
    if alike:
        named = ["', '".join(name for name in names if name.lower() == one) for one in alike]
        hint = 'rename them, or spark.conf.set("spark.sql.caseSensitive", "true")'
        what = "differ in their case only: Spark takes them for one"
        raise TableError(Problem("", f"columns '{several}' {what}", hint) for several in named)
