"""Which engine does the work, as options of several commands."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import click

from polyseme.engines import ENGINES

__all__ = ["engine_options", "require_spark"]

Command = TypeVar("Command", bound=Callable[..., Any])


def engine_options(command: Command) -> Command:
    """`--engine` and `--master`."""
    command = click.option(
        "--master",
        metavar="ADDRESS",
        help="With --engine spark, where: local[4], spark://HOST:7077, yarn, k8s://URL, or sc://HOST:15002 for a Spark "
        "Connect server. Default: what spark-submit or SPARK_REMOTE says, or all cores of this machine.",
    )(command)
    return click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="local",
        show_default=True,
        help="Where the work is done: on this machine, or by Spark (needs polyseme[spark]).",
    )(command)


def require_spark(engine: str, **only: object) -> bool:
    """Whether Spark does the work; options that only it understands are refused otherwise."""
    if engine == "spark":
        from polyseme.extras import require

        require("spark", "--engine spark")
        # It speaks of a package that we hand nothing to.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return True
    for name, value in only.items():
        if value is not None:
            raise click.UsageError(f"--{name} is for --engine spark.")
    return False
