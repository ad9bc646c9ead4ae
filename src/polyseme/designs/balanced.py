"""Making designs of maximum entropy: balanced, or as nearly so as can be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.designs.base import LEAST_SHARE, SET_LIMIT
from polyseme.designs.chain import Chain, Steps
from polyseme.designs.circle import CircleDesign
from polyseme.designs.clusters import ClustersDesign, cluster_masses, fit_clusters
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.enumerated import ListedFamily, fit_listed
from polyseme.designs.feasibility import (
    LISTED_LIMIT,
    best_l,
    heaviest_crowd,
    largest_l,
    least_posterior,
    least_uneven,
    possible_sets,
    tight_windows,
)
from polyseme.designs.line import fit_line
from polyseme.designs.listing import count_sets, list_sets
from polyseme.designs.rooted import ROOTED_LIMIT, fit_rooted
from polyseme.distances.structure import Circle, Clusters, Floats, Graph, Line, Structure
from polyseme.errors import ImpossibleError, PolicyError

__all__ = ["balanced", "least_risk", "proper_prior"]

_NONE = np.empty(0, dtype=np.int64)
_SLACK = 1e-11
_RARE = 1e-6
"""Shares of the prior that are near the tolerance of a linear programme."""
_INWARD = 1e-3
"""How far the least-risk design on a line or graph steps back from the very edge of the possible."""


def proper_prior(prior: Floats | None, size: int) -> Floats:
    """A reference prior that adds up to one; uniform when none is given."""
    if prior is None:
        return np.full(size, 1.0 / size)
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (size,) or not np.all(np.isfinite(prior)) or np.any(prior <= 0):
        raise PolicyError(
            f"a reference prior needs one positive number for each of the {size:,} values",
            "a value that never occurs does not belong to the domain; a rare one gets a small number",
        )
    proper: Floats = prior / prior.sum()
    if proper.min() < LEAST_SHARE:
        raise PolicyError(f"a reference prior with shares below {LEAST_SHARE:g}", "a rare value gets a small number")
    return proper


def balanced(
    structure: Structure, l: int, prior: Floats | None = None, labels: Sequence[object] | None = None
) -> MaximumEntropy:
    """The design of maximum entropy with inclusion `l * prior`, under which every posterior is 1/l."""
    pi = proper_prior(prior, structure.size)
    even = prior is None or float(np.ptp(pi)) <= 1e-15
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
        return _over_clusters(structure, l, l * mass, None if even else pi, "balanced")
    return _over_listed(structure, l, pi, labels)


def _over_clusters(clusters: Clusters, l: int, target: Floats, prior: Floats | None, name: str) -> ClustersDesign:
    full = np.flatnonzero(target >= 1.0 - _SLACK).astype(np.int64)
    single = clusters.count == clusters.size
    shares = None
    if prior is not None and not single:
        shares = prior / cluster_masses(clusters, prior)[clusters.labels]
    return fit_clusters(clusters, l, np.minimum(target, 1.0), shares, full, name)


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
        # A linear programme takes so small a share for none; the fit does not, and refuses what it does not reach.
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
    way_out = f"the largest l here is {best}" if best > 1 else "no l works here"
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


def least_risk(structure: Structure, l: int, prior: Floats | None = None) -> MaximumEntropy:
    """Balanced where that exists; else the design whose inclusion is as nearly proportional to the prior as can be.

    With `s` the least possible ratio of the largest to the smallest `rho_v / pi_v`, no posterior exceeds
    `s / (s + l - 1)`, and no other design of this kind has a better bound. Over clusters the ratios are the best
    possible; on lines and graphs they are mixed with a thousandth of the plain design, so every set stays possible.
    """
    pi = proper_prior(prior, structure.size)
    try:
        design = balanced(structure, l, prior)
        design.name = "least-risk"
        return design
    except ImpossibleError:
        pass
    if isinstance(structure, Clusters):
        if structure.count < l:
            raise ImpossibleError(
                f"{l} candidates that are far enough apart do not exist: the values form {structure.count} groups, "
                "and a set holds at most one of each",
                f"l can be at most {structure.count}; or choose a smaller d",
            )
        mass = cluster_masses(structure, pi)
        return _over_clusters(structure, l, _capped(l, mass), pi, "least-risk")
    edge = least_uneven(structure, l, pi)
    if isinstance(structure, Line):
        plain = Chain(Steps(structure.ahead, _NONE), l, np.zeros(structure.size)).inclusion
        target = np.empty(structure.size)
        target[structure.order] = _INWARD * plain + (1.0 - _INWARD) * edge[structure.order]
        return fit_line(structure, l, target, _NONE, "least-risk")
    sets = list_sets(structure, l)
    plain = ListedFamily(sets, np.zeros(structure.size)).inclusion
    target = _INWARD * plain + (1.0 - _INWARD) * edge
    return fit_listed(structure, l, sets, np.arange(len(sets), dtype=np.int64), target, "least-risk")


def _capped(l: int, mass: Floats) -> Floats:
    """Proportional to `mass` with none above one, adding up to l: heavy clusters are in every set."""
    full = np.zeros(len(mass), dtype=bool)
    while True:
        rho = np.where(full, 1.0, mass * (l - full.sum()) / max(mass[~full].sum(), 1e-300))
        over = (rho > 1.0) & ~full
        if not over.any():
            return rho
        full |= over
