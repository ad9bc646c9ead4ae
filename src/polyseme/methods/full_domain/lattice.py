"""The lattice of levels: one axis a quasi-identifier, one node a choice of levels.

Sets of nodes are arrays of booleans in the shape of the lattice, what lies below or above a node is a slice of them. A
lattice of more nodes than can be kept is *thinned*: some levels between the first and the last are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyseme.arrays import Bools, Floats, Ints
from polyseme.methods.microdata import Ladder

__all__ = ["Lattice", "Node", "Singles", "box", "counts_above", "counts_below", "outer_sum"]

Node: TypeAlias = tuple[int, ...]
"""A place on each axis."""
Singles: TypeAlias = NDArray[np.float32]
_Real = TypeVar("_Real", np.float32, np.float64)

_BUNDLE = 64
"""About how many nodes the axes have that are summed in one product."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The nodes that are looked at.

    axes   for each ladder the levels that are looked at, the first and the last among them
    whole  whether no level is left out
    """

    axes: tuple[Ints, ...]
    whole: bool = True

    @classmethod
    def of(cls, ladders: Sequence[Ladder], most: int) -> Lattice:
        """All nodes, or at most so many."""
        lengths = [ladder.height + 1 for ladder in ladders]
        full = list(lengths)
        while math.prod(lengths) > most and max(lengths) > 2:
            longest = int(np.argmax(lengths))
            lengths[longest] -= 1
        axes = [np.unique(np.linspace(0, n - 1, m).round().astype(np.int64)) for n, m in zip(full, lengths)]
        return cls(tuple(axes), lengths == full)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.axes))

    @property
    def top(self) -> Node:
        return tuple(length - 1 for length in self.shape)

    def levels(self, node: Node) -> tuple[int, ...]:
        return tuple(int(axis[place]) for axis, place in zip(self.axes, node, strict=True))

    def covering(self, node: Node) -> tuple[slice, ...]:
        """The nodes whose cell lies above a node as a whole.

        The cell of a node holds the levels left out just below it, so that every choice of levels is in one cell. On an
        axis without gaps that is everything from the node on, above a gap everything beyond it.
        """
        return tuple(
            slice(place if place == 0 or axis[place] == axis[place - 1] + 1 else place + 1, None)
            for axis, place in zip(self.axes, node, strict=True)
        )

    def lowest(self, costs: Sequence[Floats]) -> Floats:
        """The least sum of costs in the cell of each node, for costs that rise with each level."""
        first = [np.append(0, axis[:-1] + 1) for axis in self.axes]
        return outer_sum([cost[levels] for cost, levels in zip(costs, first, strict=True)])


def outer_sum(parts: Sequence[NDArray[_Real]]) -> NDArray[_Real]:
    """The sum of one number of each part, for all choices: one axis a part.

    >>> outer_sum([np.array([0.0, 1.0]), np.array([5.0, 7.0, 8.0])])
    array([[5., 7., 8.],
           [6., 8., 9.]])
    """
    total = np.zeros((), dtype=parts[0].dtype if parts else np.float64)
    for part in parts:
        total = np.asarray(np.add.outer(total, part))
    return total


def counts_below(nodes: Bools) -> Singles:
    """How many of the nodes lie below each node, itself included.

    Neighboring axes are taken together, and summed by a product with the matrix that says what is below what: axes are
    so short that going along them one by one takes longer.
    """
    counts = nodes.astype(np.float32)
    after = nodes.size
    for lengths in _bundles(nodes.shape):
        below = _below(lengths)
        after //= len(below)
        parts = counts.reshape(-1, len(below), after)
        counts = parts[:, :, 0] @ below.T if after == 1 else np.matmul(below, parts)
    return counts.reshape(nodes.shape)


def counts_above(nodes: Bools) -> Singles:
    """How many of the nodes lie above each node, itself included."""
    turn = (slice(None, None, -1),) * nodes.ndim
    return counts_below(nodes[turn])[turn]


def _bundles(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Neighboring axes in as few parts as are quick to sum, about equally large."""
    size = math.prod(shape)
    parts = max(1, math.ceil(math.log(max(size, 2)) / math.log(_BUNDLE)))
    bundles: list[tuple[int, ...]] = []
    for length in shape:
        if bundles and math.prod(bundles[-1]) < size ** (1.0 / parts) - 0.5:
            bundles[-1] += (length,)
        else:
            bundles.append((length,))
    return bundles


@lru_cache(maxsize=4096)
def _below(lengths: tuple[int, ...]) -> Singles:
    """1 where the second node is below the first."""
    product = np.ones((1, 1), dtype=np.float32)
    for length in lengths:
        product = np.kron(product, np.tri(length, dtype=np.float32))
    return product


def box(nodes: Bools) -> tuple[slice, ...]:
    """The smallest box that holds all of the nodes, of which there is at least one."""
    sides = []
    for axis in range(nodes.ndim):
        line = np.flatnonzero(nodes.any(axis=tuple(other for other in range(nodes.ndim) if other != axis)))
        sides.append(slice(int(line[0]), int(line[-1]) + 1))
    return tuple(sides)
