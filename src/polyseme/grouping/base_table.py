"""The base table: the columns that a grouping method uses, as they would be published.

    base = read_base(policy, source, items, distinct=True)
    base.frame, base.counts     # different rows, and how many records have each

Rows that are alike are put together while the table is read, so that what is held is what differs. Where the engine
has counted already (`source.counted`), few rows come in at all.

As microdata a table is the codes of its quasi-identifiers and sensitive attributes, as a grouping method needs them.

Codes take 4 bytes for each quasi-identifier and sensitive attribute, of each record or of each different one. Records
without a value where the policy says `missing: drop` are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.kernel.arrays import Bools, Ints, arrow
from polyseme.kernel.errors import PolicyError, Problem, TableError, numbered
from polyseme.kernel.marks import MISSING, UNSEEN
from polyseme.kernel.sightings import Sightings
from polyseme.kernel.spelling import spelled
from polyseme.methods.microdata import Ladder, Microdata, Sensitive
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy
from polyseme.policy.resolution import without_place
from polyseme.schema import Attribute, Domain, Role, Schema
from polyseme.semantics.hierarchies import ColumnValues, Hierarchy, Rule, Suppression, coverage, fit, values_of
from polyseme.tables.codes import as_series, cast_column, encode, label_array
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source
from polyseme.tables.readings import WIDEN, KeyReader, numbered_people, sighted

__all__ = [
    "BaseTable",
    "Coding",
    "ReadColumn",
    "ReadColumns",
    "ReadTable",
    "Reading",
    "columns_read",
    "read_base",
    "read_columns",
    "read_dealt",
    "read_microdata",
    "read_values",
]

_COUNT, _PERSON = "\0count", "\0person"
_CODES = np.dtype(np.int64)
_HELD = 1 << 19
"""Rows that are held before those that are alike are put together; then twice as many as differed."""
_WORTH = 0.8
"""Where more than this part of the rows differ, the last of them are not looked through again."""


@dataclass(frozen=True)
class ReadColumn:
    """A column by its name, and the type that the policy declares for it."""

    name: str
    type: str | None = None


@dataclass(frozen=True)
class Reading:
    """How rows of a table are read: words for missing values, types, rows left out. Pickles.

    columns   what is read
    dropping  columns without whose value a row is left out
    """

    columns: tuple[ReadColumn, ...]
    dropping: tuple[str, ...]
    missing_values: tuple[str, ...]

    @classmethod
    def of(cls, policy: Policy, items: Sequence[AttributePolicy]) -> Reading:
        dropping = [item.name for item in policy.attributes if item.role.is_secret and item.missing.action == "drop"]
        columns = tuple(ReadColumn(item.name, item.type) for item in items)
        return cls(columns, tuple(dropping), policy.table.missing_values)

    @property
    def names(self) -> list[str]:
        """All columns that must be there."""
        return list(dict.fromkeys([*(column.name for column in self.columns), *self.dropping]))

    def kept(self, batch: pa.RecordBatch) -> Bools:
        """Which rows are records: they have a value wherever those without one are left out."""
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        for name in self.dropping:
            kept &= as_series(batch.column(name), self.missing_values).is_not_null().to_numpy()
        return kept

    def series(self, batch: pa.RecordBatch, column: ReadColumn) -> tuple[pl.Series, pl.Series]:
        """A column as it would be published, and the texts that are no values of its type."""
        read = as_series(batch.column(column.name), self.missing_values).alias(column.name)
        if column.type is None:
            return read, read.clear()
        cast, failures = cast_column(read, column.type)
        return cast.alias(column.name), read.filter(cast.is_null() & read.is_not_null()) if failures else read.clear()


@dataclass(frozen=True, eq=False)
class BaseTable:
    """What was read.

    frame       one row for each record, or for all that are alike
    counts      how many records each row stands for; None where each is a record
    kept        which rows of the table are records; None where rows that are alike were put together
    dropped     rows that are left out because a value is missing
    aggregated  whether the table came as counts, so that rows have no places
    people      whose each row is, numbered from 0; None where records are counted
    apart       columns of which only the different values are held, each by itself
    """

    frame: pl.DataFrame = field(repr=False)
    counts: Ints | None = field(repr=False)
    kept: Bools | None = field(repr=False)
    dropped: int
    aggregated: bool = False
    people: Ints | None = field(default=None, repr=False)
    apart: Mapping[str, BaseTable] = field(default_factory=dict, repr=False)

    def columns(self, reading: Reading, names: Collection[str] | None = None) -> dict[str, pl.Series]:
        """What was read, or some of it, by name; without a single batch, its types are not known."""
        nothing = pl.Series([], dtype=pl.String)
        wanted = [item.name for item in reading.columns if names is None or item.name in names]
        return {name: self.frame[name] if self.frame.width else nothing for name in wanted}

    @property
    def rows(self) -> Ints | None:
        """The row of the table in which each row stands; None where several share one."""
        return None if self.kept is None else np.flatnonzero(self.kept)

    def weighed(self, rows: Bools) -> int:
        """Records of some rows."""
        return int(np.count_nonzero(rows) if self.counts is None else self.counts[rows].sum())


def read_base(
    reading: Reading, source: Source, distinct: bool, person: str | None = None, apart: Collection[str] = ()
) -> BaseTable:
    """The columns of all records, those that are alike put together where that is wanted.

    person  the column that says whose each record is; None where that is not needed
    apart   columns of which only the different values are wanted

    A column with values that are none of its declared type is refused.
    """
    held, single = _Held(distinct), {name: _Held(distinct=True) for name in apart}
    problems = _Unread()
    keys = None if person is None else KeyReader(person, reading.missing_values)
    names = list(dict.fromkeys([*reading.names, *([] if person is None else [person])]))
    for batch, counts in _counted(source, names, distinct):
        kept = reading.kept(batch)
        pieces: dict[str, pl.Series] = {}
        for column in reading.columns:
            # By name: in a list, a column whose header is empty would be given another one.
            pieces[column.name], unread = reading.series(batch, column)
            problems.see(column, unread)
        if keys is not None:
            pieces[_PERSON] = pl.Series(_PERSON, keys.read(batch.column(keys.name), kept, counts))
        for name, values in single.items():
            values.add(pl.DataFrame({name: pieces.pop(name)}), kept, counts)
        held.add(pl.DataFrame(pieces), kept, counts)
    problems.refuse()
    if keys is not None:
        keys.refuse()
    return replace(_of_people(held.whole()), apart={name: values.whole() for name, values in single.items()})


def _of_people(base: BaseTable) -> BaseTable:
    """The table with people as numbers, where it has a person column."""
    if _PERSON not in base.frame.columns:
        return base
    people = numbered_people(base.frame[_PERSON].to_numpy())
    return replace(base, frame=base.frame.drop(_PERSON), people=people)


def _counted(source: Source, names: list[str], distinct: bool) -> Iterator[tuple[pa.RecordBatch, Ints | None]]:
    columns = names or source.lightest
    yield from source.counted(columns) if distinct else ((batch, None) for batch in source.batches(columns))


class _Unread:
    """Texts that are no values of the declared type, by column."""

    def __init__(self) -> None:
        self._texts: dict[ReadColumn, list[pl.Series]] = {}

    def see(self, column: ReadColumn, texts: pl.Series) -> None:
        if len(texts):
            self._texts.setdefault(column, []).append(texts.cast(pl.String))

    def refuse(self) -> None:
        problems = []
        for column, pieces in self._texts.items():
            texts = pl.concat(pieces)
            hint = dialect_hint(texts) or "change or remove its type in the policy"
            what = numbered(len(texts), f"values cannot be read as {column.type}")
            problems.append(Problem(f"column '{column.name}'", what, hint))
        if problems:
            raise TableError(problems)


class _Held:
    """Rows as they come."""

    def __init__(self, distinct: bool) -> None:
        self._distinct, self._aggregated = distinct, False
        self._frames: list[pl.DataFrame] = []
        self._kept: list[Bools] = []
        self._dropped = self._pending = 0
        self._most, self._pays = _HELD, True

    def add(self, frame: pl.DataFrame, kept: Bools, counts: Ints | None) -> None:
        self._aggregated |= counts is not None
        each = np.ones(len(kept), dtype=np.int64) if counts is None else counts
        self._dropped += int(each[~kept].sum())
        if self._distinct:
            frame = frame.with_columns(pl.Series(_COUNT, each))
        else:
            self._kept.append(kept)
        self._frames.append(frame if kept.all() else frame.filter(pl.Series(kept)))
        self._pending += self._frames[-1].height
        if self._distinct and self._pending > self._most:
            self._put_together()
            self._most = max(_HELD, 2 * self._pending)

    def _put_together(self) -> None:
        whole = pl.concat(self._frames)
        names = [name for name in whole.columns if name != _COUNT]
        if not any(_has_no_equals(kind) for kind in whole.dtypes):
            whole = whole.group_by(names).agg(pl.col(_COUNT).sum()) if names else whole.select(pl.col(_COUNT).sum())
        self._pays = whole.height < _WORTH * self._pending
        self._frames, self._pending = [whole], whole.height

    def whole(self) -> BaseTable:
        if not self._frames:
            return BaseTable(pl.DataFrame(), None, np.zeros(0, dtype=np.bool_), 0)
        if not self._distinct:
            frame = pl.concat(self._frames, rechunk=False)
            return BaseTable(frame, None, np.concatenate(self._kept), self._dropped)
        if self._pays:
            self._put_together()
        frame = pl.concat(self._frames)
        counts = frame[_COUNT].to_numpy().astype(np.int64)
        return BaseTable(frame.drop(_COUNT), counts, None, self._dropped, self._aggregated)


def _has_no_equals(kind: pl.DataType) -> bool:
    """Whether no domain and no hierarchy has values of this type; their use is refused later."""
    return kind.is_nested() or kind in (pl.Binary, pl.Object)


@dataclass(frozen=True, eq=False)
class Coding:
    """How rows become codes: with it any part of the table can be read. It can be pickled.

    hierarchies  of the quasi-identifiers, by name
    domains      of the sensitive attributes, by name
    """

    reading: Reading
    hierarchies: Mapping[str, Hierarchy] = field(repr=False)
    domains: Mapping[str, Domain] = field(repr=False)

    def leaves(self, columns: Mapping[str, pl.Series]) -> Ints:
        """The leaf of each row on each ladder: (n, q)."""
        rows = len(next(iter(columns.values()))) if columns else 0
        found: Ints = np.empty((rows, len(self.hierarchies)), dtype=np.int32)
        for place, (name, hierarchy) in enumerate(self.hierarchies.items()):
            codes = hierarchy.codes(columns[name])
            # A missing value that may be anything is the last leaf of its ladder.
            found[:, place] = np.where(codes == MISSING, len(hierarchy.labels[0]), codes)
        return found

    def coded(self, batch: pa.RecordBatch) -> tuple[Bools, Ints, dict[str, Ints]]:
        """Which rows are records; the leaves of these, and the codes of their sensitive values."""
        kept = self.reading.kept(batch)
        there = batch if kept.all() else batch.filter(arrow(kept))
        columns = {column.name: self.reading.series(there, column)[0] for column in self.reading.columns}
        leaves = self.leaves(columns)
        secret = {name: encode(columns[name], domain).codes for name, domain in self.domains.items()}
        if (leaves < 0).any() or any((codes < 0).any() for codes in secret.values()):
            raise TableError("the table has values that it did not have when it was read first", "try again")
        return kept, leaves, secret


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table as microdata.

    source     the table
    coding     how its rows became codes
    kept       which rows of the table are rows of the microdata; None where those that are alike share one
    dropped    rows that are left out because a value is missing
    listed     the quasi-identifiers whose hierarchy lists its values, so that they are public
    sensitive  the attributes that are published as they are or by group, with their domains
    """

    source: Source
    coding: Coding
    data: Microdata
    kept: Bools | None = field(repr=False)
    dropped: int = 0
    listed: frozenset[str] = frozenset()
    sensitive: tuple[Attribute, ...] = ()


def read_microdata(
    policy: Policy, schema: Schema, source: Source, distinct: bool = False, population: Source | None = None
) -> ReadTable:
    """The records of a table that will be published, as codes; every problem at once.

    policy      with its attributes in the order of the table's columns
    distinct    whether records that are alike may share a row
    population  people with the same quasi-identifiers, to count those who fit a class
    """
    people = None if population is None else _people(policy, population)
    return _read(policy, schema, source, (*_keys(policy), *_secret(policy)), distinct, policy.record_key, people)


def _people(policy: Policy, population: Source) -> BaseTable:
    """The quasi-identifiers of a population; refuses one that lacks some."""
    keys = _keys(policy)
    absent = [item.name for item in keys if item.name not in population.schema.names]
    if absent:
        raise TableError(
            Problem(population.name, f"no column '{name}'", "the population needs every quasi-identifier")
            for name in absent
        )
    columns = tuple(ReadColumn(item.name, item.type) for item in keys)
    return read_base(Reading(columns, (), policy.table.missing_values), population, distinct=True)


def columns_read(policy: Policy) -> list[str]:
    """The columns that it looks at."""
    return Reading.of(policy, (*_keys(policy), *_secret(policy))).names


def read_values(policy: Policy, schema: Schema, source: Source) -> ReadTable:
    """The same, with counts of sensitive values only: quasi-identifiers are not looked at."""
    _keys(policy)
    return _read(policy, schema, source, _secret(policy), distinct=True)


def read_dealt(policy: Policy, schema: Schema, source: Source) -> ReadTable:
    """The same for a method that looks at sensitive values only.

    Values of quasi-identifiers are checked, but there are no codes of them: (n, 0).
    """
    keys, secret = _keys(policy), _secret(policy)
    if not secret:
        return read_microdata(policy, schema, source)
    reading = Reading.of(policy, (*keys, *secret))
    try:
        base = read_base(reading, source, False, policy.record_key, [item.name for item in keys])
        return _coded_apart(policy, schema, source, reading, base)
    except TableError:
        # With all columns in memory the error says which rows are meant, and every problem at once.
        return read_microdata(policy, schema, source)


def _coded_apart(policy: Policy, schema: Schema, source: Source, reading: Reading, base: BaseTable) -> ReadTable:
    hierarchies: dict[str, tuple[Hierarchy, Rule]] = {}
    for item in _keys(policy):
        values = base.apart[item.name]
        hierarchies |= _hierarchies(policy, [item], values.columns(reading, [item.name]), source, values, {})
    columns = base.columns(reading, [item.name for item in _secret(policy)])
    described = tuple(_described(i, schema[i.name], columns[i.name], source, base) for i in _secret(policy))
    coding = Coding(
        reading,
        {name: hierarchy for name, (hierarchy, _) in hierarchies.items()},
        {item.name: item.domain for item in described if item.domain is not None},
    )
    data = Microdata(
        tuple(Ladder.of(name, hierarchy) for name, (hierarchy, _) in hierarchies.items()),
        np.zeros((base.frame.height, 0), dtype=np.int32),
        {item.name: _sensitive(item, columns[item.name], source, base, np.dtype(np.int32)) for item in described},
        people=_repeated(base),
    )
    listed = frozenset(name for name, (_, rule) in hierarchies.items() if rule.listed is not None)
    return ReadTable(source, coding, data, base.kept, base.dropped, listed, described)


@dataclass(frozen=True, eq=False)
class ReadColumns:
    """What single columns of a table say: how rows become codes.

    The fields are those of a `ReadTable`; the ladders are those of its microdata.
    """

    coding: Coding
    ladders: tuple[Ladder, ...] = field(repr=False)
    dropped: int
    listed: frozenset[str]
    sensitive: tuple[Attribute, ...]


def read_columns(policy: Policy, schema: Schema, source: Source) -> ReadColumns:
    """How rows become codes, from counts of each column: where too many rows differ to hold."""
    items = (*_keys(policy), *_secret(policy))
    read = [_read(policy, schema, source, [item], distinct=True) for item in items]
    hierarchies = {name: found for part in read for name, found in part.coding.hierarchies.items()}
    domains = {name: found for part in read for name, found in part.coding.domains.items()}
    return ReadColumns(
        Coding(Reading.of(policy, items), hierarchies, domains),
        tuple(ladder for part in read for ladder in part.data.ladders),
        read[0].dropped,
        frozenset(name for part in read for name in part.listed),
        tuple(item for part in read for item in part.sensitive),
    )


def _secret(policy: Policy) -> list[AttributePolicy]:
    return [item for item in policy.attributes if item.role.is_secret and not item.protect]


def _keys(policy: Policy) -> list[AttributePolicy]:
    keys = [item for item in policy.attributes if item.role is Role.QUASI_IDENTIFIER]
    if not keys:
        raise PolicyError(
            "the policy has no quasi-identifier, so there are no classes to form",
            "give the columns that an attacker may know: role: quasi-identifier",
        )
    return keys


def _read(
    policy: Policy,
    schema: Schema,
    source: Source,
    items: Sequence[AttributePolicy],
    distinct: bool,
    person: str | None = None,
    people: BaseTable | None = None,
) -> ReadTable:
    reading = Reading.of(policy, items)
    base = read_base(reading, source, distinct, person)
    try:
        return _coded(policy, schema, source, reading, base, people)
    except TableError:
        if base.kept is not None or base.aggregated:
            raise
        # Where rows that are alike were put together, their places are lost: read again, to tell.
        return _coded(policy, schema, source, reading, read_base(reading, source, distinct=False), people)


def _coded(
    policy: Policy,
    schema: Schema,
    source: Source,
    reading: Reading,
    base: BaseTable,
    people: BaseTable | None = None,
) -> ReadTable:
    columns = base.columns(reading)
    read = [item for item in policy.attributes if item.name in columns]
    keys = [item for item in read if item.role is Role.QUASI_IDENTIFIER]
    secret = [item for item in read if item not in keys]
    others = {} if people is None else {name: people.frame[name] for name in people.frame.columns}
    hierarchies = _hierarchies(policy, keys, columns, source, base, others)
    ladders = tuple(Ladder.of(name, hierarchy) for name, (hierarchy, _) in hierarchies.items())
    described = tuple(_described(item, schema[item.name], columns[item.name], source, base) for item in secret)
    sensitive = {item.name: _sensitive(item, columns[item.name], source, base) for item in described}
    coding = Coding(
        reading,
        {name: hierarchy for name, (hierarchy, _) in hierarchies.items()},
        {item.name: item.domain for item in described if item.domain is not None},
    )
    population = None if people is None else _everyone(coding.leaves(others), people.counts)
    data = Microdata(ladders, coding.leaves(columns), sensitive, population, base.counts, people=_repeated(base))
    listed = frozenset(name for name, (_, rule) in hierarchies.items() if rule.listed is not None)
    return ReadTable(source, coding, data, base.kept, base.dropped, listed, described)


def _everyone(leaves: Ints, counts: Ints | None) -> Ints:
    """One row for each person."""
    return leaves if counts is None else np.repeat(leaves, counts, axis=0)


def _repeated(base: BaseTable) -> Ints | None:
    """The person of each row; None where no person has two records, so counts agree."""
    if (
        base.people is None
        or base.weighed(np.ones(len(base.people), dtype=np.bool_)) == base.people.max(initial=-1) + 1
    ):
        return None
    return base.people


def _hierarchies(
    policy: Policy,
    keys: Sequence[AttributePolicy],
    columns: Mapping[str, pl.Series],
    source: Source,
    base: BaseTable,
    others: Mapping[str, pl.Series],
) -> dict[str, tuple[Hierarchy, Rule]]:
    """The hierarchy of each quasi-identifier; one without can only be suppressed.

    others  the values of a population, which have places beside those of the table
    """
    problems: list[Problem] = []
    found: dict[str, tuple[Hierarchy, Rule]] = {}
    for item in keys:
        rule: Rule = Suppression() if item.hierarchy is None else item.hierarchy.open(policy.files)
        values = values_of([columns[item.name]])
        if coverage(rule, values).complete:
            missing = "leaf" if item.hierarchy is None else item.hierarchy.missing
            both = values_of([columns[item.name], others[item.name]]) if item.name in others else values
            if coverage(rule, both).complete:
                found[item.name] = fit(rule, both, missing), rule
            else:
                strange = coverage(rule, both).unknown_values
                what = numbered(strange, "values of the population have no place in the hierarchy")
                problems.append(Problem(f"$.attributes.{item.name}.hierarchy", what, "add them, or drop these people"))
        else:
            weighed = _weighed(values, columns[item.name], base)
            problems.append(without_place(item, rule, weighed, source, base.rows, base.kept is not None))
    if problems:
        raise TableError(problems)
    return found


def _weighed(values: ColumnValues, series: pl.Series, base: BaseTable) -> ColumnValues:
    """The values with how many records have each, where rows stand for several."""
    if base.counts is None:
        return values
    rows = pl.DataFrame({"leaf": spelled(series), "count": base.counts})
    counts = rows.group_by("leaf").agg(pl.sum("count"))
    there = values.leaves.to_frame("leaf").join(counts, on="leaf", how="left", maintain_order="left")
    return replace(values, counts=there["count"], missing=int(rows.filter(pl.col("leaf").is_null())["count"].sum()))


def _described(
    item: AttributePolicy, attribute: Attribute, series: pl.Series, source: Source, base: BaseTable
) -> Attribute:
    """The attribute with a domain: the declared one, or the values that occur, sorted."""
    missing = series.is_null().to_numpy()
    if missing.any() and item.missing.action == "refuse":
        what = numbered(base.weighed(missing), f"records have no value of '{item.name}'")
        hint = "say what to do with them: missing: drop, or missing: {category: unknown}"
        raise TableError(Problem.in_rows("", what, hint, _seen(series, missing, base), source.row_numbers))
    if attribute.domain is not None:
        return attribute
    label = (item.missing.label,) if item.missing.action == "category" else ()
    values = tuple(series.drop_nulls().unique().sort().to_list())
    return Attribute(item.name, item.role, Domain((*values, *label), False, None, item.missing))


def _sensitive(
    attribute: Attribute, series: pl.Series, source: Source, base: BaseTable, kind: np.dtype[Any] = _CODES
) -> Sensitive:
    """The codes of a sensitive attribute, as numbers of a kind."""
    if attribute.domain is None:
        raise ValueError("a sensitive attribute has a domain here")
    codes: Ints = np.empty(len(series), dtype=kind)
    for start in range(0, len(series), _HELD):
        codes[start : start + _HELD] = encode(series[start : start + _HELD], attribute.domain).codes
    unseen = codes == UNSEEN
    if unseen.any():
        number = base.weighed(unseen)
        what = numbered(number, f"records have a value of '{attribute.name}' that is not in the declared domain")
        raise TableError(Problem.in_rows("", what, WIDEN, _seen(series, unseen, base), source.row_numbers))
    return Sensitive(attribute.name, codes, tuple(label_array(attribute.domain.values).to_pylist()))


def _seen(series: pl.Series, there: Bools, base: BaseTable) -> Sightings | None:
    """Where some rows stand; None where it is not known."""
    return None if base.kept is None else sighted(series, np.flatnonzero(there), base.rows)
