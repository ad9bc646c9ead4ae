"""Charts as SVG, made without any network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import vl_convert

from polyseme.results.drawing.look import AnyChart

__all__ = ["chart_svg", "drawable"]

_UNDRAWABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML has no way to write: a picture with such a letter would end the process."""


def drawable(part: Any) -> Any:
    """A part of a chart in which every name and label can be drawn; different ones stay different."""
    if isinstance(part, str):
        return _UNDRAWABLE.sub(lambda found: f"‹{ord(found[0]):02x}›", part)
    if isinstance(part, Mapping):
        return {drawable(key): drawable(value) for key, value in part.items()}
    return [drawable(item) for item in part] if isinstance(part, list) else part


def chart_svg(chart: AnyChart) -> str:
    """The chart as SVG text."""
    svg: str = vl_convert.vegalite_to_svg(drawable(chart.to_dict()), allowed_base_urls=[])
    return svg
