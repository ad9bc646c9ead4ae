"""Values of a table that `anonymize` would refuse, for those who only plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from polyseme.engines.tallies import Problems
from polyseme.errors import Problem, TableError
from polyseme.marks import MISSING
from polyseme.schema import Attribute
from polyseme.tables.coding.codes import as_series, encode
from polyseme.tables.coding.sighting import sighted
from polyseme.tables.coding.strangers import strangers
from polyseme.tables.io.source import Source

__all__ = ["refused_values"]


def refused_values(
    source: Source, attributes: Iterable[Attribute], missing_values: Sequence[str]
) -> tuple[Problem, ...]:
    """What is wrong with the values of protected attributes; every problem knows its rows."""
    asked = [item for item in attributes if item.domain is not None and item.name in source.schema.names]
    problems, done = Problems(), 0
    for batch in source.batches([item.name for item in asked]) if asked else ():
        rows = np.arange(done, done + batch.num_rows)
        done += batch.num_rows
        for item in asked:
            domain = item.domain
            if domain is None:
                continue
            series = as_series(batch.column(item.name), missing_values).alias(item.name)
            coded = encode(series, domain)
            for (what, hint), places in strangers(series, coded, domain).items():
                problems.add(item.name, len(places), what, hint, sighted(series, places, rows))
            absent = np.flatnonzero(coded.codes == MISSING) if domain.missing.action == "refuse" else rows[:0]
            problems.add(item.name, len(absent), "values are missing", "", sighted(series, absent, rows))
    try:
        problems.raise_any(source)
    except TableError as error:
        return error.problems
    return ()
