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
from polyseme.distances.stored import stored_floats, stored_ints
from polyseme.distances.taxonomies import load_taxonomy, taxonomy_distance, taxonomy_names
from polyseme.distances.tree import TreeDistance
from polyseme.errors import PolicyError, Problem, nearest

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
    """The distance that `parameters` describe over `size` values: the inverse of `Distance.parameters`.

    Whatever is wrong with them is a `PolicyError` whose places are relative to the parameters.
    """
    if len(parameters) != 1:
        raise PolicyError(f"the parameters of a distance have one kind, not {len(parameters)}")
    ((kind, argument),) = parameters.items()
    if kind not in _BUILDERS:
        raise PolicyError(f"unknown distance '{kind}'", nearest(str(kind), _BUILDERS))
    distance = _BUILDERS[kind](argument, size)
    if distance.size != size:
        what = f"this {kind} distance is over {distance.size:,} values, but the domain has {size:,}"
        raise PolicyError(Problem(kind, what))
    return distance


def _line(argument: Any, size: int) -> Distance:
    return LineDistance.ranks(size) if argument == "rank" else LineDistance(stored_floats(argument, "line"))


def _circle(argument: Any, size: int) -> Distance:
    if argument == "rank":
        return CircleDistance.ranks(size)
    entry = _entry(argument, "circle", ("length", "positions"))
    length = stored_floats([entry["length"]], "circle.length")
    return CircleDistance(stored_floats(entry["positions"], "circle.positions"), float(length[0]))


def _tree(argument: Any, _: int) -> Distance:
    entry = _entry(argument, "tree", ("measure", "parents", "names", "values"))
    names = _names(entry["names"], "tree.names")
    parents = stored_ints(entry["parents"], "tree.parents", -1, len(names), len(names))
    values = stored_ints(entry["values"], "tree.values", 0, len(names))
    return TreeDistance(parents, values, names, entry["measure"])


def _lattice(argument: Any, _: int) -> Distance:
    entry = _entry(argument, "lattice", ("parents", "names", "values"))
    names = _names(entry["names"], "lattice.names")
    if not isinstance(entry["parents"], list) or len(entry["parents"]) != len(names):
        raise PolicyError(Problem("lattice.parents", f"expected {len(names):,} lists, one for each node"))
    parents = [
        stored_ints(above, f"lattice.parents[{node}]", 0, len(names)).tolist()
        for node, above in enumerate(entry["parents"])
    ]
    return LatticeDistance(parents, stored_ints(entry["values"], "lattice.values", 0, len(names)).tolist(), names)


def _matrix(argument: Any, _: int) -> Distance:
    if not isinstance(argument, list):
        raise PolicyError(Problem("matrix", "expected a list of rows, one for each value"))
    return MatrixDistance([stored_floats(row, f"matrix[{number}]").tolist() for number, row in enumerate(argument)])


def _entry(argument: Any, kind: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(argument, Mapping) or set(argument) != set(keys):
        what = f"the parameters of this {kind} distance are damaged: expected the keys {', '.join(keys)} and no others"
        raise PolicyError(Problem(kind, what))
    return argument


def _names(given: Any, where: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise PolicyError(Problem(where, "expected a list of texts, one for each node"))
    return given


_BUILDERS: Mapping[str, Callable[[Any, int], Distance]] = {
    "line": _line,
    "circle": _circle,
    "tree": _tree,
    "lattice": _lattice,
    "matrix": _matrix,
}
