"""Halves of reports, each with what a set adds to an unbiased estimate as the other half and other parts settle it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.base import Reports
from polyseme.estimators.parts import Part
from polyseme.estimators.unbiased import Half, UnbiasedMap, unbiased_map
from polyseme.mechanism import Mechanism
from polyseme.randomness import experiment

__all__ = ["Margin", "folded", "held"]

Margin: TypeAlias = Callable[[Ints, Ints | Floats, Mechanism], Floats]
"""The distribution of one attribute, from sets and how often each was reported."""

_BORROWED = 2.0
"""Records for each value with which the other parts speak in the working distribution of a part: enough to steady a
small part, and nothing to a large one."""
_SEED = 20_261_117
"""Any number: the same reports are halved in the same way each time."""


def folded(parts: Sequence[Part], sizes: Sequence[int], margin: Margin) -> list[list[Half]]:
    """The two halves of each part.

    sizes   of the attributes in the whole table
    margin  how the distribution of an attribute is found
    """
    draw = experiment(_SEED)
    halves = [_halved(part.reports, draw) for part in parts]
    known = [_known(part, held(part, part.reports.counts), margin) for part in parts] if len(parts) > 1 else []
    everybody = [np.zeros(size) for size in sizes]
    for part, own in zip(parts, known):
        for axis, counts in enumerate(own):
            everybody[axis][part.axes[axis]] += counts
    folds = []
    for place, (part, half) in enumerate(zip(parts, halves)):
        rest = part.reports.counts - half
        others = [
            np.maximum(everybody[axis][codes] - known[place][axis], 0.0) if known else np.zeros(len(codes))
            for axis, codes in enumerate(part.axes)
        ]
        folds.append(
            [
                Half(counts, _maps(part, _known(part, held(part, other), margin), others, len(parts)))
                for counts, other in ((half, rest), (rest, half))
            ]
        )
    return folds


def held(part: Part, counts: Ints) -> Ints | Floats:
    """What reports say: as often as they were made, or by their squared weights, which is where errors come from."""
    weights = part.reports.weights
    if weights is None:
        return counts
    squares = counts * weights**2
    total = float(squares.sum())
    # As many records of equal weight as would be as precise.
    return squares * (total / float(squares @ weights**2)) if total > 0.0 else np.zeros(len(counts))


def _known(part: Part, held: Ints | Floats, margin: Margin) -> list[Floats]:
    """What some of the reports of a part say of each attribute: its expected records."""
    records = float(held.sum())
    return [records * margin(sets, held, mechanism) for sets, mechanism in zip(part.reports.sets, part.mechanisms)]


def _maps(part: Part, own: Sequence[Floats], others: Sequence[Floats], parts: int) -> tuple[UnbiasedMap, ...]:
    maps = []
    for mine, theirs, mechanism in zip(own, others, part.mechanisms):
        most = _BORROWED * mechanism.size / max(float(theirs.sum()), 1e-300)
        # One further record of the whole table, spread evenly, decides where there is no other.
        even = 1.0 / (mechanism.size * parts)
        maps.append(unbiased_map(mechanism, mine + theirs * min(most, 1.0) + even))
    return tuple(maps)


def _halved(reports: Reports, draw: np.random.Generator) -> Ints:
    """How many records of each report fall into the first of two halves at random, whatever the order of the rows.

    Records of one draw stay together: they would tell each half the noise of the other.
    """
    weights = () if reports.weights is None else (reports.weights,)
    order = np.lexsort([*weights, *(column for sets in reports.sets for column in sets.T), reports.cell])
    counts = reports.counts[order]
    draws = np.maximum(np.rint(counts / reports.repeats), 1).astype(np.int64)
    half = np.empty_like(reports.counts)
    half[order] = counts * draw.binomial(draws, 0.5) // draws
    return half
