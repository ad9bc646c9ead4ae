"""The sensitive-QID paper's Tables I to IV, and its Examples 2 and 3 and that of section II."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import floor

import numpy as np

from polyseme.metrics.cross_tabulations import hellinger, l1
from polyseme.studies.reproduce.printed.example import Example
from polyseme.studies.reproduce.printed.tables import Record, classes
from polyseme.studies.reproduce.study import Sources

__all__ = ["EXAMPLES"]

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


EXAMPLES = (
    Example(
        "sensitive QIDs, Example 2",
        "Table II(b) has four equivalence classes for each attribute",
        {f"classes for S{place}": 4 for place in (1, 2, 3, 4)},
        _example_2,
        {"classes for S1": 8, "classes for S2": 5, "classes for S3": 8, "classes for S4": 4},
        "By Definition 10, records that agree in all other attributes.",
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
            "Hellinger, {10, 100} and {10, 80}": 0.745,
            "Hellinger, {10, 25} and {10, 5}": 1.95,
        },
        _distances,
        why="The first is 0.7465, cut and not rounded in the print.",
    ),
)
