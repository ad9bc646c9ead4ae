"""Campaigns of a store on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from polyseme.collection.operating import Standing
from polyseme.results.views.fitting import FittedTable
from polyseme.results.views.formats import plain

__all__ = ["standings_view"]

_HEAD = (
    ("name", False),
    ("state", False),
    ("reports", True),
    ("at least", True),
    ("planned", True),
    ("withdrawn", True),
    ("invitations used", True),
)
_LEGEND = "at least: fewer reports are never released; withdrawn: reports that were taken back"


def standings_view(found: Sequence[Standing]) -> RenderableType:
    """How far campaigns have come; their ids are below, being longer than a column."""
    if not found:
        return Text("No campaigns yet.")
    rows = [_row(item) for item in found]
    ids = [Text(f"{plain(item.name)}  {item.id}", overflow="fold") for item in found]
    return Group(FittedTable(_HEAD, rows), Text(_LEGEND + "\n", style="dim"), *ids)


def _row(item: Standing) -> tuple[str, ...]:
    counts = item.counts
    used = f"{counts.spent:,} of {counts.invited:,}" if item.tokens == "invitation" else "–"
    numbers = (counts.reports, item.minimum, item.planned, counts.withdrawn)
    return (plain(item.name), item.state.value, *(f"{number:,}" for number in numbers), used)
