"""Published sets against the channel, where every valid set can be listed.

With `x` the shares of true values that fit best, each set is expected `e_R = N sum_v x_v P(R | v)` times. Two counts
are compared with that: how often each set was published (the deviance), and how often each pair of values stands in one
set. The fit only draws the expectations nearer to the counts, so the bounds in `tails` stay on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from polyseme.designs.rooted import RootedDesign
from polyseme.distances.structure import Floats, Ints
from polyseme.errors import ImpossibleError
from polyseme.estimators.counts import distinct
from polyseme.evidence.found import Evidence, Finding, fitted, impossible, least, tally
from polyseme.evidence.tails import deviance, deviance_tail, share_tail
from polyseme.mechanism import Mechanism

__all__ = ["listable", "listed_evidence", "pair_places"]

_SETS, _ENTRIES = 300_000, 6_000_000
_ROUNDING = 1e-6


def listable(mechanism: Mechanism) -> bool:
    """Whether the valid sets, and the pairs in them, are few enough to go through."""
    if isinstance(mechanism.design, RootedDesign):
        return False
    try:
        count = mechanism.design.count()
    except ImpossibleError:
        return False
    return count <= _SETS and count * max(mechanism.l * (mechanism.l - 1) // 2, 1) <= _ENTRIES


def listed_evidence(sets: Ints, counts: Floats, mechanism: Mechanism) -> Evidence:
    """The evidence of distinct published sets; counts are of independent records, not always whole numbers."""
    valid = mechanism.design.sets()
    observed = _counted(valid, sets, counts, mechanism.size)
    if observed.sum() < counts.sum() * (1.0 - 1e-12):
        return impossible(counts.sum(), "some published sets are not valid sets of the mechanism")
    inside = mechanism.design.likelihood(valid)
    if not _proper(valid, inside, mechanism):
        return impossible(
            counts.sum(), "the channel in the manifest is not one: its probabilities do not add up to one"
        )
    x, gap = fitted(sets, counts, mechanism)
    chance = mechanism.p * (x[valid] * inside).sum(axis=1)
    if mechanism.p < 1.0:
        chance = chance + (1.0 - mechanism.p) * mechanism.design.blind_likelihood(valid)
    expected = counts.sum() * chance
    if (observed[expected == 0.0] > 0.0).any():
        return impossible(counts.sum(), "some published sets are never drawn by the mechanism")
    # What the fit may still lack, at most: the deviance at the very best fit is not smaller than this.
    found = max(deviance(observed, expected) - 2.0 * counts.sum() * gap, 0.0)
    freedom = max(int((expected > 0.0).sum()) - mechanism.size, 0)
    findings = [Finding("deviance", found, deviance_tail(found, expected), 1, freedom)]
    if mechanism.l > 1:
        findings.append(_pairs(valid, observed, expected, mechanism.size))
    return least(findings, counts.sum())


def _counted(valid: Ints, sets: Ints, counts: Floats, size: int) -> Floats:
    """How often each valid set was published."""
    rows, place = distinct(np.concatenate([valid, sets]), size)
    return tally(place[len(valid) :], counts, len(rows))[place[: len(valid)]]


def _proper(valid: Ints, inside: Floats, mechanism: Mechanism) -> bool:
    """Whether the sets that hold each value have, given it, probability one in all."""
    total = tally(valid.ravel(), inside.ravel(), mechanism.size)
    blind = float(mechanism.design.blind_likelihood(valid).sum())
    return bool(np.all(np.abs(total - 1.0) <= _ROUNDING) and abs(blind - 1.0) <= _ROUNDING)


def pair_places(sets: Ints, size: int) -> Iterator[Ints]:
    """Numbers of the pairs of values in each set, one array for each pair of columns."""
    for first in range(sets.shape[1]):
        for second in range(first + 1, sets.shape[1]):
            yield sets[:, first] * size + sets[:, second]


def _pairs(valid: Ints, observed: Floats, expected: Floats, size: int) -> Finding:
    """The pair of values that stands together most surprisingly often or seldom."""
    places = np.stack(list(pair_places(valid, size)), axis=1)
    pairs, place = np.unique(places, return_inverse=True)
    place, width = place.ravel(), places.shape[1]
    together = tally(place, np.repeat(observed, width), len(pairs))
    likely = tally(place, np.repeat(expected, width), len(pairs))
    records = float(observed.sum())
    tails = share_tail(together, records, likely / expected.sum())
    return Finding("pairs", float(tails.min(initial=0.0)), float(tails.min(initial=0.0)), 2 * len(pairs))
