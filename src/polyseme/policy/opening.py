"""Tables as a policy says that they are stored and written."""

from __future__ import annotations

from typing import Any

from polyseme.hierarchies import Dates, Intervals
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy
from polyseme.schema import Role
from polyseme.tables.io.opening import open_table
from polyseme.tables.io.respelled import Respelled
from polyseme.tables.io.source import Source

__all__ = ["open_for"]


def open_for(data: Any, policy: Policy) -> Source:
    """A source for a path or an object; one that is open already is taken as it is."""
    if isinstance(data, Source):
        return data
    form = policy.table
    source = open_table(data, form.separator, form.encoding, sheet=form.sheet, by_policy=True)
    if not form.dialect:
        return source
    numbers = [item.name for item in policy.attributes if _holds_numbers(item)]
    dates = [item.name for item in policy.attributes if _holds_dates(item)]
    return Respelled(source, form.dialect, numbers, dates, form.missing_values)


def _holds_numbers(item: AttributePolicy) -> bool:
    labels = any(isinstance(value, int | float) and not isinstance(value, bool) for value in item.values or ())
    cut = item.edges is not None or item.bins is not None
    intervals = item.hierarchy is not None and isinstance(item.hierarchy.rule, Intervals)
    return item.type in ("integer", "number") or item.role is Role.WEIGHT or labels or cut or intervals


def _holds_dates(item: AttributePolicy) -> bool:
    levels = item.hierarchy is not None and isinstance(item.hierarchy.rule, Dates)
    return item.type in ("date", "datetime") or item.periods is not None or levels
