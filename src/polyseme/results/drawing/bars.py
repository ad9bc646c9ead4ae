"""Charts as SVG, made without any network: bars of distributions, and heat maps.

A distribution has one bar a value, with the published candidates and the estimate with its interval. A heat map shows
two columns against each other, as squares that are the darker the more records there are.

Colors are the ones of a light page. An inline SVG on a page is recolored by its style sheet, which looks them up by
exactly these values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import altair as alt
import numpy as np
import vl_convert

from polyseme.kernel.arrays import Ints
from polyseme.results.drawing.distribution import COLORS, TOP, Distribution, drawable, picture_kind, shown_values
from polyseme.results.views.formats import count, quantity

__all__ = [
    "LOOK",
    "SHORT",
    "AnyChart",
    "chart_svg",
    "distribution_chart",
    "distribution_svg",
    "heatmap",
    "name_axis",
    "names_axis",
    "save_chart",
    "squares",
    "tilted",
    "titled",
]


AnyChart: TypeAlias = (
    alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart
)

_FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, system-ui, sans-serif"


_TEXT: Final[dict[str, Any]] = {
    "labelColor": COLORS["muted"],
    "titleColor": COLORS["muted"],
    "labelFontSize": 11,
    "titleFontSize": 11,
    "titleFontWeight": "normal",
}
LOOK: Final = alt.Config(
    font=_FONT,
    background="transparent",
    padding=4,
    view=alt.ViewConfig(stroke=None),
    axis=alt.AxisConfig(**_TEXT, gridColor=COLORS["rule"], domainColor=COLORS["muted"], ticks=False),
    legend=alt.LegendConfig(**_TEXT, symbolStrokeWidth=0),
    title=alt.TitleConfig(color=COLORS["ink"], fontSize=12, fontWeight="normal", anchor="start"),
)


SHORT = 10
"""Letters of a label that needs no limit. To cut a label costs as much as to draw it: it is measured once more."""


def names_axis(upright: bool, labels: Sequence[str], step: float) -> alt.Axis:
    """The axis of these labels."""
    longest = max(map(len, labels))
    return name_axis(tilted(upright, longest, step), longest > SHORT)


def tilted(upright: bool, longest: int, step: float) -> bool:
    """Whether labels of so many letters are too long to be written level."""
    return upright and longest * 7 > step


def name_axis(tilted: bool, limited: bool) -> alt.Axis:
    """An axis of labels, which are cut where `limited`."""
    return alt.Axis(
        labelAngle=-45 if tilted else 0,
        labelLimit=150 if limited else 0,
        labelPadding=6,
        labelOverlap=False,
        domain=False,
        grid=False,
    )


def titled(title: str, under: str = "") -> alt.TitleParams:
    """A heading, with a line in smaller letters under it."""
    return alt.TitleParams(
        title,
        subtitle=[under] if under else [],
        anchor="start",
        color=COLORS["ink"],
        fontSize=14,
        fontWeight="bold",
        subtitleColor=COLORS["muted"],
        subtitleFontSize=11,
        offset=12,
    )


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
    """A square for each row, at `across` and `down`.

    `amount` says what is shown, `form` how it is written.
    """
    bands = alt.Scale(paddingInner=0.05)
    # Opacity rather than a range of colors: it suits a light and a dark background alike.
    shade = alt.Opacity(
        "amount:Q",
        scale=alt.Scale(range=[0.02, 1], domainMin=0),
        legend=alt.Legend(title=amount, format=form, orient="top", tickCount=5, symbolType="square"),
    )
    cells = alt.Chart(alt.InlineData(values=rows)).mark_rect(fill=COLORS["estimate"], stroke=None)
    columns, lines = list(across), list(down)
    names = alt.X(
        "across:N", sort=columns, title=None, scale=bands, axis=names_axis(True, columns, width / len(columns))
    )
    heads = alt.Y("down:N", sort=lines, title=None, scale=bands, axis=names_axis(False, lines, 0))
    layer = cells.encode(names, heads, shade, alt.Description("about:N"))
    return alt.LayerChart(layer=[layer], width=width, height=alt.Step(20), config=LOOK)


def chart_svg(chart: AnyChart) -> str:
    """The chart as SVG text."""
    svg: str = vl_convert.vegalite_to_svg(drawable(chart.to_dict()), allowed_base_urls=[])
    return svg


def save_chart(chart: AnyChart, path: str | Path, suffix: str | None = None) -> Path:
    """Write the chart as a picture, PNG, SVG or PDF by `suffix` (default: that of `path`)."""
    path = Path(path)
    suffix = picture_kind(path if suffix is None else Path(f"chart{suffix}"))
    if suffix == ".svg":
        path.write_text(chart_svg(chart), encoding="utf-8")
        return path
    light = {"background": "white", **drawable(chart.to_dict())}
    light["config"] = {**light.get("config", {}), "background": "white"}
    if suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(light, scale=2, allowed_base_urls=[]))
    else:
        path.write_bytes(vl_convert.vegalite_to_pdf(light, allowed_base_urls=[]))
    return path


_UPRIGHT = 24
"""Up to so many ordered values stand side by side; more, and unordered ones, are listed below each other."""
_ORIGINAL, _PUBLISHED, _ESTIMATE = "original", "published candidates", "estimated"


def distribution_chart(
    distribution: Distribution,
    width: int = 640,
    *,
    shown: Ints | None = None,
    shares: bool = False,
    ceiling: float | None = None,
    legend: bool = True,
) -> alt.LayerChart:
    """Original (bars), published candidates (ticks) and estimate with interval (dot), by value.

    shown    codes of the values to show; the largest `TOP` by default
    shares   percent of the group's records instead of numbers of records
    ceiling  where the scale ends, so that several charts can be compared
    """
    shown = shown_values(distribution) if shown is None else shown
    rows = drawable(_rows(distribution, shown, shares))
    frame = _frame(distribution, rows, width, shares, ceiling)
    return _drawing(frame, _color_names(distribution), legend, rows)


def distribution_svg(
    distribution: Distribution,
    width: int = 640,
    *,
    shown: Ints | None = None,
    shares: bool = False,
    ceiling: float | None = None,
) -> str:
    """The picture of `distribution_chart`, without a legend.

    A wide table has hundreds of these, and many of them have as many values: only labels and numbers are replaced.
    """
    shown = shown_values(distribution) if shown is None else shown
    rows = drawable(_rows(distribution, shown, shares))
    frame = _frame(distribution, rows, width, shares, ceiling)
    drawing = json.loads(_compiled(frame, _color_names(distribution)))
    for source in drawing["data"]:
        if "values" in source:
            source["values"] = rows
    svg: str = vl_convert.vega_to_svg(drawing, allowed_base_urls=[])
    return svg


@lru_cache(maxsize=64)
def _compiled(frame: _Frame, names: tuple[str, ...]) -> str:
    """The Vega of a chart without labels and with zeros; only its data decide what it draws."""
    blank = {"value": "", "place": 0, "low": 0.0, "high": 0.0}
    for name in {*names, _ESTIMATE}:
        blank |= {name: 0.0, f"about {name}": ""}
    chart = _drawing(frame, names, False, [blank]).to_dict(validate=False)
    return json.dumps(vl_convert.vegalite_to_vega(chart))


def _frame(
    distribution: Distribution,
    rows: Sequence[Mapping[str, Any]],
    width: int,
    shares: bool,
    ceiling: float | None,
) -> _Frame:
    upright = distribution.ordered and len(rows) <= _UPRIGHT
    room = width if upright else int(width * 0.75)
    longest = max(len(row["value"]) for row in rows)
    slanted = tilted(upright, longest, room / len(rows))
    return _Frame(len(rows), slanted, longest > SHORT, upright, room, shares, ceiling, distribution.unit)


def _drawing(frame: _Frame, names: tuple[str, ...], legend: bool, rows: list[dict[str, Any]]) -> alt.LayerChart:
    layers = _layers(alt.InlineData(values=rows), frame, _color(names, legend))
    height = max(120, int(frame.room * 0.36)) if frame.upright else alt.Step(19)
    return alt.LayerChart(layer=layers, width=frame.room, height=height, config=LOOK)


def _rows(distribution: Distribution, shown: Ints, shares: bool) -> list[dict[str, Any]]:
    total = distribution.total
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
        label = str(distribution.labels[index])
        row = {
            "value": label,
            "place": place,
            _ESTIMATE: value * scale,
            "low": (low if known else value) * scale,
            "high": (high if known else value) * scale,
            f"about {_ESTIMATE}": f"{label}: {write(value)} estimated{between}",
        }
        if distribution.published is not None:
            candidates = float(distribution.published[index])
            tooltip = f"{label}: {write(candidates)} of the published candidates"
            row |= {_PUBLISHED: candidates * scale, f"about {_PUBLISHED}": tooltip}
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
    slanted: bool
    limited: bool
    upright: bool
    room: int
    shares: bool
    ceiling: float | None
    unit: str

    @property
    def step(self) -> float:
        """Room for each value."""
        return self.room / self.values

    @property
    def names(self) -> Any:
        channel = alt.X if self.upright else alt.Y
        listed = alt.EncodingSortField("place", op="min")
        return channel("value:N", sort=listed, title=None, axis=name_axis(self.slanted, self.limited))

    def amount(self, field: str) -> Any:
        channel = alt.Y if self.upright else alt.X
        axis = alt.Axis(format=",~r", labelExpr="datum.label + '%'") if self.shares else alt.Axis(format=",~r")
        axis.tickCount, axis.domain, axis.ticks, axis.labelLimit = 5, False, False, 0
        scale = alt.Scale() if self.ceiling is None else alt.Scale(domainMax=self.ceiling)
        return channel(f"{field}:Q", title=None if self.shares else self.unit, axis=axis, scale=scale)

    def end(self, field: str) -> Any:
        return (alt.Y2 if self.upright else alt.X2)(f"{field}:Q")


def _layers(data: alt.InlineData, frame: _Frame, color: alt.Color) -> list[alt.Chart]:
    base = alt.Chart(data)

    def series(name: str, mark: alt.Chart, paint: alt.Color | alt.ColorValue = color) -> alt.Chart:
        about = alt.Description(f"about {name}:N")
        return mark.transform_calculate(series=f"'{name}'").encode(frame.names, frame.amount(name), about, paint)

    band = alt.RelativeBandSize(0.74)
    wide = base.mark_bar(width=band) if frame.upright else base.mark_bar(height=band)
    original = _ORIGINAL in data.values[0]
    bars = series(_ORIGINAL, wide) if original else series(_ESTIMATE, wide, alt.ColorValue(COLORS["wash"]))
    whiskers = base.mark_rule(strokeWidth=1.8, color=COLORS["estimate"]).encode(
        frame.names, frame.amount("low"), frame.end("high"), alt.Description(f"about {_ESTIMATE}:N")
    )
    ticks = base.mark_tick(thickness=2.5, opacity=1, size=min(0.74 * frame.step, 26) if frame.upright else 13)
    dots = base.mark_point(filled=True, size=min(46, frame.step) if frame.upright else 40, opacity=1)
    published = [series(_PUBLISHED, ticks)] if _PUBLISHED in data.values[0] else []
    return [bars, *published, whiskers, series(_ESTIMATE, dots)]


_PAINT = {_ORIGINAL: COLORS["original"], _PUBLISHED: COLORS["published"], _ESTIMATE: COLORS["estimate"]}


def _color_names(distribution: Distribution) -> tuple[str, ...]:
    there = {_ORIGINAL: distribution.original, _PUBLISHED: distribution.published, _ESTIMATE: distribution.estimate}
    return tuple(name for name in _PAINT if there[name] is not None)


def _color(names: tuple[str, ...], legend: bool) -> alt.Color:
    colors = [_PAINT[name] for name in names]
    shown = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", symbolOpacity=1)
    return alt.Color("series:N", scale=alt.Scale(domain=list(names), range=colors), legend=shown if legend else None)
