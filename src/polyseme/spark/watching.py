"""How many records share what can tell them apart, for those who watch rows on their way out.

Spark counts what stands in the files. Which of that is the same value (30.0 and "30 ", a word for "missing" and none at
all) is said by the same code as on one machine, once for each combination that Spark has found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet

from polyseme.engines import Watch
from polyseme.engines.run import Run
from polyseme.spark.jobs import finished
from polyseme.spark.source import quoted, spark_schema
from polyseme.spark.types import carried_type
from polyseme.tables.coding.codes import as_series
from polyseme.tables.coding.readings import plain_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["tell"]

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
    """Combinations as text in which whatever is the same is written alike, with how often each occurs."""

    missing_values: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *columns, counts = batch.columns
            texts = [plain_text(as_series(column), self.missing_values).to_arrow() for column in columns]
            yield pa.RecordBatch.from_arrays([*(text.cast(pa.string()) for text in texts), counts], batch.schema.names)
