"""Semantic rules: what a record must not say, and what a class must not reveal as a whole.

A rule is one of three sentences, written with conditions on attributes:

    if A then B      every record that fulfills A fulfills B        |  checked record by record
    never A          no record meets A                          |
    never-all A      no class consists of records that fulfill A   |  checked class by class

where
    A, B   conditions: an attribute and a test for each, all of which must be met
    class  records with the same quasi-identifiers

`never-all` is the *effective* rule of Elabd, Abdulkader and Mubark (2015): "a salary below 20 thousand is low" tells
something of everybody in a class whose salaries all lie below it, however many different salaries there are. The other
two say what a table must look like after an action was taken. Rules are about what is published: a missing value or a
`*` says nothing, so it meets no test but `"*"`, and in `never-all` it does not hide those who do say something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import PolicyError, Problem, TableError, nearest
from polyseme.kernel.spelling import spelled, spelling
from polyseme.models.base import SHOWN, Merging, Place, Score, Verdict, place_of, unchecked
from polyseme.tables.equivalence_classes import SUPPRESSED, Counts, class_of_rows

__all__ = ["OUTCOMES", "Condition", "Rule", "check", "merging", "outcomes", "read_rules", "relaxed", "score"]

OUTCOMES = ("otherwise", "met", "silent")
"""What a record says of a condition: something else, that it is met, or nothing."""

_COMPARE: Mapping[str, Callable[[pl.Series, float], pl.Series]] = {
    "above": lambda numbers, edge: numbers > edge,
    "from": lambda numbers, edge: numbers >= edge,
    "to": lambda numbers, edge: numbers <= edge,
    "below": lambda numbers, edge: numbers < edge,
}
_WORDS = ("above", "from", "to", "below", "pattern", "not")
_KEYS = ("if", "then", "never", "never-all", "name")
_FORMS = "{if: {...}, then: {...}}, {never: {...}} or {never-all: {...}}"

Condition = Mapping[str, Any]
"""A test for each attribute: a value, a list of values, or a mapping with the words of `_WORDS`."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    form       "if", "never" or "never-all"
    condition  the records it speaks about
    then       what they must look like, for "if"
    name       the policy's word for it, or its number (from 1)
    """

    form: str
    condition: Condition
    then: Condition
    name: str

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.condition, *self.then)))


# -- reading -------------------------------------------------------------------------------------------------------


def read_rules(document: Any, where: str = "rules") -> tuple[Rule, ...]:
    """The rules of a policy; raises with every problem at once.

    >>> read_rules([{"never-all": {"salary": {"below": 20}}, "name": "low salary"}])[0].form
    'never-all'
    """
    problems: list[Problem] = []
    if not isinstance(document, list) or not document:
        raise PolicyError(Problem(where, "expected a list of rules", f"rules: [{_FORMS}]"))
    rules = [_read_rule(item, f"{where}[{number}]", number, problems) for number, item in enumerate(document)]
    if problems:
        raise PolicyError(problems)
    return tuple(rule for rule in rules if rule is not None)


def _read_rule(item: Any, where: str, number: int, problems: list[Problem]) -> Rule | None:
    if not isinstance(item, Mapping):
        problems.append(Problem(where, "expected a rule", f"write {_FORMS}"))
        return None
    problems += [
        Problem(f"{where}.{key}", "unknown word", nearest(str(key), _KEYS)) for key in item if key not in _KEYS
    ]
    forms = [form for form in ("if", "never", "never-all") if form in item]
    if len(forms) != 1 or ("if" in item) != ("then" in item):
        problems.append(Problem(where, "expected exactly one of if/then, never and never-all", f"write {_FORMS}"))
        return None
    for key in (forms[0], *(["then"] if "then" in item else [])):
        problems += _condition_problems(item[key], f"{where}.{key}")
    name = item.get("name", number + 1)
    if isinstance(name, Mapping | list):
        problems.append(Problem(f"{where}.name", "expected text", "name: low salary"))
    return Rule(forms[0], item[forms[0]], item.get("then", {}), str(name))


def _condition_problems(condition: Any, where: str) -> Iterator[Problem]:
    if not isinstance(condition, Mapping) or not condition:
        yield Problem(where, "expected attributes with a test each", "{salary: {below: 20}, city: [Oslo, Bergen]}")
        return
    for name, test in condition.items():
        yield from _test_problems(test, f"{where}.{name}")


def _test_problems(test: Any, where: str) -> Iterator[Problem]:
    if isinstance(test, list):
        if not test or not all(_is_value(value) for value in test):
            yield Problem(where, "expected a list of values", "[flu, cough]")
    elif not isinstance(test, Mapping):
        if not _is_value(test):
            yield Problem(where, "expected a value, a list of values or a test", 'write "*" for a suppressed value')
    elif not test:
        yield Problem(where, "an empty test", f"words: {', '.join(_WORDS)}")
    else:
        for word, operand in test.items():
            yield from _word_problems(word, operand, f"{where}.{word}")


def _word_problems(word: Any, operand: Any, where: str) -> Iterator[Problem]:
    if word not in _WORDS:
        yield Problem(where, "unknown word", nearest(str(word), _WORDS))
    elif word == "not":
        yield from _test_problems(operand, where)
    elif word == "pattern":
        if not isinstance(operand, str) or not _compiles(operand):
            yield Problem(where, "expected a regular expression", r"pattern: '[0-9]{3}\*\*'")
    elif isinstance(operand, bool) or not isinstance(operand, int | float) or not math.isfinite(operand):
        yield Problem(where, "expected a number", f"{word}: 20")


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int | float | bool | date)


def _compiles(pattern: str) -> bool:
    try:
        pl.Series([""]).str.contains(_whole(pattern))
    except pl.exceptions.ComputeError:
        return False
    return True


def _whole(pattern: str) -> str:
    return f"^(?s:{pattern})$"


# -- checking ------------------------------------------------------------------------------------------------------


def check(
    frame: pl.DataFrame, quasi_identifiers: Sequence[str], rules: Sequence[Rule], counts: Ints | None = None
) -> tuple[Verdict, ...]:
    """A verdict for each rule; `worst` is the number of records that break it.

    counts  how many records each row stands for; None for one

    >>> table = pl.DataFrame({"zip": ["14", "14", "15"], "ill": ["flu", "HIV", "HIV"]})
    >>> rules = read_rules([{"if": {"ill": "HIV"}, "then": {"zip": "*"}}, {"never-all": {"ill": "HIV"}}])
    >>> [verdict.worst for verdict in check(table, ["zip"], rules)]
    [2.0, 1.0]
    """
    return tuple(_check_rule(frame, counts, quasi_identifiers, rule) for rule in rules)


def _check_rule(frame: pl.DataFrame, counts: Ints | None, quasi_identifiers: Sequence[str], rule: Rule) -> Verdict:
    keys = quasi_identifiers if rule.form == "never-all" else ()
    absent = [name for name in (*rule.attributes, *keys) if name not in frame.columns]
    if absent:
        return _unchecked(rule, f"the table has no column {', '.join(map(repr, dict.fromkeys(absent)))}")
    sets = [name for name in (*rule.attributes, *keys) if frame.schema[name].is_nested()]
    if sets:
        return _unchecked(rule, f"rules are about single values, and {', '.join(map(repr, sets))} has several")
    if not frame.height:
        return _unchecked(rule, "the table has no rows")
    columns = {name: _Column.of(frame[name]) for name in rule.attributes}
    if unreadable := _unreadable(columns, rule, counts):
        return _unchecked(rule, unreadable)
    met, silent = _meets(columns, rule.condition)
    if rule.form == "never-all":
        return _class_verdict(rule, class_of_rows(frame, quasi_identifiers), met, silent, counts)
    bad = met & ~_meets(columns, rule.then)[0] if rule.then else met
    return _record_verdict(rule, met, bad, counts)


def score(counts: Counts) -> Score:
    """How many records each class reveals, from counts of `OUTCOMES` for one `never-all` rule."""
    met, mute = (_counted(counts, outcome) for outcome in (1, 2))
    bad = (met > 0) & (met + mute == counts.sizes)
    return Score(np.where(bad, counts.sizes, 0), ~bad, 0.0, at_least=False)


def merging(outcomes: Ints) -> Merging:
    """One record that says otherwise is enough; a silent class can be given away by another."""
    return "additive" if np.any(outcomes == OUTCOMES.index("silent")) else "absorbing"


def relaxed(counts: Counts) -> Bools:
    """Whether some record of each class does not meet the condition."""
    return np.asarray(_counted(counts, 1) < counts.sizes)


def outcomes(frame: pl.DataFrame, rule: Rule) -> Ints:
    """What each record of a table says of the rule's condition, as places in `OUTCOMES`."""
    columns = {name: _Column.of(frame[name]) for name in rule.attributes}
    if unreadable := _unreadable(columns, rule):
        raise TableError(f"rule {rule.name}: {unreadable}")
    return _outcomes(*_meets(columns, rule.condition))


def _unreadable(columns: Mapping[str, _Column], rule: Rule, counts: Ints | None = None) -> str:
    """The message about values that a rule compares as numbers and that are none; or empty."""
    found = {name: _number(column.unreadable, counts) for name, column in columns.items() if _numeric(name, rule)}
    names = [name for name, number in found.items() if number]
    count = sum(found.values())
    return f"{count:,} values of {', '.join(map(repr, names))} are not numbers" if names else ""


def _outcomes(met: Bools, silent: Bools) -> Ints:
    return np.where(met, 1, np.where(silent, 2, 0)).astype(np.int64)


def _counted(counts: Counts, outcome: int) -> Ints:
    held = np.where(counts.value == outcome, counts.count, 0)
    return np.bincount(counts.owner, held, len(counts.sizes)).astype(np.int64)


def _unchecked(rule: Rule, note: str) -> Verdict:
    return unchecked("semantic-rules", None, {"rule": rule.name}, note)


def _number(which: Bools, counts: Ints | None) -> int:
    """How many records these rows stand for."""
    return int(which.sum() if counts is None else counts[which].sum())


def _record_verdict(rule: Rule, met: Bools, bad: Bools, counts: Ints | None) -> Verdict:
    rows = np.flatnonzero(bad) if counts is None else ()
    places = tuple(Place(int(row), 1, int(row)) for row in rows[:SHOWN])
    records = _number(bad, counts)
    note = f"{records:,} records break the rule" if records else ""
    checked = met if rule.form == "if" else np.ones_like(met)
    return _verdict(rule, records, places, _number(checked, counts), records, note)


def _class_verdict(rule: Rule, owner: Ints, met: Bools, silent: Bools, records_of: Ints | None) -> Verdict:
    kept = owner >= 0
    if not kept.any():
        return _unchecked(rule, "the table has no rows that are not suppressed")
    number = None if records_of is None else records_of[kept]
    counts = Counts.from_codes(owner[kept], _outcomes(met, silent)[kept], len(OUTCOMES), rule.name, number)
    sizes, count = counts.sizes, len(counts.sizes)
    bad = np.flatnonzero(~score(counts).fine)
    bad = bad[np.argsort(-sizes[bad], kind="stable")]
    rows = np.flatnonzero(kept)
    first = rows[np.unique(owner[rows], return_index=True)[1]] if number is None else counts.first
    places = tuple(place_of(int(index), int(sizes[index]), int(first[index])) for index in bad[:SHOWN])
    records = int(sizes[bad].sum())
    note = f"{records:,} records are in {len(bad):,} classes that reveal it" if len(bad) else ""
    return _verdict(rule, records, places, count, len(bad), note)


def _verdict(rule: Rule, records: int, places: tuple[Place, ...], checked: int, violations: int, note: str) -> Verdict:
    worst = float(records)
    parameters = {"rule": rule.name}
    return Verdict(
        "semantic-rules", None, parameters, records == 0, worst, 0.0, -worst, places, checked, violations, note
    )


@dataclass(frozen=True, eq=False)
class _Column:
    """A column for rules: its text, spelling and numbers, and where it is missing."""

    text: pl.Series
    spelled: pl.Series
    numbers: pl.Series
    silent: pl.Series

    @classmethod
    def of(cls, series: pl.Series) -> _Column:
        text = series.cast(pl.String)
        silent = text.is_null() | (text.str.strip_chars() == SUPPRESSED).fill_null(True)
        numbers = series if series.dtype.is_numeric() else text.str.strip_chars()
        return cls(text, spelled(series), numbers.cast(pl.Float64, strict=False).fill_nan(None), silent)

    @property
    def unreadable(self) -> Bools:
        return (self.numbers.is_null() & ~self.silent).to_numpy()

    def meets(self, test: Any) -> pl.Series:
        """Where the test is met."""
        if isinstance(test, Mapping):
            parts = [self._word(word, operand) for word, operand in test.items()]
            return pl.select(pl.all_horizontal(parts)).to_series()
        values = test if isinstance(test, list) else [test]
        return pl.select(pl.any_horizontal([self._equals(value) for value in values])).to_series()

    def _word(self, word: str, operand: Any) -> pl.Series:
        if word == "not":
            return ~self.meets(operand)
        if word == "pattern":
            found = self.text.str.contains(_whole(operand))
        else:
            found = _COMPARE[word](self.numbers, float(operand))
        return found.fill_null(False)

    def _equals(self, value: Any) -> pl.Series:
        if value == SUPPRESSED:
            return self.silent
        return (self.spelled == spelling(value)).fill_null(False)


def _numeric(name: str, rule: Rule) -> bool:
    return any(_compares(condition[name]) for condition in (rule.condition, rule.then) if name in condition)


def _compares(test: Any) -> bool:
    """Whether a test needs numbers."""
    if not isinstance(test, Mapping):
        return False
    return any(word in _COMPARE or (word == "not" and _compares(operand)) for word, operand in test.items())


def _meets(columns: Mapping[str, _Column], condition: Condition) -> tuple[Bools, Bools]:
    """Which records fulfill a condition, and which might if they said more."""
    met = possible = np.array(True)
    for name, test in condition.items():
        found = columns[name].meets(test).to_numpy()
        met = met & found
        possible = possible & (found | columns[name].silent.to_numpy())
    return met, possible & ~met
