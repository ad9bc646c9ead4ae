"""`init`: a first policy for a table."""

from __future__ import annotations

from typing import Any, Unpack

from polyseme.logs import logged
from polyseme.policy.drafting import draft
from polyseme.tables.io.opening import open_written
from polyseme.tables.io.options import TableOptions

__all__ = ["init"]


@logged
def init(data: Any, **written: Unpack[TableOptions]) -> str:
    """A commented first policy for a table, as YAML text."""
    return draft(open_written(data, **written))
