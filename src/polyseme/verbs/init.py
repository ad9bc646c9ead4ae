"""`init`: a first policy for a table."""

from __future__ import annotations

from typing import Any

from polyseme.logs import logged
from polyseme.policy.drafting import draft
from polyseme.verbs.inputs import table_given

__all__ = ["init"]


@logged
def init(data: Any, separator: str | None = None, encoding: str = "utf-8") -> str:
    """A commented first policy for a table, as YAML text."""
    return draft(table_given(data, separator, encoding))
