"""What varies slowly along an attribute: functions of its values, each with the size it has when nothing is known.

For values that stand on a line these are the straight slope, and bends: the principal functions of a cubic smoothing
spline, that is of a line whose slope drifts at random. Bends get small fast, the k-th like 1/k^4, so that a few of them
are all. Values that stand nowhere differ each in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.distances.structure import Floats

__all__ = ["functions", "terms"]

_LEAST = 1e-4
"""Bends whose variance is a smaller share than this of the first one's are left out."""


def functions(size: int, places: Floats | None) -> list[Floats]:
    """For one attribute: its groups of functions, (size, functions) each, of mean square 1 together.

    size    how many values it has, at least two
    places  where they stand on a line, all different; None when they stand nowhere
    """
    if places is None:
        # As many as there are differences: what all values have in common is no effect of theirs.
        turned, _ = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))
        return [turned[:, 1:] * np.sqrt(size / (size - 1.0))]
    along = (places - places.min()) / (places.max() - places.min())
    slope = along - along.mean()
    slope = (slope / np.sqrt(np.mean(slope**2)))[:, None]
    bends = _bends(along)
    return [slope, bends] if bends.size else [slope]


def _bends(along: Floats) -> Floats:
    near, far = np.minimum.outer(along, along), np.maximum.outer(along, along)
    # The covariance of Brownian motion, summed up once.
    drifting = near**2 * (3.0 * far - near) / 6.0
    straight, _ = np.linalg.qr(np.column_stack([np.ones(len(along)), along]))
    without = np.eye(len(along)) - straight @ straight.T
    variances, shapes = np.linalg.eigh(without @ drifting @ without)
    kept = variances > _LEAST * variances[-1]
    # Of K values two directions are straight; what rounding leaves of them is no bend.
    kept[:2] = False
    variances, shapes = variances[kept], shapes[:, kept]
    scale = np.sqrt(variances * len(along) / max(float(variances.sum()), np.finfo(float).tiny))
    return np.asarray(shapes * scale, dtype=np.float64)


def terms(shape: Sequence[int], places: Sequence[Floats | None], within: int = 0) -> list[Floats]:
    """Every main effect and every interaction of the attributes of a table: (cells of the table, functions) each.

    within  so many first axes have no effect of their own: they only tell groups apart, whose totals are known
    """
    found: list[tuple[bool, Floats]] = [(False, np.ones((1, 1)))]
    for axis, (size, place) in enumerate(zip(shape, places)):
        constant = (False, np.ones((size, 1)))
        varying = [(axis >= within, group) for group in functions(size, place)] if size > 1 else []
        found = [
            (effect or here, np.asarray(np.kron(columns, group), dtype=np.float64))
            for effect, columns in found
            for here, group in (constant, *varying)
        ]
    return [columns for effect, columns in found if effect]
