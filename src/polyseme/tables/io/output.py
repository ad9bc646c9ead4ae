"""Writing published tables."""

from __future__ import annotations

import base64
import json
from concurrent.futures import Future, ThreadPoolExecutor
from io import RawIOBase
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from polyseme.kernel.errors import Problem, TableError
from polyseme.tables.io.workbooks import guarded, guarded_text

__all__ = ["FORMATS", "TableWriter"]

FORMATS = ("parquet", "csv")
_ROW_GROUP = 1 << 20
"""Rows to a group of a Parquet file at the most: pyarrow's own default."""
_LOOKED_AT, _FEW = 1 << 14, 1 << 10
"""Rows that tell whether a column repeats its values, and how many are too few to tell."""


class TableWriter:
    """Appends Arrow tables to a Parquet or CSV file.

    In CSV a set is a JSON list, and no text is a formula.

    A table is written in another thread while the next one is made; what goes wrong is raised by the next call.
    """

    def __init__(self, file: Path | RawIOBase, schema: pa.Schema, file_format: str) -> None:
        self._writer: _CsvTables | _ParquetTables
        self._writer = _CsvTables(file, schema) if file_format == "csv" else _ParquetTables(file, schema)
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def write(self, table: pa.Table) -> None:
        self._wait()
        self._writing = self._pool.submit(self._writer.write, table)

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        try:
            self._wait()
        finally:
            self._pool.shutdown()
            self._writer.close()


class _CsvTables:
    def __init__(self, file: Path | RawIOBase, schema: pa.Schema) -> None:
        _refuse_nested(schema)
        flat = pa.schema(
            [(guarded_text(field.name), pa.string() if _is_list(field.type) else field.type) for field in schema]
        )
        options = pa.csv.WriteOptions(quoting_style="needed")
        self._writer: Any = pa.csv.CSVWriter(file, flat, write_options=options)

    def write(self, table: pa.Table) -> None:
        flat = _flatten_sets(table)
        columns = [guarded(column) for column in flat.columns]
        self._writer.write_table(pa.table(columns, names=[guarded_text(name) for name in flat.column_names]))

    def close(self) -> None:
        self._writer.close()


class _ParquetTables:
    """A row group for each table. The first one says which columns repeat their values."""

    def __init__(self, file: Path | RawIOBase, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        if self._writer is None:
            self._writer = self._open(table)
        self._writer.write_table(table, row_group_size=_ROW_GROUP)

    def _open(self, first: pa.Table) -> Any:
        leaves = _leaves(self._schema)
        different = {name for name in self._schema.names if _mostly_different(first.column(name))}
        return pa.parquet.ParquetWriter(
            self._file,
            self._schema,
            compression="zstd",
            compression_level=1,
            store_schema=False,
            # A dictionary of values that hardly repeat makes a file larger, and takes longer than all the rest of it.
            use_dictionary=[leaf for leaf in leaves if leaf not in different],
            # Readers do not look for sets between two labels.
            write_statistics=[leaf for leaf in leaves if leaf in self._schema.names],
        )

    def close(self) -> None:
        writer = self._writer if self._writer is not None else self._open(pa.Table.from_batches([], self._schema))
        # Candidates are handed over as a dictionary, which is quick to write, but are read back as plain text:
        # not every reader can put lists of dictionaries from several row groups together.
        encoded = base64.b64encode(_plain_schema(self._schema).serialize().to_pybytes())
        writer.add_key_value_metadata({b"ARROW:schema": encoded})
        writer.close()


def _leaves(schema: pa.Schema) -> list[str]:
    """What Parquet calls the columns of single values, of which lists and structures are made."""
    file = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_batches([], schema), file)
    found = pa.parquet.ParquetFile(pa.BufferReader(file.getvalue())).schema
    return [found.column(index).path for index in range(len(found.names))]


def _mostly_different(column: pa.ChunkedArray) -> bool:
    """Whether few values of a scalar column repeat among its first ones, in random order."""
    if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
        return False
    some = column.slice(0, _LOOKED_AT)
    return bool(2 * pa.compute.count_distinct(some).as_py() > len(some) > _FEW)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with lists of plain labels."""
    return pa.schema(
        [
            field.with_type(pa.list_(_plain(field.type.value_type))) if _is_list(field.type) else field
            for field in schema
        ]
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _refuse_nested(schema: pa.Schema) -> None:
    """A text table holds single values and lists of them, nothing deeper, and no bytes."""
    kinds = {field.name: field.type.value_type if _is_list(field.type) else field.type for field in schema}
    refused = {name: "nested values" for name, kind in kinds.items() if pa.types.is_nested(kind)}
    refused |= {name: "bytes" for name, kind in kinds.items() if _is_bytes(_plain(kind))}
    if refused:
        raise TableError(
            Problem(f"column '{name}'", f"a text table cannot hold {what}", "publish as parquet, or leave it out")
            for name, what in refused.items()
        )


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _flatten_sets(table: pa.Table) -> pa.Table:
    for index, field in enumerate(table.schema):
        if not _is_list(field.type):
            continue
        lists = pl.Series(table.column(index).cast(pa.list_(_plain(field.type.value_type))))
        # Every label is written once as JSON; lists then only join finished texts.
        labels = lists.explode(empty_as_null=False).unique()
        texts = [json.dumps(label, ensure_ascii=False, default=str) for label in labels.to_list()]
        written = lists.list.eval(pl.element().replace_strict(labels, texts, return_dtype=pl.String))
        column = ("[" + written.list.join(", ") + "]").to_arrow().cast(pa.string())
        table = table.set_column(index, field.name, column)
    return table


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
