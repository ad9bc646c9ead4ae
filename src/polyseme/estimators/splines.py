"""What varies slowly along an attribute: functions of its values, each with the size it has when nothing is known.

For values that stand on a line these are the straight slope, and bends: the principal functions of a cubic smoothing
spline, that is of a line whose slope drifts at random. Around a circle they are the waves of the periodic spline. Bends
and waves get small fast, the k-th like 1/k^4, so that a few of them are all. Values that stand nowhere differ each in
its own way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.arrays import Floats
from polyseme.distances.base import Distance
from polyseme.distances.circle import CircleDistance
from polyseme.distances.line import LineDistance

__all__ = ["functions", "is_ordered", "terms"]

_LEAST = 1e-4
"""Functions whose variance is a smaller share than this of the first one's are left out: they bend a hundred times less
than the first. A judgment, for speed."""


def is_ordered(distance: Distance | None) -> bool:
    """Whether values with this distance stand on a line or around a circle."""
    return isinstance(distance, LineDistance | CircleDistance)


def functions(size: int, distance: Distance | None) -> list[Floats]:
    """For one attribute: its groups of functions, (size, functions) each, of mean square 1 together.

    size  how many values it has, at least two
    """
    constant = np.ones((size, 1))
    if isinstance(distance, LineDistance):
        along = distance.positions - distance.positions.min()
        along = along / along.max()
        slope = along - along.mean()
        groups = [(slope / np.sqrt(np.mean(slope**2)))[:, None]]
        near, far = np.minimum.outer(along, along), np.maximum.outer(along, along)
        # The covariance of Brownian motion, summed up once.
        bends = _principal(near**2 * (3.0 * far - near) / 6.0, np.column_stack([constant, along]))
        return [*groups, bends] if bends.size else groups
    if isinstance(distance, CircleDistance):
        apart = np.abs(np.subtract.outer(distance.positions, distance.positions)) / distance.length
        # The fourth Bernoulli polynomial: the sum of cos(2 pi k x) / k^4, up to a factor.
        return [_principal(1.0 / 30.0 - apart**2 * (1.0 - apart) ** 2, constant)]
    # As many as there are differences: what all values have in common is no effect of theirs.
    return [_principal(np.eye(size), constant)]


def _principal(covariance: Floats, without: Floats) -> Floats:
    """The principal functions of a covariance, apart from what the columns of `without` already describe."""
    size = len(covariance)
    known, _ = np.linalg.qr(without)
    rest = np.eye(size) - known @ known.T
    variances, shapes = np.linalg.eigh(rest @ covariance @ rest)
    kept = variances > _LEAST * variances[-1]
    # What rounding leaves of the known directions is no function.
    kept[: without.shape[1]] = False
    variances, shapes = variances[kept], shapes[:, kept]
    scale = np.sqrt(variances * size / max(float(variances.sum()), np.finfo(float).tiny))
    return np.asarray(shapes * scale, dtype=np.float64)


def terms(shape: Sequence[int], distances: Sequence[Distance | None]) -> list[tuple[int, Floats]]:
    """Every main effect and every interaction of the attributes of a table.

    Each with the number of attributes that take part, and its functions: (cells of the table, functions).
    """
    found: list[tuple[int, Floats]] = [(0, np.ones((1, 1)))]
    for size, distance in zip(shape, distances):
        varying = [(1, group) for group in functions(size, distance)] if size > 1 else []
        found = [
            (order + more, np.asarray(np.kron(columns, group), dtype=np.float64))
            for order, columns in found
            for more, group in ((0, np.ones((size, 1))), *varying)
        ]
    return [(order, columns) for order, columns in found if order]
