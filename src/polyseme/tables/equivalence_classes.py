"""Equivalence classes as counts: all that a privacy model looks at.

Rows are grouped once by polars; what leaves this module are small integer arrays that depend neither on row labels nor
on the order of rows. Definitions:

- A *class* is a maximal set of rows with the same values in all quasi-identifiers. A missing value is a value of its
  own. With no quasi-identifiers the whole table is one class.
- With `wildcard=True` a missing value or a `*` matches anything, on either side: there is one class for each distinct
  combination, and it holds every row that matches the combination. Classes then overlap and their sizes add up to
  more than the table.
- A row with `*` in every quasi-identifier is *suppressed*. Suppressed rows are counted and set aside, unless all rows
  are like that: then the table is generalized to the top and is one ordinary class.
- A `*` in the column of a sensitive attribute is a missing value, not one more value (unless the attribute is a
  quasi-identifier as well, where it is a generalized value).
- Where it is known whose rows they are, people are counted: the size of a class is the number of different people who
  have a row in it, and a person counts once for each different value. Shares are over people, so that those of a class
  add up to more than 1 where a person has several values; distributions (`Counts.spread`) are scaled back to 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.spelling import Label
from polyseme.tables.labels import MissingAs, encode, require_columns
from polyseme.tables.people import Meaning, people_fitting
from polyseme.tables.published import PublishedSets, published_sets, ragged_blocks

__all__ = [
    "SUPPRESSED",
    "Classes",
    "Counts",
    "MissingAs",
    "PublishedSets",
    "class_of_rows",
    "classes_of",
    "counted_people",
    "kept_rows",
    "match_counts",
    "people_in",
    "published_sets",
]

SUPPRESSED = "*"
"""What anonymizers write for a value they took away."""

_DENSE = 8
"""Cells for each entry up to which a whole table of classes and values is quicker than sorting the entries."""
_CLASS, _VALUE, _COUNT, _ROW = "\0class", "\0value", "\0count", "\0row"


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each value of one sensitive attribute occurs in each class.

    Sorted by class, then by value.

    attribute  its name
    sizes      records of each class: (classes,)
    first      a row of each class, to name the place, -1 where rows were only counted: (classes,)
    starts     where each class begins in `value` and `count`: (classes + 1,)
    value      codes of the values that occur
    count      how often they do, at least once
    total      how often each value of the domain occurs in the whole table: (F,)
    labels     the domain in order of codes; the values seen, sorted, when none was declared
    flaw       why nothing can be said about this attribute; empty when all is well

    Where people are counted, `sizes`, `count` and `total` are numbers of different people, and beside them stand

    people     how many there are in the whole table; None where records are counted
    holders    who has which value: the entry of `value`, and the person, each pair once: (2, m)
    rows       the same classes and values with records counted
    """

    attribute: str
    sizes: Ints
    first: Ints
    starts: Ints
    value: Ints
    count: Ints
    total: Ints
    labels: tuple[Label | None, ...] = field(repr=False)
    flaw: str = ""
    people: int | None = None
    holders: Ints | None = field(default=None, repr=False)
    rows: Counts | None = field(default=None, repr=False)

    @property
    def domain_size(self) -> int:
        """F, the number of values."""
        return len(self.total)

    @property
    def records(self) -> int:
        """N, the number of records that are not suppressed, or of people where these are counted."""
        return int(self.total.sum()) if self.people is None else self.people

    @cached_property
    def spread(self) -> Counts:
        """The same as distributions: sizes are sums of counts, which may exceed the people."""
        if self.people is None:
            return self
        sizes = np.add.reduceat(self.count, self.starts[:-1]) if len(self.count) else self.sizes
        return replace(self, sizes=sizes, people=None, holders=None, rows=None)

    def compared(self, whole: Counts) -> Counts:
        """The same classes as parts of another table, which is given as one class."""
        rows = None if self.rows is None or whole.rows is None else self.rows.compared(whole.rows)
        return replace(self, total=whole.total, people=whole.people, rows=rows)

    def among(self, kept: Bools) -> Counts:
        """The counts of some classes, which are then the whole table."""
        entries = kept[self.owner]
        value, count = self.value[entries], self.count[entries]
        total = np.bincount(value, count, self.domain_size).astype(np.int64)
        starts = np.concatenate(([0], np.cumsum(self.distinct[kept])))
        made = replace(
            self, sizes=self.sizes[kept], first=self.first[kept], starts=starts, value=value, count=count, total=total
        )
        if self.holders is None or self.rows is None:
            return made
        held = self.holders[:, entries[self.holders[0]]]
        held = np.stack([(np.cumsum(entries) - 1)[held[0]], held[1]])
        return made._whole_of(held, self.rows.among(kept))

    def _whole_of(self, holders: Ints, rows: Counts) -> Counts:
        """With the people of the whole table, from who has which entry."""
        total = people_in(self.value[holders[0]], holders[1], self.domain_size)
        return replace(self, total=total, people=len(np.unique(holders[1])), holders=holders, rows=rows)

    @cached_property
    def owner(self) -> Ints:
        """The class of each entry of `value`."""
        return np.repeat(np.arange(len(self.sizes)), self.distinct)

    @cached_property
    def distinct(self) -> Ints:
        """How many different values each class has."""
        return np.diff(self.starts)

    def held(self, weights: Floats) -> Floats:
        """The weights of the values that each class has, summed."""
        return np.asarray(np.add.reduceat(weights[self.value], self.starts[:-1]), dtype=np.float64)

    def blocks(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Classes with equally many values: numbers (m,), values (m, k) and counts (m, k)."""
        return ragged_blocks(self.starts, self.value, self.count)

    @classmethod
    def from_codes(
        cls, classes: Ints, codes: Ints, size: int, attribute: str = "", counts: Ints | None = None
    ) -> Counts:
        """From the class number and the value code of each record, or of `counts` records each.

        >>> Counts.from_codes(np.array([0, 0, 1]), np.array([2, 2, 0]), 3).distinct
        array([1, 1])
        """
        flaw = "the table has no rows" if len(codes) == 0 else ""
        names, classes, sizes = np.unique(classes, return_inverse=True, return_counts=True)
        flat = classes * size + codes
        keys, first, count = np.unique(flat, return_index=True, return_counts=True)
        if counts is not None:
            sizes = _summed(classes, counts, len(names))
            count, first = _summed(np.searchsorted(keys, flat), counts, len(keys)), np.full(len(keys), -1)
        owner = keys // size if size else keys
        starts = np.searchsorted(owner, np.arange(len(names) + 1))
        return cls(
            attribute,
            sizes,
            first[starts[:-1]] if len(keys) else first,
            starts,
            keys % size if size else keys,
            count,
            np.bincount(codes, minlength=size) if counts is None else _summed(codes, counts, size),
            tuple(range(size)),
            flaw,
        )


@dataclass(frozen=True, eq=False)
class Classes:
    """The equivalence classes of a table.

    sizes       records of each class: (classes,)
    first       a row of each class, to name the place, -1 where rows were only counted: (classes,)
    records     rows of the table that are not suppressed
    suppressed  rows with `*` in every quasi-identifier
    attributes  counts of each requested sensitive attribute
    people      how many people these rows are of, where people are counted: `sizes` are then numbers of people
    """

    sizes: Ints
    first: Ints
    records: int
    suppressed: int
    attributes: dict[str, Counts] = field(default_factory=dict)
    people: int | None = None

    @property
    def count(self) -> int:
        return len(self.sizes)

    @property
    def flaw(self) -> str:
        return "" if self.records else "the table has no rows that are not suppressed"


def _summed(place: Ints, counts: Ints, size: int) -> Ints:
    """How many records there are at each place; exact, as whole numbers."""
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, place, counts)
    return found


def people_in(classes: Ints, people: Ints, number: int) -> Ints:
    """How many different people each class has, from the class and the person of each row.

    >>> people_in(np.array([0, 0, 0, 1]), np.array([7, 7, 9, 7]), 2)
    array([2, 1])
    """
    span = int(people.max(initial=0)) + 1
    return np.bincount(np.unique(classes * span + people) // span, minlength=number).astype(np.int64)


def counted_people(rows: Counts, classes: Ints, codes: Ints, people: Ints, sizes: Ints) -> Counts:
    """Counts of people in place of records, from the class, value and person of each row.

    rows   the same with records counted
    sizes  people of each class
    """
    keys = rows.owner * rows.domain_size + rows.value
    entry, span = np.searchsorted(keys, classes * rows.domain_size + codes), int(people.max(initial=0)) + 1
    holders = np.stack(np.divmod(np.unique(entry * span + people), span))
    made = replace(rows, sizes=sizes, count=np.bincount(holders[0], minlength=len(rows.value)).astype(np.int64))
    return made._whole_of(holders, rows)


def classes_of(
    frame: pl.DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: Iterable[str] = (),
    *,
    domains: dict[str, Sequence[Label]] | None = None,
    missing: MissingAs | Mapping[str, MissingAs] = "refuse",
    wildcard: bool = False,
    generalized: Collection[str] = (),
    counts: Ints | None = None,
    people: Ints | None = None,
    first: Ints | None = None,
) -> Classes:
    """Group a table by its quasi-identifiers and count the sensitive values in every class.

    `domains` gives the values of an attribute in order of their codes; without it they are those that occur, sorted.
    `missing="category"` declares that a missing sensitive value is one more value; otherwise it is a flaw. A mapping
    says so for each attribute.
    `generalized` names sensitive attributes that are quasi-identifiers too: there a `*` is a value like any other.
    `counts` says how many records each row stands for; without it, one.
    `people` says whose each row is, as a number from 0: then people are counted.
    `first` says in which row of a table each row that was counted occurs first.

    >>> table = pl.DataFrame({"zip": [1, 1, None], "ill": ["flu", "cold", "flu"]})
    >>> classes_of(table, ["zip"], ["ill"]).attributes["ill"].distinct.tolist()
    [1, 2]
    """
    sensitive = tuple(sensitive)
    require_columns(frame, (*quasi_identifiers, *sensitive))
    keys = list(quasi_identifiers)
    # The rows are gone through once for each sensitive attribute; everything after that is about distinct combinations.
    tallies = {name: _tally(frame, keys, name, counts, first) for name in sensitive}
    whole = tallies[sensitive[0]] if sensitive else _tally(frame, keys, None, counts, first)
    groups, suppressed = _kept_groups(whole, keys, wildcard)
    sizes = groups[_COUNT].to_numpy().astype(np.int64)
    records = int(sizes.sum())
    pairs = _matching_pairs(groups, keys) if wildcard and keys else None
    if pairs is not None:
        sizes = np.bincount(pairs[0], weights=sizes[pairs[1]], minlength=groups.height).astype(np.int64)
    classes = Classes(sizes, groups[_ROW].to_numpy().astype(np.int64), records, suppressed)
    for name, tally in tallies.items():
        counted = _by_class(tally, groups, keys, wildcard, suppressed)
        counted = counted.with_columns(_values(counted, name in generalized))
        taken_as = missing if isinstance(missing, str) else missing.get(name, "refuse")
        classes.attributes[name] = _sparse(classes, counted, name, (domains or {}).get(name), taken_as, pairs)
    if people is None:
        return classes
    known = _class_of(frame, groups, keys, wildcard)
    rows = np.flatnonzero(known >= 0)
    codes = {}
    for name in sensitive:
        taken_as = missing if isinstance(missing, str) else missing.get(name, "refuse")
        values = _values(frame.select(pl.col(name).alias(_VALUE))[rows], name in generalized)
        codes[name] = encode(values, pl.repeat(1, len(values), eager=True), (domains or {}).get(name), taken_as)[0]
    return _of_people(classes, known[rows], codes, people[rows], pairs)


def _values(counted: pl.DataFrame, generalized: bool) -> pl.Series:
    """The values of an attribute; a suppressed one is missing, unless it is generalized."""
    if not _textual(counted, _VALUE):
        return counted[_VALUE]
    texts = counted[_VALUE].cast(pl.String)
    return texts if generalized else texts.replace(SUPPRESSED, None)


def _class_of(frame: pl.DataFrame, groups: pl.DataFrame, keys: list[str], wildcard: bool) -> Ints:
    """The class of each row; -1 for a suppressed one."""
    if not keys:
        return np.zeros(frame.height, dtype=np.int64)
    rows = frame.select(*keys, _suppressed(frame, keys).alias(_VALUE))
    rows = rows.with_columns(_star_to_null(rows, keys)) if wildcard else rows
    there = groups.select(_CLASS, *keys)
    found = rows.join(there, on=keys, how="left", nulls_equal=True, maintain_order="left")
    # Where every row is suppressed, they are a class.
    set_aside = pl.col(_VALUE) & ~pl.col(_VALUE).all()
    return found.select(pl.when(~set_aside).then(pl.col(_CLASS)).cast(pl.Int64).fill_null(-1)).to_series().to_numpy()


def _of_people(
    classes: Classes, owner: Ints, codes: Mapping[str, Ints], people: Ints, pairs: tuple[Ints, Ints] | None
) -> Classes:
    """The classes with people counted, from the class, the values and the person of each row."""
    rows, known = np.arange(len(owner)), len(np.unique(people))
    if pairs is not None:
        owner, rows = _into_matching(owner, pairs)
    sizes = people_in(owner, people[rows], classes.count)
    attributes = {}
    for name, counts in classes.attributes.items():
        there = codes[name][rows] >= 0
        values = codes[name][rows[there]]
        attributes[name] = counted_people(counts, owner[there], values, people[rows[there]], sizes)
    return replace(classes, sizes=sizes, attributes=attributes, people=known)


def _into_matching(owner: Ints, pairs: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Entries copied to every class that matches theirs, where classes overlap, with the source."""
    into, source = pairs
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(int(source.max(initial=-1)) + 2))
    lengths = (bounds[1:] - bounds[:-1])[source]
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(into, lengths), order[np.repeat(bounds[:-1][source], lengths) + offsets]


def class_of_rows(frame: pl.DataFrame, quasi_identifiers: Sequence[str]) -> Ints:
    """The class of each row, numbered as `classes_of` does without wildcards.

    -1 for a suppressed row.
    """
    require_columns(frame, quasi_identifiers)
    keys = list(quasi_identifiers)
    if not keys:
        return np.zeros(frame.height, dtype=np.int64)
    groups, _ = _kept_groups(_tally(frame, keys), keys, wildcard=False)
    rows = frame.select(keys).join(
        groups.select(_CLASS, *keys), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    return rows[_CLASS].cast(pl.Int64).fill_null(-1).to_numpy()


def kept_rows(frame: pl.DataFrame, quasi_identifiers: Sequence[str]) -> Bools:
    """Which rows are in a class: all but the suppressed ones, or all if all are suppressed."""
    require_columns(frame, quasi_identifiers)
    kept = frame.select(pl.repeat(True, pl.len()) & ~_suppressed(frame, list(quasi_identifiers))).to_series().to_numpy()
    return np.asarray(kept if kept.any() else np.ones(frame.height, dtype=np.bool_))


def match_counts(
    frame: pl.DataFrame,
    reference: pl.DataFrame,
    quasi_identifiers: Sequence[str],
    meanings: Mapping[str, Meaning] | None = None,
) -> Ints:
    """For each class of `frame`, how many rows of `reference` fit its labels (`tables.people`).

    meanings  for some columns, what their labels stand for
    """
    require_columns(frame, quasi_identifiers)
    require_columns(reference, quasi_identifiers)
    keys = list(quasi_identifiers)
    groups, _ = _kept_groups(_tally(frame, keys), keys, wildcard=False)
    if not keys:
        return np.full(groups.height, reference.height, dtype=np.int64)
    return people_fitting(groups.select(keys), reference.select(keys), meanings)


_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def _textual(frame: pl.DataFrame, name: str) -> bool:
    return frame.schema[name] in _TEXTS


def _star_to_null(frame: pl.DataFrame, names: Sequence[str]) -> list[pl.Expr]:
    kinds = frame.schema
    texts = [name for name in names if kinds[name] in _TEXTS]
    return [pl.when(pl.col(name).cast(pl.String) != SUPPRESSED).then(pl.col(name)).alias(name) for name in texts]


def _tally(
    frame: pl.DataFrame,
    keys: list[str],
    name: str | None = None,
    counts: Ints | None = None,
    first: Ints | None = None,
) -> pl.DataFrame:
    """Distinct combinations of `keys` and values of `name`: their counts and first rows."""
    values = [] if name is None else [pl.col(name).alias(_VALUE)]
    by = [*keys, *([] if name is None else [_VALUE])]
    if counts is None:
        rows = frame.lazy().select(*keys, *values, pl.int_range(pl.len()).alias(_ROW))
        summary = [pl.len().cast(pl.Int64).alias(_COUNT), pl.col(_ROW).min()]
    else:
        rows = frame.lazy().select(*keys, *values, pl.Series(_COUNT, counts, dtype=pl.Int64))
        known = pl.lit(-1, dtype=pl.Int64) if first is None else pl.Series(first, dtype=pl.Int64)
        rows = rows.with_columns(known.alias(_ROW))
        summary = [pl.col(_COUNT).sum(), pl.col(_ROW).min()]
    # With nothing to group by, an empty table still has no combination.
    grouped = rows.group_by(by).agg(summary) if by else rows.select(summary).filter(pl.col(_COUNT) > 0)
    return grouped.collect(engine="streaming")


def _kept_groups(tally: pl.DataFrame, keys: list[str], wildcard: bool) -> tuple[pl.DataFrame, int]:
    """The classes in sorted order with their number, and how many rows are suppressed."""
    kept = tally.filter(~_suppressed(tally, keys))
    kept = kept if kept.height else tally
    suppressed = int(tally[_COUNT].sum()) - int(kept[_COUNT].sum())
    if wildcard:
        kept = kept.with_columns(_star_to_null(kept, keys))
    summary = [pl.col(_COUNT).sum(), pl.col(_ROW).min()]
    groups = kept.group_by(keys).agg(summary).sort(keys) if keys else kept.select(summary).filter(kept.height > 0)
    return groups.with_row_index(_CLASS), suppressed


def _suppressed(table: pl.DataFrame, keys: list[str]) -> pl.Expr:
    kinds = table.schema  # polars makes it again at each access
    if not keys or not all(kinds[key] in _TEXTS for key in keys):
        return pl.lit(False)
    return pl.all_horizontal((pl.col(key).cast(pl.String) == SUPPRESSED).fill_null(False) for key in keys)


def _by_class(
    tally: pl.DataFrame, groups: pl.DataFrame, keys: list[str], wildcard: bool, suppressed: int
) -> pl.DataFrame:
    """Class, value and count, one row for each value of each combination that was not set aside."""
    kept = tally.filter(~_suppressed(tally, keys)) if suppressed else tally
    if not keys:
        return kept.select(pl.lit(0).alias(_CLASS), _VALUE, _COUNT)
    if wildcard:
        kept = kept.with_columns(_star_to_null(kept, keys))
    joined = kept.join(groups.select(_CLASS, *keys), on=keys, how="left", nulls_equal=True)
    return joined.select(_CLASS, _VALUE, _COUNT)


def _sparse(
    classes: Classes,
    counted: pl.DataFrame,
    name: str,
    domain: Sequence[Label] | None,
    missing: MissingAs,
    pairs: tuple[Ints, Ints] | None,
) -> Counts:
    codes, labels, flaw = encode(counted[_VALUE], counted[_COUNT], domain, missing)
    owner = counted[_CLASS].to_numpy().astype(np.int64)
    count = counted[_COUNT].to_numpy().astype(np.int64)
    size = len(labels)
    total = np.bincount(codes[codes >= 0], weights=count[codes >= 0], minlength=size).astype(np.int64)
    known = codes >= 0
    owner, codes, count = _merged(owner[known], codes[known], count[known], size, pairs)
    starts = np.searchsorted(owner, np.arange(classes.count + 1)).astype(np.int64)
    flaw = classes.flaw or flaw
    return Counts(name, classes.sizes, classes.first, starts, codes, count, total, labels, flaw)


def _merged(
    owner: Ints, codes: Ints, count: Ints, size: int, pairs: tuple[Ints, Ints] | None
) -> tuple[Ints, Ints, Ints]:
    """Entries by class and value; with overlapping classes, those of matching classes too."""
    if pairs is not None:
        owner, entries = _into_matching(owner, pairs)
        codes, count = codes[entries], count[entries]
    flat = owner * max(size, 1) + codes
    if flat.max(initial=0) < _DENSE * len(flat):
        # Every count is at least one, so that a sum of zero is a value that does not occur.
        table = np.bincount(flat, weights=count)
        keys = np.flatnonzero(table)
        summed = table[keys]
    else:
        keys, inverse = np.unique(flat, return_inverse=True)
        summed = np.bincount(inverse, weights=count, minlength=len(keys))
    return keys // max(size, 1), keys % max(size, 1), summed.astype(np.int64)


def _matching_pairs(groups: pl.DataFrame, keys: list[str]) -> tuple[Ints, Ints]:
    """Pairs (i, j) of combinations that match: equal wherever neither has a missing value."""
    masked = groups.select(_CLASS, *keys, pl.concat_str(pl.col(k).is_null().cast(pl.Int8) for k in keys).alias(_VALUE))
    parts = {str(mask[0]): part for mask, part in masked.partition_by(_VALUE, as_dict=True).items()}
    left, right = [], []
    for mask, part in parts.items():
        for other, others in parts.items():
            shared = [key for key, a, b in zip(keys, mask, other, strict=True) if a == b == "0"]
            one = part.select(_CLASS, *shared)
            two = others.select(pl.col(_CLASS).alias(_ROW), *shared)
            joined = one.join(two, on=shared) if shared else one.join(two, how="cross")
            left.append(joined[_CLASS].to_numpy())
            right.append(joined[_ROW].to_numpy())
    return np.concatenate(left).astype(np.int64), np.concatenate(right).astype(np.int64)
