"""Semantic distances: how far apart two values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyseme.distances.base import Distance
from polyseme.distances.circle import CircleDistance
from polyseme.distances.declared import distance_from_policy
from polyseme.distances.lattice import LatticeDistance
from polyseme.distances.line import LineDistance
from polyseme.distances.matrix import MatrixDistance, function_distance
from polyseme.distances.taxonomies import load_taxonomy, taxonomy_distance, taxonomy_names
from polyseme.distances.tree import TreeDistance
from polyseme.errors import PolicyError, nearest

__all__ = [
    "CircleDistance",
    "Distance",
    "LatticeDistance",
    "LineDistance",
    "MatrixDistance",
    "TreeDistance",
    "distance_from",
    "distance_from_policy",
    "function_distance",
    "load_taxonomy",
    "taxonomy_distance",
    "taxonomy_names",
]


def distance_from(parameters: Mapping[str, Any], size: int) -> Distance:
    """The distance that `parameters` describe over `size` values: the inverse of `Distance.parameters`."""
    if len(parameters) != 1:
        raise PolicyError(f"the parameters of a distance have one kind, not {len(parameters)}")
    ((kind, argument),) = parameters.items()
    if kind not in _BUILDERS:
        raise PolicyError(f"unknown distance '{kind}'", nearest(str(kind), _BUILDERS))
    try:
        distance = _BUILDERS[kind](argument, size)
    except (TypeError, ValueError) as error:
        raise PolicyError(f"the parameters of this {kind} distance are damaged") from error
    if distance.size != size:
        raise PolicyError(f"this {kind} distance is over {distance.size:,} values, but the domain has {size:,}")
    return distance


_BUILDERS: Mapping[str, Callable[[Any, int], Distance]] = {
    "line": lambda argument, size: LineDistance.ranks(size) if argument == "rank" else LineDistance(argument),
    "circle": lambda argument, size: CircleDistance.ranks(size) if argument == "rank" else CircleDistance(**argument),
    "tree": lambda argument, _: TreeDistance(**argument),
    "lattice": lambda argument, _: LatticeDistance(**argument),
    "matrix": lambda argument, _: MatrixDistance(argument),
}
