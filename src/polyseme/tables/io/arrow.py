"""Arrow IPC files and streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from polyseme.errors import TableError
from polyseme.tables.io.parts import Part
from polyseme.tables.io.places import Place, open_file
from polyseme.tables.io.source import Source
from polyseme.tables.io.views import without_views

__all__ = ["ArrowSource"]


class ArrowSource(Source):
    """An Arrow IPC (Feather) file or stream."""

    def __init__(self, path: Place) -> None:
        self.path = path
        self.name = path.name
        with self._open() as reader:
            self._schema = without_views(reader.schema)
        self.check()

    def _open(self) -> Any:
        try:
            return pa.ipc.open_file(open_file(self.path))
        except (pa.ArrowException, OSError):
            try:
                return pa.ipc.open_stream(open_file(self.path))
            except (pa.ArrowException, OSError):
                raise TableError(f"{self.path}: not a readable Arrow file") from None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def parts(self) -> list[Part]:
        return [Part(str(self.path))]

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            with self._open() as reader:
                batches = (
                    (reader.get_batch(index) for index in range(reader.num_record_batches))
                    if hasattr(reader, "get_batch")
                    else iter(reader)
                )
                for batch in batches:
                    chosen = batch.select(list(columns))
                    yield chosen.cast(without_views(chosen.schema))
        except (pa.ArrowException, OSError):
            raise TableError(f"{self.path}: damaged Arrow file") from None
