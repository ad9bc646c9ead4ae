"""Algorithm 1 of the journal paper, with its exact channel.

The true value, then `l - 1` decoys one after the other, each uniform over the values that are compatible with all
members so far and from which the set can still be completed (section 5.4; on a line with the exact greedy packing).

    K(R | v) = sum over the orders in which R without v can be drawn of the product of 1 / degree(partial set)

where `degree` is the number of candidates. The sum runs over subsets of R, not over orders: with `W(R) = 1` and
`W(S) = sum over c in R - S of W(S + c) / degree(S)` it is `K(R | v) = W({v})`, for all members at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.designs.base import SET_LIMIT, Design
from polyseme.designs.extensions import extensions_of
from polyseme.designs.feasibility import largest_l
from polyseme.designs.listing import compatible_sets, count_sets, list_sets
from polyseme.distances.structure import Floats, Ints, Structure
from polyseme.errors import ImpossibleError

__all__ = ["Sequential", "Simple", "heaviest_outside"]

_CHUNK = 1 << 15


class Sequential(Design):
    """Sets drawn member by member from the true value on; blind sets start from a uniform value."""

    def sample_blind(self, uniforms: Floats) -> Ints:
        return self.sample((uniforms[0] * self.size).astype(np.int64), uniforms[1:])

    def count(self) -> int:
        return count_sets(self.structure, self.l)

    def sets(self) -> Ints:
        return list_sets(self.structure, self.l)

    @abstractmethod
    def _likelihood(self, sets: Ints) -> Floats:
        """`K` for each member of valid sets."""

    def likelihood(self, sets: Ints) -> Floats:
        out = np.zeros(sets.shape, dtype=np.float64)
        valid = np.flatnonzero(compatible_sets(self.structure, sets))
        for start in range(0, len(valid), _CHUNK):
            rows = valid[start : start + _CHUNK]
            out[rows] = self._likelihood(sets[rows])
        return out

    def blind_likelihood(self, sets: Ints) -> Floats:
        blind: Floats = self.likelihood(sets).sum(axis=1) / self.size
        return blind

    def _joint(self) -> Floats:
        """`P(u in R | v)` for all pairs, by going through every set."""
        sets = self.sets()
        likelihood = self.likelihood(sets)
        joint = np.zeros((self.size, self.size))
        for true in range(self.l):
            for other in range(self.l):
                pair = sets[:, true] * self.size + sets[:, other]
                joint += np.bincount(pair, likelihood[:, true], self.size**2).reshape(joint.shape)
        return joint

    def conditional_inclusion(self, codes: Ints) -> Floats:
        return self._joint()[codes]

    def blind_inclusion(self) -> Floats:
        inclusion: Floats = self._joint().mean(axis=0)
        return inclusion

    def worst_posterior(self, prior: Floats, p: float) -> float:
        """Exact, by going through every set; nan when there are more than `SET_LIMIT` of them."""
        if self.count() > SET_LIMIT:
            return float("nan")
        sets = self.sets()
        likelihood = self.likelihood(sets)
        blind = (1.0 - p) * likelihood.sum(axis=1) / self.size
        inside = prior[sets] * (p * likelihood + blind[:, None])
        total = (p * prior[sets] * likelihood).sum(axis=1) + blind
        outside = blind * heaviest_outside(prior, sets)
        possible = total > 0
        return float((np.maximum(inside.max(axis=1), outside)[possible] / total[possible]).max())


def heaviest_outside(prior: Floats, sets: Ints) -> Floats:
    """For each set, the largest prior probability of a value that is not in it (0 when all values are in it)."""
    heaviest = np.argsort(-prior, kind="stable")[: sets.shape[1] + 1]
    out = np.zeros(len(sets))
    for value in heaviest[::-1]:
        out = np.where((sets == value).any(axis=1), out, prior[value])
    return out


class Simple(Sequential):
    """Algorithm 1 with the feasibility check.

    >>> from polyseme.distances import LineDistance
    >>> design = Simple(LineDistance.ranks(14).structure(6), 2)
    >>> round(design.worst_posterior(np.full(14, 1 / 14), 1.0), 3)
    0.727
    """

    name = "simple"

    def __init__(self, structure: Structure, l: int, labels: Sequence[object] | None = None) -> None:
        self.structure, self.l, self.draws = structure, l, max(l - 1, 1)
        self._extensions = extensions_of(structure, l)
        if l > 1:
            stuck = np.flatnonzero(self._extensions.degree(np.arange(self.size)[:, None]) == 0)
            if stuck.size:
                name = stuck[0] if labels is None else labels[stuck[0]]
                raise ImpossibleError(
                    f"{len(stuck)} of {self.size:,} values are in no set of {l} compatible values, the first is {name}",
                    f"the largest l for which every value has decoys is {largest_l(structure)}; or choose a smaller d",
                )

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        sets = np.empty((len(codes), self.l), dtype=np.int64)
        for start in range(0, len(codes), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            members = np.asarray(codes[chunk], dtype=np.int64)[:, None]
            for step in range(self.l - 1):
                members = self._extensions.extend(members, uniforms[step, chunk])
            sets[chunk] = members
        return sets

    def _likelihood(self, sets: Ints) -> Floats:
        full = (1 << self.l) - 1
        ways: dict[int, Floats] = {full: np.ones(len(sets))}
        for mask in range(full - 1, 0, -1):
            columns = [column for column in range(self.l) if mask >> column & 1]
            degree = self._extensions.degree(sets[:, columns])
            ways[mask] = sum((ways[mask | 1 << c] for c in range(self.l) if not mask >> c & 1), np.zeros(len(sets)))
            ways[mask] /= degree
        return np.stack([ways[1 << column] for column in range(self.l)], axis=1)

    def parameters(self) -> Mapping[str, Any]:
        return {}
