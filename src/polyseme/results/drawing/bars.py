"""A distribution as bars: one bar a value, with the published candidates and the estimate with its interval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import vl_convert

from polyseme.arrays import Ints
from polyseme.results.drawing.distribution import Distribution, shown_values
from polyseme.results.drawing.look import COLOURS, LOOK, SHORT, name_axis, tilted
from polyseme.results.drawing.svg import drawable
from polyseme.results.views.formats import count, quantity

__all__ = ["distribution_chart", "distribution_svg"]

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
    """Original (bars), published candidates (ticks) and estimate with its interval (dot and whisker), by value.

    shown    codes of the values to show; the largest `TOP` by default
    shares   percent of the group's records instead of numbers of records
    ceiling  where the scale ends, so that several charts can be compared
    """
    shown = shown_values(distribution) if shown is None else shown
    rows = drawable(_rows(distribution, shown, shares))
    frame = _frame(distribution, rows, width, shares, ceiling)
    return _drawing(frame, _colour_names(distribution), legend, rows)


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
    layers = _layers(alt.InlineData(values=rows), frame, _colour(names, legend))
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
            told = f"{label}: {write(candidates)} of the published candidates"
            row |= {_PUBLISHED: candidates * scale, f"about {_PUBLISHED}": told}
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
    published = [series(_PUBLISHED, ticks)] if _PUBLISHED in data.values[0] else []
    return [bars, *published, whiskers, series(_ESTIMATE, dots)]


_PAINT = {_ORIGINAL: COLOURS["original"], _PUBLISHED: COLOURS["published"], _ESTIMATE: COLOURS["estimate"]}


def _colour_names(distribution: Distribution) -> tuple[str, ...]:
    there = {_ORIGINAL: distribution.original, _PUBLISHED: distribution.published, _ESTIMATE: distribution.estimate}
    return tuple(name for name in _PAINT if there[name] is not None)


def _colour(names: tuple[str, ...], legend: bool) -> alt.Color:
    colours = [_PAINT[name] for name in names]
    shown = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", symbolOpacity=1)
    return alt.Color("series:N", scale=alt.Scale(domain=list(names), range=colours), legend=shown if legend else None)
