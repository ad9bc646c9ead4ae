"""A release: the published data with its manifest, in a folder or in memory.

Its distinct sets are counted for all callers in one reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa

from polyseme.kernel.arrays import Ints, arrow
from polyseme.kernel.errors import Problem, QuestionError, ReleaseError, TableError
from polyseme.kernel.plugins import require
from polyseme.release.columns import Sets
from polyseme.release.data import MANIFEST, data_files, read_document, require_data
from polyseme.release.manifest import Manifest
from polyseme.tables.distinct import Blocks
from polyseme.tables.groups import Grouped, SetCounting, Target
from polyseme.tables.io.columnar import FrameSource, ParquetSource
from polyseme.tables.io.dataset import FilesSource, Opener
from polyseme.tables.io.locations import Listed
from polyseme.tables.io.source import CountedRows, Source, how_many
from polyseme.tables.io.text import CsvSource, ReleasedCsvSource
from polyseme.tables.published import RowOrder

__all__ = ["SEEDED", "Release", "SetCounts", "stratum_column", "target_of"]

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


SEEDED = "made with a seed: not for publication"
"""What is said of a release whose decoys can be recomputed."""


def _in_folder(problem: Problem, folder: Path) -> Problem:
    """A problem of a manifest, with the folder in which this one lies."""
    where, what = (
        text.replace(MANIFEST, str(folder / MANIFEST), 1) if text.startswith(MANIFEST) else text
        for text in (problem.where, problem.what)
    )
    return replace(problem, where=where, what=what)


@dataclass(frozen=True)
class Release:
    """Published data with its manifest, in a folder or in memory.

    frames  what `head` returns: pandas frames where the release was made from one
    reader  who reads the rows, where another engine does
    """

    manifest: Manifest
    folder: Path | None = None
    table: pa.Table | None = field(default=None, repr=False)
    frames: Literal["polars", "pandas"] = field(default="polars", repr=False, compare=False)
    reader: Source | None = field(default=None, repr=False, compare=False)

    @classmethod
    def open(cls, folder: str | Path) -> Release:
        """Read a release folder; a changed or truncated one is noticed here."""
        if not isinstance(folder, str | Path):
            raise ReleaseError(f"expected the folder of a release, not {type(folder).__name__}")
        folder = Path(folder)
        path = folder / MANIFEST
        if not path.is_file():
            raise ReleaseError(f"{folder}: no release here (no {MANIFEST})", "make one with: polyseme anonymize")
        try:
            manifest = Manifest.from_dict(read_document(path))
        except ReleaseError as error:
            raise ReleaseError(_in_folder(problem, folder) for problem in error.problems) from None
        require_data(folder, manifest.data)
        return cls(manifest, folder)

    def holds_the_same_as(self, other: Release) -> bool:
        """Whether the data of both is one and the same, row by row."""
        if self.table is not None and other.table is not None:
            return bool(self.table.equals(other.table))
        digest = self.manifest.data.get("sha256")
        return digest is not None and digest == other.manifest.data.get("sha256")

    def __repr__(self) -> str:
        where = f"'{self.folder}'" if self.folder else "in memory"
        protected = ", ".join(column.name for column in self.manifest.sets)
        mark = f"; {SEEDED}" if self.manifest.seeded else ""
        mark += "; collected from devices" if self.manifest.collected is not None else ""
        return f"<Release {where}: {self.manifest.records:,} records, protected: {protected}{mark}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(column.name)}</td><td>{escape(column.attribute.role.value)}</td>"
            f"<td>{escape(column.in_words)}</td></tr>"
            for column in self.manifest.columns
        )
        mark = f" <b>({SEEDED})</b>" if self.manifest.seeded else ""
        origin = " collected from devices" if self.manifest.collected is not None else ""
        head = f"<b>Release</b> of {self.manifest.records:,} records{origin}{mark}"
        return f"{head}<table><tr><th>attribute</th><th>role</th><th>published</th></tr>{rows}</table>"

    def head(self, rows: int = 5) -> pl.DataFrame | pd.DataFrame:
        """The first rows as they are published: a polars frame.

        One of pandas where the release was made from one.
        """
        if rows < 0:
            raise QuestionError("expected a number of rows, 0 or more", "release.head(5)")
        frame = self._frame(rows)
        return _as_pandas(frame) if self.frames == "pandas" else frame

    def to_polars(self) -> pl.DataFrame:
        """All rows as they are published; sets are lists."""
        return self._frame(None)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame. Needs `polyseme[pandas]`."""
        require("pandas", "a pandas frame")
        return _as_pandas(self._frame(None))

    def _frame(self, most: int | None) -> pl.DataFrame:
        import polars as pl

        names, parts, found = self.source.schema.names, [], 0
        for batch in self.batches(names):
            wanted = batch if most is None else batch.slice(0, most - found)
            parts.append(pl.DataFrame(pa.Table.from_batches([wanted])))
            found += wanted.num_rows
            if most is not None and found >= most:
                break
        return (
            pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame(schema=dict.fromkeys(names, pl.String))
        )

    @cached_property
    def source(self) -> Source:
        """The published data as a stream of batches."""
        if self.reader is not None:
            return self.reader
        if self.table is not None:
            return FrameSource(self.table, "release")
        if self.folder is None:
            raise ReleaseError("a release without data")
        if "files" not in self.manifest.data:
            return self._opener(self.folder / self.manifest.data["file"])
        listed = [Listed(self.folder / item.file, item.file) for item in data_files(self.manifest.data)]
        try:
            return FilesSource("release", listed, self._opener)
        except TableError as error:
            raise ReleaseError(error.problems) from None

    @property
    def _opener(self) -> Opener:
        """How a file of the data is read; other processes may do it."""
        if self.manifest.data["format"] == "parquet":
            labels = tuple(item.name for item in (*self.manifest.sets, *self.manifest.grouped))
            return partial(ParquetSource, labels=labels)
        if "guard" in self.manifest.data:
            return ReleasedCsvSource
        return partial(CsvSource, separator=",", well_formed=True)

    def require_rows(self) -> None:
        """Raise where there is no row of which anything could be said.

        `verify` says what is wrong with that.
        """
        source = self.source
        some = any(map(how_many, source.counted(source.schema.names[:1]))) if source.rows is None else source.rows
        if not some:
            raise ReleaseError("the release has no rows", "run polyseme verify")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The named columns; sets are list columns of labels, whatever the file format."""
        self._require(columns)
        for batch in self.source.batches(columns):
            yield self._with_lists(batch)

    def counted(self, columns: Sequence[str]) -> Iterator[CountedRows]:
        """The same for those who only count: rows with how often each occurs."""
        self._require(columns)
        for batch, counts in self.source.counted(columns):
            yield self._with_lists(batch), counts

    def _require(self, columns: Sequence[str]) -> None:
        source = self.source
        absent = [name for name in columns if name not in source.schema.names]
        if absent:
            raise ReleaseError(Problem(source.name, f"no column '{name}'", "run polyseme verify") for name in absent)

    def _with_lists(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.manifest.data.get("format") != "csv":
            return batch
        return _parse_sets(batch, [name for name in batch.schema.names if name in self._listed])

    @cached_property
    def _listed(self) -> list[str]:
        """The columns whose cells are lists: sets of candidates, and the values of groups."""
        sets = self.manifest.sets if self.manifest.form == "set" else ()
        return [item.name for item in (*sets, *self.manifest.grouped)]


def _as_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """A frame of pandas; lists stay lists, so that they can be compared and read."""
    require("pandas", "a pandas frame")
    import pandas as pd

    nested = [name for name in frame.columns if frame[name].dtype.is_nested()]
    made = frame.drop(nested).to_pandas() if len(nested) < frame.width else pd.DataFrame(index=range(frame.height))
    for name in nested:
        made[name] = pd.Series(frame[name].to_list(), index=made.index, dtype=object)
    return made[frame.columns]


def _parse_sets(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Set columns of a CSV release, written as JSON arrays, back to lists of labels."""
    for name in columns:
        try:
            lists = [json.loads(text) if text else [] for text in batch.column(name).to_pylist()]
            column = pa.array(lists)
        except (ValueError, pa.ArrowException):
            raise ReleaseError(f"column '{name}': a cell is not a JSON list of candidates") from None
        batch = batch.set_column(batch.schema.get_field_index(name), name, column)
    return batch


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

    questions  the untouched attributes of each kind of cells; all records in one cell unless given
    """

    def __init__(self, release: Release, *questions: Sequence[str]) -> None:
        self.release = release
        self._questions: tuple[tuple[str, ...], ...] = tuple(tuple(by) for by in questions or ((),))
        self._items = {item.name: item for item in release.manifest.sets}
        self._blocks = Blocks(list(self._items), self._cost, self._read, _MOST)
        self._orders: dict[str, RowOrder] = {}

    def of(self, item: Sets, by: Sequence[str] = ()) -> Grouped:
        """The sets of an attribute within cells of `by` and its strata.

        An error when some cell is not a valid set.
        """
        found = self._blocks[item.name][tuple(by)]
        if isinstance(found, ReleaseError):
            raise found
        return found

    def order(self, item: Sets) -> RowOrder:
        """The order in which the sets of an attribute stand.

        An error when some cell is not a valid set.
        """
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
