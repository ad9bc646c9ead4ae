"""The likelihood of a table of true values, given the reports of one cell.

    log L(x) = sum_i c_i log f_i,    f_i = sum_v A[i, v] x_v,    A[i, v] = prod_j P(R_ij | v_j)

where
    x     the table, flattened: expected records for each combination v = (v_1, ..., v_q)
    i     a distinct combination of published sets, reported by c_i records
    R_ij  its set for attribute j

It is concave. A row of A has `l_1 * ... * l_q` entries when every set holds its true value. With a truth probability
below one each value outside a set has the same small weight, so the axis gets one more place, the margin of x over it:
a row then has `(l_j + 1)` entries along that axis, never F_j.

The likelihoods of the cells of a table are made once and used by whatever is fitted to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.axes import along
from polyseme.inference.base import Reports
from polyseme.inference.counts import distinct, shape_of
from polyseme.kernel.arrays import Floats, Ints

if TYPE_CHECKING:
    from scipy import sparse

__all__ = [
    "STACKABLE",
    "CellLikelihoods",
    "ContainmentLikelihood",
    "Joined",
    "Likelihood",
    "RecordLikelihood",
    "SetLikelihood",
    "Stacked",
    "TensorLikelihood",
    "likelihood_of",
]

_PAIRS = 4_000_000
"""Pairs of sets in memory at a time (32 MB for each array)."""
_LARGEST = 30_000_000
"""Cells of the largest dense tensor (240 MB); beyond that the sparse likelihood is used, whatever its speed."""


_PAIR, _ENTRY, _MULTIPLICATION = 7.0, 50.0, 0.3
"""Rough nanoseconds for a pair of entries in an information matrix, for an entry in ten gradients, and for a
multiplication of dense matrices. They decide only which of two equal ways is taken, and need not be exact."""


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
    def information(self, rows: Floats, thin: int = 1) -> Floats:
        """`A^T diag(rows) A`; where that is costly, from every `thin`-th row only."""

    def thinning(self, work: int) -> int:
        """The `thin` with which an information matrix takes about this many operations."""
        return 1

    def value(self, x: Floats) -> float:
        """The log-likelihood of the proportions `x`."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.product(x))
        return float(self.counts[self.counts > 0] @ logs[self.counts > 0])


class RecordLikelihood(Likelihood):
    """A likelihood of paired sets."""

    @abstractmethod
    def presence(self) -> Floats:
        """`w`: how many records have a report that contains each combination of values."""

    @abstractmethod
    def counting(self, counts: Floats) -> RecordLikelihood:
        """The same sets reported by other numbers of records."""


@dataclass(frozen=True, eq=False)
class SetLikelihood(RecordLikelihood):
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
    def of(cls, sets: Sequence[Ints], counts: Ints | Floats, mechanisms: Sequence[Mechanism]) -> SetLikelihood:
        """From the reports of one cell."""
        from scipy import sparse

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
            entries = index.shape[1] * places.shape[1]
            index = (index[:, :, None] * (mechanism.size + margin) + places[:, None, :]).reshape(rows, entries)
            weight = (weight[:, :, None] * inside[:, None, :]).reshape(rows, entries)
        shape = shape_of(mechanisms)
        width = int(np.prod([size + margin for size, margin in zip(shape, margins)]))
        starts = np.arange(rows + 1, dtype=np.int64) * index.shape[1]
        matrix = sparse.csr_array((weight.ravel(), index.ravel(), starts), shape=(rows, width))
        return cls(matrix, np.asarray(counts, dtype=np.float64), shape, margins)

    def counting(self, counts: Floats) -> SetLikelihood:
        return replace(self, counts=counts)

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
        folded = self._fold((self._transposed @ rows).reshape(self._extended))
        return np.asarray(folded, dtype=np.float64).ravel()

    @cached_property
    def _transposed(self) -> sparse.csc_array:
        """Made once: to make it takes longer than a product with few reports."""
        return self.matrix.T

    @property
    def entries(self) -> tuple[Ints, Floats]:
        """Places and weights of the reports: (n, entries) each."""
        rows = self.matrix.shape[0]
        entries = self.matrix.nnz // rows if rows else 1
        index = np.asarray(self.matrix.indices, dtype=np.int64).reshape(rows, entries)
        return index, np.asarray(self.matrix.data, dtype=np.float64).reshape(rows, entries)

    @cached_property
    def _columns(self) -> tuple[Ints, Floats]:
        """The same entry by entry, as information matrices use them."""
        index, weight = self.entries
        return np.ascontiguousarray(index.T, dtype=np.int64), np.ascontiguousarray(weight.T)

    def information(self, rows: Floats, thin: int = 1) -> Floats:
        width, entries = self.matrix.shape[1], self.matrix.shape[0] and self.matrix.nnz // self.matrix.shape[0]
        index, weight = self._columns[0][:, ::thin], self._columns[1][:, ::thin]
        rows = rows[::thin] * thin
        upper = np.zeros(width * width)
        if width * width > 4 * len(rows):
            return self._pairs_at_once(index, weight, rows, width)
        for left in range(entries):
            start, scaled = index[left] * width, weight[left] * rows
            for right in range(left, entries):
                upper += np.bincount(start + index[right], weights=scaled * weight[right], minlength=width * width)
        return self._folded(upper)

    def _pairs_at_once(self, index: Ints, weight: Floats, rows: Floats, width: int) -> Floats:
        """The same in few passes over the matrix, when it is large and the reports are few."""
        left, right = np.triu_indices(len(index))
        upper = np.zeros(width * width)
        step = max(1, _PAIRS // len(left))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            flat = index[left, part] * width + index[right, part]
            values = weight[left, part] * weight[right, part] * rows[part]
            upper += np.bincount(flat.ravel(), weights=values.ravel(), minlength=width * width)
        return self._folded(upper)

    def _folded(self, upper: Floats) -> Floats:
        width = self.matrix.shape[1]
        square = upper.reshape(width, width)
        full = square + square.T
        np.fill_diagonal(full, square.diagonal())
        folded = self._fold(self._fold(full.reshape(self._extended * 2)), first=len(self.shape))
        return folded.reshape(self.size, self.size)

    def thinning(self, work: int) -> int:
        entries = self.matrix.nnz // max(self.matrix.shape[0], 1)
        return max(1, self.matrix.shape[0] * entries * (entries + 1) // 2 // work) | 1

    def stacked(self, group: Ints, groups: int) -> Stacked:
        """The rows as those of several groups: `group` of each, ascending."""
        return Stacked(*self._columns, group, self.counts, groups, self.shape, self.margins)

    def stacks(self, work: int) -> bool:
        """Whether it can be fitted together with others: pairs of entries below `work`."""
        rows, entries = self.matrix.shape[0], self.entries[0].shape[1]
        return self.size <= STACKABLE and rows * (entries * (entries + 1) // 2) < work and self.records > 0.0

    def presence(self) -> Floats:
        from scipy import sparse

        ones = np.ones_like(self.matrix.data)
        present = sparse.csr_array((ones, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape)
        extended = (present.T @ self.counts).reshape(self._extended)
        return np.ascontiguousarray(extended[tuple(slice(size) for size in self.shape)]).ravel()


@dataclass(frozen=True, eq=False)
class TensorLikelihood(RecordLikelihood):
    """The likelihood of paired sets of several attributes, in tensor form.

    channels  for each attribute (S_j, F_j): `P(R | v)` up to a factor of the set, for the S_j distinct sets
    members   the same with 1 where v is in R, else 0
    counts    flattened (S_1, ..., S_q): how many records reported each combination

    Nothing is ever multiplied out: each attribute acts along its own axis.
    """

    channels: tuple[Floats, ...]
    members: tuple[Floats, ...]
    counts: Floats
    shape: tuple[int, ...]

    def counting(self, counts: Floats) -> TensorLikelihood:
        return replace(self, counts=counts)

    @cached_property
    def _sets(self) -> tuple[int, ...]:
        return tuple(len(channel) for channel in self.channels)

    def product(self, x: Floats) -> Floats:
        tensor = x.reshape(self.shape)
        for axis, channel in enumerate(self.channels):
            tensor = along(channel, tensor, axis)
        return tensor.ravel()

    def pull(self, rows: Floats) -> Floats:
        tensor = rows.reshape(self._sets)
        for axis, channel in enumerate(self.channels):
            tensor = along(channel.T, tensor, axis)
        return tensor.ravel()

    @cached_property
    def _pairs(self) -> tuple[Floats, ...]:
        """For each attribute `P(R | u) P(R | v)` for all pairs u <= v: (pairs, S_j)."""
        chosen = [np.triu_indices(size) for size in self.shape]
        return tuple(
            np.ascontiguousarray((channel[:, left] * channel[:, right]).T)
            for channel, (left, right) in zip(self.channels, chosen)
        )

    def information(self, rows: Floats, thin: int = 1) -> Floats:
        tensor = rows.reshape(self._sets)
        for axis, pairs in enumerate(self._pairs):
            tensor = along(pairs, tensor, axis)
        for axis, size in enumerate(self.shape):
            tensor = tensor.take(_pair_places(size), axis=axis)
        paired = tensor.reshape([size for size in self.shape for _ in range(2)])
        order = [*range(0, 2 * len(self.shape), 2), *range(1, 2 * len(self.shape), 2)]
        return paired.transpose(order).reshape(self.size, self.size)

    def presence(self) -> Floats:
        return replace(self, channels=self.members).pull(self.counts)


def _pair_places(size: int) -> Ints:
    """The index of each pair (u, v), in either order, among pairs u <= v: flat (size, size)."""
    places = np.empty((size, size), dtype=np.int64)
    left, right = np.triu_indices(size)
    places[left, right] = places[right, left] = np.arange(len(left))
    return places.ravel()


@dataclass(frozen=True, eq=False)
class Joined(Likelihood):
    """Reports, and `weights[v]` further records of known true value v: a Dirichlet prior."""

    inner: Likelihood
    weights: Floats
    counts: Floats
    shape: tuple[int, ...]

    @classmethod
    def of(cls, inner: Likelihood, weights: Floats) -> Joined:
        return cls(inner, weights, np.concatenate([inner.counts, weights]), inner.shape)

    def thinning(self, work: int) -> int:
        return self.inner.thinning(work)

    def product(self, x: Floats) -> Floats:
        return np.concatenate([self.inner.product(x), x])

    def pull(self, rows: Floats) -> Floats:
        return self.inner.pull(rows[: -self.size]) + rows[-self.size :]

    def information(self, rows: Floats, thin: int = 1) -> Floats:
        out = self.inner.information(rows[: -self.size], thin).copy()
        out[np.diag_indices_from(out)] += rows[-self.size :]
        return out


def likelihood_of(sets: Sequence[Ints], counts: Ints, mechanisms: Sequence[Mechanism]) -> RecordLikelihood:
    """The likelihood of one cell's reports, in record or tensor form, whichever is cheaper."""
    if len(mechanisms) > 1 and len(counts) > 1:
        found = [distinct(codes, mechanism.size) for codes, mechanism in zip(sets, mechanisms)]
        if _tensor_is_cheaper([len(rows) for rows, _ in found], len(counts), mechanisms):
            return _tensor(found, counts, mechanisms)
    return SetLikelihood.of(sets, counts, mechanisms)


def _tensor(found: Sequence[tuple[Ints, Ints]], counts: Ints, mechanisms: Sequence[Mechanism]) -> TensorLikelihood:
    channels, members = [], []
    for (rows, _), mechanism in zip(found, mechanisms):
        inside, outside = mechanism.weights(rows)
        channel = np.repeat(outside[:, None], mechanism.size, axis=1)
        np.put_along_axis(channel, rows, inside, axis=1)
        channels.append(channel / np.maximum(inside.max(axis=1, keepdims=True), np.finfo(float).tiny))
        member = np.zeros(channel.shape)
        np.put_along_axis(member, rows, 1.0, axis=1)
        members.append(member)
    sizes = tuple(len(channel) for channel in channels)
    places = np.ravel_multi_index(tuple(inverse for _, inverse in found), sizes)
    table = np.bincount(places, weights=counts.astype(np.float64), minlength=int(np.prod(sizes)))
    return TensorLikelihood(tuple(channels), tuple(members), table.astype(np.float64), shape_of(mechanisms))


def _tensor_is_cheaper(sets: Sequence[int], rows: int, mechanisms: Sequence[Mechanism]) -> bool:
    """Compares one information matrix and ten gradients of either form, in rough nanoseconds."""
    shape = shape_of(mechanisms)
    entries = float(np.prod([mechanism.l + (mechanism.p < 1.0) for mechanism in mechanisms]))
    sparse_work = rows * (entries * entries * _PAIR + entries * _ENTRY)
    tensor_work, largest, before = 0.0, 0.0, 1.0
    for place, size in enumerate(shape):
        pairs, after = size * (size + 1) / 2, float(np.prod(sets[place:]))
        gradient = float(np.prod(sets[: place + 1])) * float(np.prod(shape[place:]))
        tensor_work += before * after * pairs + 10.0 * gradient
        largest = max(largest, before * after, gradient / size)
        before *= pairs
    return largest <= _LARGEST and _MULTIPLICATION * tensor_work < sparse_work


@dataclass(frozen=True, eq=False)
class ContainmentLikelihood(Likelihood):
    """The composite likelihood of containment counts, with `f_u = sum_v x_v Q[v, u]`.

    Each count is taken as if drawn by itself.

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

    def information(self, rows: Floats, thin: int = 1) -> Floats:
        matrix = np.diag(rows).reshape(-1, *self.shape)
        for axis, inclusion in enumerate(self.inclusion, start=1):
            matrix = along(inclusion, matrix, axis)
        half = matrix.reshape(self.size, self.size)
        full = half.T.reshape(-1, *self.shape)
        for axis, inclusion in enumerate(self.inclusion, start=1):
            full = along(inclusion, full, axis)
        return full.reshape(self.size, self.size)


_STACKED = 500_000
"""Numbers in memory at a time (4 MB for each array) when the likelihoods of many groups are stacked."""


@dataclass(frozen=True, eq=False)
class Stacked:
    """The likelihoods of several groups with the same table, in record form.

    index    (entries, n): places in the extended table of a group; weight (entries, n) likewise
    group    of each row, ascending: (n,); counts (n,)
    groups   how many there are; shape of the table of each, margins as in `SetLikelihood`
    weights  further records of known true value of each group, a Dirichlet prior: (groups, K); None without

    Everything is done for all groups at once; no group has a matrix of its own to be made.
    """

    index: Ints
    weight: Floats
    group: Ints
    counts: Floats
    groups: int
    shape: tuple[int, ...]
    margins: tuple[bool, ...]
    weights: Floats | None = None

    @classmethod
    def of(cls, likelihoods: Sequence[SetLikelihood]) -> Stacked:
        """From likelihoods of the same attributes."""
        first = likelihoods[0]
        rows = np.array([len(likelihood.counts) for likelihood in likelihoods])
        parts = [likelihood.entries for likelihood in likelihoods]
        return cls(
            np.ascontiguousarray(np.vstack([index for index, _ in parts]).T, dtype=np.int64),
            np.ascontiguousarray(np.vstack([weight for _, weight in parts]).T),
            np.repeat(np.arange(len(likelihoods)), rows),
            np.concatenate([likelihood.counts for likelihood in likelihoods]),
            len(likelihoods),
            first.shape,
            first.margins,
        )

    @property
    def size(self) -> int:
        """How many cells the table of a group has."""
        return int(np.prod(self.shape))

    @cached_property
    def _extended(self) -> tuple[int, ...]:
        return tuple(size + margin for size, margin in zip(self.shape, self.margins))

    @cached_property
    def _width(self) -> int:
        return int(np.prod(self._extended))

    @cached_property
    def _places(self) -> Ints:
        """Places in the extended tables of all groups together."""
        return self.index + self.group * self._width

    @cached_property
    def records(self) -> Floats:
        """The sum of the counts of each group, and of its further records: (groups,)."""
        counted = np.bincount(self.group, weights=self.counts, minlength=self.groups)
        return np.asarray(counted if self.weights is None else counted + self.weights.sum(axis=1), dtype=np.float64)

    @cached_property
    def shares(self) -> tuple[Floats, Floats | None]:
        """The counts, and the further records, as shares of the records of their group."""
        prior = None if self.weights is None else self.weights / self.records[:, None]
        return self.counts / self.records[self.group], prior

    def with_prior(self, weights: Floats) -> Stacked:
        """The same reports with further records of known true value: (groups, K)."""
        return replace(self, weights=weights)

    def among(self, kept: Ints) -> Stacked:
        """Some of the groups, ascending."""
        if len(kept) == self.groups:
            return self
        number = np.full(self.groups, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        place = number[self.group]
        rows = np.flatnonzero(place >= 0)
        return replace(
            self,
            index=self.index[:, rows],
            weight=self.weight[:, rows],
            group=place[rows],
            counts=self.counts[rows],
            groups=len(kept),
            weights=None if self.weights is None else self.weights[kept],
        )

    def blocks(self) -> Iterator[tuple[slice, Stacked]]:
        """The groups in blocks that fit into memory with a matrix each, and where they stand."""
        pairs = len(self.index) * (len(self.index) + 1) // 2
        work = np.bincount(self.group, minlength=self.groups) * pairs + self._width**2
        block = (np.cumsum(work) - work) // _STACKED
        for number in np.unique(block):
            kept = np.flatnonzero(block == number)
            yield slice(int(kept[0]), int(kept[-1]) + 1), self.among(kept)

    def product(self, x: Floats) -> Floats:
        """`A x` for the tables of all groups: (groups, K) -> (n,)."""
        tensor = x.reshape(-1, *self.shape)
        for axis, margin in enumerate(self.margins, start=1):
            if margin:
                tensor = np.concatenate([tensor, tensor.sum(axis=axis, keepdims=True)], axis=axis)
        flat, out = tensor.ravel(), np.zeros(len(self.counts))
        for places, weight in zip(self._places, self.weight):
            out += weight * flat[places]
        return out

    def pull(self, rows: Floats) -> Floats:
        """`A^T rows` of each group: (n,) -> (groups, K)."""
        flat = np.zeros(self.groups * self._width)
        for places, weight in zip(self._places, self.weight):
            flat += np.bincount(places, weights=weight * rows, minlength=len(flat))
        return self._fold(flat.reshape(-1, *self._extended), 1).reshape(self.groups, -1)

    def information(self, rows: Floats) -> Floats:
        """`A^T diag(rows) A` of each group: (groups, K, K)."""
        width = self._width
        upper = np.zeros(self.groups * width * width)
        for left in range(len(self.index)):
            start, scaled = self._places[left] * width, self.weight[left] * rows
            for right in range(left, len(self.index)):
                flat = start + self.index[right]
                upper += np.bincount(flat, weights=scaled * self.weight[right], minlength=len(upper))
        square = upper.reshape(-1, width, width)
        full = square + square.transpose(0, 2, 1)
        full[:, np.arange(width), np.arange(width)] = square.diagonal(axis1=1, axis2=2)
        tensor = self._fold(full.reshape(-1, *self._extended, *self._extended), 1)
        return self._fold(tensor, 1 + len(self.shape)).reshape(self.groups, self.size, self.size)

    def _fold(self, tensor: Floats, first: int) -> Floats:
        """What fell on a margin belongs to every value of that axis."""
        for axis, (size, margin) in enumerate(zip(self.shape, self.margins), start=first):
            if margin:
                values, rest = np.split(tensor, [size], axis=axis)
                tensor = values + rest
        return tensor

    def presence(self) -> Floats:
        """How many records of each group have a report that contains each combination: (groups, K)."""
        flat = np.zeros(self.groups * self._width)
        for places in self._places:
            flat += np.bincount(places, weights=self.counts, minlength=len(flat))
        extended = flat.reshape(-1, *self._extended)
        return extended[(slice(None), *(slice(size) for size in self.shape))].reshape(self.groups, -1)

    def summed(self, rows: Floats) -> Floats:
        """Sums of numbers of the rows of each group: (n,) -> (groups,)."""
        return np.asarray(np.bincount(self.group, weights=rows, minlength=self.groups), dtype=np.float64)

    def values(self, x: Floats) -> Floats:
        """The log-likelihood of the reports of each group, without the prior: (groups,)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.product(x))
        return self.summed(np.where(self.counts > 0, self.counts * np.where(self.counts > 0, logs, 0.0), 0.0))


STACKABLE = 100
"""Cells of a table up to which groups are fitted together: beyond, a factorization takes as long as all else."""
_KEPT = 10_000_000
"""Entries of all likelihoods together that are kept in memory: 320 MB at 32 bytes an entry (its place and its weight,
once in rows and once in columns). Chosen by judgment; a larger table has its likelihoods made again each time."""


class CellLikelihoods:
    """The likelihood of each cell of some reports."""

    def __init__(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> None:
        self.reports = reports
        self.mechanisms = mechanisms
        entries = len(reports.counts) * float(np.prod([item.l + (item.p < 1.0) for item in mechanisms]))
        self._kept: dict[int, RecordLikelihood] | None = {} if entries <= _KEPT else None
        self._stacks: list[tuple[Ints, Stacked]] | None = None

    def __len__(self) -> int:
        return self.reports.cells

    def __iter__(self) -> Iterator[RecordLikelihood]:
        return (self[cell] for cell in range(len(self)))

    def __getitem__(self, cell: int) -> RecordLikelihood:
        if self._kept is None:
            return self._made(cell)
        if cell not in self._kept:
            self._kept[cell] = self._made(cell)
        return self._kept[cell]

    def stacks(self, work: int, records: float) -> list[tuple[Ints, Stacked]]:
        """Small groups in record form, whose likelihoods go together: which cells, and their stack.

        work     pairs of entries that a group may have; records it may have
        """
        if self._stacks is None:
            self._stacks = self._stacked(work, records)
        return self._stacks

    def _stacked(self, work: int, records: float) -> list[tuple[Ints, Stacked]]:
        size = int(np.prod(shape_of(self.mechanisms)))
        entries = int(np.prod([item.l + (item.p < 1.0) for item in self.mechanisms]))
        rows = np.bincount(self.reports.cell, minlength=self.reports.cells)
        held = np.bincount(self.reports.cell, weights=self.reports.counts, minlength=self.reports.cells)
        small = (rows * (entries * (entries + 1) // 2) < work) & (held > 0) & (held < records)
        cells = np.flatnonzero(small) if size <= STACKABLE else np.zeros(0, dtype=np.int64)
        if len(self.mechanisms) > 1:
            found = [(cell, self[cell]) for cell in cells.tolist()]
            sparse_ones = [(cell, item) for cell, item in found if isinstance(item, SetLikelihood)]
            if len(sparse_ones) < 2:
                return []
            return [(np.array([cell for cell, _ in sparse_ones]), Stacked.of([item for _, item in sparse_ones]))]
        return [self._stack(cells)] if len(cells) > 1 else []

    def _stack(self, cells: Ints) -> tuple[Ints, Stacked]:
        """The groups of one attribute, in one go."""
        number = np.full(self.reports.cells, -1, dtype=np.int64)
        number[cells] = np.arange(len(cells))
        rows = self.reports.ordered()
        rows = rows[number[self.reports.cell[rows]] >= 0]
        made = SetLikelihood.of([sets[rows] for sets in self.reports.sets], self.reports.counts[rows], self.mechanisms)
        return cells, made.stacked(number[self.reports.cell[rows]], len(cells))

    def _made(self, cell: int) -> RecordLikelihood:
        sets, counts = self.reports.within(cell)
        return likelihood_of(sets, counts, self.mechanisms)
