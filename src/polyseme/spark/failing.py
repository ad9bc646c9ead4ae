"""What goes wrong in Spark, in words of our own: its messages quote rows of the table, and are pages long."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager

from polyseme.errors import InvalidInput, Problem, TableError
from polyseme.tables.io.dataset import CHANGED
from polyseme.version import __version__

__all__ = ["RECOUNTED", "SAME_NAMES", "UNSEEN", "named", "of_spark", "plain_errors", "told_by_workers"]

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
        raise _told(error) from None


@contextmanager
def told_by_workers() -> Iterator[None]:
    """Around what workers do: problems that they find with a table come back as they are, through Spark's error."""
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


def _told(error: Exception) -> TableError:
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
