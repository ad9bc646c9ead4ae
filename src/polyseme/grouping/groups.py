"""Groups where no machine holds the table: ranks in a drawn order say who is in which.

    made = deal_counted(policy, resolved, source)          # source.counted([sensitive columns])
    dealer = made.dealer                                   # small, pickles
    kept, codes, rest = dealer.code(batch)                 # a map, wherever a batch is

Every record gets a secret random key. Records are assigned to tasks by their key and sorted by it within a task; then

    counts[task] = np.bincount(dealer.kinds(codes), minlength=dealer.count_of_kinds)    # first aggregate
    ranks = Ranks(first_ranks(counts)[task])                                            # one for each task
    groups = dealer.places.group_of(codes, ranks.of(dealer.kinds(codes)))               # batch by batch; -1: left out
    codes of each group, from all of its records                                        # second aggregate, and a join
    dealer.listed(lists of codes), groups + 1                                           # the two columns

Tasks in any order, each in the order of its keys, are one random order of all records as long as the task of a record
depends on its key alone. So the groups have the same distribution as those that `bucketize` draws.

Rows must then be put into an order of their own. In the order of these keys ranks of a kind ascend, and so do its
groups: a row's place and its group together would tell its value.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.grouping.application import promised, shared_groups
from polyseme.grouping.base_table import Coding, read_values
from polyseme.grouping.columns import (
    Decided,
    applied_groups,
    domain_labels,
    free_name,
    grouped_columns,
    left_out_of_groups,
)
from polyseme.kernel.arrays import Bools, Ints, arrow
from polyseme.kernel.errors import TableError
from polyseme.methods import grouping_named
from polyseme.methods.bucketization import Places
from polyseme.methods.goal import DealingMethod, grouped_attribute
from polyseme.policy import MethodSpec, Policy
from polyseme.policy.resolution import match_columns
from polyseme.schema import Resolved, Role
from polyseme.tables.io.source import CountedRows, Part, Source, Wrapped
from polyseme.tables.people import people_of

__all__ = ["Assigned", "AssignedSource", "Dealer", "deal_counted"]


@dataclass(frozen=True, eq=False)
class Dealer:
    """How the records of any batch come to their groups. It can be pickled.

    coding     how sensitive values become codes
    attribute  the one that is published by group
    group      what the column of groups is called
    places     what groups take
    counts     how many records of each kind there are: (kinds,)
    labels     for each sensitive attribute, what is shown for each value
    """

    coding: Coding
    attribute: str
    group: str
    places: Places
    counts: Ints = field(repr=False)
    labels: Mapping[str, pa.Array] = field(repr=False)

    @property
    def needs(self) -> list[str]:
        """The columns that it looks at."""
        return self.coding.reading.names

    @property
    def count_of_kinds(self) -> int:
        return len(self.places.taken)

    def kinds(self, codes: Ints) -> Ints:
        """The kind of each value: records have ranks among those of their kind."""
        return self.places.kinds[codes]

    def code(self, batch: pa.RecordBatch) -> tuple[Bools, Ints, pa.RecordBatch]:
        """Which rows are records.

        The codes of their values, and their other columns as they are published.
        """
        kept, _, secret = self.coding.coded(batch)
        there = batch if kept.all() else batch.filter(arrow(kept))
        names = [name for name in batch.schema.names if name != self.attribute]
        arrays = [
            self.labels[name].take(arrow(secret[name])) if name in secret else there.column(name) for name in names
        ]
        return kept, secret[self.attribute], pa.RecordBatch.from_arrays(arrays, names=names)

    def listed(self, lists: pa.ListArray) -> pa.Array:
        """The values of groups, in the order of the domain, from lists of their codes."""
        codes = pl.Series(lists.flatten()).to_numpy().astype(np.int64)
        sizes = pl.Series(lists.value_lengths()).to_numpy()
        ordered = codes[np.lexsort((codes, np.repeat(np.arange(len(sizes)), sizes)))]
        bounds = arrow(np.append(0, np.cumsum(sizes)), pa.int32())
        return pa.ListArray.from_arrays(bounds, self.labels[self.attribute].take(arrow(ordered)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Assigned(Decided):
    """What groups there will be; who is in which follows from the ranks of records."""

    checked: ClassVar[bool] = False
    dealer: Dealer
    source: AssignedSource


class AssignedSource(Wrapped):
    """The records of a table on their way to groups: the attribute as codes, and a group column.

    It is for engines that deal. What it shows for the attribute are true values, under another name.
    """

    def __init__(self, source: Source, dealer: Dealer) -> None:
        super().__init__(source)
        self.dealer = dealer

    @property
    def schema(self) -> pa.Schema:
        labels, there = self.dealer.labels, self.inner.schema
        types = {name: labels[name].type for name in labels} | {self.dealer.attribute: pa.int32()}
        fields = [item.with_type(types.get(item.name, item.type)) for item in there]
        return pa.schema([*fields, pa.field(self.dealer.group, pa.int64())])

    @property
    def rows(self) -> int | None:
        return int(self.dealer.counts.sum())

    def parts(self) -> list[Part]:
        """Those of the table; how many rows of each are records shows when it is read."""
        there = super().parts()
        return [replace(part, rows=None) for part in there] if self.dealer.coding.reading.dropping else there

    def _needed(self, columns: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(name for name in [*columns, *self.dealer.needs] if name != self.dealer.group))

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        _, codes, rest = self.dealer.code(batch)
        nothing = np.zeros(len(codes), dtype=np.int64)
        made = {self.dealer.attribute: arrow(codes.astype(np.int32)), self.dealer.group: arrow(nothing)}
        arrays = [made[name] if name in made else rest.column(name) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        """Rows of columns that have nothing to do with groups.

        Records that will be dropped are among them.
        """
        names = self.schema.names if columns is None else columns
        if {self.dealer.attribute, self.dealer.group, *self.dealer.labels} & set(names):
            raise ValueError("rows cannot be counted before their groups are known")
        return self.inner.counted(columns)

    @staticmethod
    def beneath(source: Source) -> AssignedSource | None:
        """The records that wait for their groups, where there are some."""
        while isinstance(source, Wrapped) and not isinstance(source, AssignedSource):
            source = source.inner
        return source if isinstance(source, AssignedSource) else None


def deal_counted(policy: Policy, resolved: Resolved, source: Source) -> Assigned:
    """Plan groups from counts of sensitive values.

    Quasi-identifiers are not looked at: whether models about them hold is for the review of the release to say.
    """
    spec = policy.grouping
    method = None if spec is None else grouping_named(spec.name)
    if spec is None or not isinstance(method, DealingMethod):
        raise ValueError("the policy names no method that deals records to groups")
    matched = match_columns(policy, source)
    read = read_values(matched, resolved.schema, source)
    if not read.data.records:
        raise TableError(f"{source.name}: no records to publish")
    _require_one_each(policy, spec, source)
    sensitive = {item.name: item for item in read.sensitive}
    models = promised(policy, method, spec, sensitive)
    item = grouped_attribute(spec.name, spec.parameters, sensitive)
    values = read.data.sensitive[item.name]
    counts = np.bincount(values.codes, read.data.counts, len(values.labels)).astype(np.int64)
    places = method.places(spec.parameters, item, counts)
    group = free_name(item.name, source.schema.names)
    keys = [key.name for key in matched.attributes if key.role is Role.QUASI_IDENTIFIER]
    dealer = Dealer(
        coding=read.coding,
        attribute=item.name,
        group=group,
        places=places,
        counts=np.bincount(places.kinds, counts, len(places.taken)).astype(np.int64),
        labels={item.name: domain_labels(item) for item in read.sensitive},
    )
    return Assigned(
        columns=grouped_columns(keys, read.sensitive, item.name, group),
        applied=applied_groups(spec, places.count, places.suppressed, places.gap),
        records=read.data.records,
        recoded=frozenset([*sensitive, group]),
        dropped=read.dropped,
        models=models,
        left_out=left_out_of_groups(item.name, spec, places, counts),
        dealer=dealer,
        source=AssignedSource(source, dealer),
    )


def _require_one_each(policy: Policy, spec: MethodSpec, source: Source) -> None:
    """Refuse groups for people with several records, where the policy says whose they are."""
    if policy.record_key is None:
        return
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        found = people_of(source, policy.record_key, policy.table.missing_values, Path(folder))
    if found.distinct < found.total:
        raise shared_groups(spec, found.total, found.distinct)
