"""Published sets against the channel, where there are too many valid sets to list.

Sets are drawn from the mechanism for values in the shares that fit best, and published and drawn sets are compared as
two samples: how often each value, each pair of values, and each gap between the codes of two values is in a set.
Given how often a pair occurs in both samples together, the part of the published ones is binomial. Gaps show a rule
that goes through the whole domain (every value beside the seventh after it) long before any one pair is seen twice.

Nothing of the size of the domain squared is made, and more records than are needed are not looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import polars as pl

from polyseme.arrays import Bools, Floats, Ints
from polyseme.evidence.found import Evidence, Finding, fitted, impossible, least, tally
from polyseme.evidence.tails import share_tail
from polyseme.mechanism import Mechanism
from polyseme.randomness import SystemStream, experiment

__all__ = ["sampled_evidence", "thinned"]

_RECORDS, _MEMBERS, _PAIRS = 100_000, 1_000_000, 500_000
"""Most published records, members of their sets, and pairs in them that are looked at. Chosen by judgment."""
_TIMES = 4
"""How many sets are drawn for each published one: with four, a fifth of the variance of the comparison is the drawn
sets' own. Chosen by judgment."""
_WIDE = 8
"""Of larger sets only some values are looked at in pairs: 28 pairs a set. Chosen by judgment."""


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
    if not all(np.isfinite(weight).all() for weight in mechanism.weights(sets)):
        return impossible(
            counts.sum() / scale, "the channel in the manifest is not a valid channel: it does not give probabilities"
        )
    if not mechanism.design.can_draw(sets).all():
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
        # A set may have a gap several times, but not as often as it has members.
        gaps = (_gaps(left, weights, size), _gaps(right, once, size))
        findings.append(_compare("gaps", *gaps, part, scale * max(left.shape[1] - 1, right.shape[1] - 1, 1)))
    note = f"{mechanism.size:,} values have too many sets to list: values and pairs were compared with drawn sets"
    return least(findings, records / scale, note)


def _enough(l: int) -> int:
    """How many records are looked at: fewer when their sets are large."""
    seen = min(l, _WIDE)
    return min(_RECORDS, max(_MEMBERS // l, 1), _PAIRS // max(seen * (seen - 1) // 2, 1))


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
    frames = []
    for chosen, weight, mine in ((sets, weights, 1.0), (drawn, once, 0.0)):
        for first, second, both in _both(chosen):
            pair = chosen[both, first] * size + chosen[both, second]
            counted = {"published": weight[both] * mine, "drawn": weight[both] * (1.0 - mine)}
            frames.append(pl.DataFrame({"pair": pair, **counted}))
    found = pl.concat(frames).group_by("pair").sum()
    return found["published"].to_numpy(), found["drawn"].to_numpy()


def _gaps(sets: Ints, weights: Floats, size: int) -> Floats:
    """How many pairs are apart by each number of codes: (size,)."""
    found = np.zeros(size)
    for first, second, both in _both(sets):
        found += tally(np.abs(sets[both, first] - sets[both, second]), weights[both], size)
    return found


def _both(sets: Ints) -> Iterator[tuple[int, int, Bools]]:
    """Each pair of columns, and the rows in which both hold a value."""
    for first in range(sets.shape[1]):
        for second in range(first + 1, sets.shape[1]):
            yield first, second, (sets[:, first] >= 0) & (sets[:, second] >= 0)


def _compare(name: str, published: Floats, drawn: Floats, part: float, scale: float) -> Finding:
    """The count that differs most surprisingly between the two samples."""
    tails = share_tail(published / scale, (published + drawn) / scale, part)
    tail = float(tails.min(initial=0.0))
    return Finding(name, tail, tail, 2 * max(int((published + drawn > 0.0).sum()), 1))
