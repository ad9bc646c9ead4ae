"""Where in a table the models of a policy are violated: lines in the verdicts, and values for its owner only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from polyseme.errors import Problem
from polyseme.marks import UNSEEN
from polyseme.models import Verdict
from polyseme.policy.foreign import ForeignTable
from polyseme.results.verification import Verification
from polyseme.schema import Domain
from polyseme.sightings import Sightings
from polyseme.tables.coding.codes import encode
from polyseme.tables.coding.sighting import sighted
from polyseme.tables.io.source import Source

__all__ = ["located"]

_FLAW = "records have"
"""What a verdict says of an attribute that it could not judge because of some of its values."""


def located(verdicts: Sequence[Verdict], table: ForeignTable, source: Source) -> Verification:
    """The verdicts with the places of what they complain about; of rows that were only counted no place is known."""
    if table.counts is not None:
        return Verification(tuple(verdicts))
    found = [_located(verdict, table, source) for verdict in verdicts]
    return Verification(
        tuple(verdict for verdict, _ in found), offending=tuple(problem for _, problem in found if problem is not None)
    )


def _located(verdict: Verdict, table: ForeignTable, source: Source) -> tuple[Verdict, Problem | None]:
    seen = None if verdict.holds else _outside(verdict, table) or _worst(verdict, table)
    if seen is None or not seen.rows:
        return verdict, None
    problem = Problem.in_rows(_title(verdict), _what(verdict), "", seen, source.row_numbers)
    told = _told(verdict, problem.seen) if problem.seen is not None else ""
    return replace(verdict, note="; ".join(text for text in (verdict.note, told) if text)), problem


def _told(verdict: Verdict, seen: Sightings) -> str:
    if not verdict.worst_classes:
        return seen.words()
    named = ", ".join(map(str, seen.rows))
    return f"a record of each of the worst classes: {seen.unit}{'s' if len(seen.rows) > 1 else ''} {named}"


def _title(verdict: Verdict) -> str:
    return verdict.model if verdict.attribute is None else f"{verdict.model} of {verdict.attribute}"


def _what(verdict: Verdict) -> str:
    return "the worst classes" if verdict.worst_classes else "values that are not in the declared domain, or missing"


def _outside(verdict: Verdict, table: ForeignTable) -> Sightings | None:
    """The values of an attribute that a model could not judge."""
    if verdict.attribute not in table.frame.columns or _FLAW not in verdict.note:
        return None
    series, values = table.frame[verdict.attribute], table.background.domains.get(verdict.attribute)
    wrong = series.is_null().to_numpy()
    if values is not None and not isinstance(series.dtype, pl.List):
        wrong = wrong | (encode(series, Domain(tuple(values))).codes == UNSEEN)
    return sighted(series, np.flatnonzero(wrong)) if wrong.any() else None


def _worst(verdict: Verdict, table: ForeignTable) -> Sightings | None:
    """The worst classes: what their records agree in, how many there are, and one of them."""
    known = [(place.row, place.size) for place in verdict.worst_classes if place.row is not None]
    places = [(row, size) for row, size in known if row < table.frame.height]
    names = [name for name in table.quasi_identifiers if name in table.frame.columns]
    values = {_shared(table.frame, names, row): (size, row) for row, size in places}
    return Sightings.of(values, sorted(row for row, _ in places), sum(size for _, size in places)) if places else None


def _shared(frame: pl.DataFrame, names: Iterable[str], row: int) -> str:
    return ", ".join(f"{name} = {frame[name][row]}" for name in names)
