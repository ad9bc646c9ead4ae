"""People of a population who fit what classes show of the quasi-identifiers.

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
from typing import TypeAlias

import numpy as np
import polars as pl

from polyseme.arrays import Ints
from polyseme.spelling import spelled

__all__ = ["Meaning", "people_fitting", "people_in_cells"]

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
    """People by the labels that they fit, column by column; only combinations that some class shows are kept."""
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
