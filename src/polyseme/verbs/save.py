"""`save`: a release in memory becomes a folder."""

from __future__ import annotations

from pathlib import Path

from polyseme.kernel.errors import ReleaseError
from polyseme.kernel.work import Cancellation, verb
from polyseme.release import Release
from polyseme.release.writer import ReleaseWriter, require_rows_per_file

__all__ = ["save"]


@verb()
def save(
    release: Release,
    out: str | Path,
    file_format: str = "parquet",
    overwrite: bool = False,
    cancellation: Cancellation | None = None,
    rows_per_file: int | None = None,
) -> Release:
    """Write a release that is in memory into a folder.

    rows_per_file  rows that a data file has at the most; there are as many files as that takes, or one when None
    """
    require_rows_per_file(rows_per_file)
    if release.table is None:
        raise ReleaseError("this release is in a folder already")
    with ReleaseWriter.open(Path(out), file_format, overwrite, cancellation, rows_per_file) as writer:
        writer.write(release.table)
        writer.finish(release.manifest)
    return writer.release
