"""The likelihood of a table of true values, given the reports of one cell.

    log L(x) = sum_i c_i log f_i,    f_i = sum_v A[i, v] x_v,    A[i, v] = prod_j P(R_ij | v_j)

where
    x     the table, flattened: expected records for each combination v = (v_1, .., v_q)
    i     a distinct combination of published sets, reported by c_i records
    R_ij  its set for attribute j

It is concave. A row of A has `l_1 * .. * l_q` entries when every set holds its true value. With a truth probability
below one each value outside a set has the same small weight, so the axis gets one more place, the margin of x over it:
a row then has `(l_j + 1)` entries along that axis, never F_j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.axes import along
from polyseme.estimators.counts import shape_of
from polyseme.mechanism import Mechanism

__all__ = ["ContainmentLikelihood", "Likelihood", "SetLikelihood"]

_PAIRS = 4_000_000


class Likelihood(ABC):
    """A concave log-likelihood `sum_i c_i log (A x)_i`."""

    counts: Floats
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many cells the table has."""
        return int(np.prod(self.shape))

    @property
    def records(self) -> float:
        """The sum of the counts."""
        return float(self.counts.sum())

    @abstractmethod
    def product(self, x: Floats) -> Floats:
        """`A x`."""

    @abstractmethod
    def pull(self, rows: Floats) -> Floats:
        """`A^T rows`."""

    @abstractmethod
    def information(self, rows: Floats) -> Floats:
        """`A^T diag(rows) A`."""

    def value(self, x: Floats) -> float:
        """The log-likelihood of the proportions `x`."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.product(x))
        return float(self.counts[self.counts > 0] @ logs[self.counts > 0])


@dataclass(frozen=True, eq=False)
class SetLikelihood(Likelihood):
    """The likelihood of paired sets, in record form: a sparse row for each distinct report.

    matrix   (n, K+): weights over the extended table
    counts   (n,)
    shape    of the table
    margins  which axes have the extra place for values outside the set
    """

    matrix: sparse.csr_array
    counts: Floats
    shape: tuple[int, ...]
    margins: tuple[bool, ...]

    @classmethod
    def of(cls, sets: Sequence[Ints], counts: Ints, mechanisms: Sequence[Mechanism]) -> SetLikelihood:
        """From the reports of one cell."""
        rows = len(counts)
        index, weight = np.zeros((rows, 1), dtype=np.int64), np.ones((rows, 1))
        margins = tuple(mechanism.p < 1.0 for mechanism in mechanisms)
        for codes, mechanism, margin in zip(sets, mechanisms, margins):
            inside, outside = mechanism.weights(codes)
            places = codes
            if margin:
                places = np.hstack([codes, np.full((rows, 1), mechanism.size, dtype=np.int64)])
                inside = np.hstack([inside - outside[:, None], outside[:, None]])
            # The factor of a set does not matter; without it products of many attributes cannot underflow.
            inside = inside / np.maximum(inside.max(axis=1, keepdims=True, initial=0.0), np.finfo(float).tiny)
            index = (index[:, :, None] * (mechanism.size + margin) + places[:, None, :]).reshape(rows, -1)
            weight = (weight[:, :, None] * inside[:, None, :]).reshape(rows, -1)
        shape = shape_of(mechanisms)
        width = int(np.prod([size + margin for size, margin in zip(shape, margins)]))
        starts = np.arange(rows + 1, dtype=np.int64) * index.shape[1]
        matrix = sparse.csr_array((weight.ravel(), index.ravel(), starts), shape=(rows, width))
        return cls(matrix, np.asarray(counts, dtype=np.float64), shape, margins)

    @cached_property
    def _extended(self) -> tuple[int, ...]:
        return tuple(size + margin for size, margin in zip(self.shape, self.margins))

    def _extend(self, x: Floats) -> Floats:
        tensor = x.reshape(self.shape)
        for axis, margin in enumerate(self.margins):
            if margin:
                tensor = np.concatenate([tensor, tensor.sum(axis=axis, keepdims=True)], axis=axis)
        return tensor.ravel()

    def _fold(self, tensor: Floats, first: int = 0) -> Floats:
        # The transpose of `_extend`: what fell on a margin belongs to every value of that axis.
        for axis, (size, margin) in enumerate(zip(self.shape, self.margins), start=first):
            if margin:
                values, rest = np.split(tensor, [size], axis=axis)
                tensor = values + rest
        return tensor

    def product(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ self._extend(x), dtype=np.float64)

    def pull(self, rows: Floats) -> Floats:
        folded = self._fold((self.matrix.T @ rows).reshape(self._extended))
        return np.asarray(folded, dtype=np.float64).ravel()

    def information(self, rows: Floats) -> Floats:
        width, entries = self.matrix.shape[1], self.matrix.shape[0] and self.matrix.nnz // self.matrix.shape[0]
        left, right = np.triu_indices(entries)
        index = self.matrix.indices.reshape(-1, entries)
        weight = self.matrix.data.reshape(-1, entries)
        upper = np.zeros(width * width)
        step = max(1, _PAIRS // max(len(left), 1))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            places, weights = index[part].astype(np.int64), weight[part]
            flat = places[:, left] * width + places[:, right]
            values = weights[:, left] * weights[:, right] * rows[part, None]
            upper += np.bincount(flat.ravel(), weights=values.ravel(), minlength=width * width)
        square = upper.reshape(width, width)
        full = square + square.T
        np.fill_diagonal(full, square.diagonal())
        folded = self._fold(self._fold(full.reshape(self._extended * 2)), first=len(self.shape))
        return folded.reshape(self.size, self.size)

    def pull_presence(self) -> Floats:
        """How many records have a report that contains each combination of values (without margins)."""
        present = sparse.csr_array(
            (np.ones_like(self.matrix.data), self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape
        )
        return np.asarray(present.T @ self.counts, dtype=np.float64)

    def joined(self, weights: Floats) -> SetLikelihood:
        """The same with `weights[v]` further records whose true value is known to be v: a Dirichlet prior."""
        places = np.arange(self.size)
        unravelled = np.unravel_index(places, self.shape)
        flat = np.ravel_multi_index(unravelled, self._extended)
        entries = self.matrix.nnz // max(self.matrix.shape[0], 1) or 1
        # Rows keep one length so that pairs of entries stay a rectangle.
        index = np.repeat(flat[:, None], entries, axis=1)
        data = np.zeros((self.size, entries))
        data[:, 0] = 1.0
        rows = self.matrix.shape[0] + self.size
        matrix = sparse.csr_array(
            (
                np.concatenate([self.matrix.data, data.ravel()]),
                np.concatenate([self.matrix.indices, index.ravel()]),
                np.arange(rows + 1, dtype=np.int64) * entries,
            ),
            shape=(rows, self.matrix.shape[1]),
        )
        return SetLikelihood(matrix, np.concatenate([self.counts, weights.ravel()]), self.shape, self.margins)


@dataclass(frozen=True, eq=False)
class ContainmentLikelihood(Likelihood):
    """The composite likelihood of containment counts: each count as if drawn by itself, `f_u = sum_v x_v Q[v, u]`.

    inclusion  `Q_j` for each attribute, counts the flattened count tensor `w`
    """

    inclusion: tuple[Floats, ...]
    counts: Floats
    shape: tuple[int, ...]

    def product(self, x: Floats) -> Floats:
        tensor = x.reshape(self.shape)
        for axis, matrix in enumerate(self.inclusion):
            tensor = along(matrix.T, tensor, axis)
        return tensor.ravel()

    def pull(self, rows: Floats) -> Floats:
        tensor = rows.reshape(self.shape)
        for axis, matrix in enumerate(self.inclusion):
            tensor = along(matrix, tensor, axis)
        return tensor.ravel()

    def information(self, rows: Floats) -> Floats:
        matrix = np.diag(rows).reshape(-1, *self.shape)
        for axis, inclusion in enumerate(self.inclusion, start=1):
            matrix = along(inclusion, matrix, axis)
        half = matrix.reshape(self.size, self.size)
        full = half.T.reshape(-1, *self.shape)
        for axis, inclusion in enumerate(self.inclusion, start=1):
            full = along(inclusion, full, axis)
        return full.reshape(self.size, self.size)
