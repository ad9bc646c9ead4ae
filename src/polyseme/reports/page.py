"""One self-contained HTML page about a release: it opens from disk, runs no script and fetches nothing.

Charts are inline SVG, made here from Vega-Lite. Their colours follow the reader's light or dark setting through the
page's own style sheet; pointing at a mark shows its numbers, because every mark carries its description as a title.

Without the extra `charts` the page has the numbers in tables instead, and says what draws them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from polyseme.arrays import Ints
from polyseme.extras import installed, pip_line
from polyseme.reports.document import Distribution, Outcome, Page, Treatment, shown_values
from polyseme.results.guessers import Guessers
from polyseme.results.views import formats
from polyseme.results.views.tables import above_sentence

__all__ = ["is_page", "render_page"]

_GENERATOR = b'<meta name="generator" content="polyseme">'
_HEAD = 1_000
"""Bytes of a page within which it says what made it."""

_ROUNDING = 1e-9
"""What a limit may be off by when it equals the truth."""
_PANELS = 12
"""Up to so many groups get a chart each; more become one heat map."""

_GROUPS = 60
"""The most groups a heat map shows."""

_PANEL_VALUES = 16
"""The most values in the chart of a group."""


def render_page(page: Page) -> str:
    """The page as HTML text."""
    return _template().render(
        page=page,
        state=page.outcome,
        State=Outcome,
        sections=_sections(page.distributions),
        protected=[line for line in page.attributes if line.protected],
        from_data=[line for line in page.attributes if line.domain_from_data],
        questions=_questions(page),
        leaks=_leaks(page),
        learnt=" ".join(filter(None, [_learnt(page), *map(_learnt_in_group, page.learnt_in_groups)])),
        told={name: _sentence(told) for name, told in page.learners.items()},
        excesses=_excesses(page),
        infinity=math.inf,
        class_sizes=_class_sizes(page.treatment),
        drawn=installed("charts"),
        pip_line=pip_line("charts"),
    )


def is_page(file: Path) -> bool:
    """Whether a file is a page that was made here."""
    with file.open("rb") as opened:
        return _GENERATOR in opened.read(_HEAD)


def _learnt(page: Page) -> str:
    return above_sentence({name: told.to_dict() for name, told in page.learners.items()})


def _learnt_in_group(found: tuple[str, float, float]) -> str:
    name, promised, reached = found
    return (
        f"However, the promised {promised:.1%} for {name} is for somebody who knows the group of a person and nothing "
        f"else; somebody who learns from all groups how its values go with the other columns is right in about "
        f"{reached:.1%} of all cases."
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("polyseme", "reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": formats.count,
        "quantity": formats.quantity,
        "points": formats.points,
        "percent": formats.percent,
        "parameters": formats.parameters,
        "yes_no": formats.yes_no,
    }
    return environment.get_template("page.html.j2")


@dataclass(frozen=True)
class _Figure:
    """A drawing if there is one, what it shows for those who cannot see it, and its numbers."""

    svg: Markup | None
    about: str
    rows: list[dict[str, Any]]
    remarks: list[str]
    heading: str = ""


@dataclass(frozen=True)
class _Section:
    """The figures of one attribute: the whole table, then its groups, and how many of those are left out."""

    attribute: str
    original: bool
    level: str
    whole: _Figure | None
    panels: list[_Figure]
    heat: _Figure | None
    left_out: int


def _sections(distributions: Sequence[Distribution]) -> list[_Section]:
    attributes = dict.fromkeys(distribution.attribute for distribution in distributions)
    return [_section([item for item in distributions if item.attribute == name]) for name in attributes]


def _section(distributions: Sequence[Distribution]) -> _Section:
    whole = next((item for item in distributions if item.group is None), None)
    groups = [item for item in distributions if item.group is not None]
    many = len(groups) > _PANELS and installed("charts")
    return _Section(
        attribute=distributions[0].attribute,
        original=any(item.original is not None for item in distributions),
        level=f"{distributions[0].level:.0%}",
        whole=_whole(whole) if whole else None,
        panels=[] if many else _panels(groups[:_PANELS]),
        heat=_heat(groups) if many else None,
        left_out=0 if many else max(len(groups) - _PANELS, 0),
    )


def _whole(distribution: Distribution) -> _Figure:
    shown = shown_values(distribution)
    remarks = []
    if len(shown) < distribution.size:
        order = ", in the order of the domain" if distribution.ordered else ""
        remarks.append(f"The {len(shown)} largest of {distribution.size:,} values{order}.")
    remarks += _coverage(distribution)
    svg = _bars(distribution, 800)
    about = f"Distribution of {distribution.attribute}: published candidates and estimate with interval, by value"
    return _Figure(svg, about, _numbers(distribution, shown.tolist()), remarks)


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
            "published": float(distribution.published[index]),
            "estimate": float(distribution.estimate[index]),
            "low": float(distribution.low[index]),
            "high": float(distribution.high[index]),
        }
        for index in shown
    ]


def _panels(groups: Sequence[Distribution]) -> list[_Figure]:
    """A chart for each group, as shares and on one scale, so that they can be compared."""
    if not groups:
        return []
    largest = max(groups, key=lambda item: float(item.published.sum()))
    shown = shown_values(largest, _PANEL_VALUES)
    ceiling = max(_highest_share(item) for item in groups)
    figures = []
    for item in groups:
        svg = _bars(item, 370, shown=shown, shares=True, ceiling=ceiling)
        about = f"Distribution of {item.attribute} for {item.group}, as shares of the group"
        records = formats.count(float(item.published.sum()))
        remarks = [f"{records} records"]
        figures.append(_Figure(svg, about, _numbers(item, shown.tolist()), remarks, str(item.group)))
    return figures


def _highest_share(distribution: Distribution) -> float:
    columns = [distribution.published, distribution.estimate, distribution.high]
    columns += [] if distribution.original is None else [distribution.original]
    total = float(distribution.published.sum())
    finite = np.concatenate([column[np.isfinite(column)] for column in columns])
    # Tiny groups have intervals far beyond the whole group; they would flatten every other chart.
    highest = 100.0 * float(finite.max(initial=0.0)) / total if total > 0 else 0.0
    return min(5.0 * math.ceil(max(highest, 1.0) / 5.0), 100.0)


def _heat(groups: Sequence[Distribution]) -> _Figure:
    kept = groups[:_GROUPS]
    remarks = [f"The first {_GROUPS} of {len(groups):,} groups."] if len(groups) > _GROUPS else []
    shown = shown_values(kept[0])
    if len(shown) < kept[0].size:
        remarks.append(f"The {len(shown)} largest of {kept[0].size:,} values.")
    about = f"Estimated distribution of {kept[0].attribute} in {len(kept)} groups, as shares of each group"
    return _Figure(_squares(kept, 760), about, [], remarks)


def _questions(page: Page) -> list[tuple[str, list[float | None]]]:
    """Metrics as rows, questions as columns."""
    if not page.metrics:
        return []
    names = dict.fromkeys(name for metrics in page.metrics.values() for name in metrics)
    return [(name, [metrics.get(name) for metrics in page.metrics.values()]) for name in names]


def _sentence(told: Guessers) -> str:
    sentence = told.sentence()
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _leaks(page: Page) -> list[str]:
    """Where the method itself gives away more than was promised, in sentences."""
    return [
        f"The sets for {fact.attribute} have the promised form, but the way they are drawn favours some candidates: "
        f"whoever knows it guesses right with probability up to {formats.quantity(fact.worst_posterior)} instead of "
        f"{formats.quantity(fact.promised)}. The balanced mechanism does not have this weakness."
        for fact in page.facts
        if fact.exceeded
    ]


def _excesses(page: Page) -> list[str]:
    """Which attacks did better than their bound, in sentences."""
    return [
        f"The attack {item.attack}{f' on {item.attribute}' if item.attribute is not None else ''} reaches "
        f"{formats.quantity(item.success)}, and its bound is {formats.quantity(item.bound)}"
        f"{f'; it knows {item.knows}' if item.knows else ''}."
        for item in page.findings or ()
        if item.exceeded
    ]


def _bars(
    distribution: Distribution,
    width: int,
    *,
    shown: Ints | None = None,
    shares: bool = False,
    ceiling: float | None = None,
) -> Markup | None:
    if not installed("charts"):
        return None
    from polyseme.reports.charts import distribution_svg

    return _inline(distribution_svg(distribution, width, shown=shown, shares=shares, ceiling=ceiling))


def _class_sizes(treatment: Treatment | None) -> Markup | None:
    if treatment is None or treatment.sizes is None or not installed("charts"):
        return None
    from polyseme.reports.charts import chart_svg, sizes_chart

    return _inline(chart_svg(sizes_chart(treatment.sizes, treatment.unit)))


def _squares(groups: Sequence[Distribution], width: int) -> Markup:
    from polyseme.reports.charts import chart_svg, heatmap

    return _inline(chart_svg(heatmap(groups, width)))


_ROOT = re.compile(r'<svg [^>]*?width="(\d+)" height="\d+" viewBox="([^"]*)"[^>]*>')
_MARK = re.compile(r'<(path|line|rect)( aria-label="([^"]*)" role="graphics-symbol"[^>]*?)/>')


def _inline(svg: str) -> Markup:
    """A chart as part of the page: as wide as there is room, and each mark with its numbers as a title."""
    svg = _ROOT.sub(r'<svg class="chart" aria-hidden="true" viewBox="\2" style="max-width:\1px">', svg, count=1)
    # Labels inside the SVG were escaped when it was made; a title takes over the escaped text as it is.
    return Markup(_MARK.sub(r"<\1\2><title>\3</title></\1>", svg))  # noqa: S704
