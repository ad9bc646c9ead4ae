"""From the decision of a grouping method to columns and their entries in the manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from polyseme.grouping.base_table import Coding, ReadColumns, ReadTable
from polyseme.kernel.arrays import Bools, Ints, arrow
from polyseme.methods.bucketization import Grouping, Places, left_by_kind
from polyseme.methods.goal import Goal, grouped_attribute
from polyseme.methods.microdata import BLANK, Cells, Ladder, Microdata, Recoding, Sensitive, Showing
from polyseme.policy import MethodSpec
from polyseme.release import Applied, AsIs, Column, Generalized, Grouped
from polyseme.results.explanation import Explanation
from polyseme.results.method import LeftOut
from polyseme.schema import Attribute, Domain, Role
from polyseme.semantics.hierarchies import TOP
from polyseme.tables.codes import label_array
from polyseme.tables.derived import Recoded, RecodedSource, RuledSource
from polyseme.tables.io.source import Source

__all__ = [
    "Decided",
    "Generalizer",
    "Treated",
    "applied_groups",
    "cell_labels",
    "domain_labels",
    "free_name",
    "generalized",
    "generalized_column",
    "group_lists",
    "grouped",
    "grouped_columns",
    "left_out_of_groups",
    "ruled",
]

_GROUP = "group"
_LISTED = 10_000
"""Declared values of a quasi-identifier up to which the manifest lists what its labels may stand for (some 200 kB)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Decided:
    """What a grouping method decided about a table.

    columns  how the columns are published that are not drawn as sets, by name; a column of groups is the last
    applied  what was done
    records  before any was suppressed
    recoded  the columns that are shown otherwise than in the table
    dropped  rows that were left out because a value was missing
    models   what is promised: the policy's models, and what the method promises by itself
    left_out  what it says about a person to be left out, for the data holder
    finer    for each quasi-identifier that is generalized to a level, how many records would be in classes that violate
             a model if it were one level finer, where that was asked for; it tells of the table
    explanation  why, class by class, for the owner of the table only
    all_people   how many people there are, where they are counted
    checked  whether these are known to hold; otherwise the rows must be looked at when they are there
    """

    checked: ClassVar[bool] = True
    columns: Mapping[str, Column]
    applied: Applied
    records: int
    recoded: frozenset[str]
    dropped: int
    models: tuple[Mapping[str, Any], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    finer: Mapping[str, int] = field(default_factory=dict)
    explanation: Explanation | None = field(default=None, repr=False)
    all_people: int | None = None

    def arranged(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """All columns, in the table's order."""
        there = {column.name for column in columns}
        new = [column for name, column in self.columns.items() if name not in there]
        return (*(self.columns.get(column.name, column) for column in columns), *new)


@dataclass(frozen=True, eq=False, kw_only=True)
class Treated(Decided):
    """A table after a grouping method.

    source   the rows as they go on to be published
    rule     what becomes of any batch of the table, where that follows from each record by itself
    people   whose each row of `source` is, where people are counted and there is no rule
    """

    source: Source
    rule: Generalizer | None = field(default=None, repr=False)
    people: Ints | None = field(default=None, repr=False)

    @property
    def apply(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """What any batch of the table shows, where that follows from each record by itself."""
        if self.rule is None:
            raise ValueError("what was decided is about single records")
        return self.rule.apply


# -- generalized ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Generalizer:
    """What any batch of a table shows once its method has decided, record by record. Pickles.

    coding    how rows become codes
    showing   which cells follow from the leaves of a record
    labels    for each column, what is shown for each cell or value; a quasi-identifier has `*` as its last
    withheld  whether records of which nothing is shown are left out
    """

    coding: Coding
    showing: Showing
    labels: Mapping[str, pa.Array] = field(repr=False)
    withheld: bool = False

    @property
    def needs(self) -> list[str]:
        return self.coding.reading.names

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {name: labels.type for name, labels in self.labels.items()}

    @property
    def leaves_out(self) -> bool:
        return self.withheld or bool(self.coding.reading.dropping)

    def recode(self, batch: pa.RecordBatch) -> tuple[Bools, pa.RecordBatch]:
        """Which rows of a batch are kept, and these as they are published.

        Columns that it does not know stay.
        """
        kept, leaves, secret = self.coding.coded(batch)
        shown, columns = self.shown(leaves, secret)
        kept[kept] = shown
        there = batch if kept.all() else batch.filter(arrow(kept))
        arrays = [columns.get(name, there.column(place)) for place, name in enumerate(batch.schema.names)]
        return kept, pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that are kept, as they are published."""
        return self.recode(batch)[1]

    def shown(self, leaves: Ints, secret: Mapping[str, Ints]) -> tuple[Bools, dict[str, pa.Array]]:
        """From codes: which records are kept, and what these show in each column."""
        cells = self.showing.cells(leaves)
        kept: Bools = np.ones(len(cells), dtype=np.bool_)
        if self.withheld:
            kept &= (cells >= 0).all(axis=1)
        columns = {}
        for place, name in enumerate(self.coding.hierarchies):
            labels, codes = self.labels[name], cells[kept, place]
            columns[name] = labels.take(arrow(np.where(codes < 0, len(labels) - 1, codes)))
        for name, codes in secret.items():
            columns[name] = self.labels[name].take(arrow(codes[kept]))
        return kept, columns


def generalized(read: ReadTable, found: Recoding, goal: Goal, spec: MethodSpec) -> Treated:
    withheld = bool(found.lost) and not _fine_together(found, goal, read.data.population)
    columns = _generalized_columns(read, found)
    applied = Applied(
        spec.name,
        spec.parameters,
        classes=len(found.shown),
        suppressed=found.lost,
        withheld=withheld,
        levels=dict(zip(read.data.names, found.levels)),
        loss=found.loss,
        gap=found.gap,
        actions=found.actions,
        people=None if read.data.people is None else read.data.units_of(found.suppressed),
    )
    left = _left_out(read.data, found) if withheld else ()
    if read.kept is None:
        return replace(_by_rule(read, found, columns, applied), left_out=left)
    kept = ~found.suppressed if withheld else np.ones(read.data.rows, dtype=np.bool_)
    shown = {name: _shown(found, place, kept) for place, name in enumerate(read.data.names)}
    for item in read.sensitive:
        replaced = found.replaced.get(item.name)
        shown[item.name] = _values(read, item, kept) if replaced is None else _replaced(replaced, kept)
    return replace(_treated(read, kept, shown, columns, applied), explanation=found.explanation, left_out=left)


def _left_out(data: Microdata, found: Recoding) -> tuple[LeftOut, ...]:
    """What it says to be in no class, for each sensitive attribute."""
    each, left = data.each, np.where(found.suppressed, data.each, 0)
    return tuple(
        LeftOut.of(item.name, np.bincount(item.codes, left), np.bincount(item.codes, each))
        for item in data.sensitive.values()
    )


def _generalized_columns(read: ReadTable, found: Recoding) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for place, (ladder, cells) in enumerate(zip(read.data.ladders, found.cells, strict=True)):
        level = found.levels[place] if found.levels else None
        columns[ladder.name] = generalized_column(ladder, cells, ladder.name in read.listed, level)
    for item in read.sensitive:
        replaced = found.replaced.get(item.name)
        columns[item.name] = AsIs(item if replaced is None else _with_values(item, replaced))
    return columns


def generalized_column(ladder: Ladder, cells: Cells, listed: bool, level: int | None = None) -> Generalized:
    """A quasi-identifier; what labels stand for is stated where its hierarchy lists its values."""
    stands_for = _stands_for(ladder.labels[0], cells) if listed else {}
    return Generalized(Attribute(ladder.name, Role.QUASI_IDENTIFIER), level, stands_for)


def _by_rule(read: ReadTable, found: Recoding, columns: Mapping[str, Column], applied: Applied) -> Treated:
    """A table whose records are recoded as they are read."""
    if found.showing is None or found.replaced:
        raise ValueError("what was decided does not follow from the leaves of a record")
    labels = _labels(read.coding, found.cells)
    rule = Generalizer(read.coding, found.showing, labels, applied.withheld)
    return _recoded(read.source, rule, columns, applied, read.data.records, read.dropped)


def ruled(
    read: ReadColumns,
    source: Source,
    showing: Showing,
    cells: Sequence[Cells],
    applied: Applied,
    records: int,
    models: tuple[Mapping[str, Any], ...],
) -> Treated:
    """The same where only counts of whole rows are known; no record is suppressed."""
    shown = zip(read.ladders, cells, strict=True)
    columns: dict[str, Column] = {
        ladder.name: generalized_column(ladder, there, ladder.name in read.listed) for ladder, there in shown
    }
    columns |= {item.name: AsIs(item) for item in read.sensitive}
    rule = Generalizer(read.coding, showing, _labels(read.coding, cells))
    return replace(_recoded(source, rule, columns, applied, records, read.dropped), models=models)


def _labels(coding: Coding, cells: Sequence[Cells]) -> dict[str, pa.Array]:
    """What is shown for each cell and each value."""
    labels = {name: cell_labels(there) for name, there in zip(coding.hierarchies, cells, strict=True)}
    return labels | {name: label_array(domain.values) for name, domain in coding.domains.items()}


def _recoded(
    source: Source, rule: Generalizer, columns: Mapping[str, Column], applied: Applied, records: int, dropped: int
) -> Treated:
    kept = records - (applied.suppressed if applied.withheld else 0)
    return Treated(
        source=RuledSource(source, rule, kept),
        columns=columns,
        applied=applied,
        records=records,
        recoded=frozenset(rule.labels),
        dropped=dropped,
        rule=rule,
    )


def _fine_together(found: Recoding, goal: Goal, population: Ints | None) -> bool:
    """Whether the suppressed records, as one class that shows nothing, reach the goal.

    Everybody of a population fits such a class.

    That is not known where values were replaced, nor where a class is compared with the rest of the table, to which
    they do not belong.
    """
    if goal.relative or found.replaced:
        return False
    rows = np.flatnonzero(found.suppressed)
    people = None if population is None else np.array([len(population)])
    return bool(goal.fine(*goal.counted(np.zeros(len(rows), dtype=np.int64), 1, rows), people).all())


def _shown(found: Recoding, place: int, kept: Bools) -> Recoded:
    """One quasi-identifier of the records that are kept; `*` for suppressed ones."""
    cells = found.cells[place]
    codes = np.append(found.shown[:, place], len(cells.labels))[found.classes[kept]]
    return Recoded(codes, cell_labels(cells))


def cell_labels(cells: Cells) -> pa.Array:
    """What is shown for each cell, and `*` as the last."""
    return arrow([*cells.labels, TOP], pa.string())


def _stands_for(leaves: Sequence[str | None], cells: Cells) -> dict[str, tuple[str, ...]]:
    if len(leaves) > _LISTED:
        return {}
    listed = {
        label: tuple(text for leaf in codes.tolist() if (text := leaves[leaf]) is not None)
        for label, codes in zip(cells.labels, cells.leaves, strict=True)
        if label is not None
    }
    return {} if all(texts == (label,) for label, texts in listed.items()) else listed


def _values(read: ReadTable, item: Attribute, kept: Bools) -> Recoded:
    """A sensitive column as its domain has it."""
    return Recoded(read.data.sensitive[item.name].codes[kept], domain_labels(item))


def _replaced(values: Sensitive, kept: Bools) -> Recoded:
    """A sensitive column in which some values are not shown, or others are."""
    codes = np.where(values.codes == BLANK, len(values.labels), values.codes)[kept]
    labels = label_array(values.labels)
    return Recoded(codes, pa.concat_arrays([labels, pa.nulls(1, labels.type)]))


def _with_values(item: Attribute, values: Sensitive) -> Attribute:
    """An attribute with the values that it is shown with."""
    domain = item.domain or Domain(())
    return replace(item, domain=replace(domain, values=tuple(values.labels)))


# -- grouped -------------------------------------------------------------------------------------------------------


def grouped(read: ReadTable, found: Grouping, spec: MethodSpec) -> Treated:
    kept = ~found.suppressed
    item = grouped_attribute(spec.name, spec.parameters, {item.name: item for item in read.sensitive})
    group = free_name(item.name, read.source.schema.names)
    columns = grouped_columns(read.data.names, read.sensitive, item.name, group)
    groups = found.groups[kept].astype(np.min_scalar_type(-max(found.count, 1)))
    shown = {other.name: _values(read, other, kept) for other in read.sensitive if other.name != item.name}
    lists = group_lists(groups, read.data.sensitive[item.name].codes[kept], found.count, domain_labels(item))
    shown |= {item.name: Recoded(groups, lists), group: Recoded(groups, arrow(np.arange(1, found.count + 1)))}
    applied = applied_groups(spec, found.count, int(found.suppressed.sum()), found.gap)
    counts = np.bincount(read.data.sensitive[item.name].codes, minlength=len(domain_labels(item)))
    left = () if found.places is None else left_out_of_groups(item.name, spec, found.places, counts)
    return replace(_treated(read, kept, shown, columns, applied), left_out=left)


def left_out_of_groups(attribute: str, spec: MethodSpec, places: Places, counts: Ints) -> tuple[LeftOut, ...]:
    """What it says to be in no group, from the records of each value."""
    if not places.suppressed:
        return ()
    left, whole = left_by_kind(places, counts), np.bincount(places.kinds, counts, len(places.taken))
    return (LeftOut.of(attribute, left, whole, 1.0 / spec.parameters["l"], places.extra),)


def grouped_columns(keys: Sequence[str], sensitive: Sequence[Attribute], name: str, group: str) -> dict[str, Column]:
    """Quasi-identifiers and other sensitive attributes as they are, the named one by group."""
    columns: dict[str, Column] = {key: AsIs(Attribute(key, Role.QUASI_IDENTIFIER)) for key in keys}
    columns |= {item.name: Grouped(item, group) if item.name == name else AsIs(item) for item in sensitive}
    return columns | {group: AsIs(Attribute(group, Role.INSENSITIVE))}


def applied_groups(spec: MethodSpec, count: int, suppressed: int, gap: int | None) -> Applied:
    return Applied(
        spec.name,
        spec.parameters,
        classes=count,
        suppressed=suppressed,
        withheld=suppressed > 0,
        loss=float(suppressed),
        gap=gap,
    )


def free_name(attribute: str, taken: Sequence[str]) -> str:
    """What the column of groups is called."""
    names = [_GROUP, f"{attribute} {_GROUP}", *(f"{_GROUP} {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def group_lists(groups: Ints, codes: Ints, count: int, labels: pa.Array) -> pa.Array:
    """The values of each group, in the order of the domain.

    From the group and the value of all of its records.
    """
    bounds = np.append(0, np.cumsum(np.bincount(groups, minlength=count)))
    # Group and value as one number, so that one array is sorted in its place.
    keys = groups.astype(np.int64)
    keys *= max(len(labels), 1)
    keys += codes
    keys.sort()
    keys %= max(len(labels), 1)
    return pa.ListArray.from_arrays(arrow(bounds, pa.int32()), labels.take(arrow(keys.astype(np.int32))))


def domain_labels(item: Attribute) -> pa.Array:
    """What is shown for each value of an attribute."""
    return label_array(item.domain.values if item.domain is not None else ())


def _treated(
    read: ReadTable, kept: Bools, shown: Mapping[str, Recoded], columns: Mapping[str, Column], applied: Applied
) -> Treated:
    if read.kept is None:
        raise ValueError("records that share a row cannot be told apart")
    rows = read.kept.copy()
    rows[rows] = kept
    return Treated(
        source=RecodedSource(read.source, shown, rows),
        columns=columns,
        applied=applied,
        records=read.data.records,
        recoded=frozenset(shown),
        dropped=read.dropped,
        people=None if read.data.people is None else read.data.people[kept],
    )
