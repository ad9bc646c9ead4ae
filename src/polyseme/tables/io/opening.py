"""A table as somebody says that it is stored and written."""

from __future__ import annotations

from typing import Any, Unpack

from polyseme.tables.io.dialects import Dialect
from polyseme.tables.io.options import TableOptions
from polyseme.tables.io.respelled import respelled
from polyseme.tables.io.source import Source, open_table

__all__ = ["open_written"]


def open_written(data: Any, **written: Unpack[TableOptions]) -> Source:
    """A source for a path or an object, with its numbers and dates read as its dialect has them."""
    dialect = Dialect(written.get("decimal", "point"), written.get("dates"))
    encoding = written.get("encoding", "utf-8")
    return respelled(open_table(data, written.get("separator"), encoding, sheet=written.get("sheet")), dialect)
