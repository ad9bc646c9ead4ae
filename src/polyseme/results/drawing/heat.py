"""Two columns against each other, as squares that are the darker the more records there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from polyseme.results.drawing.distribution import TOP, Distribution, shown_values
from polyseme.results.drawing.look import COLOURS, LOOK, names_axis

__all__ = ["heatmap", "squares"]


def heatmap(distributions: Sequence[Distribution], width: int = 640, top: int = TOP) -> alt.LayerChart:
    """Groups against values: the estimated share of each value among the records of its group."""
    shown = shown_values(distributions[0], top).tolist()
    labels = [str(distributions[0].labels[index]) for index in shown]
    groups = [str(distribution.group) for distribution in distributions]
    rows = []
    for group, distribution in zip(groups, distributions, strict=True):
        total = distribution.total
        for index, label in zip(shown, labels, strict=True):
            share = max(float(distribution.estimate[index]), 0.0) / total if total > 0 else 0.0
            about = f"{group}, {label}: {share:.1%} of the group"
            rows.append({"down": group, "across": label, "amount": share, "about": about})
    return squares(rows, labels, groups, width, "share of the group", ".0%")


def squares(
    rows: list[dict[str, Any]], across: Sequence[str], down: Sequence[str], width: int, amount: str, form: str
) -> alt.LayerChart:
    """A square for each row, at `across` and `down`; `amount` says what is shown, `form` how it is written."""
    bands = alt.Scale(paddingInner=0.05)
    # Opacity rather than a range of colors: it suits a light and a dark background alike.
    shade = alt.Opacity(
        "amount:Q",
        scale=alt.Scale(range=[0.02, 1], domainMin=0),
        legend=alt.Legend(title=amount, format=form, orient="top", tickCount=5, symbolType="square"),
    )
    cells = alt.Chart(alt.InlineData(values=rows)).mark_rect(fill=COLOURS["estimate"], stroke=None)
    columns, lines = list(across), list(down)
    names = alt.X(
        "across:N", sort=columns, title=None, scale=bands, axis=names_axis(True, columns, width / len(columns))
    )
    heads = alt.Y("down:N", sort=lines, title=None, scale=bands, axis=names_axis(False, lines, 0))
    layer = cells.encode(names, heads, shade, alt.Description("about:N"))
    return alt.LayerChart(layer=[layer], width=width, height=alt.Step(20), config=LOOK)
