"""Writing a release: whoever makes one, publishes, saves or adopts, writes it here.

The data streams into its file and is digested on the way. The manifest comes last and is read back once, as whoever
opens the release will read it. Only then does the folder take its place: half a release is never seen.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from polyseme.cancellation import Cancellation
from polyseme.errors import InternalError, ReleaseError
from polyseme.files.whole import whole_folder
from polyseme.release import Manifest, Release
from polyseme.release.documents import MANIFEST, read_document
from polyseme.tables.io.spreadsheets import GUARD
from polyseme.tables.io.writing import TableWriter

__all__ = ["ReleaseWriter", "in_memory"]


def in_memory(manifest: Manifest, table: pa.Table) -> Release:
    """A release that is in no folder yet: there is no file to describe."""
    unwritten = {"file": "data.parquet", "format": "parquet", "sha256": "0" * 64}
    return Release(replace(manifest, data=unwritten, checksum=""), None, table)


class ReleaseWriter:
    """A release on its way into a folder.

        with ReleaseWriter.open(out, "parquet") as writer:
            for table in tables:
                writer.write(table)
            writer.finish(manifest)
        return writer.release

    folder  where it is written until it is whole; temporary files may be there too, but must be gone at the end
    """

    def __init__(self, folder: Path, out: Path, file_format: str) -> None:
        self.folder = folder
        self._out, self._format = out, file_format
        self._file: _DigestedFile | None = None
        self._writer: TableWriter | None = None
        self._manifest: Manifest | None = None

    @classmethod
    @contextmanager
    def open(
        cls, out: Path, file_format: str, overwrite: bool = False, cancellation: Cancellation | None = None
    ) -> Iterator[ReleaseWriter]:
        """A writer whose folder takes the place `out` when the block ends well, and vanishes otherwise."""
        with whole_folder(out, overwrite, cancellation=cancellation) as folder:
            writer = cls(folder, out, file_format)
            try:
                yield writer
            finally:
                writer._close()
            writer._require_whole()

    def write(self, table: pa.Table) -> None:
        """Append rows; all tables have the same schema."""
        if self._writer is None:
            self._file = _DigestedFile((self.folder / f"data.{self._format}").open("xb"))
            self._writer = TableWriter(self._file, table.schema, self._format)
        self._writer.write(table)

    def written(self, manifest: Manifest) -> Release:
        """What was written so far as a release that nobody else can see yet; no rows can follow."""
        self._close()
        entry = self._entry(self._file.hexdigest()) if self._file is not None else {}
        return Release(replace(manifest, data=entry), self.folder)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, which gets to know the data file here; nothing can be written afterwards."""
        self._close()
        if self._file is None:
            raise ReleaseError("a release without data")
        path, data = self.folder / MANIFEST, self._entry(self._file.hexdigest())
        path.write_text(replace(manifest, data=data).to_json(), encoding="utf-8")
        self._manifest = Manifest.from_dict(read_document(path))

    @property
    def release(self) -> Release:
        """The finished release; its data was digested while it was written, so it is not read again."""
        return Release(self._require_finished(), self._out)

    def _entry(self, digest: str) -> dict[str, Any]:
        """What the manifest says of the data file."""
        entry = {"file": f"data.{self._format}", "format": self._format, "sha256": digest}
        return {**entry, "guard": GUARD} if self._format == "csv" else entry

    def _require_finished(self) -> Manifest:
        if self._manifest is None:
            raise InternalError("a release was written without its manifest")
        return self._manifest

    def _require_whole(self) -> None:
        """Raise unless the folder holds the data, the manifest and nothing else: temporary files tell of the order."""
        expected = {MANIFEST, self._require_finished().data["file"]}
        if {path.name for path in self.folder.iterdir()} != expected:
            raise InternalError("a release was written with other files beside it")

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close()
        finally:
            if self._file is not None:
                self._file.close()


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
