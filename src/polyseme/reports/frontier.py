"""The frontier of a plan: risk against expected error over (l, d)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from polyseme.reports.document import FrontierPoint
from polyseme.reports.formats import points as percentage_points
from polyseme.reports.formats import quantity

if TYPE_CHECKING:
    import altair as alt
    from rich.table import Table

__all__ = ["frontier_charts", "frontier_view"]

_STYLES = {"estimable": "green", "not estimable": "yellow", "impossible": "dim"}


def frontier_view(name: str, points: Sequence[FrontierPoint]) -> Table:
    """A grid for the terminal: sizes down, distances across; worst posterior and expected error in each place."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    distances = sorted({point.d for point in points})
    known = {(point.l, point.d): point for point in points}
    table = Table(
        title=f"{name}: worst posterior and expected error (percentage points) of (l, d)",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        caption="'-': no design exists; '?': values cannot be told apart afterwards",
        caption_justify="left",
    )
    table.add_column("l")
    for d in distances:
        table.add_column(f"d = {quantity(d)}", justify="right")
    for l in sorted({point.l for point in points}):
        cells = [known[l, d] for d in distances]
        table.add_row(str(l), *(Text(_words(point), style=_STYLES[point.status]) for point in cells))
    return table


def _words(point: FrontierPoint) -> str:
    if point.status == "impossible":
        return "-"
    error = "?" if point.status != "estimable" else percentage_points(point.expected_mse)
    return f"{quantity(point.worst_posterior)} / {error}"


def frontier_charts(grid: Mapping[str, Sequence[FrontierPoint]]) -> alt.VConcatChart | alt.HConcatChart:
    """The chart of each attribute, one below the other."""
    import altair as alt

    from polyseme.reports.charts import frontier_chart

    charts = [frontier_chart(points) for points in grid.values()]
    if len(charts) == 1:
        return charts[0]
    look = charts[0].config
    for chart in charts:
        chart.config = alt.Undefined
    return alt.VConcatChart(vconcat=charts, config=look)
