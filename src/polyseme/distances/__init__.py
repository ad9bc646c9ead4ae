"""Semantic distances: how far apart two values are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.distances.base import Distance
from polyseme.distances.line import LineDistance
from polyseme.errors import PolicyError, nearest

__all__ = ["Distance", "LineDistance", "distance_from"]


def distance_from(parameters: Mapping[str, Any], size: int) -> Distance:
    """The distance that `parameters` describe over `size` values: the inverse of `Distance.parameters`."""
    (kind, argument) = next(iter(parameters.items()))
    if kind == "line":
        return LineDistance.ranks(size) if argument == "rank" else LineDistance(argument)
    raise PolicyError(f"unknown distance '{kind}'", nearest(kind, ["line"]))
