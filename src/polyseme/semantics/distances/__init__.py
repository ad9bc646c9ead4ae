"""Semantic distances: how far apart two values are."""

from __future__ import annotations

from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.circle import CircleDistance
from polyseme.semantics.distances.lattice import LatticeDistance
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.matrix import MatrixDistance, function_distance
from polyseme.semantics.distances.registry import KINDS, Kind, distance_from, distance_from_policy
from polyseme.semantics.distances.taxonomy import load_taxonomy, taxonomy_distance, taxonomy_names
from polyseme.semantics.distances.tree import TreeDistance

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
