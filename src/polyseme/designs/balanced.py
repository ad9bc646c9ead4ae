"""Balanced designs of maximum entropy, and designs between a uniform and the true prior.

A design that is balanced for the reference prior `q_v` proportional to `pi_v^alpha` is uniform at alpha = 0 and, at
alpha = 1, gives an attacker who knows `pi` exactly 1/l. In between, a learner's success falls as alpha rises and the
expected error grows: rare values are drawn rarely.

Where neighboring values hold more than 1/l of `q` no balanced design exists. Then the target `l q` is approached from
the *plain* design, `P(R)` proportional to the product of `q_v` over R, whose inclusion probabilities follow `q` as far
as the valid sets let them:

    rho = plain + reach * s * (l q - plain),        s the largest for which plain + s (l q - plain) can be had

At the very edge of what is possible some windows are in every set and hardly anything can be estimated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack

from polyseme.designs.base import LEAST_SHARE, SET_LIMIT
from polyseme.designs.circle import ROOTED_LIMIT, CircleDesign, fit_rooted
from polyseme.designs.clusters import ClustersDesign, cluster_masses, fit_clusters
from polyseme.designs.distribution import MaximumEntropy, count_sets, list_sets
from polyseme.designs.feasibility import (
    LISTED_LIMIT,
    best_l,
    few_sets,
    heaviest_crowd,
    largest_l,
    least_posterior,
    membership,
    possible_sets,
    programme,
    tight_windows,
    window_masses,
)
from polyseme.designs.line import LineDesign, fit_line
from polyseme.designs.maximum_entropy import ListedFamily, fit_listed
from polyseme.designs.reach import floor_inclusion, reach_of
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure

__all__ = ["RAREST", "REACH", "balanced", "near_floor", "proper_prior", "tempered", "tempered_prior"]

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
    """The maximum-entropy design with inclusion `l * prior`: every posterior is 1/l."""
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


RAREST = 1e-6
"""Shares below this are taken for it: a value that no person in a group has must still be able to be a decoy."""

REACH = 0.5
"""How far towards the edge of what is possible a design goes where no balanced one exists.

On the demo's ten strata (decades of age by sex) at (2,2), alpha = 0.75 and p chosen for a success of 0.5, parts of 0.3,
0.5, 0.7, 0.85 and 0.95 of the way have expected root mean squared errors of 16.0, 16.2, 16.5, 17.5 and 20.8 e-4: up to
half of the way the error hardly grows, while the learner's success falls.
"""

_NONE = np.empty(0, dtype=np.int64)
_NAME = "least-risk"


def tempered_prior(shares: Floats, alpha: float) -> Floats:
    """`pi^alpha`, adding up to one.

    >>> tempered_prior(np.array([0.8, 0.2]), 0.5).round(4)
    array([0.6667, 0.3333])
    """
    raised = np.maximum(shares, RAREST) ** alpha
    return np.asarray(raised / raised.sum())


def tempered(structure: Structure, l: int, shares: Floats, alpha: float, reach: float = REACH) -> MaximumEntropy:
    """The design balanced for `shares ** alpha`, or one towards it if there is none (see above)."""
    prior = tempered_prior(shares, alpha)
    try:
        return balanced(structure, l, prior)
    except ImpossibleError:
        plain = _plain(structure, l, prior)
        target = plain + reach * _room(structure, l, plain, l * prior) * (l * prior - plain)
        return _with_inclusion(structure, l, target, np.log(prior))


def near_floor(structure: Structure, l: int, shares: Floats, step: float) -> MaximumEntropy:
    """A design near the lowest learner's success that truthful sets allow.

    `step` (0 to 1) is the distance from that edge.
    """
    prior = tempered_prior(shares, 1.0)
    plain = _plain(structure, l, prior)
    target = (1.0 - step) * floor_inclusion(reach_of(structure, l), prior) + step * plain
    return _with_inclusion(structure, l, target, np.log(prior))


def _plain(structure: Structure, l: int, prior: Floats) -> Floats:
    """The inclusion probabilities of the plain design."""
    if isinstance(structure, Line):
        plain = LineDesign(structure, l, np.log(prior), _NONE, _NAME)
        found = plain.inclusion() if np.isfinite(plain.chain.log_total) else np.zeros(1)
    elif isinstance(structure, Clusters):
        possible = structure.count >= l
        found = _tempered_over_clusters(structure, l, prior).inclusion() if possible else np.zeros(1)
    else:
        sets = few_sets(structure, l)
        found = ListedFamily(sets, np.log(prior)).inclusion if len(sets) else np.zeros(1)
    if not found.min() > 0.0:
        raise ImpossibleError("some values are in no valid set", "choose a smaller l or d")
    return found


def _tempered_over_clusters(clusters: Clusters, l: int, prior: Floats) -> ClustersDesign:
    mass = cluster_masses(clusters, prior)
    return ClustersDesign(clusters, l, np.log(mass), prior / mass[clusters.labels], _NONE, _NAME)


def _with_inclusion(structure: Structure, l: int, target: Floats, start: Floats) -> MaximumEntropy:
    """The design of maximum entropy with inclusion probabilities well inside of what is possible."""
    if isinstance(structure, Line):
        return fit_line(structure, l, target, _NONE, _NAME, start)
    if isinstance(structure, Clusters):
        mass = cluster_masses(structure, target)
        shares = None if structure.count == structure.size else target / mass[structure.labels]
        return fit_clusters(structure, l, mass, shares, _NONE, _NAME)
    sets = few_sets(structure, l)
    return fit_listed(structure, l, sets, np.arange(len(sets), dtype=np.int64), target, _NAME, start)


def _room(structure: Structure, l: int, plain: Floats, target: Floats) -> float:
    """The largest part of the way from `plain` to `target` that is within reach; at most one."""
    if isinstance(structure, (Line, Clusters)):
        # Exactly where the first window holds one (`feasibility.py`).
        here, there = window_masses(structure, plain), window_masses(structure, target)
        more = there > here
        return float(np.min((1.0 - here[more]) / (there - here)[more], initial=1.0))
    return _listed_room(membership(few_sets(structure, l), structure.size), plain, target)


def _listed_room(member: csr_array, plain: Floats, target: Floats) -> float:
    columns = hstack([member, coo_array((plain - target)[:, None])], format="csr")
    cost = np.append(np.zeros(member.shape[1]), -1.0)
    bounds = [(0.0, None)] * member.shape[1] + [(0.0, 1.0)]
    return float(programme(cost, A_eq=columns, b_eq=plain, bounds=bounds)[-1])
