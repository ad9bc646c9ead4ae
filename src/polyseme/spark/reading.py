"""A release whose sets are counted by Spark; everything that is made of the counts is made here, as always."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.errors import ReleaseError
from polyseme.release import Release
from polyseme.spark.failing import plain_errors
from polyseme.spark.source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_by"]


def read_by(spark: SparkSession, release: Release, frame: DataFrame | None = None) -> Release:
    """The same release, read by Spark.

    frame  the data, where it is not read from the folder: a copy of it in a table that Spark knows
    """
    if frame is None:
        addresses = _addresses(release)
        with plain_errors():
            frame = spark.read.parquet(*addresses)
    return replace(release, reader=SparkSource(frame, "release"))


def _addresses(release: Release) -> list[str]:
    data = release.manifest.data
    if release.folder is None:
        raise ReleaseError("a release in memory has no files that Spark could read", "save it first")
    if data["format"] != "parquet":
        raise ReleaseError("Spark reads releases in Parquet files only", "publish with --format parquet")
    files = [item["file"] for item in data["files"]] if "files" in data else [data["file"]]
    return [Path(release.folder, name).resolve().as_uri() for name in files]
