"""The drawings of a page, each with its numbers; some are drawn differently on a telephone.

On a narrow screen a distribution has a strip for each value, below its name and its numbers. Places are percentages of
the width and letters have their own size, so one drawing fits every telephone. It is written here letter by letter: a
report has one for each attribute, and the chart library takes hundreds of times as long.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from polyseme.kernel.arrays import Ints
from polyseme.kernel.plugins import installed
from polyseme.kernel.work import tracked
from polyseme.reports.contents import TOP, Treatment, shown_values
from polyseme.results.drawing.distribution import COLORS, Distribution, drawable, highest_share
from polyseme.results.views import formats
from polyseme.results.views.formats import count

__all__ = ["NARROW", "Figure", "Section", "sections_of", "sizes_figure", "strips"]

_ROUNDING = 1e-9
"""What a limit may be off by when it equals the truth."""
_PANELS = 12
"""Up to so many groups get a chart each; more become one heat map."""

_GROUPS = 60
"""The most groups a heat map shows."""

_PANEL_VALUES = 16
"""The most values in the chart of a group."""


NARROW = 360
"""Width of a chart for a telephone."""

_NARROW_VALUES = 8
"""The most values in a heat map for a telephone."""


@dataclass(frozen=True)
class Figure:
    """A drawing if there is one, what it shows for those who cannot see it, and its numbers.

    narrow  the drawing for a telephone, where that is another
    """

    svg: Markup | None
    about: str
    rows: list[dict[str, Any]]
    remarks: list[str]
    heading: str = ""
    narrow: Markup | None = None


@dataclass(frozen=True)
class Section:
    """The figures of one attribute: the whole table, its groups, and how many are left out."""

    attribute: str
    original: bool
    level: str
    whole: Figure | None
    panels: list[Figure]
    heat: Figure | None
    left_out: int


def sections_of(distributions: Sequence[Distribution]) -> list[Section]:
    names = list(dict.fromkeys(distribution.attribute for distribution in distributions))
    attributes = tracked(names, "page", "Drawing charts")
    return [_section([item for item in distributions if item.attribute == name]) for name in attributes]


def _section(distributions: Sequence[Distribution]) -> Section:
    whole = next((item for item in distributions if item.group is None), None)
    groups = [item for item in distributions if item.group is not None]
    many = len(groups) > _PANELS and installed("charts")
    return Section(
        attribute=distributions[0].attribute,
        original=any(item.original is not None for item in distributions),
        level=f"{distributions[0].level:.0%}",
        whole=_whole(whole) if whole else None,
        panels=[] if many else _panels(groups[:_PANELS]),
        heat=_heat(groups) if many else None,
        left_out=0 if many else max(len(groups) - _PANELS, 0),
    )


def _whole(distribution: Distribution) -> Figure:
    shown = shown_values(distribution)
    remarks = []
    if len(shown) < distribution.size:
        order = ", in the order of the domain" if distribution.ordered else ""
        remarks.append(f"The {len(shown)} largest of {distribution.size:,} values{order}.")
    remarks += _coverage(distribution)
    svg = _bars(distribution, 800, kind="wide")
    narrow = None if svg is None else strips(distribution, shown)
    about = f"Distribution of {distribution.attribute}: published candidates and estimate with interval, by value"
    return Figure(svg, about, _numbers(distribution, shown.tolist()), remarks, narrow=narrow)


def _coverage(distribution: Distribution) -> list[str]:
    """How often the truth lies in its interval, when both are known."""
    known = np.isfinite(distribution.low) & np.isfinite(distribution.high)
    if distribution.original is None or not known.any():
        return []
    low, high = distribution.low - _ROUNDING, distribution.high + _ROUNDING
    inside = (low <= distribution.original) & (distribution.original <= high)
    return [
        f"{int((inside & known).sum()):,} of {int(known.sum()):,} true numbers lie within their "
        f"{distribution.level:.0%} interval."
    ]


def _numbers(distribution: Distribution, shown: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "label": str(distribution.labels[index]),
            "original": None if distribution.original is None else float(distribution.original[index]),
            "published": np.nan if distribution.published is None else float(distribution.published[index]),
            "estimate": float(distribution.estimate[index]),
            "low": float(distribution.low[index]),
            "high": float(distribution.high[index]),
        }
        for index in shown
    ]


def _panels(groups: Sequence[Distribution]) -> list[Figure]:
    """A chart for each group, as shares and on one scale, so that they can be compared."""
    if not groups:
        return []
    largest = max(groups, key=lambda item: item.total)
    shown = shown_values(largest, _PANEL_VALUES)
    ceiling = max(highest_share(item) for item in groups)
    figures = []
    for item in groups:
        svg = _bars(item, 370, shown=shown, shares=True, ceiling=ceiling)
        about = f"Distribution of {item.attribute} for {item.group}, as shares of the group"
        records = formats.count(item.total)
        remarks = [f"{records} records"]
        figures.append(Figure(svg, about, _numbers(item, shown.tolist()), remarks, str(item.group)))
    return figures


def _heat(groups: Sequence[Distribution]) -> Figure:
    kept = groups[:_GROUPS]
    remarks = [f"The first {_GROUPS} of {len(groups):,} groups."] if len(groups) > _GROUPS else []
    shown = shown_values(kept[0])
    if len(shown) < kept[0].size:
        remarks.append(f"The {len(shown)} largest of {kept[0].size:,} values.")
    about = f"Estimated distribution of {kept[0].attribute} in {len(kept)} groups, as shares of each group"
    narrow = _squares(kept, NARROW - 130, "narrow", _NARROW_VALUES)
    if len(shown) > _NARROW_VALUES:
        narrow += Markup('<p class="narrow muted">Here the {} largest values.</p>').format(_NARROW_VALUES)
    return Figure(_squares(kept, 760, "wide"), about, [], remarks, narrow=narrow)


def _bars(
    distribution: Distribution,
    width: int,
    *,
    shown: Ints | None = None,
    shares: bool = False,
    ceiling: float | None = None,
    kind: str = "",
) -> Markup | None:
    if not installed("charts"):
        return None
    from polyseme.results.drawing.bars import distribution_svg

    return _inline(distribution_svg(distribution, width, shown=shown, shares=shares, ceiling=ceiling), kind)


def sizes_figure(treatment: Treatment | None, width: int, kind: str) -> Markup | None:
    if treatment is None or treatment.sizes is None or not installed("charts"):
        return None
    from polyseme.results.drawing.bars import chart_svg
    from polyseme.results.drawing.charts import sizes_chart

    return _inline(chart_svg(sizes_chart(treatment.sizes, treatment.unit, width)), kind)


def _squares(groups: Sequence[Distribution], width: int, kind: str, top: int = TOP) -> Markup:
    from polyseme.results.drawing.bars import chart_svg, heatmap

    return _inline(chart_svg(heatmap(groups, width, top)), kind)


_ROOT = re.compile(r'<svg [^>]*?width="(\d+)" height="\d+" viewBox="([^"]*)"[^>]*>')
_MARK = re.compile(r'<(path|line|rect)( aria-label="([^"]*)" role="graphics-symbol"[^>]*?)/>')


def _inline(svg: str, kind: str = "") -> Markup:
    """A chart for the page: as wide as its column, each mark with its numbers as a title.

    kind  "wide" or "narrow" where there is one of each
    """
    root = rf'<svg class="{f"chart {kind}".rstrip()}" aria-hidden="true" viewBox="\2" style="max-width:\1px">'
    svg = _ROOT.sub(root, svg, count=1)
    # Labels inside the SVG were escaped when it was made; a title takes over the escaped text as it is.
    return Markup(_MARK.sub(r"<\1\2><title>\3</title></\1>", svg))  # noqa: S704


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
    bar = (value, COLORS["wash"]) if original is None else (float(original[index]), COLORS["original"])
    y, middle, blue = top + 18, top + 18 + _BAR / 2, COLORS["estimate"]
    parts = [
        *_head(distribution, index, top, f" ({count(low)} to {count(high)})" if known else ""),
        f'<rect x="0" y="{y}" width="{at(bar[0])}" height="{_BAR}" fill="{bar[1]}"/>',
    ]
    if distribution.published is not None:
        place = at(float(distribution.published[index]))
        parts.append(f'<rect x="{place}" y="{y}" width="2.5" height="{_BAR}" fill="{COLORS["published"]}"/>')
    if known:
        line = f'x1="{at(low)}" x2="{at(high)}" y1="{middle:g}" y2="{middle:g}"'
        parts.append(f'<line {line} stroke="{blue}" stroke-width="1.8"/>')
    return "".join([*parts, f'<circle cx="{at(value)}" cy="{middle:g}" r="3.6" fill="{blue}"/>'])


def _head(distribution: Distribution, index: int, top: int, between: str) -> tuple[str, str]:
    """The name on the left and the numbers on the right, above the bar."""
    name = str(drawable(str(distribution.labels[index])))
    short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
    number = f"{count(float(distribution.estimate[index]))}{between}"
    return (
        f'<text x="0" y="{top + 13}" fill="{COLORS["ink"]}"><title>{escape(name)}</title>{escape(short)}</text>',
        f'<text x="100%" y="{top + 13}" text-anchor="end" fill="{COLORS["muted"]}">{number}</text>',
    )
