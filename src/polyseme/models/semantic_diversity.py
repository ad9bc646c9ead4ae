"""(l, d)-semantic diversity: at least l values, far apart in meaning.

For published sets (`check_sets`):

    |R| >= l,   R a subset of V,   D(u, v) >= d for any two u, v of R     for every published set R

For equivalence classes (`check`), one of three readings:

    strict     the class has at least l different values, and any two of its different values are at least d apart
    exists     l values of the class can be found that are pairwise at least d apart
    frequency  around no value of the class do the values nearer than d hold more than 1/l of its records:
               l * sum of n(E, u) over u with D(u, v) < d  <=  |E|    for every v of E

where
    R        the set of candidates published for a record
    V        the domain
    D        semantic distance
    n(E, u)  records of class E with value u
    l, d     how many values, how far apart

Strict with equally frequent values implies frequency; strict implies exists; frequency implies exists (values picked
greedily each use up at most 1/l of the class). The worst value is a number of values against l for exists and
frequency, and the smallest distance against d for strict and for sets, unless only the number of values fails.

Oishi, Sei, Tahara and Ohsuga, (l, d)-semantic diversity.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.models.base import Merging, Score, Verdict, judge
from polyseme.models.diversity import at_least, strangers
from polyseme.models.far_apart import closest_pairs, heaviest_balls, largest_subsets
from polyseme.semantics.distances.base import Clusters, Distance
from polyseme.tables.equivalence_classes import Counts, PublishedSets

__all__ = ["Reading", "check", "check_sets", "merging", "relaxed", "score"]

Reading = Literal["strict", "exists", "frequency"]


def check_sets(sets: PublishedSets, distance: Distance, l: int, d: float) -> Verdict:
    """Has every published set l candidates of the domain, pairwise at least d apart?"""

    def score() -> Score:
        strange = strangers(sets)
        if strange.any():
            note = f"{int(strange.sum()):,} sets have a candidate outside the domain"
            return Score(np.where(strange, 0, sets.distinct), ~strange & (sets.distinct >= l), l, True, note)
        return _strict(sets.distinct, closest_pairs(sets, distance), l, d, "sets")

    return judge("semantic-diversity", sets.attribute, {"l": l, "d": d}, sets, sets.counts, score)


def score(counts: Counts, distance: Distance, l: int, d: float, reading: Reading = "strict") -> Score:
    """How far apart the values of each class are, in the given reading."""
    if reading == "strict":
        return _strict(counts.distinct, closest_pairs(counts, distance), l, d, "classes")
    if reading == "exists":
        subsets = largest_subsets(counts, distance, l, d)
        return Score(subsets, subsets >= l, l, at_least=True)
    balls = heaviest_balls(counts, distance, d)
    return Score(counts.sizes / balls, balls * l <= counts.sizes, l, at_least=True)


def merging(distance: Distance | None, d: float, reading: Reading) -> Merging:
    """A set of distant values stays one.

    Shares of a ball add up where balls are the same around all their values.
    """
    if reading == "exists":
        return "absorbing"
    clustered = distance is not None and isinstance(distance.structure(d), Clusters)
    return "additive" if reading == "frequency" and clustered else "neither"


def relaxed(counts: Counts, distance: Distance, l: int, d: float, reading: Reading = "strict") -> Bools:
    """Whether l values of each class are far apart: what all readings have in common."""
    if reading == "strict":
        return at_least(counts, l)
    return np.asarray(largest_subsets(counts, distance, l, d) >= l)


def check(counts: Counts, distance: Distance, l: int, d: float, reading: Reading = "strict") -> Verdict:
    """Has every class l values far apart, in the given reading?"""
    parameters = {"l": l, "d": d, "reading": reading}
    return judge(
        "semantic-diversity",
        counts.attribute,
        parameters,
        counts,
        counts.sizes,
        lambda: score(counts, distance, l, d, reading),
    )


def _strict(distinct: Ints, apart: Floats, l: int, d: float, things: str) -> Score:
    close: Bools = apart < d
    few = distinct < l
    fine = ~close & ~few
    note = f"{int(few.sum()):,} {things} have fewer than {l} values" if few.any() else ""
    if few.any() and not close.any():
        return Score(distinct, fine, l, at_least=True, note=note)
    return Score(apart, fine, d, at_least=True, note=note)
