"""The journal paper's Tables 1 to 5, 7 and 11, Figure 4, and the examples of section 5.4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polyseme.distances.taxonomies.taxonomy import load_taxonomy
from polyseme.studies.adult_files import adult_rows
from polyseme.studies.reproduce.printed.example import Example
from polyseme.studies.reproduce.printed.tables import classes, smallest_distinct
from polyseme.studies.reproduce.study import Sources

__all__ = ["EXAMPLES"]

_DISEASES = ("Vocal folds polyp", "HIV-2", "HIV-1(M)", "HIV-1(M)", "Tooth decay", "Cecum", "Gastric ulcer")
_TABLE_2 = ("A1", "A1", "A2", "A2", "A3", "A3", "A3")
_TABLE_3 = ("B1", "B2", "B2", "B1", "B3", "B3", "B3")
"""The class of each record; those of Table 3 are also the groups of Tables 4 and 5."""
_CODES = {"Vocal folds polyp": "J38.1", "HIV-2": "B24", "HIV-1(M)": "B24", "Tooth decay": "K02.9", "Cecum": "C18.0"}
"""ICD-10 codes that we read the names as: cecum as its cancer."""
_FAR = (("Vocal folds polyp", "HIV-2"), ("HIV-2", "Tooth decay"), ("HIV-1(M)", "Cecum"))
_FIGURE_4, _D, _TRUE = 9, 2, 2
"""Nine incomes from 30K on; the true one is the third, 50K."""


def _table_2(_: Sources) -> Mapping[str, float]:
    found = classes(list(zip(_TABLE_2, _DISEASES, strict=True)), [0])
    return {"smallest class": min(map(len, found)), "fewest diseases in a class": smallest_distinct(found, 1)}


def _table_3(_: Sources) -> Mapping[str, float]:
    found = classes(list(zip(_TABLE_3, _DISEASES, strict=True)), [0])
    only = sum(all("HIV" in record[1] for record in held) for held in found)
    return {"fewest diseases in a class": smallest_distinct(found, 1), "classes where everybody has HIV": only}


def _table_7(_: Sources) -> Mapping[str, float]:
    taxonomy = load_taxonomy("icd10")
    paths = {name: taxonomy.find(code) or () for name, code in _CODES.items()}
    return {
        f"{one} and {other}": sum(a != b for a, b in zip(paths[one], paths[other], strict=True)) for one, other in _FAR
    }


def _left(first: int, step: int) -> int:
    """Values left for the second decoy: the window of the first is moved on by as many as it shares with the other."""
    taken = {(_TRUE + off) % _FIGURE_4 for off in range(1 - _D, _D)}
    window = [first + off for off in range(1 - _D, _D)]
    for place in window:
        at = place % _FIGURE_4
        while step and at in taken:
            at = (at + step) % _FIGURE_4
        if step or 0 <= place < _FIGURE_4:
            taken.add(at)
    return _FIGURE_4 - len(taken)


def _figure_4(_: Sources) -> Mapping[str, float]:
    names = {"80K": 5, "70K": 4, "110K": 8}
    plain = {f"{name} first, Algorithm 1": _left(place, 0) for name, place in names.items()}
    down = {f"{name} first, duplicates downwards": _left(place, -1) for name, place in list(names.items())[1:]}
    up = {f"{name} first, duplicates upwards": _left(place, 1) for name, place in list(names.items())[1:]}
    return plain | down | up


def _room(one: int, other: int) -> int:
    """Equation 7 with the distances of Equation 6, ten values, d = 2."""
    apart = other - one if one < other else 10 - one + other
    return math.floor(apart / _D - 1)


def _rooms(places: Sequence[int], begin: int) -> tuple[int, int]:
    """Equation 9 summed from an index on: the sum of the terms that exist, and how many these are."""
    many = len(places)
    terms = [_room(places[i], places[(i + 1) % many]) for i in range(begin, begin + many) if i < many]
    return sum(terms), len(terms)


def _equation_9(_: Sources) -> Mapping[str, float]:
    sets = {"{v1, v3, v9}": (1, 3, 9), "{v1, v3, v6, v9}": (1, 3, 6, 9), "{v1, v3, v5, v9}": (1, 3, 5, 9)}
    found = {f"room in {name}": float(_rooms(places, 0)[0]) for name, places in sets.items()}
    missing = sum(len(places) - _rooms(places, 1)[1] for places in sets.values())
    return {"room between v2 and v8": _room(2, 8), **found, "terms of the sums from 1 that do not exist": missing}


def _table_11(sources: Sources) -> Mapping[str, float] | None:
    if sources.adult is None:
        return None
    rows = adult_rows(sources.adult)
    # Besides the income class, which is what the table is made to predict.
    return {"records": len(rows["age"]), "attributes beside the sensitive one": len(rows) - 2}


EXAMPLES = (
    Example(
        "journal, Tables 1-2",
        "Table 2 is 2-anonymous, and one of its classes has a single disease",
        {"smallest class": 2, "fewest diseases in a class": 1},
        _table_2,
    ),
    Example(
        "journal, Tables 3-5",
        "Tables 3 to 5 are 2-diverse, and in one class everybody has HIV all the same",
        {"fewest diseases in a class": 2, "classes where everybody has HIV": 1},
        _table_3,
    ),
    Example(
        "journal, Table 7",
        "The diseases that stand together in Table 7 are at distance 4 in ICD",
        dict.fromkeys((f"{one} and {other}" for one, other in _FAR), 4.0),
        _table_7,
    ),
    Example(
        "journal, Fig. 4 and Algorithm 3",
        "Duplicate processing always leaves three values for the second decoy",
        {
            "80K first, Algorithm 1": 3,
            "70K first, Algorithm 1": 4,
            "110K first, Algorithm 1": 4,
            "70K first, duplicates downwards": 3,
            "110K first, duplicates downwards": 3,
            "70K first, duplicates upwards": 3,
            "110K first, duplicates upwards": 3,
        },
        _figure_4,
        why="Algorithm 3 moves the window to larger values, Figure 4(c) to smaller ones: as many are left either way.",
    ),
    Example(
        "journal, Eq. 5-10",
        "The most decoys that find room: the examples of section 5.4, with sums that begin at 1",
        {
            "room between v2 and v8": 2,
            "room in {v1, v3, v9}": 2,
            "room in {v1, v3, v6, v9}": 0,
            "room in {v1, v3, v5, v9}": 1,
            "terms of the sums from 1 that do not exist": 0,
        },
        _equation_9,
        {
            "room between v2 and v8": 2,
            "room in {v1, v3, v9}": 2,
            "room in {v1, v3, v6, v9}": 0,
            "room in {v1, v3, v5, v9}": 1,
            "terms of the sums from 1 that do not exist": 3,
        },
        "Values of a set are numbered from 0, the sum of Equation 9 runs from 1: begun at 0 it gives the printed "
        "examples.",
    ),
    Example(
        "journal, Table 11",
        "Adult has 30,162 records and 13 quasi-identifiers",
        {"records": 30_162, "attributes beside the sensitive one": 13},
        _table_11,
        why="Of 15 columns one is sensitive, and the income class is not counted.",
    ),
)
