"""Vega-Lite charts, and pictures of them made without any network.

Colours are the ones of the light page. An inline SVG on a page is recoloured by its style sheet, which looks them up
by exactly these values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import altair as alt
import numpy as np
import vl_convert

from polyseme.arrays import Ints
from polyseme.reports.document import ClassSizes, Distribution, shown_values
from polyseme.reports.pictures import picture_kind
from polyseme.results.views.formats import count, points, quantity
from polyseme.results.views.protocols import Setting, Tried
from polyseme.results.views.tables import STATUS

__all__ = [
    "COLOURS",
    "AnyChart",
    "chart_svg",
    "distribution_chart",
    "distribution_svg",
    "frontier_chart",
    "heatmap",
    "save_chart",
    "sizes_chart",
]

AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart

_UPRIGHT = 24
"""Up to so many ordered values stand side by side; more, and unordered ones, are listed below each other."""

COLOURS: Final = {
    "ink": "#1b222c",
    "muted": "#5b6572",
    "rule": "#e3e6ea",
    "original": "#ccd2da",
    "published": "#b8560f",
    "estimate": "#14609e",
    "wash": "#d6e5f3",
}
_ORIGINAL, _PUBLISHED, _ESTIMATE = "original", "published candidates", "estimated"
_FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, system-ui, sans-serif"


_TEXT: Final[dict[str, Any]] = {
    "labelColor": COLOURS["muted"],
    "titleColor": COLOURS["muted"],
    "labelFontSize": 11,
    "titleFontSize": 11,
    "titleFontWeight": "normal",
}
_LOOK: Final = alt.Config(
    font=_FONT,
    background="transparent",
    padding=4,
    view=alt.ViewConfig(stroke=None),
    axis=alt.AxisConfig(**_TEXT, gridColor=COLOURS["rule"], domainColor=COLOURS["muted"], ticks=False),
    legend=alt.LegendConfig(**_TEXT, symbolStrokeWidth=0),
    title=alt.TitleConfig(color=COLOURS["ink"], fontSize=12, fontWeight="normal", anchor="start"),
)


def distribution_chart(
    distribution: Distribution,
    width: int = 640,
    *,
    shown: Ints | None = None,
    shares: bool = False,
    ceiling: float | None = None,
    legend: bool = True,
) -> alt.LayerChart:
    """Original (bars), published candidates (ticks) and estimate with its interval (dot and whisker), by value.

    shown    codes of the values to show; the largest `TOP` by default
    shares   percent of the group's records instead of numbers of records
    ceiling  where the scale ends, so that several charts can be compared
    """
    shown = shown_values(distribution) if shown is None else shown
    rows = _drawable(_rows(distribution, shown, shares))
    return _drawing(_frame(distribution, rows, width, shares, ceiling), _colour_names(distribution), legend, rows)


def distribution_svg(
    distribution: Distribution,
    width: int = 640,
    *,
    shown: Ints | None = None,
    shares: bool = False,
    ceiling: float | None = None,
) -> str:
    """The picture of `distribution_chart`, without a legend.

    A wide table has hundreds of these, and many of them have as many values: only labels and numbers are put in anew.
    """
    shown = shown_values(distribution) if shown is None else shown
    rows = _drawable(_rows(distribution, shown, shares))
    frame = _frame(distribution, rows, width, shares, ceiling)
    drawing = json.loads(_compiled(frame, _colour_names(distribution)))
    for source in drawing["data"]:
        if "values" in source:
            source["values"] = rows
    svg: str = vl_convert.vega_to_svg(drawing, allowed_base_urls=[])
    return svg


@lru_cache(maxsize=64)
def _compiled(frame: _Frame, names: tuple[str, ...]) -> str:
    """The Vega of a chart without labels, in which every number is 0; what it draws is decided by its data alone."""
    blank = {"value": "", "place": 0, "low": 0.0, "high": 0.0}
    for name in {*names, _ESTIMATE, _PUBLISHED}:
        blank |= {name: 0.0, f"about {name}": ""}
    chart = _drawing(frame, names, False, [blank]).to_dict(validate=False)
    return json.dumps(vl_convert.vegalite_to_vega(chart))


def _frame(
    distribution: Distribution, rows: Sequence[Mapping[str, Any]], width: int, shares: bool, ceiling: float | None
) -> _Frame:
    upright = distribution.ordered and len(rows) <= _UPRIGHT
    room = width if upright else int(width * 0.75)
    longest = max(len(row["value"]) for row in rows)
    return _Frame(
        len(rows), _tilted(upright, longest, room / len(rows)), longest > _SHORT, upright, room, shares, ceiling
    )


def _drawing(frame: _Frame, names: tuple[str, ...], legend: bool, rows: list[dict[str, Any]]) -> alt.LayerChart:
    layers = _layers(alt.InlineData(values=rows), frame, _colour(names, legend))
    height = max(120, int(frame.room * 0.36)) if frame.upright else alt.Step(19)
    return alt.LayerChart(layer=layers, width=frame.room, height=height, config=_LOOK)


def _rows(distribution: Distribution, shown: Ints, shares: bool) -> list[dict[str, Any]]:
    total = float(distribution.published.sum())
    scale = 100.0 / total if shares and total > 0 else 1.0

    def write(number: float) -> str:
        return f"{quantity(round(number * scale, 1))}%" if shares else count(number)

    rows = []
    for place, index in enumerate(shown.tolist()):
        low, high, value = (
            float(column[index]) for column in (distribution.low, distribution.high, distribution.estimate)
        )
        known = bool(np.isfinite(low) and np.isfinite(high))
        between = f", {distribution.level:.0%} interval {write(low)} to {write(high)}" if known else ""
        label, candidates = str(distribution.labels[index]), float(distribution.published[index])
        row = {
            "value": label,
            "place": place,
            _ESTIMATE: value * scale,
            _PUBLISHED: candidates * scale,
            "low": (low if known else value) * scale,
            "high": (high if known else value) * scale,
            f"about {_ESTIMATE}": f"{label}: {write(value)} estimated{between}",
            f"about {_PUBLISHED}": f"{label}: {write(candidates)} of the published candidates",
        }
        if distribution.original is not None:
            true = float(distribution.original[index])
            row |= {_ORIGINAL: true * scale, f"about {_ORIGINAL}": f"{label}: {write(true)} in the original"}
        rows.append(row)
    return rows


@dataclass(frozen=True)
class _Frame:
    """Where values and amounts go: `upright` columns side by side, or bars below each other.

    Nothing in it depends on what the labels are, so that charts of as many values share one.
    """

    values: int
    tilted: bool
    limited: bool
    upright: bool
    room: int
    shares: bool
    ceiling: float | None

    @property
    def step(self) -> float:
        """Room for each value."""
        return self.room / self.values

    @property
    def names(self) -> Any:
        channel = alt.X if self.upright else alt.Y
        listed = alt.EncodingSortField("place", op="min")
        return channel("value:N", sort=listed, title=None, axis=_name_axis(self.tilted, self.limited))

    def amount(self, field: str) -> Any:
        channel = alt.Y if self.upright else alt.X
        axis = alt.Axis(format=",~r", labelExpr="datum.label + '%'") if self.shares else alt.Axis(format=",~r")
        axis.tickCount, axis.domain, axis.ticks, axis.labelLimit = 5, False, False, 0
        scale = alt.Scale() if self.ceiling is None else alt.Scale(domainMax=self.ceiling)
        return channel(f"{field}:Q", title=None if self.shares else "records", axis=axis, scale=scale)

    def end(self, field: str) -> Any:
        return (alt.Y2 if self.upright else alt.X2)(f"{field}:Q")


def _layers(data: alt.InlineData, frame: _Frame, colour: alt.Color) -> list[alt.Chart]:
    base = alt.Chart(data)

    def series(name: str, mark: alt.Chart, paint: alt.Color | alt.ColorValue = colour) -> alt.Chart:
        about = alt.Description(f"about {name}:N")
        return mark.transform_calculate(series=f"'{name}'").encode(frame.names, frame.amount(name), about, paint)

    band = alt.RelativeBandSize(0.74)
    wide = base.mark_bar(width=band) if frame.upright else base.mark_bar(height=band)
    original = _ORIGINAL in data.values[0]
    bars = series(_ORIGINAL, wide) if original else series(_ESTIMATE, wide, alt.ColorValue(COLOURS["wash"]))
    whiskers = base.mark_rule(strokeWidth=1.8, color=COLOURS["estimate"]).encode(
        frame.names, frame.amount("low"), frame.end("high"), alt.Description(f"about {_ESTIMATE}:N")
    )
    ticks = base.mark_tick(thickness=2.5, opacity=1, size=min(0.74 * frame.step, 26) if frame.upright else 13)
    dots = base.mark_point(filled=True, size=min(46, frame.step) if frame.upright else 40, opacity=1)
    return [bars, series(_PUBLISHED, ticks), whiskers, series(_ESTIMATE, dots)]


_PAINT = {_ORIGINAL: COLOURS["original"], _PUBLISHED: COLOURS["published"], _ESTIMATE: COLOURS["estimate"]}


def _colour_names(distribution: Distribution) -> tuple[str, ...]:
    return tuple(_PAINT) if distribution.original is not None else (_PUBLISHED, _ESTIMATE)


def _colour(names: tuple[str, ...], legend: bool) -> alt.Color:
    colours = [_PAINT[name] for name in names]
    shown = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", symbolOpacity=1)
    return alt.Color("series:N", scale=alt.Scale(domain=list(names), range=colours), legend=shown if legend else None)


_SHORT = 10
"""Letters of a label that needs no limit. To cut a label costs as much as to draw it: it is measured once more."""


def _names_axis(upright: bool, labels: Sequence[str], step: float) -> alt.Axis:
    longest = max(map(len, labels))
    return _name_axis(_tilted(upright, longest, step), longest > _SHORT)


def _tilted(upright: bool, longest: int, step: float) -> bool:
    return upright and longest * 7 > step


def _name_axis(tilted: bool, limited: bool) -> alt.Axis:
    return alt.Axis(
        labelAngle=-45 if tilted else 0,
        labelLimit=150 if limited else 0,
        labelPadding=6,
        labelOverlap=False,
        domain=False,
        grid=False,
    )


def heatmap(distributions: Sequence[Distribution], width: int = 640) -> alt.LayerChart:
    """Groups against values: the estimated share of each value among the records of its group."""
    shown = shown_values(distributions[0]).tolist()
    labels = [str(distributions[0].labels[index]) for index in shown]
    groups = [str(distribution.group) for distribution in distributions]
    rows = []
    for group, distribution in zip(groups, distributions, strict=True):
        total = float(distribution.published.sum())
        for index, label in zip(shown, labels, strict=True):
            share = max(float(distribution.estimate[index]), 0.0) / total if total > 0 else 0.0
            about = f"{group}, {label}: {share:.1%} of the group"
            rows.append({"group": group, "value": label, "share": share, "about": about})
    bands = alt.Scale(paddingInner=0.05)
    # Opacity rather than a range of colours: it suits a light and a dark background alike.
    shade = alt.Opacity(
        "share:Q",
        scale=alt.Scale(range=[0.02, 1], domainMin=0),
        legend=alt.Legend(title="share of the group", format=".0%", orient="top", tickCount=5, symbolType="square"),
    )
    cells = alt.Chart(alt.InlineData(values=rows)).mark_rect(fill=COLOURS["estimate"], stroke=None)
    names = alt.X("value:N", sort=labels, title=None, scale=bands, axis=_names_axis(True, labels, width / len(labels)))
    lines = alt.Y("group:N", sort=groups, title=None, scale=bands, axis=_names_axis(False, groups, 0))
    layer = cells.encode(names, lines, shade, alt.Description("about:N"))
    return alt.LayerChart(layer=[layer], width=width, height=alt.Step(20), config=_LOOK)


def sizes_chart(sizes: ClassSizes, unit: str = "class", width: int = 640) -> alt.LayerChart:
    """How many classes have how many records."""
    labels, plural = list(sizes.labels), "groups" if unit == "group" else "classes"
    rows = [
        {"size": label, "number": classes, "about": f"{count(classes)} {plural} of {label}: {count(records)} records"}
        for label, classes, records in zip(labels, sizes.classes, sizes.records, strict=True)
    ]
    step = min(width / len(labels), 60.0)
    axis = _names_axis(True, labels, step)
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar(width=alt.RelativeBandSize(0.74), color=COLOURS["estimate"])
    layer = bars.encode(
        alt.X("size:N", sort=labels, title=f"records in a {unit}", axis=axis),
        alt.Y("number:Q", title=plural, axis=alt.Axis(tickCount=5, tickMinStep=1, domain=False)),
        alt.Description("about:N"),
    )
    return alt.LayerChart(layer=[layer], width=alt.Step(step), height=150, config=_LOOK)


_DECADES = [round(step * 10.0**power, 12) for power in range(-6, 3) for step in (1, 2, 3, 5, 7)]
"""Ticks of a logarithmic axis from one in a million to several hundred, none of them crowded."""


def frontier_chart(
    grid: Sequence[Setting] | Mapping[str, Sequence[Setting]],
    width: int = 640,
    tried: Mapping[str, Sequence[Tried]] | None = None,
) -> alt.VConcatChart:
    """Risk against precision for many (l, d), beside the grid of those that can and cannot be had.

    grid   the settings of one attribute, or of several by name
    tried  what a learner reaches, for the attributes with a known distribution: drawn above the rest
    """
    named = grid if isinstance(grid, Mapping) else {"": grid}
    learners = [_learners(name, settings, int(width * 0.92)) for name, settings in (tried or {}).items() if settings]
    return alt.VConcatChart(
        vconcat=[*learners, *(_frontier(name, settings, int(width * 0.46)) for name, settings in named.items())],
        # Colours mean different things in the two kinds of charts.
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(color="independent", shape="independent", size="independent")),
        spacing=40,
        config=_LOOK,
    )


_KINDS = ("the policy's", "not beaten", "beaten by another")


def _learners(name: str, tried: Sequence[Tried], width: int) -> alt.LayerChart:
    """A learner's success against the error: the floor drawn in, the policy's point marked, beaten settings grey."""
    rows = [_tried_row(one.to_dict()) for one in tried]
    known = [row for row in rows if row["error"] is not None]
    base = alt.Chart(alt.InlineData(values=known)).encode(
        alt.X(
            "success:Q",
            title="right guesses of somebody who knows the distribution, %",
            scale=alt.Scale(zero=False, nice=False, padding=24),
        ),
        alt.Y(
            "error:Q",
            title="expected error, percentage points",
            scale=alt.Scale(type="log", padding=14, nice=False),
            axis=alt.Axis(values=_DECADES, format="~g"),
        ),
    )
    colours = [COLOURS["published"], COLOURS["estimate"], COLOURS["original"]]
    dots = base.mark_point(filled=True, opacity=1).encode(
        alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(_KINDS), range=colours),
            legend=alt.Legend(title=None, orient="bottom", symbolSize=70),
        ),
        alt.Size("kind:N", scale=alt.Scale(domain=list(_KINDS), range=[150, 50, 30]), legend=None),
        alt.Description("about:N"),
    )
    names = (
        base.transform_filter("datum.labelled")
        .mark_text(align="left", dx=8, fontSize=10, color=COLOURS["muted"])
        .encode(alt.Text("setting:N"))
    )
    floors = [{"success": row["floor"]} for row in rows if row["kind"] == _KINDS[0]][:1]
    rule = (
        alt.Chart(alt.InlineData(values=floors))
        .mark_rule(color=COLOURS["muted"], strokeDash=[4, 3])
        .encode(alt.X("success:Q"))
    )
    title = f"{name}: what a learner reaches and what it costs; dashed: the floor of truthful sets of the policy's l, d"
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
        "labelled": entry["alpha"] == 0.0 and entry["p"] == 1.0,
        "about": f"l, d = {setting}; alpha {quantity(entry['alpha'])}, p {quantity(entry['p'])}: {kind}",
    }


def _frontier(name: str, settings: Sequence[Setting], side: int) -> alt.HConcatChart:
    data = alt.InlineData(values=[_setting_row(item) for item in settings])
    heading = f"{name}: " if name else ""
    trade = _trade(data, side, f"{heading}risk and precision, labelled l, d")
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
    dots = base.mark_point(filled=True, size=58, opacity=1, color=COLOURS["estimate"]).encode(
        alt.Description("about:N")
    )
    names = base.mark_text(align="left", dx=7, fontSize=10, color=COLOURS["muted"]).encode(alt.Text("setting:N"))
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
                    domain=list(STATUS.values()), range=[COLOURS["estimate"], COLOURS["published"], COLOURS["muted"]]
                ),
                legend=legend,
            ),
            alt.Description("about:N"),
        )
    )
    return grid


_UNDRAWABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML has no way to write: a picture with such a letter would end the process."""


def _drawable(part: Any) -> Any:
    """A part of a chart in which every name and label can be drawn; different ones stay different."""
    if isinstance(part, str):
        return _UNDRAWABLE.sub(lambda found: f"‹{ord(found[0]):02x}›", part)
    if isinstance(part, Mapping):
        return {_drawable(key): _drawable(value) for key, value in part.items()}
    return [_drawable(item) for item in part] if isinstance(part, list) else part


def chart_svg(chart: AnyChart) -> str:
    """The chart as SVG text."""
    svg: str = vl_convert.vegalite_to_svg(_drawable(chart.to_dict()), allowed_base_urls=[])
    return svg


def save_chart(chart: AnyChart, path: str | Path, suffix: str | None = None) -> Path:
    """Write the chart as a picture, PNG, SVG or PDF by `suffix`, which is that of `path` unless given."""
    path = Path(path)
    suffix = picture_kind(path if suffix is None else Path(f"chart{suffix}"))
    if suffix == ".svg":
        path.write_text(chart_svg(chart), encoding="utf-8")
        return path
    light = {"background": "white", **_drawable(chart.to_dict())}
    light["config"] = {**light.get("config", {}), "background": "white"}
    if suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(light, scale=2, allowed_base_urls=[]))
    else:
        path.write_bytes(vl_convert.vegalite_to_pdf(light, allowed_base_urls=[]))
    return path
