"""Distance in a semilattice: categories that overlap, nodes with several parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, nearest
from polyseme.kernel.spelling import Label, spellings, written
from polyseme.semantics.distances.base import MATRIX_LIMIT, Distance, Structure, recognize
from polyseme.semantics.taxonomies import named

__all__ = ["LatticeDistance"]

_CELLS = 20_000_000
"""Most pairs of a node and a value below it: 160 MB of numbers, chosen by judgment."""


class LatticeDistance(Distance):
    """The smallest height of a common ancestor: parents 1, grandparents 2, and so on.

    where
        height    of a node: the most steps down from it to a value of the domain

    Values without any common ancestor meet in a root that is added above everything. A value that has others below
    it counts as a leaf just below itself. On a tree this is `TreeDistance`.

    `parents[i]` are the parents of node i; `values[v]` is the node of value v; `names` label the nodes for readers.

    >>> above = {"10": ["5-15"], "15": ["5-15", "15-25"], "20": ["15-25"]}
    >>> ages = LatticeDistance.from_parents(above, ["10", "15", "20"])
    >>> ages.between(np.array([0, 1, 0]), np.array([1, 2, 2]))
    array([1., 1., 2.])
    """

    kind = "lattice"

    def __init__(
        self, parents: Sequence[Sequence[int]], values: Sequence[int], names: Sequence[str] | None = None
    ) -> None:
        self.parents = tuple(tuple(above) for above in parents)
        self.values: Ints = np.asarray(values, dtype=np.int64)
        self.names = tuple(names) if names is not None else ("",) * len(self.parents)
        if len(self.values) > MATRIX_LIMIT:
            raise ImpossibleError(
                f"a lattice is refused for {len(self.values):,} values (limit {MATRIX_LIMIT:,})",
                "use a tree, which needs no matrix",
            )
        nodes = {*range(len(self.parents))}
        if not nodes.issuperset(chain(self.values.tolist(), *self.parents)):
            raise PolicyError(f"a parent or a value of the lattice is not among its {len(nodes)} nodes")
        if len(self.names) != len(nodes):
            raise PolicyError(f"a lattice of {len(nodes)} nodes came with {len(self.names)} names")
        if len(np.unique(self.values)) != len(self.values):
            raise PolicyError("two values have the same node in the lattice", "merge them")
        self._distances = self._all_distances()

    @classmethod
    def from_parents(cls, parents: Mapping[Any, Any], values: Sequence[Label], file: str = "") -> LatticeDistance:
        """From a mapping of each node to its parents, for values in the domain's order.

        file  the file that holds the lattice, if it is not in the policy: its labels are then not shown
        """
        texts, above = [written(node) for node in parents], list(map(_labels, parents.values()))
        _refuse_repeated(texts, file)
        words = [*texts, *chain.from_iterable(above)]
        number: dict[str, int] = {}
        numbers = [number.setdefault(name, len(number)) for name in spellings(words)]
        names = _first(words, numbers)
        source = f"the lattice {file}" if file else "the lattice"
        nodes = [number.get(name) for name in spellings(values)]
        missing = [written(value) for value, node in zip(values, nodes) if node is None]
        if missing:
            what = f"{len(missing)} of {len(values)} values are not in {source}: {named(missing)}"
            raise PolicyError(what, "" if file else f"for '{missing[0]}': {nearest(missing[0], names)}")
        given = iter(numbers[len(texts) :])
        rows = [list(dict.fromkeys(islice(given, len(labels)))) for labels in above]
        rows += [[] for _ in range(len(names) - len(rows))]
        _refuse_cycle(rows, names, file)
        return cls(rows, [node for node in nodes if node is not None], names)

    @property
    def size(self) -> int:
        return len(self.values)

    def between(self, left: Ints, right: Ints) -> Floats:
        return self._distances[left, right].astype(np.float64)

    def structure(self, threshold: float) -> Structure:
        return recognize(self._distances >= threshold)

    def parameters(self) -> Mapping[str, Any]:
        return {
            "lattice": {
                "parents": [list(above) for above in self.parents],
                "names": list(self.names),
                "values": self.values.tolist(),
            }
        }

    def _all_distances(self) -> NDArray[np.int32]:
        heights, below = self._heights_and_values_below()
        matrix = np.full((self.size, self.size), max(heights, default=0) + 1, dtype=np.int32)
        # From the highest node down, so that the lowest common ancestor has the last word.
        for node in sorted(range(len(heights)), key=heights.__getitem__, reverse=True):
            matrix[np.ix_(below[node], below[node])] = heights[node]
        np.fill_diagonal(matrix, 0)
        return matrix

    def _heights_and_values_below(self) -> tuple[list[int], list[list[int]]]:
        """For every node, how high it stands and which values are under it (itself included)."""
        upwards = _refuse_cycle(self.parents, self.names)[::-1]
        # -1 marks a node with no value under it.
        heights = [-1] * len(self.parents)
        below: list[set[int]] = [set() for _ in self.parents]
        for value, node in enumerate(self.values.tolist()):
            heights[node] = 0
            below[node].add(value)
        cells = 0
        for node in upwards:
            cells += len(below[node])
            if cells > _CELLS:
                raise ImpossibleError(
                    f"a lattice of {len(self.parents):,} nodes above {self.size:,} values is too large",
                    "most of its nodes are above most of its values; leave out those that distinguish nothing",
                )
            for parent in self.parents[node] if heights[node] >= 0 else ():
                heights[parent] = max(heights[parent], heights[node] + 1)
                below[parent] |= below[node]
        return heights, [sorted(values) for values in below]


def _refuse_cycle(parents: Sequence[Sequence[int]], names: Sequence[str], file: str = "") -> list[int]:
    """The nodes in an order in which parents come first; raises where there is none."""
    try:
        return list(TopologicalSorter(dict(enumerate(parents))).static_order())
    except CycleError as error:
        around = error.args[1]
        if file:
            raise PolicyError(
                f"the lattice {file} has a circle of {len(around) - 1} nodes, each above the next"
            ) from None
        raise PolicyError(
            f"the lattice has a node that is its own ancestor: {named([names[node] for node in around])}"
        ) from None


def _labels(given: Any) -> list[str]:
    if given is None:
        return []
    return [written(label) for label in given] if isinstance(given, list | tuple) else [written(given)]


def _first(words: Sequence[str], numbers: Sequence[int]) -> list[str]:
    """The name of each node: the way it is written first."""
    found: dict[int, str] = {}
    for word, number in zip(words, numbers):
        found.setdefault(number, word)
    return list(found.values())


def _refuse_repeated(nodes: Sequence[str], file: str) -> None:
    """Raise where two nodes are one value in two ways of writing: their parents may differ."""
    same: dict[str, list[str]] = {}
    for name, node in zip(spellings(nodes), nodes):
        same.setdefault(name, []).append(node)
    repeated = [" = ".join(texts) for texts in same.values() if len(texts) > 1]
    if repeated:
        what = f"{len(repeated)} nodes are in the lattice{f' {file}' * bool(file)} more than once"
        raise PolicyError(what if file else f"{what}: {named(repeated)}", "give each node once, with all its parents")
