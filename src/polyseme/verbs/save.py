"""`save`: a release in memory becomes a folder."""

from __future__ import annotations

from pathlib import Path

from polyseme.cancellation import Cancellation
from polyseme.errors import ReleaseError
from polyseme.logs import logged
from polyseme.release import Release
from polyseme.release.writer import ReleaseWriter

__all__ = ["save"]


@logged
def save(
    release: Release,
    out: str | Path,
    file_format: str = "parquet",
    overwrite: bool = False,
    cancellation: Cancellation | None = None,
) -> Release:
    """Write a release that is in memory into a folder."""
    if release.table is None:
        raise ReleaseError("this release is in a folder already")
    with ReleaseWriter.open(Path(out), file_format, overwrite, cancellation) as writer:
        writer.write(release.table)
        writer.finish(release.manifest)
    return writer.release
