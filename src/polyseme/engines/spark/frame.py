"""A Spark frame as a table, a release counted by Spark, and the small combinations in it.

Spark counts; rows are read one by one only where that is required. Everything that is made of the counts is made here,
as always.

Spark counts what stands in the files. Which of these are the same value (30.0 and "30 ", a word for "missing" and none
at all) is decided by the same code as on one machine, once for each combination that Spark has found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from polyseme.engines import Watch
from polyseme.engines.run import Run
from polyseme.engines.spark.columns import carried, carried_type, spark_type
from polyseme.engines.spark.jobs import Tasks, counted_by_workers, finished, numbers, plain_errors
from polyseme.engines.spark.session import refuse_alike
from polyseme.kernel.errors import ReleaseError, TableError
from polyseme.kernel.work import Cancellation
from polyseme.release import Release
from polyseme.tables.codes import as_series
from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.source import CountedRows, Source, Wrapped
from polyseme.tables.readings import plain_text

__all__ = [
    "CountedByWorkers",
    "Rebased",
    "SparkSource",
    "is_frame",
    "quoted",
    "read_by",
    "spark_schema",
    "tell",
    "through_workers",
]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


HEAD_ROWS = 1 << 16
"""Rows of a first look."""


def is_frame(data: Any) -> bool:
    """Whether this is a frame of Spark, classic or Connect."""
    return type(data).__module__.startswith("pyspark.sql") and type(data).__name__ == "DataFrame"


def quoted(name: str) -> str:
    """The name of a column, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns in Spark's words."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(item.name, spark_type(item.type), True) for item in schema])


class SparkSource(Source):
    """A frame; its rows have no order and no numbers, and are counted where they are.

    cancellation  who may stop what Spark does for it
    """

    def __init__(
        self,
        frame: DataFrame,
        name: str = "frame",
        rows: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self.frame, self.name, self._rows = frame, name, rows
        self._cancellation = cancellation or Cancellation()
        with plain_errors():
            names = frame.columns
            # Columns by number on the way: two names may differ in their case only, or have dots.
            empty = frame.toDF(*(f"c{number}" for number in range(len(names)))).limit(0).toArrow()
        self._schema = pa.schema([item.with_name(name) for item, name in zip(empty.schema, names)])
        self.check()

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def rows(self) -> int | None:
        return self._rows

    def count(self) -> int:
        """The number of rows, counted by Spark and once."""
        if self._rows is None:
            self._rows = int(self._finished(self.frame.count))
        return self._rows

    def head(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        """Some rows for a first look."""
        return next(self._batches(self.chosen(columns).limit(HEAD_ROWS), columns), None)

    def chosen(self, columns: Sequence[str]) -> DataFrame:
        """These columns, by number."""
        from pyspark.sql import functions as sql

        return self.frame.select(*(sql.col(quoted(name)).alias(f"c{number}") for number, name in enumerate(columns)))

    def _batches(self, frame: DataFrame, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._finished(frame.toArrow).to_batches(max_chunksize=HEAD_ROWS):
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(names))

    def _finished(self, action: Callable[[], Any]) -> Any:
        with plain_errors():
            return finished(self.frame.sparkSession, self._cancellation, action)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self._batches(self.chosen(columns), columns)

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        """Distinct rows with how often each occurs, counted by Spark."""
        names = list(self.schema.names if columns is None else columns)
        if not names:
            yield pa.RecordBatch.from_pydict({}), np.zeros(0, dtype=np.int64)
            return
        grouped = self.chosen(names).groupBy(*(f"c{number}" for number in range(len(names)))).count()
        for batch in self._batches(grouped, [*names, "\0count"]):
            counts = batch.column(len(names)).to_numpy(zero_copy_only=False).astype(np.int64)
            yield pa.RecordBatch.from_arrays(batch.columns[:-1], names=names), counts

    @staticmethod
    def beneath(source: Source) -> SparkSource | None:
        """The frame that is read underneath, where it is one."""
        while isinstance(source, Wrapped):
            source = source.inner
        return source if isinstance(source, SparkSource) else None


@dataclass(frozen=True, eq=False)
class Rebased:
    """What workers do to the rows of a frame before they are published, batch by batch.

    source   the table as it is read, over an empty one
    columns  of the frame, in the order in which batches come
    names    of the table, in the order in which batches go
    """

    source: Source
    columns: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, source: Source, names: Sequence[str]) -> Rebased:
        frame = SparkSource.beneath(source)
        if frame is None:
            raise TableError("not a frame of Spark")
        recorder = _ColumnRecorder(frame.schema)
        for _ in over(source, recorder).batches(names):
            pass
        return cls(over(source, FrameSource(frame.schema.empty_table())), tuple(recorder.columns), tuple(names))

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        named = pa.RecordBatch.from_arrays(batch.columns, names=list(self.columns))
        read = over(self.source, FrameSource(pa.Table.from_batches([named]))).batches(self.names)
        table = pa.Table.from_batches(list(read)).combine_chunks()
        return table.to_batches()[0]


class _ColumnRecorder(FrameSource):
    """An empty table that remembers which columns were read."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema.empty_table())
        self.columns: dict[str, None] = {}

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.columns |= dict.fromkeys(columns)
        yield from super()._read(columns)


def over(source: Source, inner: Source) -> Source:
    """The same table with another one underneath."""
    return source.over(inner) if isinstance(source, Wrapped) else inner


def through_workers(
    spark: SparkSession,
    source: Source,
    columns: Sequence[str] | None = None,
    cancellation: Cancellation | None = None,
) -> SparkSource:
    """A table of files as a frame that the workers read; what Spark has no type for is left out."""
    wanted = source.schema.names if columns is None else columns
    names = [name for name in wanted if carried_type(source.schema.field(name).type) is not None]
    kinds = [carried_type(source.schema.field(name).type) for name in names]
    refuse_alike(spark, names)
    tasks = Tasks.of(source)
    schema = pa.schema([pa.field(f"c{number}", kind) for number, kind in enumerate(kinds)])
    frame = tasks.frame(spark).mapInArrow(_Read(tasks, tuple(names)), spark_schema(schema))
    return SparkSource(frame.toDF(*names), source.name, source.rows, cancellation)


class CountedByWorkers(Wrapped):
    """A table of files that workers count, and read when it is published."""

    def __init__(self, source: Source, spark: SparkSession, cancellation: Cancellation | None = None) -> None:
        super().__init__(source)
        self._spark: SparkSession | None = spark
        self._cancellation = cancellation

    def __getstate__(self) -> dict[str, Any]:
        # A session stays where it is: workers only read.
        return {**self.__dict__, "_spark": None}

    def counted(self, columns: Sequence[str] | None = None) -> Iterator[CountedRows]:
        names = list(self.schema.names if columns is None else columns)
        known = all(carried_type(self.schema.field(name).type) is not None for name in names)
        if self._spark is None or not known:
            return self.inner.counted(names)
        return through_workers(self._spark, self.inner, names, self._cancellation).counted(names)


@dataclass(frozen=True, eq=False)
class _Read:
    """Reads the parts of a task."""

    tasks: Tasks
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            with counted_by_workers():
                for batch in self.tasks.batches(number, self.names):
                    columns = [carried(column, name) for column, name in zip(batch.columns, self.names)]
                    yield pa.RecordBatch.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))])


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_by(
    spark: SparkSession, release: Release, frame: DataFrame | None = None, *, rows: int | None = None
) -> Release:
    """The same release, read by Spark.

    frame  the data, where it is not read from the folder: a copy of it in a table that Spark knows
    rows   how many there are, where Spark has just written them
    """
    if frame is not None:
        return replace(release, reader=SparkSource(frame, "release"))
    files = _files(release)
    with plain_errors():
        frame = spark.read.parquet(*(path.as_uri() for path in files))
        names = frame.columns
    source = SparkSource(frame, "release", rows) if names else None
    held = sum(pa.parquet.read_metadata(path).num_rows for path in files) if rows is None else rows
    # Some engines take a file that they do not see for an empty one.
    if source is None or source.count() != held:
        found = source.count() if source is not None else 0
        raise ReleaseError(
            f"Spark finds {found:,} rows in the files of the release, which have {held:,} here",
            "it reads them under the names they have here: put the release where all machines find it",
        )
    return replace(release, reader=source)


def _files(release: Release) -> list[Path]:
    data = release.manifest.data
    if release.folder is None:
        raise ReleaseError("a release in memory has no files that Spark could read", "save it first")
    if data["format"] != "parquet":
        raise ReleaseError("Spark reads releases in Parquet files only", "publish with --format parquet")
    files = [item["file"] for item in data["files"]] if "files" in data else [data["file"]]
    return [Path(release.folder, name).resolve() for name in files]


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_COUNT = "records"


def tell(spark: SparkSession, paths: list[Path], run: Run, watch: Watch) -> None:
    """Tell the watch how many rows there are, and how many combinations have too few of them."""
    from pyspark.sql import functions as sql

    if not watch.names or not paths:
        return
    sizes = _sizes(_written(spark, paths, watch.names), run.job.missing_values)
    small = sizes.where(sql.col(_COUNT) < watch.safe * run.job.rows_per_record).groupBy(_COUNT).agg(sql.count("*"))
    found = finished(spark, run.cancellation, small.collect)
    watch.counted(run.outcome.rows, {int(row[0]): int(row[1]) for row in found})


def _written(spark: SparkSession, paths: list[Path], names: tuple[str, ...]) -> DataFrame:
    """Some columns of the data files, by number."""
    from pyspark.sql import functions as sql

    # With a schema that is known Spark does not look for it in the files first.
    there = pa.parquet.read_schema(paths[0])
    schema = pa.schema([(name, carried_type(there.field(name).type)) for name in names])
    frame = spark.read.schema(spark_schema(schema)).parquet(*(path.resolve().as_uri() for path in paths))
    return frame.select(*(sql.col(quoted(name)).alias(f"k{number}") for number, name in enumerate(names)))


def _sizes(frame: DataFrame, missing_values: tuple[str, ...]) -> DataFrame:
    """How many rows have each combination of values."""
    from pyspark.sql import functions as sql

    keys = frame.columns
    counted = frame.groupBy(*keys).agg(sql.count("*").alias(_COUNT))
    texts = pa.schema([*((key, pa.string()) for key in keys), (_COUNT, pa.int64())])
    alike = counted.mapInArrow(_Alike(missing_values), spark_schema(texts))
    return alike.groupBy(*keys).agg(sql.sum(_COUNT).alias(_COUNT))


@dataclass(frozen=True)
class _Alike:
    """Combinations as text in which equal values are written alike, with their counts."""

    missing_values: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *columns, counts = batch.columns
            texts = [plain_text(as_series(column), self.missing_values).to_arrow() for column in columns]
            yield pa.RecordBatch.from_arrays([*(text.cast(pa.string()) for text in texts), counts], batch.schema.names)
