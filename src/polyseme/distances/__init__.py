"""Semantic distances: how far apart two values are."""

from __future__ import annotations

from polyseme.distances.base import Distance
from polyseme.distances.circle import CircleDistance
from polyseme.distances.lattice import LatticeDistance
from polyseme.distances.line import LineDistance
from polyseme.distances.matrix import MatrixDistance, function_distance
from polyseme.distances.registry import KINDS, Kind, distance_from, distance_from_policy
from polyseme.distances.taxonomies import load_taxonomy, taxonomy_distance, taxonomy_names
from polyseme.distances.tree import TreeDistance

__all__ = [
    "KINDS",
    "CircleDistance",
    "Distance",
    "Kind",
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
