"""Linear maps along one axis of a count tensor: from containment counts to estimated counts.

A table of several attributes is never unfolded: each attribute has its own small map, applied along its own axis, and
the map of the table is the product of them.

where
    Q[v, u]   P(u in R | v), the inclusion matrix of the mechanism
    A         the map of the estimator, `x = A w`; for the unbiased one `A Q^T = 1`
    y(R)      `A 1_R`, what one report adds to the estimate
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.semantics.distances.base import Clusters

__all__ = [
    "AxisMap",
    "ClusterMap",
    "DenseMap",
    "ScaledMap",
    "along",
    "exact_map",
    "inverted",
    "is_plain",
]

SINGULAR = 1e11
"""Condition number beyond which values count as not identifiable: with it, rounding of 1e-16 becomes an error of 1e-5,
which is still below what any release can show. Chosen by judgment."""
_NULL_SPACE = 1e-9
"""Singular values below this share of the largest are zero in a least-norm inverse; a judgment, as for `SINGULAR`."""
_ROUNDING = 1e-12
"""Relative error that inclusion probabilities have from being summed. Measured on values that are alike, over every
design of 2 to 30 values with l up to 5 and balanced ones of up to 70,000 with l up to 30: at most 2.9e-14."""
_DECOY_ROUNDING = 1e-10
"""The same for conditional ones, which are ratios of sums: at most 1.2e-11 there, in sharp designs."""
_NO_DECOYS = 1e-14
"""The error itself, for sets of one value: their decoys have probability 0, which has no relative error. It was 0."""
_AT_ONCE = 20_000_000
"""Inclusion probabilities in memory at a time (160 MB)."""
_SMALL = 64
"""Values up to which a plain matrix is used even where there are clusters; a judgment, for speed only."""


def along(matrix: Floats, tensor: Floats, axis: int) -> Floats:
    """`matrix` applied to `tensor` along an axis."""
    return np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)


class AxisMap(ABC):
    """`A`, without necessarily being a matrix."""

    identifiable: bool = True

    @abstractmethod
    def apply(self, tensor: Floats, axis: int) -> Floats:
        """`A` along an axis."""

    @abstractmethod
    def transpose(self, tensor: Floats, axis: int) -> Floats:
        """`A^T` along an axis."""

    @abstractmethod
    def contributions(self, sets: Ints) -> Floats:
        """`y(R)` for each set: (n, F)."""


@dataclass(frozen=True, eq=False)
class ScaledMap(AxisMap):
    """`A w = scale * w + shift * sum(w)`: all values are treated alike."""

    scale: float
    shift: float
    size: int
    identifiable: bool = True

    def apply(self, tensor: Floats, axis: int) -> Floats:
        sums: Floats = tensor.sum(axis=axis, keepdims=True)
        return self.scale * tensor + self.shift * sums

    transpose = apply

    def contributions(self, sets: Ints) -> Floats:
        out = np.full((len(sets), self.size), self.shift * sets.shape[1])
        np.put_along_axis(out, sets, self.shift * sets.shape[1] + self.scale, axis=1)
        return out

    def squares(self, l: int) -> ScaledMap:
        """The map that turns containment counts into sums of squared contributions.

        A contribution has only two values, so its square is linear in containment too.
        """
        low, high = (self.shift * l) ** 2, (self.shift * l + self.scale) ** 2
        return ScaledMap(high - low, low / l, self.size)


@dataclass(frozen=True, eq=False)
class DenseMap(AxisMap):
    """`A` as a matrix."""

    matrix: Floats
    identifiable: bool = True

    def apply(self, tensor: Floats, axis: int) -> Floats:
        return along(self.matrix, tensor, axis)

    def transpose(self, tensor: Floats, axis: int) -> Floats:
        return along(self.matrix.T, tensor, axis)

    def contributions(self, sets: Ints) -> Floats:
        columns = np.ascontiguousarray(self.matrix.T)
        out = columns[sets[:, 0]]
        for place in range(1, sets.shape[1]):
            out += columns[sets[:, place]]
        return out


@dataclass(frozen=True, eq=False)
class ClusterMap(AxisMap):
    """The exact map when incompatibility is an equivalence: a system of clusters, not values.

    Within a cluster decoys fall on the values in fixed shares, for every true value, so with `W`, `X` counts by cluster

        w_u = p * (x_u + share_u * (W_c - X_c)) + (1 - p) * n * rho_u,     W = G^T X   at p = 1

    where
        share_u  part of the decoys of cluster c that fall on u
        G[c, e]  expected members of cluster e in the set of a true value of cluster c (at p = 1)
        rho_u    blind inclusion, n the number of records: sum(w) / l
    """

    labels: Ints
    share: Floats
    solve: Floats
    blind: Floats
    p: float
    l: int
    identifiable: bool = True

    @classmethod
    def of(cls, mechanism: Mechanism, labels: Ints) -> ClusterMap:
        """The map of a mechanism over clusters."""
        clusters = int(labels.max()) + 1
        first = np.unique(labels, return_index=True)[1].astype(np.int64)
        expected = np.empty((clusters, clusters))
        share, blind = np.zeros(len(labels)), mechanism.design.blind_inclusion()
        unknown = np.flatnonzero(blind > 0.0)
        step = max(1, _AT_ONCE // len(labels))
        for start in range(0, clusters, step):
            rows = np.arange(start, min(start + step, clusters))
            given = mechanism.design.conditional_inclusion(first[rows])
            for row, inclusion in zip(rows, given):
                sums = np.bincount(labels, weights=inclusion, minlength=clusters)
                expected[row] = sums
                if unknown.size:
                    seen = (labels[unknown] != row) & (inclusion[unknown] > 0.0)
                    found, unknown = unknown[seen], unknown[~seen]
                    share[found] = inclusion[found] / sums[labels[found]]
        inverse, identifiable = inverted(expected.T)
        return cls(labels, share, inverse, blind, mechanism.p, mechanism.l, identifiable and mechanism.p > 0)

    def _sum(self, values: Floats) -> Floats:
        # Clusters of the last axis; bincount over rows keeps it linear in the number of values.
        rows = len(values)
        clusters = len(self.solve)
        flat = (np.arange(rows)[:, None] * clusters + self.labels).ravel()
        sums = np.bincount(flat, weights=values.ravel(), minlength=rows * clusters)
        return np.asarray(sums, dtype=np.float64).reshape(rows, clusters)

    def _rows(self, tensor: Floats, axis: int) -> tuple[Floats, tuple[int, ...]]:
        moved = np.moveaxis(tensor, axis, -1)
        return moved.reshape(-1, moved.shape[-1]), moved.shape

    def apply(self, tensor: Floats, axis: int) -> Floats:
        rows, shape = self._rows(tensor, axis)
        records = rows.sum(axis=1, keepdims=True) / self.l
        net = (rows - (1.0 - self.p) * records * self.blind) / self.p
        clusters = self._sum(net)
        decoys = clusters - clusters @ self.solve.T
        return np.moveaxis((net - self.share * decoys[:, self.labels]).reshape(shape), -1, axis)

    def transpose(self, tensor: Floats, axis: int) -> Floats:
        rows, shape = self._rows(tensor, axis)
        shared = self._sum(rows * self.share)
        net = rows - (shared - shared @ self.solve)[:, self.labels]
        constant = (1.0 - self.p) / self.l * (net @ self.blind)
        return np.moveaxis(((net - constant[:, None]) / self.p).reshape(shape), -1, axis)

    def contributions(self, sets: Ints) -> Floats:
        indicator = np.zeros((len(sets), len(self.labels)))
        np.put_along_axis(indicator, sets, 1.0, axis=1)
        return self.apply(indicator, 1)

    def squares(self, sets: Ints, counts: Ints) -> Floats:
        """Sum of squared contributions of reports, without forming them.

        A contribution is `y_u = [u in R] / p - k_u - share_u z_c` with `k_u = (1-p) rho_u / p` and `z` one number for
        each cluster c of u, so its square needs sums over the clusters of each report only.
        """
        size, clusters, records = len(self.labels), len(self.solve), float(counts.sum())
        weight = np.repeat(counts.astype(np.float64)[:, None], sets.shape[1], axis=1)
        blind = (1.0 - self.p) / self.p * self.blind
        constant = np.bincount(self.labels, weights=blind, minlength=clusters)
        # z = T h, with h the members of each cluster over p, less the blind part.
        turn = np.eye(clusters) - self.solve
        held, offset = self.labels[sets], turn @ constant
        sums = np.bincount(held.ravel(), weights=weight.ravel(), minlength=clusters) / self.p
        pairs = np.zeros((clusters, clusters))
        z = -offset[held]
        for place in range(sets.shape[1]):
            z += turn[held, held[:, [place]]] / self.p
            flat = (held * clusters + held[:, [place]]).ravel()
            pairs += np.bincount(flat, weights=weight.ravel(), minlength=clusters**2).reshape(clusters, clusters)
        pairs = pairs / self.p**2 - np.outer(sums, constant) - np.outer(constant, sums)
        pairs += records * np.outer(constant, constant)
        first, second = turn @ sums - records * offset, ((turn @ pairs) * turn).sum(axis=1)
        added = weight * (1.0 / self.p**2 - 2.0 / self.p * (blind[sets] + self.share[sets] * z))
        out = np.bincount(sets.ravel(), weights=added.ravel(), minlength=size) + records * blind**2
        out = out + 2.0 * blind * self.share * first[self.labels] + self.share**2 * second[self.labels]
        return np.asarray(out, dtype=np.float64)


def inverted(matrix: Floats) -> tuple[Floats, bool]:
    """The inverse, or the least-norm one when values cannot be distinguished; and whether so."""
    try:
        inverse: Floats = np.linalg.inv(matrix).astype(np.float64, copy=False)
        condition = np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1)
        if condition < SINGULAR:
            return inverse, True
    except np.linalg.LinAlgError:
        pass
    return np.linalg.pinv(matrix, rcond=_NULL_SPACE).astype(np.float64, copy=False), False


def is_plain(mechanism: Mechanism) -> bool:
    """Whether all values are alike: everything is compatible and equally likely to be a decoy."""
    structure = mechanism.design.structure
    if not isinstance(structure, Clusters) or structure.count != structure.size or structure.size < 2:
        return False
    inclusion = mechanism.design.blind_inclusion()
    given = mechanism.design.conditional_inclusion(np.array([0, structure.size - 1]))
    decoy = (mechanism.l - 1) / (structure.size - 1)
    return bool(np.allclose(inclusion, mechanism.l / structure.size, rtol=_ROUNDING, atol=0.0)) and bool(
        np.allclose(np.sort(given, axis=1)[:, :-1], decoy, rtol=_DECOY_ROUNDING, atol=_NO_DECOYS)
    )


def exact_map(mechanism: Mechanism) -> AxisMap:
    """`A = (Q^T)^-1`, in the cheapest form the structure allows."""
    structure, size = mechanism.design.structure, mechanism.size
    if is_plain(mechanism):
        blind = (1.0 - mechanism.p) * mechanism.l / size
        inside, outside = mechanism.p + blind, mechanism.p * (mechanism.l - 1) / (size - 1) + blind
        if inside - outside < _ROUNDING:
            return ScaledMap(0.0, 1.0 / (mechanism.l * size), size, identifiable=False)
        return ScaledMap(1.0 / (inside - outside), -outside / (mechanism.l * (inside - outside)), size)
    if isinstance(structure, Clusters) and size > _SMALL and structure.count < size and mechanism.p > 0.0:
        return ClusterMap.of(mechanism, structure.labels)
    return DenseMap(*inverted(mechanism.inclusion_matrix().T))
