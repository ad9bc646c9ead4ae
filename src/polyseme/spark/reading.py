"""A release whose sets are counted by Spark; everything that is made of the counts is made here, as always."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.errors import ReleaseError
from polyseme.release import Release
from polyseme.spark.source import SparkSource
from polyseme.tables.io.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkRelease"]


@dataclass(frozen=True)
class SparkRelease(Release):
    """A release that Spark reads.

    spark  the session
    frame  the data, where it is not read from the folder: a copy of it in a table that Spark knows
    """

    spark: Any = field(default=None, repr=False, compare=False)
    frame: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def reading(cls, release: Release, spark: SparkSession, frame: DataFrame | None = None) -> SparkRelease:
        """The same release, read by Spark."""
        if release.folder is None:
            raise ReleaseError("a release in memory has no files that Spark could read", "save it first")
        return cls(release.manifest, release.folder, None, release.frames, spark, frame)

    @cached_property
    def source(self) -> Source:
        """The published data, counted by Spark."""
        frame = self.frame if self.frame is not None else self.spark.read.parquet(*self._addresses())
        return SparkSource(frame, "release")

    def _addresses(self) -> list[str]:
        data = self.manifest.data
        if data["format"] != "parquet" or self.folder is None:
            raise ReleaseError("Spark reads releases in Parquet files only", "publish with --format parquet")
        files = [item["file"] for item in data["files"]] if "files" in data else [data["file"]]
        return [Path(self.folder, name).resolve().as_uri() for name in files]
