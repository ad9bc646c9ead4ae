"""Which kind of chart a figure is: lines, or dots where names stand in no order."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.studies.reproduce.dots import draw_dots, height_of
from polyseme.studies.reproduce.lines import HEIGHT, Look, draw
from polyseme.studies.reproduce.study import Figure, Row

__all__ = ["chart", "chart_height"]


def chart(figure: Figure, rows: Sequence[Row], looks: dict[str, Look]) -> str:
    """The chart as an SVG element."""
    return draw(figure, rows, looks) if figure.joined else draw_dots(figure, rows, looks)


def chart_height(figure: Figure, rows: Sequence[Row]) -> int:
    return HEIGHT if figure.joined else height_of(rows)
