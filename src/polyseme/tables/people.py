"""People of a table or a population: record keys, and who fits what classes show.

A record key names persons; what their records share may give a value away, and is then refused.

A class shows labels. A person fits a label that is the person's value itself, that stands for it, or that is one of the
forms in which hierarchies write what they stand for:

    *                             any value
    [30, 35)   [30, 34]           numbers from 30 up to 35, without it or up to and with 34
    81*        8**                codes that begin so
    2024-03    2024-Q1   2020s    dates within the period

Values are compared by their spelling, since two tables were written by two programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import Problem, RiskError
from polyseme.kernel.randomness import SystemStream
from polyseme.kernel.spelling import spelled
from polyseme.tables.distinct import Tallied, Tally, fingerprints
from polyseme.tables.io.source import Source
from polyseme.tables.readings import record_keys

__all__ = [
    "AGREEMENT_HINT",
    "CHANGED",
    "CHANGED_HINT",
    "MOST_DIFFERING",
    "Meaning",
    "differing",
    "fingerprint_seed",
    "people_fitting",
    "people_in_cells",
    "people_of",
    "require_agreement",
    "too_few_people",
]

CHANGED = (
    "sets can be intersected within this release: these people have the same value in several strata, where other "
    "decoys are possible"
)
MOST_DIFFERING = 0.01
"""The share of groups whose members may differ in what a group is to share, before that is refused."""
AGREEMENT_HINT = (
    f"at most {MOST_DIFFERING:.0%} may differ: name a column whose groups share the value, or correct the table; "
    "--accept-risk publishes all the same: members who agree share a set, the others have sets of their own"
)
CHANGED_HINT = (
    "declare impossible values by columns that do not change between the records of a person, publish one record for "
    "each person and value, or accept it: --allow-changed-strata"
)
FEW_RECORDS, MANY_RECORDS = 10, 100
"""Records a person, on average, that are nothing unusual in a small table, and in any table."""


def too_few_people(records: int, people: int, limit: float | None = None) -> tuple[str, str]:
    """What is wrong with a record key that names so few people, and what to do.

    Empty when nothing is.

    People with sticky decoys are drawn for once, however many records they have. Up to 10 records a person are
    ordinary; up to 100 where there are at least as many people as records for each of them. Beyond that the column is
    more likely a group than a person: everybody in the group would share one set, and who knows one knows all.

    >>> too_few_people(30, 10), too_few_people(1, 1), too_few_people(50_000, 1_000)
    (('', ''), ('', ''), ('', ''))
    >>> too_few_people(1_000, 2)[0]
    'records of only 2 people: such a column does not identify people'
    """
    most = limit if limit is not None else min(max(FEW_RECORDS, people), MANY_RECORDS)
    if records <= most * people:
        return "", ""
    hint = (
        f"name the column that identifies people as record-key; if they do have {records / people:,.0f} records each, "
        f"say so: --records-per-person {-(-records // people)}"
    )
    return f"records of only {people:,} people: such a column does not identify people", hint


def differing(column: str, found: Tallied) -> str:
    """How many groups do not share what they are to share, in words; empty where all do.

    >>> differing("household", Tallied(heads=200, several=3))
    "3 of 200 groups of 'household' have members with different values, or under different conditions"
    """
    if not found.several:
        return ""
    return (
        f"{found.several:,} of {found.heads:,} groups of '{column}' have members with different values, or under "
        "different conditions"
    )


def require_agreement(columns: Mapping[str, str], found: Mapping[str, Tallied]) -> None:
    """Refuse groups that are to share a set where more than a few have members that differ.

    columns  of each attribute, the column that tells groups
    found    what was counted of these groups
    """
    problems = [
        Problem(f"$.attributes.{name}.shared-by", differing(columns[name], groups), AGREEMENT_HINT)
        for name, groups in found.items()
        if groups.several > MOST_DIFFERING * groups.heads
    ]
    if problems:
        raise RiskError(problems)


def people_of(source: Source, name: str, missing_values: Sequence[str], folder: Path) -> Tallied:
    """How many records and people there are."""
    tally, seed = Tally(folder), fingerprint_seed()
    for batch, counts in source.counted([name]):
        keys = record_keys(batch.column(name), name, missing_values)
        prints, known = fingerprints(keys.to_frame(), seed), keys.is_not_null().to_numpy()
        tally.add(prints[known], None if counts is None else counts[known])
    return tally.count()


def fingerprint_seed() -> int:
    """A seed for the fingerprints of one run, so that record keys cannot be guessed."""
    return int(SystemStream().words(1)[0])


Meaning: TypeAlias = Mapping[str, Sequence[str]]
"""What the labels of a column stand for."""

_ANY = "*"
_INTERVAL = re.compile(r"^\[(-?[0-9.]+), (-?[0-9.]+)([)\]])$")
_PREFIX = re.compile(r"^([^*]+)\*+$")
_PERIOD = re.compile(r"^([0-9]{4})(-Q[1-4]|-[0-9]{2})?$")
_DECADE = re.compile(r"^([0-9]{3})0s$")
_DATE = r"^[0-9]{4}-[0-9]{2}(-[0-9]{2}.*)?$"
_CLASS, _PEOPLE, _LABEL, _VALUE = "\0class", "\0people", "\0label", "\0value"


def people_fitting(
    shown: pl.DataFrame, population: pl.DataFrame, meanings: Mapping[str, Meaning] | None = None
) -> Ints:
    """For each row of labels, how many people of a population fit all of them.

    meanings  for some columns, what their labels stand for

    >>> shown = pl.DataFrame({"age": ["[30, 35)", "*"], "zip": ["81*", "900"]})
    >>> people_fitting(shown, pl.DataFrame({"age": [31, 34, 40], "zip": ["811", "911", "900"]})).tolist()
    [1, 1]
    """
    texts = shown.select(spelled(shown[name]) for name in shown.columns)
    people = population.select(spelled(population[name]) for name in shown.columns)
    known = meanings or {}
    pairs = {name: _pairs(texts[name], people[name], known.get(name, {})) for name in shown.columns}
    return _joined(texts, people.with_columns(pl.lit(1, dtype=pl.Int64).alias(_PEOPLE)), pairs)


def people_in_cells(shown: Ints, leaves: Sequence[Sequence[Ints]], population: Ints, people: Ints) -> Ints:
    """The same from codes.

    shown       the cell of each class in each quasi-identifier: (classes, q)
    leaves      for each quasi-identifier, the leaves that each of its cells stands for
    population  the leaves of people: (m, q); `people` says how many each row stands for
    """
    names = [str(place) for place in range(shown.shape[1])]
    if not names:
        return np.full(len(shown), int(people.sum()), dtype=np.int64)
    classes = pl.DataFrame({name: shown[:, place] for place, name in enumerate(names)})
    found = pl.DataFrame({name: population[:, place].astype(np.int64) for place, name in enumerate(names)})
    pairs = {}
    for name, cells in zip(names, leaves, strict=True):
        cell = np.repeat(np.arange(len(cells)), [len(codes) for codes in cells])
        value = np.concatenate([np.zeros(0, dtype=np.int64), *cells]).astype(np.int64)
        pairs[name] = pl.DataFrame({_VALUE: value, _LABEL: cell})
    return _joined(classes, found.with_columns(pl.Series(_PEOPLE, people, dtype=pl.Int64)), pairs)


def _joined(classes: pl.DataFrame, people: pl.DataFrame, pairs: Mapping[str, pl.DataFrame]) -> Ints:
    """People by the labels they fit, column by column; only combinations of some class are kept."""
    names = list(classes.columns)
    found = people.group_by(names).agg(pl.col(_PEOPLE).sum())
    for place, name in enumerate(names):
        found = found.join(pairs[name], left_on=name, right_on=_VALUE, nulls_equal=True)
        found = found.drop(name, strict=False).rename({_LABEL: name})
        known = classes.select(names[: place + 1]).unique()
        found = found.join(known, on=names[: place + 1], how="semi", nulls_equal=True)
        found = found.group_by([column for column in found.columns if column != _PEOPLE]).agg(pl.col(_PEOPLE).sum())
    fitting = classes.join(found, on=names, how="left", nulls_equal=True, maintain_order="left")
    return fitting[_PEOPLE].fill_null(0).to_numpy().astype(np.int64)


def _pairs(labels: pl.Series, values: pl.Series, meaning: Meaning) -> pl.DataFrame:
    """Which of the values each of the labels fits."""
    different = values.unique()
    numbers = different.cast(pl.Float64, strict=False)
    parts = [
        pl.DataFrame({_VALUE: found, _LABEL: pl.repeat(label, len(found), dtype=pl.String, eager=True)})
        for label in labels.unique().to_list()
        if len(found := different.filter(_fits(label, different, numbers, meaning)))
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema={_VALUE: pl.String, _LABEL: pl.String})


def _fits(label: str | None, values: pl.Series, numbers: pl.Series, meaning: Meaning) -> pl.Series:
    """Whether each value fits a label."""
    if label is None:
        return values.is_null()
    if label == _ANY:
        return pl.repeat(True, len(values), eager=True)
    fits = (values == label).fill_null(False) | values.is_in(list(meaning.get(label, ()))).fill_null(False)
    return fits if label in meaning else fits | _formed(label, values, numbers).fill_null(False)


def _formed(label: str, values: pl.Series, numbers: pl.Series) -> pl.Series:
    """By the form in which a label is written."""
    for form, within in _FORMS:
        if match := form.match(label):
            return within(match, values, numbers)
    return pl.repeat(False, len(values), eager=True)


def _in_interval(match: re.Match[str], values: pl.Series, numbers: pl.Series) -> pl.Series:
    low, high = float(match[1]), float(match[2])
    return (numbers >= low) & ((numbers <= high) if match[3] == "]" else (numbers < high))


def _in_period(match: re.Match[str], values: pl.Series, numbers: pl.Series) -> pl.Series:
    dates, begins = values.str.contains(_DATE), values.str.starts_with(match[1])
    if match[2] is None:
        return dates & begins
    if match[2].startswith("-Q"):
        month = values.str.slice(5, 2).cast(pl.Int64, strict=False)
        return dates & begins & ((month - 1) // 3 + 1 == int(match[2][2:]))
    return dates & values.str.starts_with(match[0])


_Form: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str], pl.Series, pl.Series], pl.Series]]
_FORMS: Iterable[_Form] = (
    (_INTERVAL, _in_interval),
    (_PREFIX, lambda match, values, numbers: values.str.starts_with(match[1])),
    (_PERIOD, _in_period),
    (_DECADE, lambda match, values, numbers: values.str.contains(_DATE) & values.str.starts_with(match[1])),
)
