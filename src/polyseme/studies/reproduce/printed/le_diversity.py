"""The (l, e) paper's Tables I to VI, and the examples of its Definitions and Equations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from polyseme.distances import TreeDistance
from polyseme.methods.bucketization import bucketize, dissimilar
from polyseme.metrics.groupings import information_losses
from polyseme.randomness import SystemStream
from polyseme.studies.adult_files import adult_rows
from polyseme.studies.reproduce.adult import education_paths
from polyseme.studies.reproduce.printed.example import Example
from polyseme.studies.reproduce.printed.tables import classes, smallest_distinct
from polyseme.studies.reproduce.study import Sources
from polyseme.tables.classes import Counts

__all__ = ["EXAMPLES"]

_KIND = {
    "Flu": "respiratory",
    "pneumonia": "respiratory",
    "Carcinoid": "tumour",
    "Cancer": "tumour",
    "Gastric ulcer": "stomach",
    "Dyspepsia": "stomach",
    "Gastritis": "stomach",
}
_TABLE_1 = (
    ("23", "F", "13010", "Flu"),
    ("25", "F", "13050", "pneumonia"),
    ("30", "M", "13020", "Flu"),
    ("36", "F", "13220", "Carcinoid"),
    ("39", "M", "13221", "Cancer"),
    ("42", "M", "13226", "Cancer"),
    ("52", "F", "14850", "Gastric ulcer"),
    ("53", "M", "14862", "Dyspepsia"),
    ("61", "M", "14802", "Gastritis"),
)
_TABLE_3 = "111222333"
_OF_TABLE_3 = ("Flu", "pneumonia", "Cancer", "Flu", "Carcinoid", "Cancer", "Gastric ulcer", "Dyspepsia", "Gastritis")
_TABLE_4 = (
    ("23", "F", "13010"),
    ("39", "M", "13221"),
    ("52", "F", "14850"),
    ("30", "M", "13020"),
    ("36", "M", "13226"),
    ("53", "M", "13482"),
    ("25", "F", "13050"),
    ("36", "F", "13220"),
    ("61", "M", "14802"),
)
_DEPTH = {"Flu": 3, "pneumonia": 3, "Gastritis": 3}
"""Levels below the root: diseases stand under their kind, kinds under a system of organs or the like."""
_COMMON = {("Flu", "pneumonia"): 2, ("Flu", "Gastritis"): 0}
"""The level of the closest common ancestor."""


def _table_3(_: Sources) -> Mapping[str, float]:
    found = classes([(group, disease) for group, disease in zip(_TABLE_3, _OF_TABLE_3, strict=True)], [0])
    alike = sum(len({_KIND[record[1]] for record in held}) == 1 for held in found)
    return {"fewest diseases in a class": smallest_distinct(found, 1), "classes of one kind of disease": alike}


def _table_5(_: Sources) -> Mapping[str, float]:
    names = list(_KIND)
    tree = TreeDistance.from_paths([(name, _KIND[name]) for name in names])
    codes = np.array([names.index(record[3]) for record in _TABLE_1])
    made = bucketize(codes, dissimilar(tree, 1), 3, SystemStream.seeded(0), "mbf")
    kinds = [{_KIND[names[code]] for code in codes[made.groups == group]} for group in range(made.count)]
    return {
        "groups": made.count,
        "fewest kinds of disease in a group": min(map(len, kinds)),
        "records left out": int(made.suppressed.sum()),
    }


def _table_4(_: Sources) -> Mapping[str, float]:
    known = {record[:3] for record in _TABLE_1}
    return {"rows that are no record of Table I": sum(row not in known for row in _TABLE_4)}


def _halved(one: str, other: str, sign: int) -> float:
    common = _COMMON[one, other]
    return sign * ((_DEPTH[one] - common) + (_DEPTH[other] - common)) / 2


def _definition_2(_: Sources) -> Mapping[str, float]:
    return {"flu and pneumonia": _halved("Flu", "pneumonia", 1), "flu and gastritis": _halved("Flu", "Gastritis", 1)}


def _equation_7(_: Sources) -> Mapping[str, float]:
    return {"flu and gastritis": _halved("Flu", "Gastritis", -1)}


def _equation_5(_: Sources) -> Mapping[str, float]:
    three = Counts.from_codes(np.zeros(3, dtype=np.int64), np.arange(3), 3)
    return {"information loss of t1": float(information_losses(three, "equation").sum()) / 3}


def _similar(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Definition 2 for two paths from the leaf upwards, which need not be equally long."""
    up, down = one[::-1], other[::-1]
    common = next(
        (place for place, pair in enumerate(zip(up, down, strict=False)) if pair[0] != pair[1]), min(len(up), len(down))
    )
    return (len(up) - common + len(down) - common) / 2


def _triples(paths: list[tuple[str, ...]], e: float) -> int:
    """How often one value is e-similar to two that are not so to each other."""
    near = [[_similar(one, other) <= e for other in paths] for one in paths]
    size = range(len(paths))
    return sum(near[a][b] and near[b][c] and not near[a][c] for a, b, c in product(size, size, size))


def _transitive(_: Sources) -> Mapping[str, float]:
    padded = education_paths()
    short = [tuple(dict.fromkeys(path)) for path in padded]
    return {
        "education, leaves equally deep": sum(_triples(padded, e) for e in (1.0, 1.5, 2.0)),
        "education, leaves where they are, some triples": float(any(_triples(short, e) for e in (1.0, 1.5, 2.0))),
    }


def _table_6(sources: Sources) -> Mapping[str, float] | None:
    if sources.adult is None:
        return None
    rows = adult_rows(sources.adult, complete=False)
    columns = {"age": "age", "workclass": "workclass", "marriage": "marital-status", "gender": "sex", "race": "race"}
    found = {name: len(set(rows[column]) - {"?"}) for name, column in (columns | {"education": "education"}).items()}
    return {"records": len(rows["age"]), **found}


EXAMPLES = (
    Example(
        "(l, e), Tables I-III",
        "Tables II and III are 3-diverse, and one class has a single kind of disease",
        {"fewest diseases in a class": 3, "classes of one kind of disease": 1},
        _table_3,
    ),
    Example(
        "(l, e), Table V",
        "Maximal-bucket-first makes three groups of three kinds of disease of the nine patients, with l = 3 and e = 1",
        {"groups": 3, "fewest kinds of disease in a group": 3, "records left out": 0},
        _table_5,
    ),
    Example(
        "(l, e), Table IV",
        "Table IV shows the quasi-identifiers of the patients of Table I",
        {"rows that are no record of Table I": 0},
        _table_4,
        {"rows that are no record of Table I": 2},
        "The sixth patient's age (42) and the eighth's postal code (14862) are mistyped as 36 and 13482.",
    ),
    Example(
        "(l, e), Fig. 1 and Definition 2",
        "Flu and pneumonia are 1-similar, flu and gastritis 3-similar",
        {"flu and pneumonia": 1, "flu and gastritis": 3},
        _definition_2,
    ),
    Example(
        "(l, e), Eq. 7",
        "Equation 7 is the distance of Definition 2",
        {"flu and gastritis": 3},
        _equation_7,
        {"flu and gastritis": -3},
        "Its signs are reversed: levels of common ancestors are smaller than those of values. Turned, it is Definition "
        "2.",
    ),
    Example(
        "(l, e), Eq. 5",
        "The information loss of the first record of the example is (1/3 - 1)^2 = 0.44",
        {"information loss of t1": 0.44},
        _equation_5,
        {"information loss of t1": 2 / 3},
        "The example leaves out the two points where the record is not, and Equation 5 sums over all.",
    ),
    Example(
        "(l, e), III",
        "Values that are e-similar form buckets: being similar is transitive",
        {"education, leaves equally deep": 0, "education, leaves where they are, some triples": 0},
        _transitive,
        {"education, leaves equally deep": 0, "education, leaves where they are, some triples": 1},
        "In a tree whose leaves are not equally deep a value can be similar to two that are not so to each other; "
        "there pairs must be checked.",
    ),
    Example(
        "(l, e), Table VI",
        "Adult has 32,561 records; numbers of values of six attributes",
        {"records": 32_561, "age": 74, "workclass": 8, "marriage": 7, "gender": 2, "race": 5, "education": 16},
        _table_6,
        {"records": 32_561, "age": 73, "workclass": 8, "marriage": 7, "gender": 2, "race": 5, "education": 16},
        "adult.data has 73 ages; 74 are in both files together.",
    ),
)
