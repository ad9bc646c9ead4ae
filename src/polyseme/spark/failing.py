"""What goes wrong in Spark, in words of our own: its messages quote rows of the table, and are pages long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from polyseme.errors import TableError
from polyseme.tables.io.dataset import CHANGED
from polyseme.version import __version__

__all__ = ["RECOUNTED", "SAME_NAMES", "UNSEEN", "named", "of_spark", "plain_errors"]

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


def of_spark(error: Exception) -> bool:
    """Whether it comes from PySpark, or from what PySpark speaks through."""
    return any(kind.__module__.partition(".")[0] in _THEIRS for kind in type(error).__mro__)


def named(error: Exception) -> str:
    """What Spark calls an error."""
    found = error.getCondition() if hasattr(error, "getCondition") else None
    return str(found or type(error).__name__)


def _told(error: Exception) -> TableError:
    text = str(error)
    if lacking := _MODULE.search(text):
        hint = f"install polyseme {__version__} on every worker, for the interpreter that PYSPARK_PYTHON names there"
        return TableError(f"the workers do not have the Python package '{lacking[1].partition('.')[0]}'", hint)
    for mark, (what, hint) in _KNOWN.items():
        if mark in text:
            return TableError(what, hint)
    return TableError(f"Spark could not do the work ({named(error)})", _OTHERWISE)
