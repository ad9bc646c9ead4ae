"""Making balanced designs of maximum entropy, and reading designs of maximum entropy again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.designs.base import SET_LIMIT
from polyseme.designs.circle import CircleDesign
from polyseme.designs.clusters import ClustersDesign, cluster_masses, fit_clusters
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.enumerated import EnumeratedDesign, fit_listed
from polyseme.designs.feasibility import (
    LISTED_LIMIT,
    best_l,
    heaviest_crowd,
    largest_l,
    least_posterior,
    possible_sets,
    tight_windows,
)
from polyseme.designs.line import LineDesign, fit_line
from polyseme.designs.listing import count_sets, list_sets
from polyseme.designs.rooted import ROOTED_LIMIT, RootedDesign, fit_rooted
from polyseme.distances.structure import Circle, Clusters, Floats, Graph, Ints, Line, Structure
from polyseme.errors import ImpossibleError, PolicyError

__all__ = ["balanced", "proper_prior", "read_maximum_entropy"]

_SLACK = 1e-11


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
        raise _impossible(structure, l, pi, labels)
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


def read_maximum_entropy(name: str, structure: Structure, l: int, parameters: Mapping[str, Any]) -> MaximumEntropy:
    """The design with these parameters, nothing fitted again."""

    def floats(key: str) -> Floats | None:
        return np.asarray(parameters[key], dtype=np.float64) if key in parameters else None

    def ints(key: str) -> Ints:
        return np.asarray(parameters.get(key, []), dtype=np.int64)

    weights = floats("log_weights")
    if isinstance(structure, Clusters):
        return ClustersDesign(structure, l, weights, floats("shares"), ints("full"), name)
    if isinstance(structure, Circle) and weights is None:
        return CircleDesign(structure, l, name)
    if weights is None or len(weights) != structure.size:
        raise PolicyError(f"a {name} design over {structure.size:,} values needs as many log weights")
    if isinstance(structure, Line):
        return LineDesign(structure, l, weights, ints("tight"), name)
    if isinstance(structure, Circle) and "excluded" not in parameters:
        return RootedDesign(structure, l, weights, name)
    return EnumeratedDesign(structure, l, weights, ints("excluded"), name)
