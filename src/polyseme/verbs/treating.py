"""From what a grouping method decided to columns: what each record shows, and what the manifest says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.hierarchies import TOP
from polyseme.methods.bucketization import Grouping
from polyseme.methods.goal import Goal
from polyseme.methods.grouping import grouped_attribute
from polyseme.methods.microdata import BLANK, Cells, Recoding, Sensitive
from polyseme.policy import MethodSpec
from polyseme.policy.microdata import ReadTable
from polyseme.release import Applied, AsIs, Column, Generalized, Grouped
from polyseme.results.explanation import Explanation
from polyseme.schema import Attribute, Domain, Role
from polyseme.tables.coding.codes import label_array
from polyseme.tables.io.source import Source
from polyseme.tables.recoded import Recoded, RecodedSource

__all__ = ["Treated", "generalized", "grouped"]

_GROUP = "group"
_LISTED = 10_000
"""Declared values of a quasi-identifier up to which the manifest lists what its labels may stand for (some 200 kB)."""


@dataclass(frozen=True, eq=False)
class Treated:
    """A table after a grouping method.

    source   the rows as they go on to be published
    columns  how the columns are published that are not drawn as sets, by name; a column of groups is the last
    applied  what was done
    records  before any was suppressed
    recoded  the columns that are shown otherwise than in the table
    dropped  rows that were left out because a value was missing
    finer    for each quasi-identifier that is generalized to a level, how many records would be in classes that violate
             a model if it were one level finer, where that was asked for; it tells of the table
    models   what is promised: the policy's models, and what the method promises by itself
    explanation  why, class by class, for the owner of the table only
    """

    source: Source
    columns: Mapping[str, Column]
    applied: Applied
    records: int
    recoded: frozenset[str]
    dropped: int
    models: tuple[Mapping[str, Any], ...] = ()
    finer: Mapping[str, int] = field(default_factory=dict)
    explanation: Explanation | None = field(default=None, repr=False)

    def arranged(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """All columns, in the table's order."""
        there = {column.name for column in columns}
        new = [column for name, column in self.columns.items() if name not in there]
        return (*(self.columns.get(column.name, column) for column in columns), *new)


# -- generalized ---------------------------------------------------------------------------------------------------


def generalized(read: ReadTable, found: Recoding, goal: Goal, spec: MethodSpec) -> Treated:
    withheld = bool(found.suppressed.any()) and not _fine_together(read, found, goal)
    kept = ~found.suppressed if withheld else np.ones(read.data.records, dtype=np.bool_)
    columns: dict[str, Column] = {}
    shown: dict[str, Recoded] = {}
    for place, (ladder, cells) in enumerate(zip(read.data.ladders, found.cells, strict=True)):
        shown[ladder.name] = _shown(found, place, cells, kept)
        level = found.levels[place] if found.levels else None
        stands_for = _stands_for(ladder.labels[0], cells) if ladder.name in read.listed else {}
        columns[ladder.name] = Generalized(Attribute(ladder.name, Role.QUASI_IDENTIFIER), level, stands_for)
    for item in read.sensitive:
        replaced = found.replaced.get(item.name)
        shown[item.name] = _values(read, item, kept) if replaced is None else _replaced(replaced, kept)
        columns[item.name] = AsIs(item if replaced is None else _with_values(item, replaced))
    applied = Applied(
        spec.name,
        spec.parameters,
        classes=len(found.shown),
        suppressed=int(found.suppressed.sum()),
        withheld=withheld,
        levels=dict(zip(read.data.names, found.levels)),
        loss=found.loss,
        gap=found.gap,
        actions=found.actions,
    )
    return replace(_treated(read, kept, shown, columns, applied), explanation=found.explanation)


def _fine_together(read: ReadTable, found: Recoding, goal: Goal) -> bool:
    """Whether the suppressed records, as one class in which nothing is shown, reach the goal themselves.

    That is not known where values were replaced, nor where a class is compared with the rest of the table, to which
    they do not belong.
    """
    if goal.relative or found.replaced:
        return False
    rows = np.flatnonzero(found.suppressed)
    return bool(goal.fine(*goal.counted(np.zeros(len(rows), dtype=np.int64), 1, rows)).all())


def _shown(found: Recoding, place: int, cells: Cells, kept: Bools) -> Recoded:
    """One quasi-identifier of the records that are kept; `*` for suppressed ones."""
    codes = np.append(found.shown[:, place], len(cells.labels))[found.classes[kept]]
    return Recoded(codes, pa.array([*cells.labels, TOP], type=pa.string()))


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
    values = item.domain.values if item.domain is not None else ()
    return Recoded(read.data.sensitive[item.name].codes[kept], label_array(values))


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
    name = grouped_attribute(spec.name, spec.parameters, {item.name: item for item in read.sensitive}).name
    group = _free_name(name, read.source.schema.names)
    columns: dict[str, Column] = {key: AsIs(Attribute(key, Role.QUASI_IDENTIFIER)) for key in read.data.names}
    shown: dict[str, Recoded] = {}
    for item in read.sensitive:
        if item.name == name:
            shown[name] = Recoded(found.groups[kept], _lists(read, item, found, kept))
            columns[name] = Grouped(item, group)
        else:
            shown[item.name] = _values(read, item, kept)
            columns[item.name] = AsIs(item)
    shown[group] = Recoded(found.groups[kept], pa.array(np.arange(1, found.count + 1)))
    columns[group] = AsIs(Attribute(group, Role.INSENSITIVE))
    applied = Applied(
        spec.name,
        spec.parameters,
        classes=found.count,
        suppressed=int(found.suppressed.sum()),
        withheld=bool(found.suppressed.any()),
        loss=float(found.suppressed.sum()),
        gap=found.gap,
    )
    return _treated(read, kept, shown, columns, applied)


def _free_name(attribute: str, taken: Sequence[str]) -> str:
    """What the column of groups is called."""
    names = [_GROUP, f"{attribute} {_GROUP}", *(f"{_GROUP} {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _lists(read: ReadTable, item: Attribute, found: Grouping, kept: Bools) -> pa.Array:
    """The values of each group, in the order of the domain."""
    codes, groups = read.data.sensitive[item.name].codes[kept], found.groups[kept]
    order = np.lexsort((codes, groups))
    values = item.domain.values if item.domain is not None else ()
    flat = label_array(values).take(pa.array(codes[order]))
    bounds: Ints = np.searchsorted(groups[order], np.arange(found.count + 1))
    return pa.ListArray.from_arrays(pa.array(bounds, type=pa.int32()), flat)


def _treated(
    read: ReadTable, kept: Bools, shown: Mapping[str, Recoded], columns: Mapping[str, Column], applied: Applied
) -> Treated:
    rows = read.kept.copy()
    rows[rows] = kept
    return Treated(
        RecodedSource(read.source, shown, rows), columns, applied, read.data.records, frozenset(shown), read.dropped
    )
