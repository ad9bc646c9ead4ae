"""What a finished mechanism keeps of a promise: for whoever checks it without knowing how it was chosen."""

from __future__ import annotations

import numpy as np

from polyseme.designs.base import SetDistribution
from polyseme.distances.structure import Clusters, Floats
from polyseme.mechanism import Mechanism
from polyseme.recipes.closeness import exact_distance, listed_pulls, uniform_distance
from polyseme.recipes.ground import Ground

__all__ = ["closeness_reached"]


def closeness_reached(mechanism: Mechanism, reference: Floats, ground: Ground) -> float | None:
    """The largest distance between a reference distribution and what it becomes after a set was seen.

    Exact, or an upper bound; None when there are too many sets to look at.

    >>> from polyseme.designs import make_design
    >>> from polyseme.recipes.ground import Equal
    >>> free = Mechanism(make_design("balanced", Clusters(np.arange(4)), 1), 0.5)
    >>> closeness_reached(free, np.full(4, 0.25), Equal())
    0.375
    """
    design, p = mechanism.design, mechanism.p
    odds = p / (1.0 - p) if p < 1.0 else np.inf
    structure = design.structure
    free = isinstance(structure, Clusters) and structure.count == structure.size
    if free and isinstance(design, SetDistribution) and np.ptp(design.inclusion()) < 1e-12:
        return uniform_distance(reference, mechanism.l, odds, ground)
    listed = listed_pulls(design)
    return None if listed is None else exact_distance(*listed, reference, odds, ground)
