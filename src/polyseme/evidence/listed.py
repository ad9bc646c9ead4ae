"""Published sets against the channel, where every valid set can be listed.

With `x` the shares of true values that fit best, each set is expected `e_R = N sum_v x_v P(R | v)` times. Compared
with that is how often each set was published (the deviance), how often each value is in a set, and how often each
pair of values is in one set. The fit only draws the expectations nearer to the counts, so the bounds in `tails`
stay on the safe side.
"""

from __future__ import annotations

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.counts import distinct
from polyseme.evidence.found import Evidence, Finding, fitted, impossible, least, tally
from polyseme.evidence.tails import deviance, deviance_tail, share_tail
from polyseme.mechanism import Mechanism

__all__ = ["listable", "listed_evidence"]

_SETS, _ENTRIES = 300_000, 6_000_000
"""Most valid sets, and pairs of values in them, that are gone through. Chosen by judgment."""
_LOST = 1e-12
"""Part of the records that may go missing among the valid sets: rounding of counts that are no whole numbers."""
_ROUNDING = 1e-6
"""How far the probabilities of a stored design may be from adding up to 1: they are written with 15 digits."""


def listable(mechanism: Mechanism) -> bool:
    """Whether the valid sets, and the pairs in them, are few enough to go through."""
    pairs = max(mechanism.l * (mechanism.l - 1) // 2, 1)
    return mechanism.design.has_at_most(min(_SETS, _ENTRIES // pairs))


def listed_evidence(sets: Ints, counts: Floats, mechanism: Mechanism) -> Evidence:
    """The evidence of distinct published sets; counts are of independent records, not always whole numbers."""
    valid = mechanism.design.sets()
    observed = _counted(valid, sets, counts, mechanism.size)
    if observed.sum() < counts.sum() * (1.0 - _LOST):
        return impossible(counts.sum(), "some published sets are not valid sets of the mechanism")
    inside = mechanism.design.likelihood(valid)
    if not _proper(valid, inside, mechanism):
        return impossible(
            counts.sum(), "the channel in the manifest is not a valid channel: its probabilities do not add up to one"
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
    findings = [
        Finding("deviance", float(found), deviance_tail(found, expected), 1, freedom),
        _held("singles", valid, observed, expected),
    ]
    if mechanism.l > 1:
        first, second = np.triu_indices(mechanism.l, 1)
        pairs = valid[:, first] * mechanism.size + valid[:, second]
        findings.append(_held("pairs", pairs, observed, expected))
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


def _held(name: str, held: Ints, observed: Floats, expected: Floats) -> Finding:
    """The value, or pair of values, that is in a set most surprisingly often or seldom.

    held  numbers of the values or pairs that each valid set holds: (sets, k)
    """
    kinds, place = np.unique(held, return_inverse=True)
    place, width = place.ravel(), held.shape[1]
    published = tally(place, np.repeat(observed, width), len(kinds))
    likely = tally(place, np.repeat(expected, width), len(kinds)) / expected.sum()
    tail = float(share_tail(published, float(observed.sum()), likely).min(initial=0.0))
    return Finding(name, tail, tail, 2 * len(kinds))
