"""Groups over all workers: records are ranked in a drawn order, and ranks give the group.

    drawn ─► rank in a cell ─► group ─► values of the group ─► rows in an order of their own

Which groups there are was planned from counts (`polyseme.grouping.groups`). Every record gets 128 bits of the secure
stream beside those that place its rows. The records of a kind are divided among cells by the first 64 of them, so that
no worker sorts a whole kind, and ranked in their cell by all of them; how many records the cells before have is counted
first. All of this follows from what was drawn for a record: computing it again gives the same groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from polyseme.engines.spark.jobs import Tasks, numbers
from polyseme.grouping.groups import Dealer
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import TableError
from polyseme.kernel.randomness import RecordStream, StreamKey
from polyseme.methods.bucketization import Places
from polyseme.methods.microdata import SUPPRESSED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["KEYS", "CountCells", "Dealing", "Veil", "assigned", "codes_in"]

CELL_ROWS = 1 << 20
"""Records that are ranked by one worker at a time, about."""
KEYS = (pa.field("cell", pa.int64()), pa.field("key", pa.int64()), pa.field("tie", pa.int64()))
"""What records are ranked by. No two have the same key and tie: both are one block of the cipher."""
_LANE = 1
"""Of the stream that puts rows in order; its first lane is for the places of rows."""
_CODE_BITS = np.int64((1 << 31) - 1)
_DIGITS = 10
"""Of the code in front of a label, by which labels are in the order of the domain."""
_LONGEST = (1 << 31) - 1
"""Characters of a text that Spark knows."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, eq=False)
class Dealing:
    """How records come to their groups. It can be pickled.

    attribute  what is published by group
    values     its column as records travel: the code of each, and in the end those of its group
    group      the column of groups
    counts     how many records of each kind there are
    firsts     the first cell of each kind
    widths     how many cells each kind has
    """

    attribute: str
    values: str
    group: str
    places: Places
    counts: Ints = field(repr=False)
    firsts: Ints = field(repr=False)
    widths: Ints = field(repr=False)

    @classmethod
    def of(cls, dealer: Dealer, columns: Sequence[str]) -> Dealing:
        """For columns in the order in which they travel."""
        widths = np.maximum(-(-dealer.counts // CELL_ROWS), 1)
        values, group = (f"c{list(columns).index(name)}_0" for name in (dealer.attribute, dealer.group))
        return cls(dealer.attribute, values, group, dealer.places, dealer.counts, np.cumsum(widths) - widths, widths)

    @property
    def cells(self) -> int:
        return int(self.widths.sum())

    def cell(self, codes: Ints, keys: Ints) -> Ints:
        """The cell of each record: it follows from the kind and the key."""
        kinds = self.places.kinds[codes]
        share = keys.view(np.uint64) % self.widths[kinds].astype(np.uint64)
        return np.asarray(self.firsts[kinds] + share.astype(np.int64))

    def keys(self, codes: Ints, drawn: RecordStream) -> tuple[Ints, Ints, Ints]:
        """What records with these values are ranked by."""
        key, tie = drawn.lane(_LANE).words(2).view(np.int64)
        return self.cell(codes, key), key, tie

    def starts(self, found: Ints) -> Ints:
        """The rank with which each cell begins, from how many records each has: (cells,).

        Groups were planned for so many records of each kind, and for no others.
        """
        if not np.array_equal(np.add.reduceat(found, self.firsts), self.counts):
            raise TableError(
                "the table changed while it was read, or the frame is not the same each time it is computed",
                "nothing was published; try again, or write the frame to files first",
            )
        before = np.cumsum(found) - found
        return np.asarray(before - np.repeat(before[self.firsts], self.widths))


def codes_in(batch: pa.RecordBatch, name: str) -> Ints:
    """A column of whole numbers."""
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class CountCells:
    """How many records of a table of files each cell has, task by task.

    Only the attribute is read.
    """

    SCHEMA = "cell long, records long"
    dealing: Dealing
    tasks: Tasks
    order: StreamKey

    def __call__(self, batches: Batches) -> Batches:
        for number in numbers(batches):
            found, row = np.zeros(self.dealing.cells, dtype=np.int64), self.tasks.tasks[number].first or 0
            for batch in self.tasks.batches(number, [self.dealing.attribute]):
                drawn = self.order.records(np.arange(row, row + batch.num_rows))
                cells = self.dealing.keys(codes_in(batch, self.dealing.attribute), drawn)[0]
                found += np.bincount(cells, minlength=len(found))
                row += batch.num_rows
            there = np.flatnonzero(found)
            yield pa.RecordBatch.from_pydict({"cell": pa.array(there), "records": pa.array(found[there])})


@dataclass(frozen=True, eq=False)
class Veil:
    """Hides the values of records that wait in files for their groups.

    hidden  a key that is never written
    """

    schema: pa.Schema
    dealing: Dealing
    hidden: StreamKey = field(repr=False)

    def hide(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The cell goes too: it tells the kind."""
        return self._replaced(batch, self._changed(batch), np.zeros(batch.num_rows, dtype=np.int64))

    def __call__(self, batches: Batches) -> Batches:
        """Rows that were hidden, as they were."""
        for batch in batches:
            named = _named(batch, self.schema)
            codes = self._changed(named)
            yield self._replaced(named, codes, self.dealing.cell(codes, codes_in(named, "key")))

    def _changed(self, batch: pa.RecordBatch) -> Ints:
        """Codes hidden, or hidden codes: by bits that belong to the place of a row."""
        places = (codes_in(batch, "place").view(np.uint64) >> np.uint64(1)).view(np.int64)
        mask = self.hidden.records(places).words()[0].view(np.int64) & _CODE_BITS
        return np.asarray(codes_in(batch, self.dealing.values) ^ mask)

    def _replaced(self, batch: pa.RecordBatch, codes: Ints, cells: Ints) -> pa.RecordBatch:
        made = {self.dealing.values: pa.array(codes.astype(np.int32)), "cell": pa.array(cells)}
        arrays = [made.get(name, array) for name, array in zip(batch.schema.names, batch.columns)]
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


@dataclass(frozen=True, eq=False)
class _Group:
    """Ranks become groups; records without one are left out.

    texts  what stands for each code afterwards; None for the code itself
    """

    schema: pa.Schema
    dealing: Dealing
    starts: Ints = field(repr=False)
    texts: pa.Array | None = field(repr=False)

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            named = _named(batch, self.schema)
            ranks, codes = (
                self.starts[codes_in(named, "cell")] + codes_in(named, "rank"),
                named.column(self.dealing.values),
            )
            groups = self.dealing.places.group_of(codes_in(named, self.dealing.values), ranks)
            made = {self.dealing.group: pa.array(groups + 1)}
            if self.texts is not None:
                made[self.dealing.values] = self.texts.take(codes)
            names = self.schema.names[: -len(KEYS) - 1]
            arrays = [made.get(name, named.column(name)) for name in names]
            yield pa.RecordBatch.from_arrays(arrays, names=names).filter(pa.array(groups != SUPPRESSED))


def _named(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, names=schema.names)


def assigned(
    drawn: DataFrame,
    schema: pa.Schema,
    dealing: Dealing,
    starts: Ints,
    mapped: Callable[[DataFrame, Callable[[Batches], Batches], pa.Schema], DataFrame],
    labels: pa.Array | None = None,
) -> DataFrame:
    """Records with their groups, and all values of the group in place of their own.

    schema  of what was drawn
    starts  the rank with which each cell begins
    labels  of all values, to be shown as texts; None for codes
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    order = Window.partitionBy("cell").orderBy("key", "tie")
    # In the long form the rows of a record share its rank.
    ranked = drawn.withColumn("rank", (sql.dense_rank().over(order) - 1).cast("long"))
    texts = None if labels is None else _in_order(labels)
    work = _Group(schema.append(pa.field("rank", pa.int64())), dealing, starts, texts)
    made = pa.schema(list(schema)[: -len(KEYS)])
    if texts is not None:
        made = made.set(made.get_field_index(dealing.values), pa.field(dealing.values, texts.type))
    grouped = mapped(ranked, work, made)
    # No value is twice in a group, so that the rows of a record may again come several times.
    values = sql.collect_set(dealing.values).over(Window.partitionBy(dealing.group))
    found = grouped.withColumn(dealing.values, sql.sort_array(values))
    if texts is None:
        return found
    bare = sql.transform(sql.col(dealing.values), lambda text: text.substr(_DIGITS + 1, _LONGEST))
    return found.withColumn(dealing.values, bare)


def _in_order(labels: pa.Array) -> pa.Array:
    """Labels behind their codes: as texts they have the order of the domain.

    >>> _in_order(pa.array(["b", "a"])).to_pylist()
    ['0000000000b', '0000000001a']
    """
    texts = labels.cast(pa.string()).to_pylist()
    return pa.array([f"{code:0{_DIGITS}d}{text}" for code, text in enumerate(texts)], pa.string())
