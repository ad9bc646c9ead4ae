"""Estimators linear in containment counts: `simple`, `existing`, `paper`, `inverse`, ...

Also `valueadding`.

    x = (A_1 x ... x A_q) w

where
    w    containment counts, see `containment`
    A_j  the map of attribute j: each estimator has its own, see `axes`

Their variance comes from the contributions `y(R) = A 1_R` of single reports. With the people in the table fixed, a
report of true value v has variance `E[y y^T | v] - E[y | v] E[y | v]^T`; summed over records the first part is
estimated without bias by the sum of `y y^T` over the reports, and the second by the unbiased estimate of x.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from polyseme.designs.base import SET_LIMIT
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.axes import AxisMap, ClusterMap, DenseMap, ScaledMap, along, exact_map, inverted
from polyseme.inference.base import Estimator, Fit, Population, Reports, check
from polyseme.inference.counts import containment, members, shape_of
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.randomness import experiment
from polyseme.privacy.analysis.summary import paper_cluster_matrix, paper_matrix
from polyseme.semantics.distances.base import MATRIX_LIMIT, Clusters

__all__ = ["Existing", "Inverse", "Linear", "Paper", "Simple", "ValueAdding"]

_WORK = 400_000_000
"""Multiplications allowed for the exact variance: a judgment, about a second of work."""
_CHUNK = 8_000_000
"""Numbers in memory at a time (64 MB)."""
_TABLES, _EXACT = 3, 1e-7
"""Random tables that a map must return, and to which precision: two maps that agree on one of them are the same."""

UNIDENTIFIABLE = (
    "this mechanism cannot distinguish some values: only their total can be estimated, it is split by least norm, "
    "and have no standard error"
)
BIASED = "biased: intervals are about the estimator's own mean, not about the true table"
NO_VARIANCE = "no standard errors: this table is too large for the exact variance"


class Linear(Estimator):
    """One map for each attribute."""

    unbiased = False

    @abstractmethod
    def axis_map(self, mechanism: Mechanism) -> AxisMap:
        """`A` of one attribute."""

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        maps = tuple(self.axis_map(mechanism) for mechanism in mechanisms)
        counts = containment(reports, mechanisms)
        values = _apply(maps, counts)
        unbiased = self.unbiased or all(map(_is_exact, maps, mechanisms))
        moments = _Moments(reports, tuple(mechanisms), maps, counts, values, unbiased)
        notes = [] if unbiased else [BIASED]
        variance = np.full(values.shape, np.nan)
        if unbiased and not all(axis.identifiable for axis in maps):
            notes.append(UNIDENTIFIABLE)
            return Fit(values, variance, notes=tuple(notes), totals=reports.totals(mechanisms))
        squares = moments.squares()
        if squares is None:
            notes.append(NO_VARIANCE)
        else:
            variance = reports.repeats * np.maximum(squares - moments.explained(), 0.0)
        totals, spread = reports.totals(mechanisms), moments.spread(squares)
        return Fit(values, variance, notes=tuple(notes), totals=totals, spread=spread, repeats=reports.repeats)


def _is_exact(axis: AxisMap, mechanism: Mechanism) -> bool:
    """Whether a map returns the true counts from expected containment counts `Q^T x`, for any x.

    Equation 2 does at l = 2 where decoys are drawn evenly, uniform decoys do where they are uniform: then nothing is
    biased. A map that cannot tell some values apart is compared with the exact one.
    """
    if mechanism.size > MATRIX_LIMIT:
        return False
    truth = experiment(0).random((mechanism.size, _TABLES))
    expected = mechanism.inclusion_matrix().T @ truth
    right = truth if axis.identifiable else exact_map(mechanism).apply(expected, 0)
    return bool(np.allclose(axis.apply(expected, 0), right, rtol=_EXACT, atol=_EXACT))


class Simple(Linear):
    """`x = w / l`: every candidate counts the same (Equation 20 of the journal paper)."""

    name = "simple"

    def axis_map(self, mechanism: Mechanism) -> AxisMap:
        return ScaledMap(1.0 / mechanism.l, 0.0, mechanism.size)


class Existing(Linear):
    """`x = (w - q N) / (1 - q)`, `q = (l - 1) / (F - 1)`: uniform decoys (Equations 21, 22)."""

    name = "existing"

    def axis_map(self, mechanism: Mechanism) -> AxisMap:
        size, l = mechanism.size, mechanism.l
        q = (l - 1) / (size - 1) if size > 1 else 0.0
        if l == size:
            # Every set is the whole domain: nothing was said, so nothing but the average is left.
            return ScaledMap(0.0, 1.0 / (l * size), size, identifiable=False)
        return ScaledMap(1.0 / (1.0 - q), -q / (l * (1.0 - q)), size)


class Paper(Linear):
    """Algorithm 2 of the journal paper: `x = (Q^T)^-1 w` with Equation 2 for Q.

    See `privacy.analysis.summary`.

    Exact for `l = 2` where decoys are drawn evenly, as the simple algorithm does; biased otherwise.
    """

    name = "paper"

    def axis_map(self, mechanism: Mechanism) -> AxisMap:
        structure = mechanism.design.structure
        if isinstance(structure, Clusters) and structure.size > 64 and mechanism.p > 0.0:
            return _equation_2_over_clusters(mechanism, structure)
        if structure.size > MATRIX_LIMIT:
            raise ImpossibleError(
                f"`paper` needs a matrix, refused for {structure.size:,} values (limit {MATRIX_LIMIT:,})",
                "use `ml` on a release in set form",
            )
        return DenseMap(*inverted(paper_matrix(mechanism).T))


def _equation_2_over_clusters(mechanism: Mechanism, clusters: Clusters) -> AxisMap:
    sizes = np.bincount(clusters.labels, minlength=clusters.count).astype(np.float64)
    solve, identifiable = inverted(paper_cluster_matrix(clusters, mechanism.l).T)
    blind = np.full(clusters.size, mechanism.l / clusters.size)
    share = 1.0 / sizes[clusters.labels]
    return ClusterMap(clusters.labels, share, solve, blind, mechanism.p, mechanism.l, identifiable)


class Inverse(Linear):
    """`x = (Q^T)^-1 w` with the exact inclusion matrix: unbiased for every mechanism."""

    name = "inverse"
    unbiased = True

    def axis_map(self, mechanism: Mechanism) -> AxisMap:
        return exact_map(mechanism)


class ValueAdding(Estimator):
    """Equation 18 of the sensitive-QID paper: reports with and without a combination, weighted.

        x_m = w_m * c / prod(eta) + (N - w_m) * (1 - c) / (|C| - prod(eta)),   c = prod(p + (1 - p) eta / d)

    where
        eta, d  the size of the sets and of the domain (our l and F), p the truth probability, for each attribute
        |C|     the number of combinations
    """

    name = "valueadding"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        counts, totals = containment(reports, mechanisms), reports.totals(mechanisms)
        records = totals.reshape(-1, *[1] * len(mechanisms))
        candidates = float(np.prod([mechanism.l for mechanism in mechanisms]))
        cells = float(np.prod(shape_of(mechanisms)))
        held = float(np.prod([m.p + (1.0 - m.p) * m.l / m.size for m in mechanisms]))
        inside = held / candidates
        outside = (1.0 - held) / (cells - candidates) if cells > candidates else 0.0
        values = counts * inside + (records - counts) * outside
        squares = counts * inside**2 + (records - counts) * outside**2
        explained = self._explained(counts, mechanisms, inside - outside, outside, records)
        variance = reports.repeats * np.maximum(squares - explained, 0.0)
        return Fit(values, variance, notes=(BIASED,), totals=totals, repeats=reports.repeats)

    def _explained(
        self, counts: Floats, mechanisms: Sequence[Mechanism], scale: float, shift: float, records: Floats
    ) -> Floats:
        """`sum_v x_v E[y | v]^2` with the unbiased estimate of x, or its least value without one."""
        expected = np.divide(counts, records, out=np.zeros_like(counts), where=records > 0)
        least = records * (scale * expected + shift) ** 2
        if max(shape_of(mechanisms)) > MATRIX_LIMIT:
            return np.asarray(least)
        maps = tuple(exact_map(mechanism) for mechanism in mechanisms)
        if not all(axis.identifiable for axis in maps):
            return np.asarray(least)
        squared = _apply(maps, counts)
        for axis, mechanism in enumerate(mechanisms, start=1):
            squared = along(mechanism.inclusion_matrix().T ** 2, squared, axis)
        return scale**2 * squared + 2.0 * scale * shift * counts + shift**2 * records


def _apply(maps: Sequence[AxisMap], tensor: Floats) -> Floats:
    for axis, axis_map in enumerate(maps, start=1):
        tensor = axis_map.apply(tensor, axis)
    return tensor


@dataclass(frozen=True, eq=False)
class _Moments:
    """Second moments of a linear estimate."""

    reports: Reports
    mechanisms: tuple[Mechanism, ...]
    maps: tuple[AxisMap, ...]
    counts: Floats
    values: Floats
    unbiased: bool
    flat: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flat", int(np.prod(self.values.shape[1:])))

    @cached_property
    def truth(self) -> Floats | None:
        """The unbiased estimate of the table; None where there is none."""
        if self.unbiased:
            return self.values
        if max(mechanism.size for mechanism in self.mechanisms) > MATRIX_LIMIT:
            return None
        maps = tuple(exact_map(mechanism) for mechanism in self.mechanisms)
        return _apply(maps, self.counts) if all(axis.identifiable for axis in maps) else None

    def squares(self) -> Floats | None:
        """`sum over reports of y^2` for each cell, or its expectation at the unbiased estimate.

        None if too large.
        """
        if all(isinstance(axis, ScaledMap) for axis in self.maps):
            scaled = [a.squares(m.l) for a, m in zip(self.maps, self.mechanisms) if isinstance(a, ScaledMap)]
            return _apply(scaled, self.counts)
        only = self.maps[0] if len(self.maps) == 1 else None
        if self.reports.paired and isinstance(only, ClusterMap):
            return np.array([only.squares(sets[0], counts) for _, sets, counts in self.reports.by_cell()])
        rows = len(self.reports.counts)
        if self.reports.paired and rows * self.flat <= (_WORK if len(self.maps) == 1 else _WORK // 8):
            return self._direct()
        return self._expected()

    def _direct(self) -> Floats:
        out = np.zeros((self.reports.cells, self.flat))
        step = max(1, _CHUNK // self.flat)
        for cell, sets, counts in self.reports.by_cell():
            for start in range(0, len(counts), step):
                rows = slice(start, start + step)
                product = self.maps[0].contributions(sets[0][rows])
                for axis_map, codes in zip(self.maps[1:], sets[1:]):
                    more = axis_map.contributions(codes[rows])
                    product = (product[:, :, None] * more[:, None, :]).reshape(len(product), -1)
                out[cell] += np.einsum("r,rk,rk->k", counts[rows].astype(np.float64), product, product)
        return out.reshape(self.values.shape)

    def _expected(self) -> Floats | None:
        if self.truth is None:
            return None
        squares = self.truth
        for axis, (axis_map, mechanism) in enumerate(zip(self.maps, self.mechanisms), start=1):
            if isinstance(axis_map, ScaledMap):
                scaled = axis_map.squares(mechanism.l)
                inclusion = mechanism.inclusion_matrix()
                second = scaled.scale * inclusion.T + scaled.shift * mechanism.l
            elif mechanism.design.count() * mechanism.size <= min(SET_LIMIT * 10, _WORK):
                sets, channel = mechanism.channel()
                second = (axis_map.contributions(sets) ** 2).T @ channel.T
            else:
                return None
            squares = along(second, squares, axis)
        return squares

    def explained(self) -> Floats:
        """`sum_v x_v E[y | v]^2`.

        Its least possible value where the true table has no unbiased estimate.
        """
        if self.unbiased:
            return self.values
        if self.truth is None:
            records = self.reports.totals(self.mechanisms).reshape(-1, *[1] * len(self.mechanisms))
            return np.divide(self.values**2, records, out=np.zeros_like(self.values), where=records > 0)
        out = self.truth
        for axis, (axis_map, mechanism) in enumerate(zip(self.maps, self.mechanisms), start=1):
            mean = axis_map.apply(mechanism.inclusion_matrix().T, 0)
            out = along(mean**2, out, axis)
        return out

    def spread(self, squares: Floats | None) -> _Spread | None:
        return _Spread(self) if self.reports.paired and squares is not None else None


@dataclass(frozen=True, eq=False)
class _Spread:
    """Variance of sums of cells, from what each report adds to the sum."""

    moments: _Moments

    def __call__(self, contrasts: Floats, population: Population) -> Floats:
        found = [self._one(np.asarray(contrast, dtype=np.float64), population) for contrast in contrasts]
        return self.moments.reports.repeats * np.array(found)

    def _one(self, contrast: Floats, population: Population) -> float:
        moments, reports = self.moments, self.moments.reports
        pulled = contrast
        for axis, axis_map in enumerate(moments.maps, start=1):
            pulled = axis_map.transpose(pulled, axis)
        # What one report adds to the sum is a plain sum of the pulled-back contrast over its candidates.
        table, shape = pulled.reshape(-1), contrast.shape[1:]
        added = np.empty(len(reports.counts))
        width = int(np.prod([sets.shape[1] for sets in reports.sets]))
        step = max(1, _CHUNK // width)
        for start in range(0, len(added), step):
            rows = slice(start, start + step)
            flat = members([sets[rows] for sets in reports.sets], shape) + reports.cell[rows, None] * moments.flat
            added[rows] = table[flat].sum(axis=1)
        second = float(reports.counts @ added**2)
        if population == "super" or moments.truth is None:
            totals = reports.totals(moments.mechanisms)
            sums = (contrast * moments.values).reshape(reports.cells, -1).sum(axis=1)
            return max(second - float(np.divide(sums**2, totals, out=np.zeros_like(sums), where=totals > 0).sum()), 0.0)
        mean = contrast if moments.unbiased else pulled
        if not moments.unbiased:
            for axis, mechanism in enumerate(moments.mechanisms, start=1):
                mean = along(mechanism.inclusion_matrix(), mean, axis)
        return max(second - float((mean**2 * moments.truth).sum()), 0.0)
