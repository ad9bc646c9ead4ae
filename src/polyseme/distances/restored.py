"""Distances from their parameters as a manifest, which is not trusted, stores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from polyseme.distances.base import Distance
from polyseme.distances.circle import CircleDistance
from polyseme.distances.joint import DiscreteDistance, JointDistance
from polyseme.distances.lattice import LatticeDistance
from polyseme.distances.line import LineDistance
from polyseme.distances.matrix import MatrixDistance
from polyseme.distances.stored import stored_floats, stored_ints
from polyseme.distances.tree import TreeDistance
from polyseme.errors import PolicyError, Problem

__all__ = ["RESTORED"]


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


def _discrete(argument: Any, size: int) -> Distance:
    stored_ints([argument], "discrete", size, size + 1, 1)
    return DiscreteDistance(size)


def _joint(argument: Any, size: int) -> Distance:
    entry = _entry(argument, "joint", ("rule", "members", "sizes", "codes"))
    rows = [entry[key] for key in ("members", "sizes", "codes")]
    if not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        raise PolicyError(Problem("joint", "expected as many members as sizes and codes"))
    sizes = stored_ints(entry["sizes"], "joint.sizes", 1, 1 << 31, len(rows[0])).tolist()
    codes = [
        stored_ints(row, f"joint.codes[{place}]", 0, sizes[place], size) for place, row in enumerate(entry["codes"])
    ]
    return JointDistance(entry["rule"], [_member(given, count) for given, count in zip(entry["members"], sizes)], codes)


def _member(given: Any, size: int) -> Distance:
    """The distance of one attribute of a combination; only kinds of this package can be part of one."""
    kind = next(iter(given), "") if isinstance(given, Mapping) and len(given) == 1 else ""
    restore = {**RESTORED, "discrete": _discrete}.get(kind)
    if restore is None or kind == "joint":
        raise PolicyError(Problem("joint.members", "expected a built-in kind of distance for each member"))
    distance = restore(given[kind], size)
    if distance.size != size:
        raise PolicyError(Problem("joint.members", f"a distance over {distance.size:,} values, expected {size:,}"))
    return distance


def _entry(argument: Any, kind: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(argument, Mapping) or set(argument) != set(keys):
        what = f"the parameters of this {kind} distance are damaged: expected the keys {', '.join(keys)} and no others"
        raise PolicyError(Problem(kind, what))
    return argument


def _names(given: Any, where: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise PolicyError(Problem(where, "expected a list of texts, one for each node"))
    return given


RESTORED: Mapping[str, Callable[[Any, int], Distance]] = {
    "line": _line,
    "circle": _circle,
    "tree": _tree,
    "lattice": _lattice,
    "matrix": _matrix,
    "joint": _joint,
}
"""Each kind that a manifest may have, with what builds it for so many values."""
