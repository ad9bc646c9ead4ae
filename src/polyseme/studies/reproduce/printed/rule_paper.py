"""The rule paper's Tables 1 to 7."""

from __future__ import annotations

from collections.abc import Mapping

from polyseme.studies.adult_files import adult_rows
from polyseme.studies.reproduce.printed.example import Example
from polyseme.studies.reproduce.printed.tables import classes, effective, smallest_distinct
from polyseme.studies.reproduce.study import Sources
from polyseme.studies.rule_paper import GROUPS, QUASI_IDENTIFIERS

__all__ = ["EXAMPLES"]

_STOMACH = {"gastric ulcer", "gastritis", "stomach cancer"}
_TABLE_2 = (
    ("1", "bronchitis", "10"),
    ("1", "pneumonia", "11"),
    ("1", "stomach cancer", "12"),
    ("2", "gastritis", "12"),
    ("2", "Flu", "15"),
    ("2", "bronchitis", "16"),
    ("3", "gastric ulcer", "16"),
    ("3", "gastritis", "17"),
    ("3", "stomach cancer", "18"),
)
_TABLE_3 = (
    *(
        ("148", name, "")
        for name in ("cancer", "Heart disease", "cancer", "Heart disease", "cancer", "viral infection")
    ),
    *(("476 young", name, "") for name in ("gastric ulcer", "gastritis", "stomach cancer", "stomach cancer")),
    *(("130", name, "") for name in ("Heart disease", "viral infection", "cancer", "viral infection", "Heart disease")),
    *(("476", name, "") for name in ("bronchitis", "lung cancer", "lung cancer", "cough", "flu", "bronchitis")),
)
_TABLE_4 = (10, 9, 15, 7, 11, 8, 11, 6, 13, 15, 12, 14, 18, 17, 9)
_TABLE_5 = (20, 19, 25, 17, 21, 18, 21, 16, 23, 25, 22, 24, 28, 17, 9)
"""Salaries of the records to which 10 is added, before and after, in the order of Table 5."""
_VALUES = {"sex": 2, "age": 74, "race": 5, "marital-status": 7, "education": 16, "native-country": 41, "workclass": 7}


def _table_2(_: Sources) -> Mapping[str, float]:
    found = classes(_TABLE_2, [0])
    stomach = sum(all(record[1] in _STOMACH for record in held) for held in found)
    low = sum(all(int(record[2]) <= 12 for record in held) for held in found)
    return {
        "fewest diseases in a class": smallest_distinct(found, 1),
        "classes of stomach diseases": stomach,
        "classes with 10 to 12K": low,
    }


def _table_3(_: Sources) -> Mapping[str, float]:
    found = classes(_TABLE_3, [0])
    kept = sum(effective(held, 1) >= 3 for held in found)
    return {"classes": len(found), "of entropy 3": kept, "fewest diseases in a class": smallest_distinct(found, 1)}


def _table_5(_: Sources) -> Mapping[str, float]:
    same = sum(after == before + 10 for before, after in zip(_TABLE_4, _TABLE_5, strict=True))
    return {"records that get 10 more": len(_TABLE_4), "records that got it": same}


def _table_6(sources: Sources) -> Mapping[str, float] | None:
    if sources.adult is None:
        return None
    rows = adult_rows(sources.adult, both=True)
    return {name: len(set(rows[name])) for name in (*QUASI_IDENTIFIERS, "occupation")}


def _table_7(sources: Sources) -> Mapping[str, float]:
    return {f"group {name}": len(held) for name, held in GROUPS.items()}


EXAMPLES = (
    Example(
        "rules, Tables 1-2",
        "Table 2 is 3-diverse; one class has stomach diseases only, and one low salaries only",
        {"fewest diseases in a class": 3, "classes of stomach diseases": 1, "classes with 10 to 12K": 1},
        _table_2,
    ),
    Example(
        "rules, Table 3",
        "Table 3 has entropy 3-diversity by disease",
        {"classes": 4, "of entropy 3": 4, "fewest diseases in a class": 3},
        _table_3,
        {"classes": 4, "of entropy 3": 1, "fewest diseases in a class": 3},
        "It has three different diseases in every class, which is less: the entropy of three of its four classes is "
        "below that of three equally frequent ones.",
    ),
    Example(
        "rules, Tables 4-5",
        "Table 5 is what the actions of Table 4 make of Table 3",
        {"records that get 10 more": 15, "records that got it": 15},
        _table_5,
        {"records that get 10 more": 15, "records that got it": 13},
        "The last two rows are left without it. The action falsifies data; here it is off unless asked for.",
    ),
    Example(
        "rules, Table 6",
        "Numbers of values of the attributes of Adult",
        {**_VALUES, "occupation": 14},
        _table_6,
        why="They are those of the 45,222 complete records of both files.",
    ),
    Example(
        "rules, Table 7",
        "14 occupations stand in three groups of equal size",
        {"group 1": 5, "group 2": 5, "group 3": 4},
        _table_7,
        {"group 1": 4, "group 2": 3, "group 3": 7},
        "As Table 7 lists them they are not of equal size; 14 could not be parted so, and 5, 5 and 4 would be the "
        "nearest.",
    ),
)
