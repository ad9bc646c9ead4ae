"""Charts of studies as SVG without any library: lines with intervals, and dot plots.

A study has dozens of charts. Colors are classes (`c0` ... `c8`), which the style sheet gives a light and a dark shade;
lines also differ in their dashes, so that they can be distinguished without colors. Every mark has its numbers as a
title.

Dot plots have names down the side, numbers along the bottom, and a dot for each series that has one. They are for names
without an order, where a line between them would say nothing. The dots of a name stand a little below each other, so
that none hides another.

A chart can be a picture of its own, with a title and a legend: for a README, or a talk. It follows the reader's light
or dark setting, as pages do, on a background of its own, so that it can be read on any page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from polyseme.papers.study import Figure, Row

__all__ = [
    "HEIGHT",
    "LINE_STYLE",
    "WIDTH",
    "Look",
    "Scale",
    "chart",
    "chart_height",
    "draw",
    "draw_dots",
    "height_of",
    "look_of",
    "number",
    "picture",
    "swatch",
    "words_of",
]

WIDTH, HEIGHT = 380, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 40
_COLORS = 9
_DASHES = ("", "6 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2", "3 5")
"""Fewer than colors, and no divisor of them: no two of the first 63 series look the same."""
_OURS, _MARKS = (
    ("ours", "balanced", "conditional prior", "learned, conditional prior"),
    ("the limit", "1/l", "original", "true", "floor of truthful sets"),
)

LINE_STYLE = (
    """\
:root {
  --c0: #14609e; --c1: #b8560f; --c2: #17693f; --c3: #a8201a; --c4: #6b3fa0;
  --c5: #0b7379; --c6: #806000; --c7: #b0307a; --c8: #5b6572;
}
@media (prefers-color-scheme: dark) {
  :root {
    --c0: #7cbcf0; --c1: #f0a15c; --c2: #7fd3a3; --c3: #ff9d95; --c4: #c3a2f0;
    --c5: #6fd0d6; --c6: #e0c35c; --c7: #f08cc4; --c8: #a3acb8;
  }
}
svg.lines { display: block; width: 100%; max-width: 26rem; height: auto; }
svg.lines text { font-family: inherit; font-size: 11px; fill: var(--muted); }
svg.lines .grid { stroke: var(--grid); }
svg.lines path, svg.lines .bar { fill: none; stroke-width: 1.8; }
svg.lines .bar { stroke-width: 1.2; }
"""
    + "\n".join(
        f"svg.lines .c{place} {{ stroke: var(--c{place}); }} svg.lines circle.c{place} {{ fill: var(--c{place}); }}"
        for place in range(_COLORS)
    )
    + "\nsvg.lines circle.hollow { fill: var(--ground); stroke-width: 1.4; }"
)


@dataclass(frozen=True)
class Look:
    """How a series is drawn, everywhere on a page."""

    place: int

    @property
    def color(self) -> str:
        return f"c{self.place % _COLORS}"

    @property
    def mark(self) -> str:
        """The class of its dots: hollow where the color was taken before."""
        return f"{self.color} hollow" if self.place >= _COLORS else self.color

    @property
    def dash(self) -> str:
        return _DASHES[self.place % len(_DASHES)]


def look_of(series: Sequence[str]) -> dict[str, Look]:
    """A look for each series of a page: ours in the first color, baselines in gray."""
    names = list(dict.fromkeys(series))
    ours = [name for name in names if name.startswith(_OURS)]
    marks = [name for name in names if name in _MARKS]
    others = [name for name in names if name not in ours and name not in marks]
    looks = {name: Look(0 if place == 0 else _COLORS * (place + 1)) for place, name in enumerate(ours)}
    looks |= {name: Look(_COLORS - 1 + _COLORS * place) for place, name in enumerate(marks)}
    return looks | {name: Look(_other(place)) for place, name in enumerate(others)}


def _other(place: int) -> int:
    """Colors beside the first, which is ours, and the last, which is gray."""
    turn, color = divmod(place, _COLORS - 2)
    return _COLORS * turn + color + 1


def number(value: float) -> str:
    """A number as it is written on an axis or in a table.

    >>> [number(x) for x in (0.0, 3.0, 0.25, 12345.0, 0.0000123, 2e9)]
    ['0', '3', '0.25', '12,345', '1.23e-05', '2e+09']
    """
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:.3g}"


def words_of(row: Row) -> str:
    """What a mark says when it is pointed at."""
    about = f"{row.series}, {row.x if isinstance(row.x, str) else number(row.x)}: {number(row.value)}"
    return about + (f" ({number(row.low)} to {number(row.high)})" if row.repeats else ", exact")


def swatch(look: Look) -> str:
    """A line of the legend."""
    dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
    return (
        f'<svg class="lines" style="width:34px" viewBox="0 0 34 10" aria-hidden="true">'
        f'<path class="{look.color}" d="M0 5H34"{dash}/><circle class="{look.mark}" cx="17" cy="5" r="3"/></svg>'
    )


@dataclass(frozen=True)
class Scale:
    """From numbers to places."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        if not self.log:
            return _even(self.low, self.high)
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = max((last - first) // 5, 1) if last > first else 1
        decades = [10.0**power for power in range(first, last + 1, step)]
        if len(decades) >= 2:
            return decades
        return [
            x * 10.0**p for p in range(first - 1, last + 1) for x in (1, 2, 5) if self.low <= x * 10.0**p <= self.high
        ]


def _even(low: float, high: float) -> list[float]:
    """Round numbers between two limits, some five of them."""
    if high <= low:
        return [low]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough - 1e-12)
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]


def draw(figure: Figure, rows: Sequence[Row], looks: dict[str, Look]) -> str:
    """The chart as an SVG element."""
    kept = [row for row in rows if math.isfinite(row.value) and (row.value > 0 or not figure.log)]
    names = _names(kept)
    x = Scale(*_span([_at(row, names) for row in kept], 0.04), _LEFT, WIDTH - _RIGHT)
    y = _upright(kept, figure.log)
    parts = [_frame(figure, x, y, names)]
    for series in dict.fromkeys(row.series for row in kept):
        line = sorted((row for row in kept if row.series == series), key=lambda row: _at(row, names))
        parts.append(_line(line, looks[series], x, y, names))
    about = escape(f"{figure.title or figure.panel}: {figure.y} over {figure.x}")
    return f'<svg class="lines" role="img" aria-label="{about}" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'


def _names(rows: Sequence[Row]) -> list[str]:
    """The names along the axis, where it has names instead of numbers."""
    return list(dict.fromkeys(row.x for row in rows if isinstance(row.x, str)))


def _at(row: Row, names: Sequence[str]) -> float:
    return float(names.index(row.x)) if isinstance(row.x, str) else float(row.x)


def _span(values: Sequence[float], margin: float) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = (high - low) * margin or 0.5
    return low - room, high + room


def _upright(rows: Sequence[Row], log: bool) -> Scale:
    highest = max((row.high for row in rows if math.isfinite(row.high)), default=1.0)
    if log:
        lowest = min((row.value for row in rows), default=0.1)
        return Scale(lowest / 1.6, max(highest, lowest) * 1.3, HEIGHT - _BOTTOM, _TOP, True)
    lowest = min(min((row.low for row in rows if math.isfinite(row.low)), default=0.0), 0.0)
    return Scale(lowest, highest * 1.05 if highest > lowest else lowest + 1.0, HEIGHT - _BOTTOM, _TOP)


def _frame(figure: Figure, x: Scale, y: Scale, names: Sequence[str]) -> str:
    parts = []
    for tick in y.ticks():
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    whole = [tick for tick in x.ticks() if tick == round(tick)] if x.high - x.low >= 1.0 else x.ticks()
    places = _named_ticks(names) if names else [(tick, number(tick)) for tick in whole]
    for tick, label in places:
        parts.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - _BOTTOM + 15}" text-anchor="middle">{escape(label)}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(figure.x)}</text>')
    return "".join(parts)


def _named_ticks(names: Sequence[str]) -> list[tuple[float, str]]:
    """As many names as there is room for."""
    step = max(1, math.ceil(len(names) * max(map(len, names)) * 7 / (WIDTH - _LEFT - _RIGHT)))
    return [(float(place), name) for place, name in enumerate(names) if place % step == 0]


def _line(rows: Sequence[Row], look: Look, x: Scale, y: Scale, names: Sequence[str]) -> str:
    places = [(x(_at(row, names)), y(row.value)) for row in rows]
    path = "M" + "L".join(f"{across:.1f} {up:.1f}" for across, up in places)
    dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
    parts = [f'<path class="{look.color}" d="{path}"{dash}/>']
    for row, (across, up) in zip(rows, places, strict=True):
        if row.high > row.low:
            low, high = y(row.low), y(row.high)
            parts.append(f'<path class="bar {look.color}" d="M{across:.1f} {low:.1f}V{high:.1f}"/>')
        parts.append(
            f'<circle class="{look.mark}" cx="{across:.1f}" cy="{up:.1f}" r="2.6">'
            f"<title>{escape(words_of(row))}</title></circle>"
        )
    return "".join(parts)


_STEP, _ROOM, _DOT_TOP, _DOT_BOTTOM, _DOT_RIGHT = 9, 10, 6, 40, 14
_LETTER, _WIDEST = 6.0, 150


def height_of(rows: Sequence[Row]) -> int:
    """How high the chart is: as it has names and series."""
    return _DOT_TOP + _DOT_BOTTOM + len(_dot_names(rows)) * _band(rows)


def draw_dots(figure: Figure, rows: Sequence[Row], looks: dict[str, Look]) -> str:
    """The chart as an SVG element."""
    kept = [row for row in rows if math.isfinite(row.value) and (row.value > 0 or not figure.log)]
    names, high = _dot_names(kept), height_of(kept)
    left = 12 + min(max((len(name) for name in names), default=1) * _LETTER, _WIDEST)
    x = _across(kept, figure.log, left)
    parts = [_dot_frame(figure, x, left, high, names, _band(kept))]
    series = list(dict.fromkeys(row.series for row in kept))
    for row in kept:
        up = _DOT_TOP + names.index(str(row.x)) * _band(kept) + _ROOM / 2 + _STEP * (series.index(row.series) + 0.5)
        parts.append(_dot(row, looks[row.series], x, up))
    about = escape(f"{figure.title or figure.panel}: {figure.y} by {figure.x}")
    return f'<svg class="lines" role="img" aria-label="{about}" viewBox="0 0 {WIDTH} {high}">{"".join(parts)}</svg>'


def _dot_names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row.x) for row in rows))


def _band(rows: Sequence[Row]) -> int:
    return _ROOM + _STEP * len({row.series for row in rows})


def _across(rows: Sequence[Row], log: bool, left: float) -> Scale:
    ends = [
        end for row in rows for end in (row.low, row.high, row.value) if math.isfinite(end) and (end > 0 or not log)
    ]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    if log:
        return Scale(low / 1.3, high * 1.3, left, WIDTH - _DOT_RIGHT, True)
    low = min(low, 0.0)
    return Scale(low, high * 1.05 if high > low else low + 1.0, left, WIDTH - _DOT_RIGHT)


def _dot_frame(figure: Figure, x: Scale, left: float, high: int, names: Sequence[str], band: int) -> str:
    bottom, parts = high - _DOT_BOTTOM, []
    for tick in x.ticks():
        at = f"{x(tick):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_DOT_TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 15}" text-anchor="middle">{number(tick)}</text>')
    for place, name in enumerate(names):
        up, edge = _DOT_TOP + (place + 0.5) * band + 4, _DOT_TOP + place * band
        parts.append(f'<line class="grid" x1="0" x2="{WIDTH - _DOT_RIGHT}" y1="{edge}" y2="{edge}"/>')
        parts.append(f'<text x="{left - 8:.0f}" y="{up:.1f}" text-anchor="end">{escape(name)}</text>')
    parts.append(f'<text x="{left - 8:.0f}" y="{high - 6}" text-anchor="end">{escape(figure.x)}</text>')
    middle = (left + WIDTH - _DOT_RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{high - 6}" text-anchor="middle">{escape(figure.y)}</text>')
    return "".join(parts)


def _dot(row: Row, look: Look, x: Scale, up: float) -> str:
    bar = ""
    if row.high > row.low:
        bar = f'<path class="bar {look.color}" d="M{x(row.low):.1f} {up:.1f}H{x(row.high):.1f}"/>'
    return (
        f'{bar}<circle class="{look.mark}" cx="{x(row.value):.1f}" cy="{up:.1f}" r="3.2">'
        f"<title>{escape(words_of(row))}</title></circle>"
    )


def chart(figure: Figure, rows: Sequence[Row], looks: dict[str, Look]) -> str:
    """The chart as an SVG element."""
    return draw(figure, rows, looks) if figure.joined else draw_dots(figure, rows, looks)


def chart_height(figure: Figure, rows: Sequence[Row]) -> int:
    return HEIGHT if figure.joined else height_of(rows)


_TITLE_LETTER, _SWATCH, _GAP, _LINE, _EDGE = 5.6, 40, 14, 18, 8
_STYLE = """
:root { --ink: #1b222c; --muted: #5b6572; --grid: #e3e6ea; --ground: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7eaee; --muted: #a3acb8; --grid: #2a313a; --ground: #14181e; }
}
svg { font-family: -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, system-ui, sans-serif; }
text { font-size: 11px; fill: var(--muted); }
text.title { font-size: 13px; font-weight: 600; fill: var(--ink); }
"""


def picture(figure: Figure, rows: Sequence[Row], looks: dict[str, Look]) -> str:
    """The chart as an SVG document."""
    legend, lines = _legend(list(dict.fromkeys(row.series for row in rows)), looks)
    top = 36 + lines * _LINE
    tall = chart_height(figure, rows)
    drawn = chart(figure, rows, looks).replace("<svg ", f'<svg y="{top}" width="{WIDTH}" height="{tall}" ', 1)
    wide, high = WIDTH + 2 * _EDGE, top + tall + 2 * _EDGE
    title = escape(figure.title or figure.panel)
    about = escape(f"{figure.y}{', logarithmic' if figure.log else ''}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-_EDGE} {-_EDGE} {wide} {high}" width="{wide * 1.6:.0f}">'
        f"<style>{_STYLE}{LINE_STYLE}</style>"
        f'<rect x="{-_EDGE}" y="{-_EDGE}" width="{wide}" height="{high}" rx="6" style="fill: var(--ground)"/>'
        f'<text class="title" x="4" y="15">{title}</text><text x="4" y="31">{about}</text>{legend}{drawn}</svg>\n'
    )


def _legend(names: Sequence[str], looks: dict[str, Look]) -> tuple[str, int]:
    """The names with their lines, in as many rows as it takes, and how many these are."""
    parts, across, line = [], 4.0, 0
    for name in names:
        wide = _SWATCH + _TITLE_LETTER * len(name) + _GAP
        if across + wide > WIDTH and across > 4.0:
            across, line = 4.0, line + 1
        up = 38 + line * _LINE
        drawn = swatch(looks[name]).replace("<svg ", f'<svg x="{across:.0f}" y="{up}" width="34" height="10" ', 1)
        parts.append(f'{drawn}<text x="{across + _SWATCH:.0f}" y="{up + 9}">{escape(name)}</text>')
        across += wide
    return "".join(parts), line + 1
