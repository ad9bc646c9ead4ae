"""A release whose sets are counted by Spark; everything that is made of the counts is made here, as always."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet

from polyseme.errors import ReleaseError
from polyseme.release import Release
from polyseme.spark.failing import plain_errors
from polyseme.spark.source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_by"]


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
