"""Lines, circles and clusters as places on a ring; designs as whole numbers; spectra of Q.

A circle is a ring of its `F` places. A line is a ring of `F + 1` places whose last one, the anchor, stands in every set
and is compatible with everything: it is where the line was cut. Clusters are a line on which the values of a cluster
stand side by side. So one piece of arithmetic serves all three.

Places are numbered along the ring and unrolled: `k + size` is place `k` one turn later.

    ahead[k]    first place after k that may share a set with k
    behind[k]   last place before k that may share a set with k

One fact: fill the gap between two members greedily from the left, giving `L_1 < ... < L_m`, and from
the right, giving `R_1 < ... < R_m`: no more than `m` values fit. A value fits *without costing a place* exactly when it
lies in some `[L_k, R_k]` (put `L_1 ... L_{k-1}` before and `R_{k+1} ... R_m` behind it; and whatever stands k-th lies
between the two greedy ones). Any other compatible value costs exactly one place, because it pushes out at most two
neighbors and fills one. The intervals do not overlap, or `m + 1` values would fit.

*Sampling documents* hold a design as whole numbers, from which devices draw exactly. A device cannot repeat floating
point bit for bit (exponentials differ in the last place between machines), so weights become integers once, here.
`designs.stored` is the way back: the estimator then uses the rounded weights too, and device and estimator share one
channel. What devices do with a document is in `polyseme.device`.

*Rank, condition and trace of inclusion matrices.* `Q[v, u] = P(u in R | v)` has full rank exactly when different
distributions of true values give different reports.

- Evenly spaced circle: `Q` is circulant, its singular values are the moduli of a Fourier transform.
- Clusters: with membership `M` and shares `S` (both F x C), `Q = p I + M K S'`, where `K = Q_c - p I` and `Q_c` is the
  inclusion matrix of the clusters. `S' M = I`, so Q is invertible exactly when `Q_c` is (and p > 0), null vectors
  are null vectors of `Q_c` spread by share, and all singular values but p come from a matrix of twice as many rows as
  there are clusters.
- Anything else: dense, up to `DENSE` values.

The traces are those of `X = D Pi^-1 D`, with `Pi` the joint inclusion at p = 1 and `D = diag(rho)`, from which the
precision of estimates follows (see `polyseme.privacy.analysis.summary`): on the circle `tr X = (l / F) sum 1 /
lambda_k` with the eigenvalues of the circulant, over clusters `tr X = l - sum_c (sum of s_v^2 in c) (A Q_c^-1)[c, c]`
with `A = Pi_c - diag(rho_c)`, by Woodbury's identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.designs.chain import Chain
from polyseme.device.kinds import MOST_SETS
from polyseme.device.sampler import ONE
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure

__all__ = [
    "DENSE",
    "SCALE",
    "Ring",
    "Spectrum",
    "alike_spectrum",
    "alike_trace",
    "as_line",
    "circulant_spectrum",
    "clockwise",
    "cluster_spectrum",
    "cluster_trace",
    "dense_spectrum",
    "dense_trace",
    "document",
    "neighbors",
    "portable_circle",
    "require_few",
    "ring_of",
    "whole",
]


@dataclass(frozen=True, eq=False)
class Ring:
    """Places of a ring, unrolled twice.

    order     code of each place (F,)
    size      number of places, with the anchor if there is one
    anchored  whether the last place is the anchor of a line
    """

    order: Ints
    size: int
    anchored: bool
    ahead: Ints
    behind: Ints

    @property
    def extra(self) -> int:
        """How many members of a set are anchors."""
        return int(self.anchored)

    def places(self, codes: Ints) -> Ints:
        """The place of each code."""
        place = np.empty(len(self.order), dtype=np.int64)
        place[self.order] = np.arange(len(self.order))
        return place[codes]

    def anchor(self, places: Ints) -> Ints:
        """Rows of sorted places with the anchor added where there is one."""
        if not self.anchored:
            return places
        return np.concatenate([places, np.full((len(places), 1), self.size - 1, dtype=np.int64)], axis=1)

    def candidates(self, members: Ints, missing: int) -> tuple[Ints, Ints]:
        """Where the next member may stand so that `missing` members in all can still be added.

        members  sorted places with the anchor, (n, k)
        returns  closed intervals of unrolled places, (n, w) lower and upper ends; empty ones have upper < lower
        """
        n, k = members.shape
        ends = np.concatenate([members[:, 1:], members[:, :1] + self.size], axis=1)
        low, high = self.ahead[members], self.behind[ends]
        width = max(k, missing)
        lower = np.zeros((n, width), dtype=np.int64)
        upper = np.full((n, width), -1, dtype=np.int64)
        lower[:, :k], upper[:, :k] = low, high
        capacity = self._fill(low, high, missing)
        tight = np.flatnonzero(capacity == missing)
        if tight.size:
            left, right = self._slots(low[tight], high[tight], missing)
            lower[tight], upper[tight] = 0, -1
            lower[tight, :missing], upper[tight, :missing] = left, right
        upper[capacity < missing] = -1
        lower[capacity < missing] = 0
        return lower, upper

    def _fill(self, low: Ints, high: Ints, missing: int) -> Ints:
        """How many members fit into the gaps of each row, counted up to a little beyond `missing`."""
        capacity = np.zeros(len(low), dtype=np.int64)
        for gap in range(low.shape[1]):
            place, limit = low[:, gap], high[:, gap]
            for _ in range(missing + 1):
                fits = place <= limit
                if not fits.any():
                    break
                capacity += fits
                place = self.ahead[np.where(fits, place, 0)]
                place = np.where(fits, place, limit + 1)
        return capacity

    def _slots(self, low: Ints, high: Ints, missing: int) -> tuple[Ints, Ints]:
        """The intervals `[L_k, R_k]` of rows into which exactly `missing` members fit."""
        beyond = 3 * self.size
        lefts, rights = [], []
        for gap in range(low.shape[1]):
            left, right = low[:, gap], high[:, gap]
            fits = left <= right
            first, last = left, right
            for _ in range(missing):
                lefts.append(np.where(fits, left, beyond))
                rights.append(np.where(fits, right, beyond))
                left = np.where(fits, self.ahead[np.where(fits, left, 0)], beyond)
                right = np.where(fits, self.behind[np.where(fits, right, 0)], -1)
                # Both greedy fillings have the same length, so they run out together.
                fits = fits & (left <= last) & (right >= first)
        return (
            np.sort(np.stack(lefts, axis=1), axis=1)[:, :missing],
            np.sort(np.stack(rights, axis=1), axis=1)[:, :missing],
        )

    def capacities(self) -> Ints:
        """For each place, how many members a largest set that holds it has (the anchor not counted)."""
        count = len(self.order)
        low, high = self.ahead[:count], self.behind[np.arange(count) + self.size]
        if self.anchored:
            return 1 + self._hops(self.ahead[:count], self.size - 2) + self._hops_back()
        return 1 + self._greedy(low, high)

    def _hops(self, start: Ints, limit: int) -> Ints:
        """Greedy steps to the right from each start up to a common limit, in one pass over places."""
        depth = np.zeros(2 * self.size + 1, dtype=np.int64)
        for place in range(limit, -1, -1):
            depth[place] = 1 + depth[min(int(self.ahead[place]), limit + 1)]
        return depth[np.minimum(start, limit + 1)]

    def _hops_back(self) -> Ints:
        count = len(self.order)
        depth = np.zeros(count + 1, dtype=np.int64)
        for place in range(count):
            depth[place] = 1 + depth[self.behind[place]] if self.behind[place] >= 0 else 1
        start = self.behind[:count]
        return np.where(start >= 0, depth[np.maximum(start, 0)], 0)

    def _greedy(self, low: Ints, high: Ints) -> Ints:
        filled = np.zeros(len(low), dtype=np.int64)
        place = low
        while (fits := place <= high).any():
            filled += fits
            place = np.where(fits, self.ahead[np.where(fits, place, 0)], high + 1)
        return filled


def ring_of(structure: Structure) -> Ring:
    """The ring of a line, a circle or clusters."""
    if isinstance(structure, Graph):
        raise TypeError("a graph is no ring")
    if isinstance(structure, Circle):
        return _unroll(structure.order, clockwise(structure), anchored=False)
    line = as_line(structure)
    # The line's end F is the anchor itself, and the anchor is followed by the first place one turn later.
    return _unroll(line.order, np.append(line.ahead, line.size + 1), anchored=True)


def as_line(structure: Line | Clusters) -> Line:
    """Clusters as a line on which the values of a cluster stand side by side."""
    if isinstance(structure, Line):
        return structure
    order = np.argsort(structure.labels, kind="stable").astype(np.int64)
    ends = np.cumsum(np.bincount(structure.labels, minlength=structure.count))
    return Line(order, ends[structure.labels[order]].astype(np.int64))


def clockwise(circle: Circle) -> Ints:
    """For each place of a circle, the first place further on at least the threshold away."""
    size = circle.size
    places = np.arange(size, dtype=np.int64)
    if circle.spacing is not None:
        return places + min(circle.spacing, size)
    unrolled = np.concatenate([circle.positions, circle.positions + circle.length])
    ahead = np.searchsorted(unrolled, circle.positions + circle.threshold).astype(np.int64)
    ahead = np.clip(ahead, places + 1, places + size)
    # Arcs are compared as distances are, so that rounding never lets in a pair that a verifier would refuse.
    for _ in range(2):
        ahead = np.where((ahead < places + size) & ~_apart(circle, places, ahead), ahead + 1, ahead)
    for _ in range(2):
        ahead = np.where((ahead - 1 > places) & _apart(circle, places, ahead - 1), ahead - 1, ahead)
    return ahead


def _apart(circle: Circle, places: Ints, later: Ints) -> Bools:
    here, there = circle.positions[places], circle.positions[later % circle.size]
    arc = np.where(later < circle.size, there - here, circle.length - (here - there))
    return arc >= circle.threshold


def _unroll(order: Ints, ahead: Ints, *, anchored: bool) -> Ring:
    size = len(ahead)
    twice = np.concatenate([ahead, ahead + size])
    behind = np.searchsorted(twice, np.arange(2 * size), side="right") - 1
    return Ring(order, size, anchored, twice, behind.astype(np.int64))


SCALE = 1 << 52
"""The largest weight: every program reads it exactly from JSON."""


def whole(log_weights: Floats) -> list[int]:
    """Weights as whole numbers from 1 to `SCALE`.

    >>> whole(np.log(np.array([1.0, 0.5, 1e-300])))
    [4503599627370496, 2251799813685248, 1]
    """
    scaled = np.rint(np.exp(log_weights - log_weights.max()) * SCALE)
    return [int(weight) for weight in np.maximum(scaled, 1.0)]


def document(kind: str, l: int, p: float, **fields: Any) -> dict[str, Any]:
    """A sampling document; fields in the order of their kind, None left out."""
    head: dict[str, Any] = {"kind": kind, "l": l, "p53": round(p * ONE)}
    return {**head, **{key: value for key, value in fields.items() if value is not None}}


def portable_circle(circle: Circle, l: int, log_weights: Floats, p: float) -> dict[str, Any]:
    """The document of a circle with weights (by code)."""
    order, weights = circle.order, whole(log_weights[circle.order])
    return document("circle", l, p, order=order.tolist(), ahead=clockwise(circle).tolist(), weights=weights)


def neighbors(compatible: Bools) -> list[list[int]]:
    """For each value the greater ones that may share a set with it."""
    return [(np.flatnonzero(row[code + 1 :]) + code + 1).tolist() for code, row in enumerate(compatible)]


def require_few(sets: int) -> None:
    """Refuse what a device would have to list and cannot."""
    if sets > MOST_SETS:
        raise ImpossibleError(
            f"a device would have to list {sets:,} sets (limit {MOST_SETS:,})",
            "a line, a circle, a tree or a smaller l needs no list, or a shorter one",
        )


DENSE = 1_500
"""Largest matrix that is decomposed: chosen by judgment. Measured on one core, its singular values take 0.8 s, its
inverse 0.3 s."""

_ZERO = 1e-10
"""Singular values below this part of the largest count as zero: rounding leaves about 1e-16 times the size."""

_EQUAL_SHARES = 1e-12
"""Shares of a cluster that differ by less are equal, but for rounding."""

_LINKED = 1e-7
"""Entries of the projector on the null space beyond this link two values: chosen by judgment, far above rounding."""


@dataclass(frozen=True)
class Spectrum:
    """Whether Q has full rank, how well conditioned it is, and which values it confounds.

    None where unknown.
    """

    identifiable: bool | None
    condition: float | None
    confounded: tuple[tuple[int, ...], ...] = ()
    note: str = ""


def dense_spectrum(matrix: Floats) -> Spectrum:
    """By decomposing the whole matrix."""
    values, null = _decompose(matrix)
    if null.shape[1] == 0:
        return Spectrum(True, float(values.max() / values.min()))
    return Spectrum(False, np.inf, _groups(null, [[code] for code in range(len(matrix))]))


def _decompose(matrix: Floats) -> tuple[Floats, Floats]:
    """Singular values, and the left vectors belonging to those that are zero: (rows, nullity)."""
    values = np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)
    zero = values <= _ZERO * values[0]
    if not zero.any():
        return values, np.empty((len(matrix), 0))
    return values, np.asarray(np.linalg.svd(matrix)[0][:, zero], dtype=np.float64)


def _groups(null: Floats, members: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Groups of values that reports confound: connected through the projector on the null space."""
    linked = np.abs(null @ null.T) > _LINKED
    seen: set[int] = set()
    groups = []
    for start in range(len(linked)):
        if start in seen or not linked[start, start]:
            continue
        group, queue = {start}, [start]
        while queue:
            following = set(np.flatnonzero(linked[queue.pop()]).tolist()) - group
            group |= following
            queue.extend(following)
        seen |= group
        groups.append(tuple(sorted(code for index in group for code in members[index])))
    return tuple(groups)


def _cluster_matrix(chain: Chain, p: float) -> Floats:
    """`Q_c[c, c'] = P(cluster c' is in the set | the true value is in c)`."""
    rho = chain.inclusion
    matrix: Floats = p * chain.joint_matrix() / rho[:, None] + (1.0 - p) * rho
    return matrix


def cluster_spectrum(chain: Chain, labels: Ints, shares: Floats, p: float) -> Spectrum:
    """Clusters drawn by a chain, values within a cluster by share."""
    matrix, count = _cluster_matrix(chain, p), chain.size
    _, null = _decompose(matrix)
    if null.shape[1]:
        members: list[list[int]] = [[] for _ in range(count)]
        for code, label in enumerate(labels.tolist()):
            members[label].append(code)
        return Spectrum(False, np.inf, _groups(null, members))
    root = np.sqrt(np.bincount(labels, minlength=count))
    square = np.bincount(labels, shares**2, count)
    rest = np.sqrt(np.maximum(square - 1.0 / root**2, 0.0))
    kernel = root[:, None] * (matrix - p * np.eye(count))
    # Where shares are equal the second half of the matrix has nothing to add.
    if rest.max(initial=0.0) <= _EQUAL_SHARES:
        values = np.linalg.svd(p * np.eye(count) + kernel / root, compute_uv=False)
    else:
        upper = np.concatenate([p * np.eye(count) + kernel / root, kernel * rest], axis=1)
        lower = np.concatenate([np.zeros((count, count)), p * np.eye(count)], axis=1)
        values = np.linalg.svd(np.concatenate([upper, lower]), compute_uv=False)
    if len(labels) > count:
        values = np.append(values, p)
    return Spectrum(True, float(values.max() / values.min()))


def alike_spectrum(count: int, size: int, l: int, p: float) -> Spectrum:
    """`count` clusters drawn alike and of one size: two singular values, and p within clusters."""
    other = p * (l - 1) / (count - 1)
    values = [float(l), p - other]
    if size > count:
        values.append(p)
    if min(values) <= _ZERO * l:
        return Spectrum(False, np.inf, (tuple(range(size)),))
    return Spectrum(True, max(values) / min(values))


def circulant_spectrum(offsets: Floats, order: Ints, l: int, p: float) -> Spectrum:
    """An evenly spaced circle; `offsets` is the first row of the circulant at p = 1, by place."""
    values = np.abs(p * np.fft.fft(offsets))
    values[0] = l
    zero = values <= _ZERO * l
    if not zero.any():
        return Spectrum(True, float(values.max() / values.min()))
    size = len(offsets)
    waves = np.exp(2j * np.pi * np.outer(np.arange(size), np.flatnonzero(zero)) / size)
    null = np.concatenate([waves.real, waves.imag], axis=1) / np.sqrt(size)
    return Spectrum(False, np.inf, _groups(null, [[int(code)] for code in order]))


def dense_trace(rho: Floats, joint: Floats) -> float:
    """`tr D Pi^-1 D` of a whole matrix; infinite for a singular one."""
    try:
        return float(rho @ (np.diag(np.linalg.inv(joint)) * rho))
    except np.linalg.LinAlgError:
        return np.inf


def cluster_trace(chain: Chain, labels: Ints, shares: Floats) -> float:
    """The same over clusters."""
    matrix, rho = _cluster_matrix(chain, 1.0), chain.inclusion
    kernel = rho[:, None] * (matrix - np.eye(len(rho)))
    squares = np.bincount(labels, shares**2, chain.size)
    try:
        return chain.l - float(squares @ np.diag(np.linalg.solve(matrix.T, kernel.T).T))
    except np.linalg.LinAlgError:
        return np.inf


def alike_trace(count: int, l: int, shares: Floats) -> float:
    """The same for clusters drawn alike: `Q_c` has eigenvalues l and `1 - (l-1)/(C-1)`."""
    rho, inner = l / count, 1.0 - (l - 1) / (count - 1)
    # A = rho (Q_c - I), so the mean diagonal of A Q_c^-1 is rho times the mean of 1 - 1/eigenvalue.
    diagonal = rho * (1.0 - (1.0 / l + (count - 1) / inner) / count)
    return l - float((shares**2).sum()) * diagonal
