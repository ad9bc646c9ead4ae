"""How charts look.

Colors are the ones of a light page. An inline SVG on a page is recolored by its style sheet, which looks them up by
exactly these values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import altair as alt

__all__ = ["COLOURS", "LOOK", "SHORT", "AnyChart", "name_axis", "names_axis", "tilted", "titled"]

AnyChart: TypeAlias = (
    alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart
)

COLOURS: Final = {
    "ink": "#1b222c",
    "muted": "#5b6572",
    "rule": "#e3e6ea",
    "original": "#ccd2da",
    "published": "#b8560f",
    "estimate": "#14609e",
    "wash": "#d6e5f3",
}
_FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, system-ui, sans-serif"


_TEXT: Final[dict[str, Any]] = {
    "labelColor": COLOURS["muted"],
    "titleColor": COLOURS["muted"],
    "labelFontSize": 11,
    "titleFontSize": 11,
    "titleFontWeight": "normal",
}
LOOK: Final = alt.Config(
    font=_FONT,
    background="transparent",
    padding=4,
    view=alt.ViewConfig(stroke=None),
    axis=alt.AxisConfig(**_TEXT, gridColor=COLOURS["rule"], domainColor=COLOURS["muted"], ticks=False),
    legend=alt.LegendConfig(**_TEXT, symbolStrokeWidth=0),
    title=alt.TitleConfig(color=COLOURS["ink"], fontSize=12, fontWeight="normal", anchor="start"),
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
        color=COLOURS["ink"],
        fontSize=14,
        fontWeight="bold",
        subtitleColor=COLOURS["muted"],
        subtitleFontSize=11,
        offset=12,
    )
