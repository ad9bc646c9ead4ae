"""A campaign on the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from polyseme.campaigns.showing import ColumnSummary, Summary
from polyseme.results.views.fitting import FittedTable

__all__ = ["campaign_view"]


_HEAD = (
    ("column", False),
    ("drawn as", False),
    ("values", True),
    ("l", True),
    ("p", True),
    ("groups", True),
    ("promised", True),
    ("device finds", True),
    ("if uniform", True),
    ("odds", True),
    ("expected error", True),
)
_LEGEND = (
    "l: candidates in a set; p: how often the truth is among them for sure; groups: of records with a design of their "
    "own; promised, device finds: the largest probability of a right guess, as the document says and as a device "
    "computes it; if uniform: the same for an attacker who takes all values to be equally common; odds: the largest "
    "factor by which a set changes the odds between two candidates, whatever the prior is; expected error: of a "
    "share, as root mean square, at {planned:,} answers"
)


def campaign_view(found: Summary) -> RenderableType:
    """The promises and the expected errors of a campaign."""
    opened = ", ".join(found.open) or "none"
    return Group(
        Text(found.name, style="bold"),
        Text(f"id {found.id}"),
        Text(f"languages: {', '.join(found.languages)}; document: {found.bytes:,} bytes; open columns: {opened}\n"),
        FittedTable(_HEAD, [_row(item) for item in found.columns]),
        Text(_LEGEND.format(planned=found.planned), style="dim"),
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
        f"{item.uniform:.4g}",
        f"{item.odds:.3g}",
        "-" if item.error is None else f"{item.error:.2g}",
    )
