"""The distinct sets of a release, counted for everybody who asks in one reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import TypeAlias

import pyarrow as pa

from polyseme.arrays import Ints, arrow
from polyseme.errors import ReleaseError
from polyseme.release.columns import Sets
from polyseme.release.release import Release
from polyseme.tables.blocks import Blocks
from polyseme.tables.counting.groups import Grouped, SetCounting, Target
from polyseme.tables.counting.row_order import RowOrder

__all__ = ["SetCounts", "stratum_column", "target_of"]

_MOST = 8_000_000
"""Distinct sets that are held of all attributes together (300 MB with three candidates each): as many attributes are
counted in a reading as stay below that."""

Counted: TypeAlias = Mapping[tuple[str, ...], Grouped | ReleaseError]


def stratum_column(item: Sets) -> str:
    """The name of the column that says which stratum of an attribute each record belongs to."""
    return f"\0stratum of {item.name}"


def target_of(release: Release, item: Sets) -> Target:
    """The column of a release that holds the candidates of an attribute."""
    return Target(item.name, item.domain, 1 if release.manifest.form == "long" else item.l)


class SetCounts:
    """The distinct sets of each protected attribute, within its strata and within cells of untouched attributes.

    questions  the untouched attributes of each kind of cells; everybody in one cell unless told
    """

    def __init__(self, release: Release, *questions: Sequence[str]) -> None:
        self.release = release
        self._questions: tuple[tuple[str, ...], ...] = tuple(tuple(by) for by in questions or ((),))
        self._items = {item.name: item for item in release.manifest.sets}
        self._blocks = Blocks(list(self._items), self._cost, self._read, _MOST)
        self._orders: dict[str, RowOrder] = {}

    def of(self, item: Sets, by: Sequence[str] = ()) -> Grouped:
        """The sets of an attribute within cells of `by` and its strata; an error when some cell is not a valid set."""
        found = self._blocks[item.name][tuple(by)]
        if isinstance(found, ReleaseError):
            raise found
        return found

    def order(self, item: Sets) -> RowOrder:
        """The order in which the sets of an attribute stand; an error when some cell is not a valid set."""
        self.of(item)
        return self._orders[item.name]

    def answers(self, by: Sequence[str]) -> bool:
        """Whether sets are counted within cells of `by`."""
        return tuple(by) in self._questions

    def _cost(self, name: str) -> int:
        item, rows = self._items[name], self.release.manifest.rows
        whole = min(rows, comb(item.domain.size, item.l) * len(item.strata.members))
        return sum(rows if by else whole for by in self._questions)

    def _read(self, names: Sequence[str]) -> dict[str, Counted]:
        try:
            return self._read_together([self._items[name] for name in names])
        except ReleaseError as error:
            # What is wrong with one column is not the fault of the others.
            if len(names) == 1:
                return {names[0]: dict.fromkeys(self._questions, error)}
            return {name: counted for name in names for counted in self._read([name]).values()}

    def _read_together(self, items: Sequence[Sets]) -> dict[str, Counted]:
        share = len(items) * len(self._questions)
        self._orders |= {item.name: _order(self.release, item) for item in items}
        counting = {item.name: [self._counting(item, by, share) for by in self._questions] for item in items}
        columns = [name for by in self._questions for name in by]
        columns += [name for item in items for name in (*item.strata.columns, item.name)]
        for batch, counts in self.release.counted(list(dict.fromkeys(columns))):
            for item in items:
                marked = _with_stratum(batch, item)
                for one in counting[item.name]:
                    one.add(marked, counts)
        return {
            name: {by: one.found() for by, one in zip(self._questions, several)} for name, several in counting.items()
        }

    def _counting(self, item: Sets, by: Sequence[str], share: int) -> _Counting:
        return _Counting(self.release, item, by, share, None if by else self._orders[item.name])


def _order(release: Release, item: Sets) -> RowOrder:
    target = target_of(release, item)
    return RowOrder(target.domain.size, target.width, release.manifest.rows)


class _Counting:
    """The counting of one attribute; a cell that is not a valid set ends it."""

    def __init__(self, release: Release, item: Sets, by: Sequence[str], shared_by: int, order: RowOrder | None) -> None:
        marks = (stratum_column(item),) if item.stratified else ()
        self._counting = SetCounting([target_of(release, item)], (*by, *marks), shared_by, order)
        self._wrong: ReleaseError | None = None

    def add(self, batch: pa.RecordBatch, counts: Ints | None) -> None:
        if self._wrong is None:
            try:
                self._counting.add(batch, counts)
            except ReleaseError as error:
                self._wrong = error

    def found(self) -> Grouped | ReleaseError:
        return self._wrong or self._counting.grouped()


def _with_stratum(batch: pa.RecordBatch, item: Sets) -> pa.RecordBatch:
    if not item.stratified:
        return batch
    places = item.strata.places({name: batch.column(name) for name in item.strata.columns}, batch.num_rows)
    return batch.append_column(stratum_column(item), arrow(places))
