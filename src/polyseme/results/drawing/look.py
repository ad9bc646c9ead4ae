"""How charts look.

Colours are the ones of a light page. An inline SVG on a page is recoloured by its style sheet, which looks them up by
exactly these values.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import altair as alt

__all__ = ["COLOURS", "LOOK", "AnyChart", "name_axis", "titled"]

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


def name_axis(upright: bool, labels: list[str], step: float) -> alt.Axis:
    tilted = upright and max(map(len, labels)) * 7 > step
    return alt.Axis(
        labelAngle=-45 if tilted else 0, labelLimit=150, labelPadding=6, labelOverlap=False, domain=False, grid=False
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
