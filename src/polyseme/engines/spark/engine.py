"""The Spark engine: the same map as on one machine, in many workers.

    a table of files   (check ─►) draw ─► order ─► write        the workers read the files themselves
    a frame            draw ─► write ─► order ─► write          a frame is computed once

A lazy frame that is computed twice draws twice, and two sets of one person can be intersected. In a table of files
every record has a place, and what is drawn for it follows from that place: a worker that dies, a task that is tried
again or run twice at the same time gives the same sets. Rows of a frame have no such place, unless decoys are sticky;
so there the drawn rows are written first, where Spark keeps exactly one attempt of each task, and everything after that
reads them from there.

Rows are put in order by 64 bits from the secure stream: they choose the file of a row and its place in it.

Rows as they travel become rows as they are published: labels in place of codes, the users' names, no places.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from polyseme.engines import Engine, Target, Watch
from polyseme.engines.batch import Job, publish_batch
from polyseme.engines.checks import BatchTally, Print, Problems
from polyseme.engines.run import Run, fill, stream_keys
from polyseme.engines.spark.columns import FEW, carried_type, refuse_uncarried, spark_type
from polyseme.engines.spark.frame import Rebased, SparkSource, read_by, spark_schema, tell, through_workers
from polyseme.engines.spark.groups import CountCells, Dealing, Veil, assigned
from polyseme.engines.spark.jobs import Tasks, finished, of_spark, plain_errors
from polyseme.engines.spark.session import BATCH_ROWS, refuse_alike, session, settings
from polyseme.engines.spark.worker import (
    Check,
    Draw,
    DrawOnce,
    Layout,
    Prints,
    Reported,
    Sealed,
    SparkWorkers,
    StagedPrints,
)
from polyseme.grouping.groups import AssignedSource
from polyseme.kernel.errors import InternalError, InvalidInput, Problem, QuestionError, TableError
from polyseme.kernel.randomness import StreamKey
from polyseme.kernel.work import Cancellation, stage
from polyseme.release import Grouped, Release
from polyseme.tables.codes import label_array
from polyseme.tables.distinct import TAIL_BITS, Tallied
from polyseme.tables.io.source import Source

__all__ = ["SparkEngine", "group_labels", "labeled", "publish"]

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def labeled(frame: DataFrame, layout: Layout) -> DataFrame:
    """The columns of the release, in their order."""
    from pyspark.sql import functions as sql

    job = layout.job
    columns: list[Column] = []
    for number, (item, packing) in enumerate(zip(job.columns, layout.packings)):
        names = layout.names(number)
        if packing is not None:
            labels = _labels(job.labels[item.name])
            found = [sql.get(labels, packing.code(names, place)) for place in range(packing.candidates)]
            made = found[0] if job.form == "long" else sql.array(*found)
        else:
            made = _of_group(item, names[0]) if isinstance(item, Grouped) else sql.col(names[0])
        columns.append(made.alias(item.name))
    return frame.select(*columns)


def _of_group(item: Grouped, codes: str) -> Column:
    """All values of a group; where the domain has many, they have come as texts."""
    from pyspark.sql import functions as sql

    values = group_labels(item)
    if len(values) > FEW:
        return _typed(sql.col(codes), values.type)
    labels = _labels(values)
    return sql.transform(sql.col(codes), lambda code: sql.element_at(labels, code + 1))


def group_labels(item: Grouped) -> pa.Array:
    """The values of an attribute that is published by group, by code."""
    domain = item.attribute.domain
    return label_array(domain.values if domain is not None else ())


def _labels(labels: pa.Array) -> Column:
    """All labels of a domain as one text that is split once: a plan of 70,000 literals is slow."""
    from pyspark.sql import functions as sql

    texts = [str(text) for text in labels.cast(pa.string()).to_pylist()]
    mark = _unused(texts)
    # An empty label at the end must stay: no limit on the number of pieces.
    return _typed(sql.split(sql.lit(mark.join(texts)), mark, -1), labels.type)


def _typed(texts: Column, kind: pa.DataType) -> Column:
    """Labels in their own type."""
    return texts if kind == pa.string() else texts.cast(f"array<{spark_type(kind).simpleString()}>")


def _unused(texts: list[str]) -> str:
    """A character that no label has, and that means itself in a regular expression.

    >>> _unused(["a", chr(1)]) == chr(2)
    True
    """
    used = set().union(*texts)
    return next(chr(code) for code in range(1, 0xD800) if chr(code) not in used and chr(code) not in r".^$|?*+()[]{}\\")


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Found = TypeVar("Found")

FILE_ROWS = 2_000_000
"""Rows of a data file, about, unless the caller says how many files there are to be."""
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.sql.execution.arrow.maxBytesPerBatch": "-1",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@dataclass(frozen=True, eq=False)
class SparkEngine(Engine):
    """Publishes with a Spark session.

    spark   the session; the running one, or one for `master`, when None
    files   into how many files the data goes; by its number of rows when None
    """

    scaled: ClassVar[bool] = True
    deals: ClassVar[bool] = True
    formats: ClassVar[tuple[str, ...]] = ("parquet",)

    spark: Any = None
    master: str | None = None
    files: int | None = None

    def __post_init__(self) -> None:
        files: Any = self.files
        if files is not None and (not isinstance(files, int) or isinstance(files, bool) or files < 1):
            what = f"expected a whole number of at least 1, got {files!r}"
            raise QuestionError(Problem("files", what, "leave it out for one file per two million rows"))

    def __call__(self, run: Run, target: Target, watch: Watch) -> Callable[[Release], Release]:
        spark = session(self.spark, self.master)
        work = _Work(spark, run, target.folder, self.files)
        with settings(spark, _SETTINGS), plain_errors():
            paths = work.published()
            tell(spark, paths, run, watch)
        target.adopt_files(paths)
        return lambda release: read_by(spark, release, rows=run.outcome.rows)

    def workers(self, source: Source, cancellation: Cancellation, columns: Sequence[str]) -> SparkWorkers | None:
        """Who works where the rows of a table are.

        None where Spark has no type for one of these columns.
        """
        spark = session(self.spark, self.master)
        if any(carried_type(source.schema.field(name).type) is None for name in columns):
            return None
        if (framed := SparkSource.beneath(source)) is None:
            framed = through_workers(spark, source, columns)
            source = framed
        rebased = Rebased.of(source, columns)
        return SparkWorkers(framed.chosen(rebased.columns), rebased, cancellation)


publish = SparkEngine()
"""Publishes with the running session, or one on this machine."""


@dataclass(frozen=True, eq=False)
class _Work:
    spark: SparkSession
    run: Run
    folder: Path
    files: int | None

    @property
    def job(self) -> Job:
        return self.run.job

    def published(self) -> list[Path]:
        """The data files, in their order."""
        source = self.run.source
        sealed = Sealed(secrets.token_bytes(32))
        if (framed := SparkSource.beneath(source)) is not None:
            self._refuse_seed()
            return self._from_frame(framed, Rebased.of(source, self.job.needed), sealed)
        return self._from_files(Tasks.of(source), source.schema, sealed)

    def _finished(self, action: Callable[[], Found]) -> Found:
        return finished(self.spark, self.run.cancellation, action)

    def _refuse_seed(self) -> None:
        if self.job.seed is not None:
            what = "rows of a Spark frame have no places by which the same numbers could be drawn again"
            raise QuestionError(Problem("seed", what, "give the path of a table, or use sticky decoys (a key file)"))

    def _from_files(self, tasks: Tasks, schema: pa.Schema, sealed: Sealed) -> list[Path]:
        layout = self._layout(schema)
        if self._is_plain(tasks, layout):
            try:
                return self._drawn(tasks, layout, BatchTally(records=tasks.rows or 0))
            except Exception as error:
                if not of_spark(error):
                    raise
                # Problems of the table, if that is why, are reported all at once.
                self._total(tasks, sealed)
                raise
        tasks, total = self._total(tasks, sealed)
        return self._drawn(tasks, layout, total)

    def _is_plain(self, tasks: Tasks, layout: Layout) -> bool:
        """Whether every row becomes a record, and drawing needs no earlier pass over the table.

        It is then read once: the first problem stops the work.
        """
        dropping = any(item.domain.missing.action == "drop" for item in self.job.sets)
        conditions = any(item.attribute.constraints or item.attribute.conditional for item in self.job.sets)
        needs_pass = dropping or conditions or self.job.counts_draws or layout.dealing is not None
        return bool(tasks.rows) and not needs_pass

    def _total(self, tasks: Tasks, sealed: Sealed) -> tuple[Tasks, BatchTally]:
        """The tasks with their row numbers, and the counts; raises the problems of the table."""
        reports = self._checked(tasks, sealed)
        tasks = tasks.numbered([item.rows for item in reports])
        total = _total(reports, [task.first or 0 for task in tasks.tasks])
        Problems(total.problems, total.seen).raise_any(self.run.source)
        return tasks, total

    def _drawn(self, tasks: Tasks, layout: Layout, total: BatchTally) -> list[Path]:
        job = self.job
        decoys, order = stream_keys(job.seed)
        prints = self._prints(tasks.frame(self.spark), Prints(job, tasks, decoys)) if job.counts_draws else {}
        fill(self.run.outcome, job, total, _with_none(job, prints))
        drawn = self._mapped(tasks.frame(self.spark), Draw(layout, tasks, decoys, order), layout.schema())
        if layout.dealing is not None:
            work = CountCells(layout.dealing, tasks, order)
            drawn = self._assigned(drawn, layout, tasks.frame(self.spark).mapInArrow(work, CountCells.SCHEMA))
        return self._written(drawn, layout)

    def _from_frame(self, frame: SparkSource, rebased: Rebased, sealed: Sealed) -> list[Path]:
        from pyspark.sql import functions as sql

        job, staging = self.job, self.folder / ".staging"
        layout = self._layout(self.run.source.schema)
        veil = None if layout.dealing is None else Veil(layout.schema(), layout.dealing, StreamKey.fresh())
        once = DrawOnce(layout, rebased, sealed, veil)
        try:
            with stage("draw", "Drawing sets"):
                drawn = self._mapped(frame.chosen(rebased.columns), once, once.schema())
                self._finished(lambda: drawn.write.parquet(_address(staging)))
            staged = self.spark.read.schema(spark_schema(once.schema())).parquet(_address(staging))
            summaries = staged.where(sql.col("found").isNotNull()).select("found")
            reports = [sealed.open(bytes(row[0])) for row in self._finished(summaries.collect)]
            total = _total(reports, [0] * len(reports))
            Problems(total.problems).raise_any()
            prints = self._prints(summaries, StagedPrints(job, sealed)) if job.counts_draws else {}
            fill(self.run.outcome, job, total, _with_none(job, prints))
            drawn = staged.where(sql.col("found").isNull()).drop("found")
            if veil is not None:
                drawn = self._mapped(drawn, veil, layout.schema())
                share = sql.lit(1 / job.rows_per_record).alias("records")
                drawn = self._assigned(drawn, layout, drawn.select("cell", share))
            return self._written(drawn, layout)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _layout(self, schema: pa.Schema) -> Layout:
        refuse_alike(self.spark, [item.name for item in self.job.columns])
        published = _published_schema(self.job, schema)
        plain = [item.name for item in self.job.untouched]
        refuse_uncarried(published, plain)
        kinds = (carried_type(published.field(name).type) for name in plain)
        dealing = None
        if (records := AssignedSource.beneath(self.run.source)) is not None:
            dealing = Dealing.of(records.dealer, [item.name for item in self.job.columns])
        return Layout(self.job, tuple(kind for kind in kinds if kind is not None), dealing)

    def _checked(self, tasks: Tasks, sealed: Sealed) -> list[Reported]:
        """What each task found, in their order; what stops one of them stops all."""
        # Without a total: Spark reports no progress until it is done.
        with stage("table", "Checking the table"):
            frame = tasks.frame(self.spark).mapInArrow(Check(self.job, tasks, sealed), Check.SCHEMA)
            found: dict[int, Reported] = {row[0]: sealed.open(bytes(row[1])) for row in self._finished(frame.collect)}
        if sorted(found) != list(range(len(tasks.tasks))):
            raise InternalError("a task did not report")
        errors = [item.error for item in found.values() if item.error is not None]
        if errors:
            raise _joined(errors)
        self.run.progress(sum(item.rows for item in found.values()))
        return [found[number] for number in range(len(found))]

    def _assigned(self, drawn: DataFrame, layout: Layout, cells: DataFrame) -> DataFrame:
        """Records in their groups; `cells` says how many there are in each cell, in pieces.

        What was counted of people before counts those too who find no group.
        """
        from pyspark.sql import functions as sql

        dealing, outcome = layout.dealing, self.run.outcome
        if dealing is None:
            raise ValueError("no groups were planned")
        with stage("dealt", "Counting group members"):
            counted = cells.groupBy("cell").agg(sql.sum("records"))
            found = np.zeros(dealing.cells, dtype=np.int64)
            for cell, records in self._finished(counted.collect):
                found[cell] = round(records)
        starts = dealing.starts(found)
        outcome.records -= dealing.places.suppressed
        outcome.rows = outcome.records * self.job.rows_per_record
        item = next(item for item in self.job.columns if isinstance(item, Grouped) and item.name == dealing.attribute)
        labels = group_labels(item)
        many = labels if len(labels) > FEW else None
        return assigned(drawn, layout.schema(), dealing, starts, self._mapped, many)

    def _mapped(self, frame: DataFrame, work: Any, schema: pa.Schema) -> DataFrame:
        return frame.mapInArrow(work, spark_schema(schema))

    def _prints(self, frame: DataFrame, work: Any) -> dict[Print, Tallied]:
        """How often fingerprints of each kind occur."""
        from pyspark.sql import functions as sql

        counted, count = frame.mapInArrow(work, Prints.SCHEMA).groupBy("kind", "print").count(), sql.col("count")
        found = counted.groupBy("kind").agg(sql.sum(count), sql.count("*"), sql.sum(count * count))
        rows = self._finished(found.collect)
        heads = self._heads(counted) if self.job.shared else {}
        return {
            self.job.prints[kind]: Tallied(int(total), int(distinct), int(squares), *heads.get(kind, (0, 0)))
            for kind, total, distinct, squares in rows
        }

    def _heads(self, counted: DataFrame) -> dict[int, tuple[int, int]]:
        """Of each kind of fingerprints, the different heads, and those of them with several tails."""
        from pyspark.sql import functions as sql

        head = sql.shiftrightunsigned("print", TAIL_BITS).alias("head")
        tails = counted.groupBy("kind", head).agg(sql.count("*").alias("tails"))
        several = sql.sum((sql.col("tails") > 1).cast("long"))
        rows = self._finished(tails.groupBy("kind").agg(sql.count("*"), several).collect)
        return {row[0]: (int(row[1]), int(row[2])) for row in rows}

    def _written(self, drawn: DataFrame, layout: Layout) -> list[Path]:
        rows, data = self.run.outcome.rows, self.folder / "data"
        if not rows:
            # Some engines write no file then; the description of the release says that there are no records.
            return []
        files = self.files or max(-(-rows // FILE_ROWS), 1)
        ordered = drawn.repartition(files, "place").sortWithinPartitions("place")
        with stage("write", "Drawing and writing"):
            writer = labeled(ordered, layout).write.option("compression", "zstd")
            self._finished(lambda: writer.parquet(_address(data)))
        return _tidied(data, rows)


def _published_schema(job: Job, schema: pa.Schema) -> pa.Schema:
    """The columns of a batch as they are published, found out by publishing nothing."""
    needed = pa.schema([schema.field(name) for name in job.needed])
    nothing = pa.RecordBatch.from_arrays([pa.array([], item.type) for item in needed], schema=needed)
    return publish_batch(job, nothing, StreamKey.fresh().records(np.arange(0)))[0].schema


def _total(reports: Iterable[Reported], begins: Iterable[int]) -> BatchTally:
    total = BatchTally()
    for report, first in zip(reports, begins):
        total += report.tally.counts.moved(first)
    return total


def _with_none(job: Job, prints: Mapping[Print, Tallied]) -> dict[Print, Tallied]:
    return {name: prints.get(name, Tallied()) for name in job.prints}


def _joined(errors: list[InvalidInput]) -> InvalidInput:
    """One error with the problems of all workers."""
    return type(errors[0])(dict.fromkeys(problem for error in errors for problem in error.problems))


def _address(path: Path) -> str:
    return path.resolve().as_uri()


def _tidied(folder: Path, rows: int) -> list[Path]:
    """Rename the files that Spark wrote to neutral names; none may be missing or extra."""
    if not folder.is_dir():
        raise TableError(
            f"{folder}: Spark has written the release, but not on this machine; nothing was published",
            "out must be a folder that this machine and the workers share; what they wrote is in theirs, to be removed",
        )
    parts = sorted(path for path in folder.iterdir() if path.suffix == ".parquet" and path.name[0] not in "._")
    sizes = {path: pa.parquet.read_metadata(path).num_rows for path in parts}
    if sum(sizes.values()) != rows:
        raise TableError(
            f"Spark wrote {sum(sizes.values()):,} rows where {rows:,} were expected; nothing was published",
            "the table changed while it was read, or the workers write to disks of their own and not to one they share",
        )
    for path in folder.iterdir():
        if not sizes.get(path):
            path.unlink()
    kept = [path for path in parts if sizes[path]]
    named = [folder / f"part-{number:05d}.parquet" for number in range(len(kept))]
    for path, name in zip(kept, named):
        path.replace(name)
    return named
