"""Structures over part of a domain: designs for strata in which some values are impossible."""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Ints
from polyseme.distances.structure import Circle, Clusters, Graph, Line, Structure

__all__ = ["restrict"]


def restrict(structure: Structure, allowed: Ints) -> tuple[Structure, Ints]:
    """The structure of the allowed values alone, and the code each of its values had.

    Value k of the result is `codes[k]` of the domain, codes ascending. A design over the result never draws a decoy
    that the stratum excludes.

    >>> part, codes = restrict(Line(np.arange(5), np.array([2, 3, 4, 5, 5])), np.array([4, 0, 1]))
    >>> codes, part.ahead
    (array([0, 1, 4]), array([2, 2, 3]))
    """
    codes = np.unique(np.asarray(allowed, dtype=np.int64))
    if isinstance(structure, Graph):
        return Graph(structure.compatible[np.ix_(codes, codes)]), codes
    if isinstance(structure, Clusters):
        return Clusters(np.unique(structure.labels[codes], return_inverse=True)[1].astype(np.int64)), codes
    number = np.full(structure.size, -1, dtype=np.int64)
    number[codes] = np.arange(len(codes))
    kept = np.flatnonzero(number[structure.order] >= 0)
    order = number[structure.order[kept]]
    if isinstance(structure, Line):
        return Line(order, np.searchsorted(kept, structure.ahead[kept]).astype(np.int64)), codes
    if structure.spacing is None:
        return Circle(order, structure.positions[kept], structure.length, structure.threshold), codes
    # Steps instead of positions: whole numbers compare without rounding.
    spacing = structure.spacing if len(codes) == structure.size else None
    steps = kept.astype(np.float64)
    return Circle(order, steps, float(structure.size), float(structure.spacing), spacing), codes
