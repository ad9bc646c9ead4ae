"""Published sets against the channel, where there are too many valid sets to list.

Sets are drawn from the mechanism for values in the shares that fit best, and published and drawn sets are compared as
two samples: how often each value, and each pair of values, stands in a set. Given how often a pair occurs in both
samples together, the part of the published ones is binomial. Nothing of the size of the domain squared is made, and
more records than are needed are not looked at.
"""

from __future__ import annotations

import hashlib

import numpy as np

from polyseme.designs.base import SetDistribution
from polyseme.distances.structure import Bools, Floats, Ints
from polyseme.evidence.found import Evidence, Finding, fitted, impossible, least, tally
from polyseme.evidence.listed import pair_places
from polyseme.evidence.tails import share_tail
from polyseme.mechanism import Mechanism
from polyseme.randomness import SystemStream, experiment

__all__ = ["sampled_evidence", "thinned"]

_RECORDS, _MEMBERS, _PAIRS = 200_000, 2_000_000, 1_000_000
"""Most published records, members of their sets, and pairs in them that are looked at."""
_TIMES = 4
"""How many sets are drawn for each published one."""
_WIDE = 8
"""Of larger sets only some values are looked at in pairs."""


def thinned(sets: Ints, counts: Ints, most: int) -> tuple[Ints, Ints]:
    """About `most` of the records, each kept with the same probability; which ones cannot be foreseen."""
    total = int(counts.sum())
    if total <= most:
        return sets, counts
    digest = hashlib.sha256(np.ascontiguousarray(sets).tobytes() + np.ascontiguousarray(counts).tobytes()).digest()
    kept = experiment(int.from_bytes(digest[:8], "big")).binomial(counts, most / total)
    return sets[kept > 0], kept[kept > 0]


def sampled_evidence(sets: Ints, counts: Ints, mechanism: Mechanism, scale: float = 1.0) -> Evidence:
    """The evidence of distinct published sets; `scale` records count as one."""
    if not _possible(sets, mechanism).all():
        return impossible(counts.sum() / scale, "some published sets are never drawn by the mechanism")
    sets, counts = thinned(sets, counts, _enough(mechanism.l))
    x, _ = fitted(sets, counts.astype(np.float64), mechanism)
    records = int(counts.sum())
    draws = _TIMES * records
    codes = experiment(1).choice(mechanism.size, draws, p=x / x.sum())
    drawn = mechanism.sample(codes, SystemStream.seeded("evidence"))
    once = np.ones(draws)
    weights = counts.astype(np.float64)
    part = records / (records + draws)
    width = mechanism.l
    published = tally(sets.ravel(), np.repeat(weights, width), mechanism.size)
    expected = tally(drawn.ravel(), np.repeat(once, width), mechanism.size)
    findings = [_compare("singles", published, expected, part, scale)]
    if width > 1:
        size, left, right = _some_values(sets, drawn, mechanism)
        findings.append(_compare("pairs", *_pairs(left, weights, right, once, size), part, scale))
    note = f"{mechanism.size:,} values have too many sets to list: values and pairs were compared with drawn sets"
    return least(findings, records / scale, note)


def _enough(l: int) -> int:
    """How many records are looked at: fewer when their sets are large."""
    seen = min(l, _WIDE)
    return min(_RECORDS, max(_MEMBERS // l, 1), _PAIRS // max(seen * (seen - 1) // 2, 1))


def _possible(sets: Ints, mechanism: Mechanism) -> Bools:
    """Whether each set can be drawn at all."""
    design = mechanism.design
    if isinstance(design, SetDistribution):
        return np.asarray(design.log_probability(sets) > -np.inf)
    return np.asarray(design.likelihood(sets).max(axis=1) > 0.0)


def _some_values(sets: Ints, drawn: Ints, mechanism: Mechanism) -> tuple[int, Ints, Ints]:
    """How many codes there are, and both samples; of large sets, members that are not looked at are -1."""
    if mechanism.l <= _WIDE:
        return mechanism.size, sets, drawn
    # As many values as leave a set `_WIDE` members on average.
    some = experiment(2).permutation(mechanism.size)[: max(mechanism.size * _WIDE // mechanism.l, 2)]
    number = np.full(mechanism.size, -1, dtype=np.int64)
    number[np.sort(some)] = np.arange(len(some))
    return len(some), _leading(number[sets]), _leading(number[drawn])


def _leading(sets: Ints) -> Ints:
    """The members that count, first in each row; -1 behind them."""
    return -np.sort(-sets, axis=1)[:, : int((sets >= 0).sum(axis=1).max(initial=1))]


def _pairs(sets: Ints, weights: Floats, drawn: Ints, once: Floats, size: int) -> tuple[Floats, Floats]:
    """How often each pair that occurs stands in published and in drawn sets."""
    keys, published, expected = [], [], []
    for chosen, weight, mine in ((sets, weights, True), (drawn, once, False)):
        for places, both in zip(pair_places(np.maximum(chosen, 0), size), _both(chosen)):
            found, place = np.unique(places[both], return_inverse=True)
            count = tally(place, weight[both], len(found))
            keys.append(found)
            published.append(count if mine else np.zeros(len(found)))
            expected.append(np.zeros(len(found)) if mine else count)
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    return (
        tally(place, np.concatenate(published), len(pairs)),
        tally(place, np.concatenate(expected), len(pairs)),
    )


def _both(sets: Ints) -> list[Bools]:
    """For each pair of columns, the rows in which both hold a value."""
    width = sets.shape[1]
    return [(sets[:, a] >= 0) & (sets[:, b] >= 0) for a in range(width) for b in range(a + 1, width)]


def _compare(name: str, published: Floats, drawn: Floats, part: float, scale: float) -> Finding:
    """The count that differs most surprisingly between the two samples."""
    tails = share_tail(published / scale, (published + drawn) / scale, part)
    tail = float(tails.min(initial=0.0))
    return Finding(name, tail, tail, 2 * max(int((published + drawn > 0.0).sum()), 1))
