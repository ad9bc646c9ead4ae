"""Charts of plans and of class sizes: what is possible, at which risk and with which error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from polyseme.results.drawing.bars import LOOK, names_axis
from polyseme.results.drawing.distribution import COLORS, ClassSizes
from polyseme.results.views.formats import count, points, quantity
from polyseme.results.views.plan_tables import STATUS
from polyseme.results.views.tables import Setting, Tried

__all__ = ["frontier_chart", "sizes_chart"]


def sizes_chart(sizes: ClassSizes, unit: str = "class", width: int = 640) -> alt.LayerChart:
    """How many classes have how many records."""
    labels, plural = list(sizes.labels), "groups" if unit == "group" else "classes"
    rows = [
        {"size": label, "number": classes, "about": f"{count(classes)} {plural} of {label}: {count(records)} records"}
        for label, classes, records in zip(labels, sizes.classes, sizes.records, strict=True)
    ]
    step = min(width / len(labels), 60.0)
    axis = names_axis(True, labels, step)
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar(width=alt.RelativeBandSize(0.74), color=COLORS["estimate"])
    layer = bars.encode(
        alt.X("size:N", sort=labels, title=f"records in a {unit}", axis=axis),
        alt.Y("number:Q", title=plural, axis=alt.Axis(tickCount=5, tickMinStep=1, domain=False)),
        alt.Description("about:N"),
    )
    return alt.LayerChart(layer=[layer], width=alt.Step(step), height=150, config=LOOK)


_DECADES = [round(step * 10.0**power, 12) for power in range(-6, 3) for step in (1, 2, 3, 5, 7)]
"""Ticks of a logarithmic axis from one in a million to several hundred, none of them crowded."""


def frontier_chart(
    grid: Sequence[Setting] | Mapping[str, Sequence[Setting]],
    width: int = 640,
    tried: Mapping[str, Sequence[Tried]] | None = None,
) -> alt.VConcatChart:
    """Risk against precision for many (l, d), beside the grid of feasible settings.

    grid   the settings of one attribute, or of several by name
    tried  what a learner reaches, for the attributes with a known distribution: drawn above the rest
    """
    named = grid if isinstance(grid, Mapping) else {"": grid}
    learners = [_learners(name, settings, int(width * 0.92)) for name, settings in (tried or {}).items() if settings]
    return alt.VConcatChart(
        vconcat=[*learners, *(_frontier(name, settings, int(width * 0.46)) for name, settings in named.items())],
        # Colors mean different things in the two kinds of charts.
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(color="independent", shape="independent", size="independent")),
        spacing=40,
        config=LOOK,
    )


_KINDS = ("the policy's", "not beaten", "beaten by another")


def _learners(name: str, tried: Sequence[Tried], width: int) -> alt.LayerChart:
    """A learner's success against the error: lower bound, the policy's point, others in gray."""
    rows = [_tried_row(one.to_dict()) for one in tried]
    known = [row for row in rows if row["error"] is not None]
    base = alt.Chart(alt.InlineData(values=known)).encode(
        alt.X(
            "success:Q",
            title="right guesses of an attacker who knows the distribution, %",
            scale=alt.Scale(zero=False, nice=False, padding=24),
        ),
        alt.Y(
            "error:Q",
            title="expected error, percentage points",
            scale=alt.Scale(type="log", padding=14, nice=False),
            axis=alt.Axis(values=_DECADES, format="~g"),
        ),
    )
    colors = [COLORS["published"], COLORS["estimate"], COLORS["original"]]
    dots = base.mark_point(filled=True, opacity=1).encode(
        alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(_KINDS), range=colors),
            legend=alt.Legend(title=None, orient="bottom", symbolSize=70),
        ),
        alt.Size("kind:N", scale=alt.Scale(domain=list(_KINDS), range=[150, 50, 30]), legend=None),
        alt.Description("about:N"),
    )
    names = (
        base.transform_filter("datum.labeled")
        .mark_text(align="left", dx=8, fontSize=10, color=COLORS["muted"])
        .encode(alt.Text("setting:N"))
    )
    floors = [{"success": row["floor"]} for row in rows if row["kind"] == _KINDS[0]][:1]
    rule = (
        alt.Chart(alt.InlineData(values=floors))
        .mark_rule(color=COLORS["muted"], strokeDash=[4, 3])
        .encode(alt.X("success:Q"))
    )
    title = f"{name}: success of a learner against error; dashed: lower bound for truthful sets of the policy's l, d"
    return alt.LayerChart(layer=[rule, dots, names], width=width, height=int(width * 0.55), title=title)


def _tried_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    kind = _KINDS[0] if entry["chosen"] else _KINDS[2] if entry["dominated"] else _KINDS[1]
    setting = f"{entry['l']}, {quantity(entry['d'])}"
    return {
        "success": 100 * entry["success"],
        "floor": 100 * entry["floor"],
        "error": None if entry["error"] is None else 100 * entry["error"],
        "kind": kind,
        "setting": setting,
        # One label for each l and d: where decoys are even and sets truthful.
        "labeled": entry["alpha"] == 0.0 and entry["p"] == 1.0,
        "about": f"l, d = {setting}; alpha {quantity(entry['alpha'])}, p {quantity(entry['p'])}: {kind}",
    }


def _frontier(name: str, settings: Sequence[Setting], side: int) -> alt.HConcatChart:
    data = alt.InlineData(values=[_setting_row(item) for item in settings])
    heading = f"{name}: " if name else ""
    trade = _trade(data, side, f"{heading}risk and precision, labeled l, d")
    return alt.HConcatChart(hconcat=[trade, _grid(data, side)], spacing=70, bounds="flush")


def _setting_row(item: Setting) -> dict[str, Any]:
    risk = item.facts.worst_posterior if item.facts else None
    mse = item.facts.expected_mse if item.facts else None
    known = mse is not None and np.isfinite(mse)
    status = STATUS.get(item.status, item.status)
    return {
        "l": item.l,
        "d": item.d,
        "setting": f"{item.l}, {quantity(item.d)}",
        "risk": risk if risk is not None and np.isfinite(risk) else None,
        "error": 100 * float(np.sqrt(mse)) if mse is not None and known else None,
        "status": status,
        "about": f"l = {item.l}, d = {quantity(item.d)}: {status}, worst posterior {quantity(risk)}, "
        f"expected error {points(mse)} points",
    }


def _trade(data: alt.InlineData, side: int, title: str) -> alt.LayerChart:
    base = (
        alt.Chart(data)
        .transform_filter("datum.status === 'possible' && datum.error > 0 && datum.risk > 0")
        .encode(
            alt.X(
                "risk:Q",
                title="worst posterior",
                scale=alt.Scale(zero=False, nice=False, padding=24),
                axis=alt.Axis(format="~g", tickCount=6),
            ),
            alt.Y(
                "error:Q",
                title="expected error, percentage points",
                scale=alt.Scale(type="log", padding=14, nice=False),
                axis=alt.Axis(values=_DECADES, format="~g"),
            ),
        )
    )
    dots = base.mark_point(filled=True, size=58, opacity=1, color=COLORS["estimate"]).encode(alt.Description("about:N"))
    names = base.mark_text(align="left", dx=7, fontSize=10, color=COLORS["muted"]).encode(alt.Text("setting:N"))
    return alt.LayerChart(layer=[dots, names], width=side, height=side, title=title)


def _grid(data: alt.InlineData, side: int) -> alt.Chart:
    legend = alt.Legend(title=None, orient="bottom", symbolSize=70)
    grid: alt.Chart = (
        alt.Chart(data, title="attainable settings", width=side, height=side)
        .mark_point(filled=True, size=80, opacity=1)
        .encode(
            alt.X("d:O", title="least distance d", axis=alt.Axis(labelAngle=0, grid=False)),
            alt.Y("l:O", title="candidates l", sort="descending", axis=alt.Axis(grid=False)),
            alt.Shape(
                "status:N",
                scale=alt.Scale(domain=list(STATUS.values()), range=["circle", "diamond", "cross"]),
                legend=legend,
            ),
            alt.Color(
                "status:N",
                scale=alt.Scale(
                    domain=list(STATUS.values()), range=[COLORS["estimate"], COLORS["published"], COLORS["muted"]]
                ),
                legend=legend,
            ),
            alt.Description("about:N"),
        )
    )
    return grid
