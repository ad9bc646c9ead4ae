"""Dot plots: names down the side, numbers along the bottom, a dot for each series that has one.

For names that stand in no order, where a line between them would say nothing. The dots of a name stand a little below
each other, so that none hides another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from polyseme.studies.reproduce.lines import WIDTH, Look, Scale, number, words_of
from polyseme.studies.reproduce.study import Figure, Row

__all__ = ["draw_dots", "height_of"]

_STEP, _ROOM, _TOP, _BOTTOM, _RIGHT = 9, 10, 6, 40, 14
_LETTER, _WIDEST = 6.0, 150


def height_of(rows: Sequence[Row]) -> int:
    """How high the chart is: as it has names and series."""
    return _TOP + _BOTTOM + len(_names(rows)) * _band(rows)


def draw_dots(figure: Figure, rows: Sequence[Row], looks: dict[str, Look]) -> str:
    """The chart as an SVG element."""
    kept = [row for row in rows if math.isfinite(row.value) and (row.value > 0 or not figure.log)]
    names, high = _names(kept), height_of(kept)
    left = 12 + min(max((len(name) for name in names), default=1) * _LETTER, _WIDEST)
    x = _across(kept, figure.log, left)
    parts = [_frame(figure, x, left, high, names, _band(kept))]
    series = list(dict.fromkeys(row.series for row in kept))
    for row in kept:
        up = _TOP + names.index(str(row.x)) * _band(kept) + _ROOM / 2 + _STEP * (series.index(row.series) + 0.5)
        parts.append(_dot(row, looks[row.series], x, up))
    about = escape(f"{figure.title or figure.panel}: {figure.y} by {figure.x}")
    return f'<svg class="lines" role="img" aria-label="{about}" viewBox="0 0 {WIDTH} {high}">{"".join(parts)}</svg>'


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row.x) for row in rows))


def _band(rows: Sequence[Row]) -> int:
    return _ROOM + _STEP * len({row.series for row in rows})


def _across(rows: Sequence[Row], log: bool, left: float) -> Scale:
    ends = [
        end for row in rows for end in (row.low, row.high, row.value) if math.isfinite(end) and (end > 0 or not log)
    ]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    if log:
        return Scale(low / 1.3, high * 1.3, left, WIDTH - _RIGHT, True)
    low = min(low, 0.0)
    return Scale(low, high * 1.05 if high > low else low + 1.0, left, WIDTH - _RIGHT)


def _frame(figure: Figure, x: Scale, left: float, high: int, names: Sequence[str], band: int) -> str:
    bottom, parts = high - _BOTTOM, []
    for tick in x.ticks():
        at = f"{x(tick):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 15}" text-anchor="middle">{number(tick)}</text>')
    for place, name in enumerate(names):
        up, edge = _TOP + (place + 0.5) * band + 4, _TOP + place * band
        parts.append(f'<line class="grid" x1="0" x2="{WIDTH - _RIGHT}" y1="{edge}" y2="{edge}"/>')
        parts.append(f'<text x="{left - 8:.0f}" y="{up:.1f}" text-anchor="end">{escape(name)}</text>')
    parts.append(f'<text x="{left - 8:.0f}" y="{high - 6}" text-anchor="end">{escape(figure.x)}</text>')
    middle = (left + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{high - 6}" text-anchor="middle">{escape(figure.y)}</text>')
    return "".join(parts)


def _dot(row: Row, look: Look, x: Scale, up: float) -> str:
    bar = ""
    if row.high > row.low:
        bar = f'<path class="bar {look.colour}" d="M{x(row.low):.1f} {up:.1f}H{x(row.high):.1f}"/>'
    return (
        f'{bar}<circle class="{look.mark}" cx="{x(row.value):.1f}" cy="{up:.1f}" r="3.2">'
        f"<title>{escape(words_of(row))}</title></circle>"
    )
