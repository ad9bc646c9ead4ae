"""The sensitive-QID paper's tables: printed ones, the complete Adult records, the US Census.

Printed are its Tables I to IV, its Examples 2 and 3 and that of section II.

*Adult.* Tables of many attributes are those of the 45,222 complete records. Continuous columns stand in classes; the
paper does not say which, only that domains have 2 to 41 values. Ages and hours stand in classes of 5, fnlwgt in classes
of 50,000, gains in classes of 1,000 and losses in classes of 250. Each method makes of them:

| name          | sets by                                      | table by                                |
|---------------|----------------------------------------------|-----------------------------------------|
| Proposal      | decoys drawn evenly                          | Equations 26 and 27, iterated (`bayes`) |
| ValueAdding   | the same sets                                | every record shared evenly, Equation 18 |
| Rating        | fixed groups of l values (our reading of it) | records shared evenly within groups     |
| Rating, drawn | values of other records                      | every record shared evenly              |
| Random        | none                                         | records thrown into cells               |
| ours          | the sets of the Proposal                     | maximum likelihood on the sets          |

*The US Census table of 1990 (UCI)* is read from its file where that is given, else a table of its shape is generated.

The file is `USCensus1990.data.txt`: a header, 2,458,285 records, a number of the case and 68 attributes of 2 to 18
values. It is checked by its size and its SHA-256 before it is read. Studies use some of its records, drawn at random.

The generated table has as many attributes with as many values. Every record belongs to one of six hidden kinds of
people, each with its own shares of every attribute, so that attributes go together as far as the kinds differ.
Distances on it say how methods behave at this size and shape. They do not say what they would be on the census.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import floor, log
from pathlib import Path

import numpy as np
import polars as pl

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.sets.linear import ValueAdding
from polyseme.inference.sets.maximum import Bayes, MaximumLikelihood
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import InvalidInput
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.papers.adult import COLUMNS, adult_rows
from polyseme.papers.baselines import (
    algorithm_one,
    algorithm_one_as_printed,
    posteriors,
    random_table,
    rating,
    rating_table,
    value_groups,
)
from polyseme.papers.printed_example import Example, Record, classes
from polyseme.papers.study import Sources
from polyseme.scrutiny.metrics.cross_tabulations import hellinger, l1, l2
from polyseme.semantics.distances.ground import Equal

__all__ = [
    "ATTRIBUTES",
    "DISTANCES",
    "EXAMPLES",
    "GENERATED",
    "OURS",
    "PROPOSAL",
    "RANDOM",
    "RATING",
    "RATING_DRAWN",
    "REAL",
    "RECORDS",
    "VALUEADDING",
    "Attributes",
    "attributes",
    "census",
    "census_name",
    "decoy_tables",
    "distances",
    "find_census",
    "grouped",
    "rating_tables",
    "tabulate",
]

_AGE = ("41", "41", "51", "51", "51", "51", "51", "51")
_ADDRESS = ("13021", "17025", "13021", "14053", "14003", "16005", "14003", "16005")
_JOB = ("Artist", "Writer", "Lawyer", "Lawyer", "Lawyer", "Lawyer", "Lawyer", "Lawyer")
_DISEASE = ("Fever", "Obesity", "Fever", "Obesity", "HIV", "HIV", "Fever", "Obesity")
_TABLE_1: tuple[Record, ...] = tuple(zip(_AGE, _ADDRESS, _JOB, _DISEASE, strict=True))
_TWO_B = ("13*-17*", "13*-17*", "13*-14*", "13*-14*", "14003", "16005", "14003", "16005")
_TABLE_2B: tuple[Record, ...] = tuple(zip(_AGE, _TWO_B, ("*", "*", *_JOB[2:]), _DISEASE, strict=True))
_TABLE_2C = ("1", "1", "2", "2", "2", "2", "2", "2")
"""The class of each record of Table II(c), as the text describes it: Ewen's has a third of each disease."""
_TABLE_4 = (
    ({"41", "23"}, {"12255", "13021"}, {"Artist", "Programmer"}, {"Fever", "Flu", "Chill"}),
    ({"79", "41"}, {"14000", "17025"}, {"Lawyer", "Writer"}, {"Cold", "Obesity", "Pus"}),
    ({"42", "51"}, {"13021", "13997"}, {"Writer", "Lawyer"}, {"Cancer", "Fever", "Sty"}),
    ({"51", "33"}, {"18002", "14053"}, {"Driver", "Lawyer"}, {"Cold", "Flu", "Obesity"}),
    ({"15", "51"}, {"14003", "15500"}, {"Lawyer", "Teacher"}, {"Cold", "HIV", "Sty"}),
    ({"51", "69"}, {"16005", "12332"}, {"Researcher", "Lawyer"}, {"HIV", "Fever", "Sty"}),
    ({"51", "39"}, {"14005", "14003"}, {"Lawyer", "Programmer"}, {"Flu", "Cold", "Fever"}),
    ({"51", "60"}, {"16005", "12001"}, {"Lawyer", "Writer"}, {"Obesity", "HIV", "Pus"}),
)
_QIDS = range(4)


def _for(column: int) -> list[list[Record]]:
    """The equivalence classes of Definition 10."""
    return classes(_TABLE_2B, [place for place in _QIDS if place != column])


def _example_2(_: Sources) -> Mapping[str, float]:
    return {f"classes for S{place + 1}": len(_for(place)) for place in _QIDS}


def _example_2_again(_: Sources) -> Mapping[str, float]:
    """Pairs of records that agree elsewhere, and how many parts they connect the records to."""
    found = {}
    for column in _QIDS:
        part = list(range(len(_TABLE_2B)))
        for one, other in combinations(range(len(_TABLE_2B)), 2):
            if all(_TABLE_2B[one][place] == _TABLE_2B[other][place] for place in _QIDS if place != column):
                part = [part[one] if number == part[other] else number for number in part]
        found[f"classes for S{column + 1}"] = len(set(part))
    return found


def _example_3(_: Sources) -> Mapping[str, float]:
    return {f"l{place + 1}": floor(1 / _most(place)) for place in _QIDS}


def _most(column: int) -> float:
    """The largest relative frequency of a value in a class."""
    held = [[record[column] for record in found] for found in _for(column)]
    return max(values.count(value) / len(values) for values in held for value in values)


def _table_2c(_: Sources) -> Mapping[str, float]:
    names = sorted(set(_DISEASE))
    whole = np.array([_DISEASE.count(name) / len(_DISEASE) for name in names])
    found = classes(list(zip(_TABLE_2C, _DISEASE, strict=True)), [0])
    shares = [np.array([sum(record[1] == name for record in held) / len(held) for name in names]) for held in found]
    return {"furthest class from the whole": max(float(np.abs(one - whole).sum() / 2) for one in shares)}


def _table_3(_: Sources) -> Mapping[str, float]:
    rows = list(product(("33", "41"), ("10105", "32515"), ("Cold", "HIV")))
    held = [len(found) for place in range(3) for found in classes(rows, [p for p in range(3) if p != place])]
    return {"rows of Table III(b)": len(rows), "smallest class of any attribute": min(held)}


def _table_4(_: Sources) -> Mapping[str, float]:
    holding = sum(
        all(value in cell for value, cell in zip(record, cells, strict=True))
        for record, cells in zip(_TABLE_1, _TABLE_4, strict=True)
    )
    sizes = {f"values of S{place + 1}": min(len(cells[place]) for cells in _TABLE_4) for place in _QIDS}
    return {"records that hold the true values": holding, **sizes}


def _distances(_: Sources) -> Mapping[str, float]:
    pairs = {"{10, 100} and {10, 80}": ([10, 100], [10, 80]), "{10, 25} and {10, 5}": ([10, 25], [10, 5])}
    found: dict[str, float] = {}
    for name, (one, other) in pairs.items():
        first, second = np.array(one, dtype=np.float64), np.array(other, dtype=np.float64)
        found |= {f"L1, {name}": l1(first, second), f"Hellinger, {name}": hellinger(first, second)}
    return found


def _likeness(share: float, beta: float) -> float:
    """The largest share under enhanced beta-likeness: growth by beta, or by -ln p if less."""
    return share * (1.0 + min(beta, -log(share)))


def _related_work(_: Sources) -> Mapping[str, float]:
    return {
        "0.1-close, from 0.5": 0.5 + 0.1,
        "0.1-close, from 0.01": 0.01 + 0.1,
        "times as likely, from 0.5": (0.5 + 0.1) / 0.5,
        "times as likely, from 0.01": (0.01 + 0.1) / 0.01,
        "0.7-like, from 0.5": _likeness(0.5, 0.7),
        "0.7-like, from 0.01": _likeness(0.01, 0.7),
    }


_T = 0.1


def _algorithm_1(_: Sources) -> Mapping[str, float]:
    """How many sets move Table I's diseases by more than t, with the parameters of Algorithm 1."""
    return {_BEYOND: _sets_beyond(algorithm_one_as_printed)}


def _algorithm_1_mended(_: Sources) -> Mapping[str, float]:
    return {_BEYOND: _sets_beyond(algorithm_one)}


def _sets_beyond(how: Callable[[Floats, float, Equal], tuple[float, int]]) -> int:
    prior = np.array([_DISEASE.count(name) for name in sorted(set(_DISEASE))]) / len(_DISEASE)
    p, eta = how(prior, _T, Equal())
    return int(np.sum(_moved(prior, eta, p) > _T + 1e-9))


def _moved(prior: Floats, eta: int, p: float) -> Floats:
    return np.asarray(Equal().work(posteriors(prior, eta, p) - prior), dtype=np.float64)


_BEYOND = "sets that move shares by more than t"

EXAMPLES = (
    Example(
        "sensitive QIDs, Example 2",
        "Table II(b) has four equivalence classes for each attribute",
        {f"classes for S{place}": 4 for place in (1, 2, 3, 4)},
        _example_2,
        again=_example_2_again,
        how="records that agree in all other attributes are paired, and connected ones counted",
        why="By Definition 10, a class holds the records that agree in all other attributes.",
    ),
    Example(
        "sensitive QIDs, Tables I-II and Example 3",
        "Table II(b) satisfies (1, 1, 1, 2)-diversity",
        {"l1": 1, "l2": 1, "l3": 1, "l4": 2},
        _example_3,
    ),
    Example(
        "sensitive QIDs, Table II(c)",
        "Table II(c) is 0.25-close",
        {"furthest class from the whole": 0.25},
        _table_2c,
    ),
    Example(
        "sensitive QIDs, Table III",
        "Alice's two values of each attribute stand for eight records, two in every class",
        {"rows of Table III(b)": 8, "smallest class of any attribute": 2},
        _table_3,
    ),
    Example(
        "sensitive QIDs, Table IV",
        "Table IV is Table I with (2, 2, 2, 3)-diversity",
        {
            "records that hold the true values": 8,
            "values of S1": 2,
            "values of S2": 2,
            "values of S3": 2,
            "values of S4": 3,
        },
        _table_4,
    ),
    Example(
        "sensitive QIDs, II",
        "L1 cannot tell two pairs of tables apart whose Hellinger distances are 0.74 and 1.95",
        {
            "L1, {10, 100} and {10, 80}": 20,
            "L1, {10, 25} and {10, 5}": 20,
            "Hellinger, {10, 100} and {10, 80}": 0.74,
            "Hellinger, {10, 25} and {10, 5}": 1.95,
        },
        _distances,
        why="The first is 0.7465, cut to two decimals in the print.",
    ),
    Example(
        "sensitive QIDs, III",
        "By 0.1-closeness HIV can become 1.2 or 11 times as likely; by 0.7-likeness it can grow to 0.846 or to 0.017",
        {
            "0.1-close, from 0.5": 0.6,
            "0.1-close, from 0.01": 0.11,
            "times as likely, from 0.5": 1.2,
            "times as likely, from 0.01": 11,
            "0.7-like, from 0.5": 0.846,
            "0.7-like, from 0.01": 0.017,
        },
        _related_work,
        why="Enhanced likeness lets a share p grow by the smaller of beta and -ln p, as a multiple of p.",
    ),
    Example(
        "sensitive QIDs, Algorithm 1",
        "The parameters of Algorithm 1 keep t-closeness (Theorem 4): Table I's diseases at t = 0.1",
        {_BEYOND: 0},
        _algorithm_1,
        mended=_algorithm_1_mended,
        how="the least p over all sets of a size in lines 10 and 13",
        why="Line 10 keeps a p for every single set, and line 13 takes the best pair of all: p is then too large for "
        "other sets of that size. The least p over all sets of a size is what the theorem needs.",
        claimed=True,
    ),
)


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
        """Attributes of one question."""
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


RECORDS, ATTRIBUTES = 2_458_285, 68
REAL, GENERATED = "US Census", "generated census"
_BYTES = 361_344_227
_SHA256 = "38e99f50855ddc03167b715b36519ef40b77295ae4e85dfef0c6429ac79ed799"
_LEAST, _MOST = 2, 18
"""Values of an attribute."""
_KINDS = 6


def find_census(given: str | None) -> tuple[Path | None, str]:
    """The file, if one was given and it is the published one, and what is used, in words."""
    if given is None:
        return None, "not given (--data census=FILE): a generated table of its shape stands for it"
    file = Path(given)
    if not file.is_file():
        raise InvalidInput(f"{file}: there is no such file", "the file is USCensus1990.data.txt of the UCI repository")
    if file.stat().st_size != _BYTES:
        raise InvalidInput(f"{file}: {file.stat().st_size:,} bytes, where {_BYTES:,} were published")
    with file.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != _SHA256:
            raise InvalidInput(f"{file}: its SHA-256 is not that of the published file")
    return file, "from the file that was given"


def census_name(file: Path | None) -> str:
    """What points and charts call the table, so that one is never taken for the other."""
    return GENERATED if file is None else REAL


@lru_cache(maxsize=1)
def census(file: Path | None, records: int) -> Attributes:
    """So many records of the census, or of a table of its shape."""
    return _generated(records) if file is None else _read(file, records)


def _read(file: Path, records: int) -> Attributes:
    with file.open(encoding="utf-8") as opened:
        names = [name.strip() for name in opened.readline().split(",")][1:]
    table = pl.read_csv(file, columns=list(range(1, len(names) + 1)), infer_schema_length=1_000)
    chosen = np.sort(experiment(1).choice(len(table), min(records, len(table)), replace=False))
    coded = [np.unique(table[:, place].to_numpy(), return_inverse=True) for place in range(len(names))]
    codes = tuple(code.ravel()[chosen].astype(np.int64) for _, code in coded)
    return Attributes(codes, tuple(len(values) for values, _ in coded))


def _generated(records: int) -> Attributes:
    """Small domains more often than large ones, in shares that fall off."""
    spread = (_MOST - _LEAST) * np.linspace(0.0, 1.0, ATTRIBUTES) ** 1.5
    sizes = tuple(int(size) for size in np.round(_LEAST + spread))
    generator = experiment(1)
    kind = generator.integers(_KINDS, size=records)
    return Attributes(tuple(_drawn(size, kind, generator) for size in sizes), sizes)


def _drawn(size: int, kind: Ints, generator: np.random.Generator) -> Ints:
    """A value for each record: half of the shares are everybody's, half are those of its kind."""
    common = _falling(size)
    shares = np.array([(common + common[generator.permutation(size)]) / 2.0 for _ in range(_KINDS)])
    limits, lot = np.cumsum(shares, axis=1)[:, :-1], generator.random(len(kind))
    codes = np.zeros(len(kind), dtype=np.int64)
    for limit in limits.T:
        codes += lot >= limit[kind]
    return codes


def _falling(size: int) -> Floats:
    weight = 0.7 ** np.arange(size)
    return np.asarray(weight / weight.sum())
