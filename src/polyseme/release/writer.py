"""Writing a release: every verb that publishes, saves or adopts one writes it here.

The data streams into its file and is digested on the way. The manifest comes last and is read back once, as
users will read it. Only then does the folder take its place: half a release is never seen.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet

from polyseme.kernel.errors import InternalError, Problem, QuestionError, ReleaseError
from polyseme.kernel.files import whole_folder
from polyseme.kernel.work import Cancellation
from polyseme.release import Manifest, Release
from polyseme.release.data import FOLDER, MANIFEST, DataFile, data_entry, data_files, digests, read_document
from polyseme.tables.io.output import TableWriter

__all__ = ["ReleaseWriter", "in_memory", "require_rows_per_file"]

_MOST_FILES = 100_000
"""Their names have five digits, so that they sort as they follow each other."""


def in_memory(manifest: Manifest, table: pa.Table) -> Release:
    """A release that is in no folder yet: there is no file to describe."""
    unwritten = {"file": "data.parquet", "format": "parquet", "sha256": "0" * 64}
    return Release(replace(manifest, data=unwritten, checksum=""), None, table)


def require_rows_per_file(rows: Any) -> None:
    """Raise for what is no number of rows that a file can have."""
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
        raise QuestionError(Problem("rows_per_file", f"expected a whole number of at least 1, got {rows!r}"))


class ReleaseWriter:
    """A release on its way into a folder.

        with ReleaseWriter.open(out, "parquet") as writer:
            for table in tables:
                writer.write(table)
            writer.finish(manifest)
        return writer.release

    folder  where it is written until it is whole; temporary files may be there too, but must be gone at the end
    """

    def __init__(self, folder: Path, out: Path, file_format: str, rows_per_file: int | None = None) -> None:
        self.folder = folder
        self._out, self._format, self._most = out, file_format, rows_per_file
        self._open: _Growing | None = None
        self._files: list[DataFile] = []
        self._manifest: Manifest | None = None

    @classmethod
    @contextmanager
    def open(
        cls,
        out: Path,
        file_format: str,
        overwrite: bool = False,
        cancellation: Cancellation | None = None,
        rows_per_file: int | None = None,
    ) -> Iterator[ReleaseWriter]:
        """A writer whose folder becomes `out` when the block ends well, and vanishes otherwise.

        rows_per_file  the data goes into several files, each with so many rows at the most; into one when None
        """
        with whole_folder(out, overwrite, cancellation=cancellation) as folder:
            writer = cls(folder, out, file_format, rows_per_file)
            try:
                yield writer
            finally:
                writer._close()
            writer._require_whole()

    def write(self, table: pa.Table) -> None:
        """Append rows; all tables have the same schema."""
        while True:
            growing = self._open or self._next(table.schema)
            room = table.num_rows if self._most is None else self._most - growing.rows
            growing.write(table.slice(0, room))
            if self._most is not None and growing.rows >= self._most:
                self._close()
            table = table.slice(room)
            if not table.num_rows:
                return

    def _next(self, schema: pa.Schema) -> _Growing:
        name = f"data.{self._format}"
        if self._most is not None:
            if len(self._files) >= _MOST_FILES:
                raise ReleaseError(f"more than {_MOST_FILES:,} files", "let each of them have more rows")
            name = f"{FOLDER}/part-{len(self._files):05}.{self._format}"
        self._open = _Growing(self.folder, name, schema, self._format)
        return self._open

    def adopt_files(self, paths: Sequence[Path]) -> None:
        """Take over Parquet files that an engine wrote into `folder / "data"`, in this order."""
        self._close()
        paths = [self.folder / path for path in paths]
        if self._format != "parquet" or self._files or {path.parent for path in paths} - {self.folder / FOLDER}:
            raise InternalError("only Parquet files in the folder of the data, and no others, can be taken over")
        for path, digest in zip(paths, digests(paths), strict=True):
            rows = pa.parquet.read_metadata(path).num_rows
            self._files.append(DataFile(path.relative_to(self.folder).as_posix(), digest, rows))

    def written(self, manifest: Manifest) -> Release:
        """What was written so far as a release that is not visible yet; no rows can follow."""
        self._close()
        entry = data_entry(self._files, self._format) if self._files else {}
        return Release(replace(manifest, data=entry), self.folder)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, which gets to know the data here; nothing can be written afterwards."""
        self._close()
        if not self._files:
            raise ReleaseError("a release without data")
        path, data = self.folder / MANIFEST, data_entry(self._files, self._format)
        path.write_text(replace(manifest, data=data).to_json(), encoding="utf-8")
        self._manifest = Manifest.from_dict(read_document(path))

    @property
    def release(self) -> Release:
        """The finished release; its data was digested while it was written, so it is not read again."""
        return Release(self._require_finished(), self._out)

    def _require_finished(self) -> Manifest:
        if self._manifest is None:
            raise InternalError("a release was written without its manifest")
        return self._manifest

    def _require_whole(self) -> None:
        """Raise unless the folder has the data, the manifest and nothing else.

        Temporary files would reveal the order of the records.
        """
        files = [item.file for item in data_files(self._require_finished().data)]
        expected = {MANIFEST, *files, *(FOLDER for name in files if "/" in name)}
        if {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*")} != expected:
            raise InternalError("a release was written with other files beside it")

    def _close(self) -> None:
        growing, self._open = self._open, None
        if growing is not None:
            self._files.append(growing.close())


class _Growing:
    """A data file that is being written."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema, file_format: str) -> None:
        self.name, self.rows = name, 0
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        self._file = _DigestedFile(path.open("xb"))
        try:
            self._writer = TableWriter(self._file, schema, file_format)
        except BaseException:
            self._file.close()
            raise

    def write(self, table: pa.Table) -> None:
        self._writer.write(table)
        self.rows += table.num_rows

    def close(self) -> DataFile:
        try:
            self._writer.close()
        finally:
            self._file.close()
        return DataFile(self.name, self._file.hexdigest(), self.rows)


class _DigestedFile(io.RawIOBase):
    """A file that is only appended to, and the SHA-256 of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        self._file.close()
        super().close()

    def hexdigest(self) -> str:
        return self._digest.hexdigest()
