"""The kinds of distances by name, of the package and of plugins, and from manifests.

A manifest is not trusted: parameters and lists of numbers are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.documents import Folder, as_folder
from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, nearest
from polyseme.kernel.plugins import Registry
from polyseme.semantics.distances.base import Distance
from polyseme.semantics.distances.circle import CircleDistance
from polyseme.semantics.distances.declaration import DECLARED, Values
from polyseme.semantics.distances.joint import DiscreteDistance, JointDistance
from polyseme.semantics.distances.lattice import LatticeDistance
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.matrix import MatrixDistance
from polyseme.semantics.distances.tree import TreeDistance

__all__ = ["KINDS", "RESTORED", "Kind", "distance_from", "distance_from_policy", "stored_floats", "stored_ints"]

_LARGEST = 1e300
"""Numbers beyond this would overflow when they are added up or squared; no manifest needs them."""


def stored_floats(given: Any, where: str, size: int | None = None) -> Floats:
    """A list of finite numbers, `size` of them if known; else a `PolicyError` with its place.

    >>> stored_floats([0, 0.5], "shares", 2)
    array([0. , 0.5])
    """
    _check_list(given, where, size, (int, float), "numbers")
    row = np.array([float(max(min(number, 1e308), -1e308)) for number in given], dtype=np.float64)
    if np.any(np.abs(row) > _LARGEST):
        raise PolicyError(Problem(where, f"numbers beyond {_LARGEST:g} cannot occur in a mechanism or a distance"))
    return row


def stored_ints(given: Any, where: str, low: int, high: int, size: int | None = None) -> Ints:
    """A list of whole numbers from `low` up to, but not including, `high`."""
    _check_list(given, where, size, (int,), "whole numbers")
    outside = sum(not low <= number < high for number in given)
    if outside:
        raise PolicyError(Problem(where, f"{outside} of {len(given):,} numbers are not between {low} and {high - 1:,}"))
    return np.array(given, dtype=np.int64)


def _check_list(given: Any, where: str, size: int | None, kinds: tuple[type, ...], what: str) -> None:
    if not isinstance(given, list | tuple) or not {type(entry) for entry in given} <= set(kinds):
        raise PolicyError(Problem(where, f"expected a list of {what}"))
    if size is not None and len(given) != size:
        raise PolicyError(Problem(where, f"expected {size:,} {what}, found {len(given):,}"))


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
    """The distance of one attribute of a combination; only this package's kinds may be used."""
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


class Declare(Protocol):
    """Builds the distance that a policy declares."""

    def __call__(self, argument: Any, values: Values, folder: Folder, /) -> Distance:
        """The distance over `values`; `argument` is the policy's text, files are in `folder`."""
        ...


class Restore(Protocol):
    """Builds the distance that a manifest describes."""

    def __call__(self, argument: Any, size: int, /) -> Distance:
        """The distance over `size` values; `argument` is what `parameters` gave, untrusted."""
        ...


@dataclass(frozen=True)
class Kind:
    """How a kind of distance is built from a policy, and from its parameters in a manifest.

    restore  None for a kind that is stored as another one, as a taxonomy is stored as a tree
    """

    declare: Declare
    restore: Restore | None


KINDS = Registry(
    "polyseme.distances", {name: Kind(declare, RESTORED.get(name)) for name, declare in DECLARED.items()}, Kind
)
"""The words a policy may use, with what builds them."""


def distance_from_policy(spec: Any, values: Values, base_folder: Folder | Path | str) -> Distance:
    """The distance that a policy declares over the domain `values`.

    `where` in its problems is relative to `spec`.
    """
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise PolicyError(
            "a distance is one word with its argument", f"for instance {{line: rank}}; the words are {', '.join(KINDS)}"
        )
    ((kind, argument),) = spec.items()
    if kind not in KINDS:
        raise PolicyError(Problem("", f"unknown distance '{kind}'", nearest(str(kind), KINDS)))
    try:
        distance = KINDS[kind].declare(argument, values, as_folder(base_folder))
        if distance.size != len(values):
            came, wanted = f"{distance.size:,}", f"{len(values):,}"
            raise PolicyError(f"it describes {came} values, but the domain has {wanted}")
    except InvalidInput as error:
        places = [".".join(filter(None, (kind, problem.where))) for problem in error.problems]
        moved = [Problem(where, problem.what, problem.hint) for where, problem in zip(places, error.problems)]
        raise type(error)(moved) from error
    return distance


def distance_from(parameters: Mapping[str, Any], size: int) -> Distance:
    """The distance of `parameters` over `size` values: the inverse of `Distance.parameters`.

    Whatever is wrong with them is a `PolicyError` whose places are relative to the parameters.
    """
    if len(parameters) != 1:
        raise PolicyError(f"the parameters of a distance have one kind, not {len(parameters)}")
    ((kind, argument),) = parameters.items()
    restore = KINDS[kind].restore if kind in KINDS else RESTORED.get(kind)
    if restore is None:
        stored = [name for name in KINDS if name in RESTORED or name not in DECLARED]
        what = f"unknown distance '{kind}': it is not built in, and no installed plugin provides it"
        raise PolicyError(what, nearest(str(kind), stored))
    distance = restore(argument, size)
    if distance.size != size:
        what = f"this {kind} distance is over {distance.size:,} values, but the domain has {size:,}"
        raise PolicyError(Problem(kind, what))
    return distance
