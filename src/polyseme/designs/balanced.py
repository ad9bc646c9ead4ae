"""Making balanced designs of maximum entropy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.arrays import Floats
from polyseme.designs.base import LEAST_SHARE, SET_LIMIT
from polyseme.designs.circle import CircleDesign
from polyseme.designs.clusters import ClustersDesign, cluster_masses, fit_clusters
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.enumerated import fit_listed
from polyseme.designs.feasibility import (
    LISTED_LIMIT,
    best_l,
    heaviest_crowd,
    largest_l,
    least_posterior,
    possible_sets,
    tight_windows,
)
from polyseme.designs.line import fit_line
from polyseme.designs.listing import count_sets, list_sets
from polyseme.designs.rooted import ROOTED_LIMIT, fit_rooted
from polyseme.distances.structure import Circle, Clusters, Graph, Line, Structure
from polyseme.errors import ImpossibleError, PolicyError

__all__ = ["balanced", "proper_prior"]

_SLACK = 1e-11
"""By how much `l` times a mass may exceed one: sums of 70,000 rounded shares are good to about 1e-11."""
_EVEN = 1e-15
"""Shares that differ by less are the same share, rounded."""
_RARE = 1e-6
"""Shares of the prior that are near the tolerance of a linear program (1e-7)."""


def proper_prior(prior: Floats | None, size: int) -> Floats:
    """A reference prior that adds up to one; uniform when none is given."""
    if prior is None:
        return np.full(size, 1.0 / size)
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (size,) or not np.all(np.isfinite(prior)) or np.any(prior <= 0):
        raise PolicyError(
            f"a reference prior needs one positive number for each of the {size:,} values",
            "remove values that never occur from the domain; give rare ones a small number",
        )
    proper: Floats = prior / prior.sum()
    if proper.min() < LEAST_SHARE:
        raise PolicyError(f"a reference prior with shares below {LEAST_SHARE:g}", "give rare values a small number")
    return proper


def balanced(
    structure: Structure, l: int, prior: Floats | None = None, labels: Sequence[object] | None = None
) -> MaximumEntropy:
    """The design of maximum entropy with inclusion `l * prior`, under which every posterior is 1/l."""
    pi = proper_prior(prior, structure.size)
    even = prior is None or float(np.ptp(pi)) <= _EVEN
    if isinstance(structure, Circle) and structure.spacing is not None and even:
        if l * structure.spacing > structure.size:
            raise _impossible(structure, l, pi, labels)
        return CircleDesign(structure, l)
    if l * heaviest_crowd(structure, pi).mass > 1.0 + _SLACK:
        raise _impossible(structure, l, pi, labels)
    if isinstance(structure, Line):
        return fit_line(structure, l, l * pi, tight_windows(structure, l * pi))
    if isinstance(structure, Clusters):
        mass = cluster_masses(structure, pi)
        return _over_clusters(structure, l, l * mass, None if even else pi)
    return _over_listed(structure, l, pi, labels)


def _over_clusters(clusters: Clusters, l: int, target: Floats, prior: Floats | None) -> ClustersDesign:
    full = np.flatnonzero(target >= 1.0 - _SLACK).astype(np.int64)
    single = clusters.count == clusters.size
    shares = None
    if prior is not None and not single:
        shares = prior / cluster_masses(clusters, prior)[clusters.labels]
    return fit_clusters(clusters, l, np.minimum(target, 1.0), shares, full)


def _over_listed(structure: Circle | Graph, l: int, pi: Floats, labels: Sequence[object] | None) -> MaximumEntropy:
    if isinstance(structure, Circle) and l > 1 and structure.size <= ROOTED_LIMIT and _crowded(structure, l):
        return fit_rooted(structure, l, l * pi)
    sets = list_sets(structure, l)
    possible = np.arange(len(sets), dtype=np.int64)
    if len(sets) <= LISTED_LIMIT:
        possible = possible_sets(sets, l * pi)
    if possible.size == 0 or len(np.unique(sets[possible])) < structure.size:
        if len(sets) == 0 or pi.min() > _RARE:
            raise _impossible(structure, l, pi, labels)
        # A linear program takes so small a share for none; the fit does not, and refuses what it does not reach.
        possible = np.arange(len(sets), dtype=np.int64)
        try:
            return fit_listed(structure, l, sets, possible, l * pi)
        except ImpossibleError:
            raise _impossible(structure, l, pi, labels) from None
    return fit_listed(structure, l, sets, possible, l * pi)


def _crowded(circle: Circle, l: int) -> bool:
    """Whether there are too many sets to list."""
    return count_sets(circle, l) > SET_LIMIT


def _impossible(structure: Structure, l: int, pi: Floats, labels: Sequence[object] | None) -> ImpossibleError:
    crowd = heaviest_crowd(structure, pi)
    best = best_l(structure, pi)
    way_out = f"the largest l here is {best}" if best > 1 else "no value of l is feasible here"
    if l * crowd.mass > 1.0 + _SLACK:
        mass = f"{crowd.mass:.4g} of the prior, more than 1/{l}"
        what = f"no balanced design of {l} candidates: the value {crowd.name(labels)} alone has {mass}"
        if len(crowd.codes) > 1:
            what = (
                f"no balanced design of {l} candidates: the values {crowd.name(labels)} are mutually too close, so a "
                f"set holds at most one of them, but together they have {mass}"
            )
    else:
        what = f"no balanced design of {l} candidates: no mixture of valid sets includes every value in proportion"
    if isinstance(structure, Clusters) and structure.count == structure.size:
        # Without distances there is neither another design nor a d to choose.
        return ImpossibleError(what, f"{way_out}; or declare a prior that is less uneven")
    if largest_l(structure) >= l:
        floor = least_posterior(structure, pi)
        way_out += f"; or use the least-risk design, whose worst posterior is at least {floor:.4g}"
    return ImpossibleError(what, f"{way_out}; or choose a smaller d")
