"""Tables of many attributes, those of the 45,222 complete Adult records, and what each method makes of some of them.

Continuous columns stand in classes; the paper does not say which, only that domains have 2 to 41 values. Ages and hours
stand in classes of 5, fnlwgt in classes of 50,000, gains in classes of 1,000 and losses in classes of 250.

| name          | sets by                                      | table by                                |
|---------------|----------------------------------------------|-----------------------------------------|
| Proposal      | decoys drawn evenly                          | Equations 26 and 27, iterated (`bayes`) |
| ValueAdding   | the same sets                                | every record shared evenly, Equation 18 |
| Rating        | fixed groups of l values (our reading of it) | records shared evenly within groups     |
| Rating, drawn | values of other records                      | every record shared evenly              |
| Random        | none                                         | records thrown into cells               |
| ours          | the sets of the Proposal                     | maximum likelihood on the sets          |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.base import Reports
from polyseme.estimators.linear import ValueAdding
from polyseme.estimators.maximum import Bayes, MaximumLikelihood
from polyseme.mechanism import Mechanism
from polyseme.metrics.cross_tabulations import hellinger, l1, l2
from polyseme.randomness import SystemStream, experiment
from polyseme.studies.adult_files import COLUMNS, adult_rows
from polyseme.studies.baselines import random_table, rating, rating_table, value_groups

__all__ = [
    "DISTANCES",
    "OURS",
    "PROPOSAL",
    "RANDOM",
    "RATING",
    "RATING_DRAWN",
    "VALUEADDING",
    "Attributes",
    "attributes",
    "decoy_tables",
    "distances",
    "grouped",
    "rating_tables",
    "tabulate",
]

PROPOSAL, VALUEADDING, RANDOM, OURS = "Proposal", "ValueAdding", "Random", "ours"
RATING, RATING_DRAWN = "Rating", "Rating, drawn"
DISTANCES = ("L1", "L2", "Hellinger")
_CLASSES = {
    "age": (5, 90),
    "fnlwgt": (50_000, 600_000),
    "capital-gain": (1_000, 20_000),
    "capital-loss": (250, 3_000),
    "hours-per-week": (5, 99),
}
"""Continuous columns: the width of their classes, and where the last one begins."""
_LARGE = 2**40
"""Numbers of sets are made small again before they could overflow."""


@dataclass(frozen=True, eq=False)
class Attributes:
    """Codes of every attribute, and how many values each has."""

    codes: tuple[Ints, ...]
    sizes: tuple[int, ...]

    @property
    def records(self) -> int:
        return len(self.codes[0])

    def counts(self, place: int) -> Ints:
        return np.bincount(self.codes[place], minlength=self.sizes[place]).astype(np.int64)

    def some(self, many: int, generator: np.random.Generator) -> tuple[int, ...]:
        """Attributes that are asked for together."""
        return tuple(int(place) for place in generator.choice(len(self.sizes), many, replace=False))


@lru_cache(maxsize=1)
def attributes(folder: Path) -> Attributes:
    """Those of the Adult records."""
    rows = adult_rows(folder, both=True)
    coded = []
    for name in COLUMNS:
        values = rows[name]
        if name in _CLASSES:
            width, last = _CLASSES[name]
            values = np.minimum(values.astype(np.int64), last) // width
        coded.append(np.unique(values, return_inverse=True)[1].astype(np.int64).ravel())
    return Attributes(tuple(coded), tuple(int(codes.max()) + 1 for codes in coded))


def tabulate(codes: Sequence[Ints], shape: Sequence[int]) -> Floats:
    flat = np.ravel_multi_index(tuple(codes), tuple(shape))
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(tuple(shape)).astype(np.float64)


def grouped(sets: Sequence[Ints]) -> Reports:
    """Identical combinations of sets counted once.

    Sets are numbered attribute by attribute, which is many times faster than comparing whole rows.
    """
    number = np.zeros(len(sets[0]), dtype=np.int64)
    for part in sets:
        own = np.zeros(len(part), dtype=np.int64)
        for column in part.T:
            own = own * (int(part.max()) + 1) + column
            own = np.unique(own, return_inverse=True)[1].ravel() if own.max() > _LARGE else own
        own = np.unique(own, return_inverse=True)[1].ravel()
        number = np.unique(number * (int(own.max()) + 1) + own, return_inverse=True)[1].ravel()
    _, first, counts = np.unique(number, return_index=True, return_counts=True)
    parts = tuple(np.ascontiguousarray(part[first]) for part in sets)
    return Reports(parts, np.zeros(len(first), dtype=np.int64), counts.astype(np.int64), 1)


def decoy_tables(codes: Sequence[Ints], mechanisms: Sequence[Mechanism], stream: SystemStream) -> dict[str, Floats]:
    """What is made of the sets of these attributes."""
    sets = [mechanism.sample(code, stream) for code, mechanism in zip(codes, mechanisms, strict=True)]
    reports = grouped(sets)
    return {
        PROPOSAL: Bayes().fit(reports, mechanisms).values[0],
        VALUEADDING: ValueAdding().fit(reports, mechanisms).values[0],
        OURS: MaximumLikelihood().fit(reports, mechanisms).values[0],
    }


def rating_tables(
    codes: Sequence[Ints], sizes: Sequence[int], plain: Sequence[Mechanism], seed: int, stream: SystemStream
) -> dict[str, Floats]:
    """Rating in two readings, and Random."""
    ls = [mechanism.l for mechanism in plain]
    groups = [
        value_groups(np.bincount(code, minlength=size), l) for code, size, l in zip(codes, sizes, ls, strict=True)
    ]
    drawn = [rating(code, size, l, stream) for code, size, l in zip(codes, sizes, ls, strict=True)]
    return {
        RATING: rating_table(codes, groups),
        RATING_DRAWN: ValueAdding().fit(grouped(drawn), plain).values[0],
        RANDOM: random_table(len(codes[0]), sizes, experiment(seed)),
    }


def distances(truth: Floats, estimate: Floats) -> dict[str, float]:
    """Definitions 7 to 9, of shares of the records: the axes of the paper's figures end at one."""
    records = float(truth.sum())
    found = (l1(truth, estimate) / records, l2(truth, estimate) / records, hellinger(truth, estimate) / records**0.5)
    return dict(zip(DISTANCES, found, strict=True))
