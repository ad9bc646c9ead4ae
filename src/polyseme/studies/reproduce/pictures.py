"""A chart as a picture of its own, with a title and a legend: for a README, or a talk.

It follows the reader's light or dark setting, as pages do, on a ground of its own: it can be read on any page, also on
one that does not follow that setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from polyseme.studies.reproduce.charts import chart, chart_height
from polyseme.studies.reproduce.lines import LINE_STYLE, WIDTH, Look, swatch
from polyseme.studies.reproduce.study import Figure, Row

__all__ = ["picture"]

_LETTER, _SWATCH, _GAP, _LINE, _EDGE = 5.6, 40, 14, 18, 8
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
        wide = _SWATCH + _LETTER * len(name) + _GAP
        if across + wide > WIDTH and across > 4.0:
            across, line = 4.0, line + 1
        up = 38 + line * _LINE
        drawn = swatch(looks[name]).replace("<svg ", f'<svg x="{across:.0f}" y="{up}" width="34" height="10" ', 1)
        parts.append(f'{drawn}<text x="{across + _SWATCH:.0f}" y="{up + 9}">{escape(name)}</text>')
        across += wide
    return "".join(parts), line + 1
