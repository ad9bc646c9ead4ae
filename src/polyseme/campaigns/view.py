"""A campaign on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from polyseme.campaigns.showing import ColumnSummary, Summary

__all__ = ["campaign_view"]


def campaign_view(found: Summary) -> RenderableType:
    """The promises and the expected errors of a campaign."""
    table = Table(box=box.SIMPLE)
    for head in ("column", "drawn as", "values", "l", "p", "groups", "promised", "device finds", "expected error"):
        table.add_column(head)
    for item in found.columns:
        table.add_row(*_row(item))
    opened = ", ".join(found.open) or "none"
    return Group(
        Text(f"{found.name}  {found.id}"),
        Text(f"languages: {', '.join(found.languages)}; document: {found.bytes:,} bytes; open columns: {opened}"),
        table,
        Text(f"The expected error is that of a share, as root mean square, at {found.planned:,} answers."),
    )


def _row(item: ColumnSummary) -> tuple[str, ...]:
    return (
        item.name,
        item.kind,
        f"{item.size:,}",
        str(item.l),
        f"{item.p:.4g}",
        str(item.strata),
        "-" if item.promised is None else f"{item.promised:.4g}",
        f"{item.worst:.4g}",
        "-" if item.error is None else f"{item.error:.2g}",
    )
