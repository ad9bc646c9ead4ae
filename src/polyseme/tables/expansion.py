"""Tables whose cells are sets: their expansion, and equivalence classes for an attribute.

A table of sets (its *aggregated expression*) stands for its *expansion*: for every record all combinations of its
candidates. A class for an attribute S_j is made of the rows of the expansion that agree in all attributes except S_j
(Definition 10 of the sensitive quasi-identifier paper): the union of the records whose other sets all contain the
values of the class. So nothing needs expanding but the other attributes, and when even these combinations are too many
(`EXPANSION_LIMIT`), each record stands for a class of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError, TableError, nearest
from polyseme.kernel.spelling import Label
from polyseme.tables.labels import encode

__all__ = ["EXPANSION_LIMIT", "QidClasses", "classes_for", "expand"]

EXPANSION_LIMIT = 2_000_000
"""Largest number of combinations that is ever listed."""

_ROW, _CLASS = "\0row", "\0class"


@dataclass(frozen=True, eq=False)
class QidClasses:
    """The equivalence classes for one attribute S_j.

    attribute  its name
    owner      class of each (class, record) pair, ascending
    row        record of each pair
    starts     where each record's set begins in `value`: (records + 1,)
    value      codes of the candidates of S_j
    labels     its domain in order of codes
    listed     whether these are all classes; otherwise each record stands for itself
    flaw       why nothing can be said; empty when all is well
    """

    attribute: str
    owner: Ints
    row: Ints
    starts: Ints
    value: Ints
    labels: tuple[Label | None, ...] = field(repr=False)
    listed: bool = True
    flaw: str = ""

    @property
    def count(self) -> int:
        """How many classes there are."""
        return int(self.owner[-1]) + 1 if len(self.owner) else 0

    @cached_property
    def lengths(self) -> Ints:
        """How many candidates each record has."""
        return np.diff(self.starts)

    @cached_property
    def first(self) -> Ints:
        """A record of each class."""
        return self.row[np.searchsorted(self.owner, np.arange(self.count))]

    @cached_property
    def sizes(self) -> Ints:
        """Rows of the expansion in each class."""
        return np.bincount(self.owner, weights=self.lengths[self.row], minlength=self.count).astype(np.int64)

    @cached_property
    def records(self) -> Ints:
        """Records that take part in each class."""
        return np.bincount(self.owner, minlength=self.count)

    def sums(self, weight: Floats) -> tuple[Ints, Ints, Floats]:
        """Class, value and summed weight of the candidates, one entry for each value of each class."""
        lengths = self.lengths[self.row]
        offset = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entry = np.repeat(self.starts[self.row], lengths) + offset
        keys = np.repeat(self.owner, lengths) * len(self.labels) + self.value[entry]
        keys, inverse = np.unique(keys, return_inverse=True)
        summed: Floats = np.bincount(inverse, weights=weight[entry], minlength=len(keys)).astype(np.float64)
        return keys // len(self.labels), keys % len(self.labels), summed

    @property
    def note(self) -> str:
        if self.listed:
            return ""
        return "too many combinations to list: each record was checked as a class of its own, the worst case"


def _as_sets(table: pl.DataFrame, attributes: Sequence[str]) -> pl.DataFrame:
    """Every attribute as a column of lists without repeats, and the row number."""
    absent = [name for name in attributes if name not in table.columns]
    if absent:
        raise TableError(Problem(name, "the table has no such column", nearest(name, table.columns)) for name in absent)
    columns = []
    for name in attributes:
        dtype = table.schema[name]
        column = pl.concat_list(name)
        if isinstance(dtype, pl.List | pl.Array):
            column = pl.col(name).cast(pl.List(dtype.inner))
        columns.append(column.list.unique(maintain_order=True).alias(name))
    return table.select(columns).with_row_index(_ROW)


def expand(table: pl.DataFrame, attributes: Sequence[str] | None = None) -> pl.DataFrame:
    """The expansion of a table of sets: all combinations of each record's candidates, record by record.

    >>> expand(pl.DataFrame({"age": [[33, 41]], "disease": [["cold", "HIV"]]})).rows()
    [(33, 'cold'), (33, 'HIV'), (41, 'cold'), (41, 'HIV')]
    """
    attributes = list(table.columns if attributes is None else attributes)
    sets = _as_sets(table, attributes)
    rows = _combinations(sets, attributes)
    if rows > EXPANSION_LIMIT:
        raise TableError(
            f"the expansion would have {rows:,.0f} rows (limit {EXPANSION_LIMIT:,})",
            "the table of sets says the same; expand fewer records or attributes",
        )
    return _exploded(sets, attributes).drop(_ROW)


def _combinations(sets: pl.DataFrame, attributes: Sequence[str]) -> float:
    lengths = np.ones(sets.height)
    for name in attributes:
        lengths = lengths * sets[name].list.len().fill_null(1).to_numpy()
    return float(lengths.sum())


def _exploded(sets: pl.DataFrame, attributes: Sequence[str]) -> pl.DataFrame:
    for name in attributes:
        sets = sets.explode(name)
    return sets


def classes_for(
    table: pl.DataFrame,
    attribute: str,
    attributes: Sequence[str] | None = None,
    domain: Sequence[Label] | int | None = None,
) -> QidClasses:
    """The equivalence classes for `attribute` (Definition 10).

    `attributes` are all sensitive quasi-identifiers.
    """
    attributes = list(table.columns if attributes is None else attributes)
    if attribute not in attributes:
        raise QuestionError(f"'{attribute}' is not among the attributes", nearest(attribute, attributes))
    sets = _as_sets(table, attributes)
    others = [name for name in attributes if name != attribute]
    listed = _combinations(sets, others) <= EXPANSION_LIMIT
    owner, row = _membership(sets, others) if listed else (np.arange(sets.height), np.arange(sets.height))
    starts, value, labels, flaw = _members(sets[attribute], domain)
    return QidClasses(attribute, owner, row, starts, value, labels, listed, flaw)


def _membership(sets: pl.DataFrame, others: list[str]) -> tuple[Ints, Ints]:
    """Pairs (class, record) in order of classes."""
    if not others:
        return np.zeros(sets.height, dtype=np.int64), np.arange(sets.height)
    rows = _exploded(sets.select(_ROW, *others), others)
    groups = rows.group_by(others, maintain_order=True).agg(pl.col(_ROW)).with_row_index(_CLASS)
    pairs = groups.select(_CLASS, _ROW).explode(_ROW)
    return pairs[_CLASS].to_numpy().astype(np.int64), pairs[_ROW].to_numpy().astype(np.int64)


def _members(
    lists: pl.Series, domain: Sequence[Label] | int | None
) -> tuple[Ints, Ints, tuple[Label | None, ...], str]:
    """Starts, codes and labels of a column of sets, and its flaw if it has one."""
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    members = lists.filter(pl.Series(lengths > 0)).explode()
    known = range(domain) if isinstance(domain, int) else domain
    codes, labels, _ = encode(members, pl.repeat(1, len(members), eager=True), known, "refuse")
    return starts, codes, labels, _flaw(lengths, codes)


def _flaw(lengths: Ints, codes: Ints) -> str:
    if not len(lengths):
        return "the table has no rows"
    empty, unknown = int((lengths == 0).sum()), int((codes < 0).sum())
    flaws = [f"{empty:,} records have no candidates"] if empty else []
    flaws += [f"{unknown:,} candidates are missing or outside the domain"] if unknown else []
    return "; ".join(flaws)
