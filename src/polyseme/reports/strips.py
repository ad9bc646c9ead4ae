"""A distribution for a narrow screen: a strip for each value below its name and its numbers.

Places are percentages of the width and letters have their own size, so one drawing fits every telephone. It is written
here letter by letter: a report has one for each attribute, and the chart library takes hundreds of times as long.
"""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from polyseme.kernel.arrays import Ints
from polyseme.results.drawing.bars import COLOURS, drawable
from polyseme.results.drawing.distribution import Distribution
from polyseme.results.views.formats import count

__all__ = ["strips"]

_ROW, _BAR = 36, 12
"""Height of a value with its name, and of its bar alone."""
_LETTERS = 26
"""Letters of a name for which there is room beside its numbers."""


def strips(distribution: Distribution, shown: Ints) -> Markup:
    """The values in the order of `shown`, with the marks and the colors of the wide chart."""
    end = _end(distribution, shown)
    rows = "".join(_row(distribution, index, place * _ROW, end) for place, index in enumerate(shown.tolist()))
    height = _ROW * len(shown)
    return Markup(  # noqa: S704 - labels are escaped in `_head`
        '<p class="narrow muted">In numbers of records:</p>'
        f'<svg class="chart narrow" aria-hidden="true" font-size="12" style="height:{height}px">{rows}</svg>'
    )


def _end(distribution: Distribution, shown: Ints) -> float:
    """Where the scale ends: at the largest number that is drawn."""
    columns = (distribution.estimate, distribution.high, distribution.published, distribution.original)
    numbers = [float(column[index]) for column in columns if column is not None for index in shown.tolist()]
    return max((number for number in numbers if math.isfinite(number)), default=0.0) or 1.0


def _row(distribution: Distribution, index: int, top: int, end: float) -> str:
    def at(number: float) -> str:
        return f"{100 * min(max(number, 0.0) / end, 1.0):.2f}%"

    value, low, high = (float(part[index]) for part in (distribution.estimate, distribution.low, distribution.high))
    known = math.isfinite(low) and math.isfinite(high)
    original = distribution.original
    bar = (value, COLOURS["wash"]) if original is None else (float(original[index]), COLOURS["original"])
    y, middle, blue = top + 18, top + 18 + _BAR / 2, COLOURS["estimate"]
    parts = [
        *_head(distribution, index, top, f" ({count(low)} to {count(high)})" if known else ""),
        f'<rect x="0" y="{y}" width="{at(bar[0])}" height="{_BAR}" fill="{bar[1]}"/>',
    ]
    if distribution.published is not None:
        place = at(float(distribution.published[index]))
        parts.append(f'<rect x="{place}" y="{y}" width="2.5" height="{_BAR}" fill="{COLOURS["published"]}"/>')
    if known:
        line = f'x1="{at(low)}" x2="{at(high)}" y1="{middle:g}" y2="{middle:g}"'
        parts.append(f'<line {line} stroke="{blue}" stroke-width="1.8"/>')
    return "".join([*parts, f'<circle cx="{at(value)}" cy="{middle:g}" r="3.6" fill="{blue}"/>'])


def _head(distribution: Distribution, index: int, top: int, between: str) -> tuple[str, str]:
    """The name on the left and the numbers on the right, above the bar."""
    name = str(drawable(str(distribution.labels[index])))
    short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
    told = f"{count(float(distribution.estimate[index]))}{between}"
    return (
        f'<text x="0" y="{top + 13}" fill="{COLOURS["ink"]}"><title>{escape(name)}</title>{escape(short)}</text>',
        f'<text x="100%" y="{top + 13}" text-anchor="end" fill="{COLOURS["muted"]}">{told}</text>',
    )
