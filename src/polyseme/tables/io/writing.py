"""Writing published tables."""

from __future__ import annotations

import base64
import json
from io import RawIOBase
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from polyseme.errors import Problem, TableError
from polyseme.tables.io.spreadsheets import guarded, guarded_text

__all__ = ["FORMATS", "TableWriter"]

FORMATS = ("parquet", "csv")
_ROW_GROUP = 1 << 20
"""Rows to a group of a Parquet file: pyarrow's own default."""


class TableWriter:
    """Appends Arrow tables to a Parquet or CSV file; in CSV a set is a JSON list, and no text is a formula."""

    def __init__(self, file: Path | RawIOBase, schema: pa.Schema, file_format: str) -> None:
        self._csv = file_format == "csv"
        self._writer: Any
        if self._csv:
            _refuse_nested(schema)
            flat = pa.schema(
                [(guarded_text(field.name), pa.string() if _is_list(field.type) else field.type) for field in schema]
            )
            options = pa.csv.WriteOptions(quoting_style="needed")
            self._writer = pa.csv.CSVWriter(file, flat, write_options=options)
        else:
            self._schema = _plain_schema(schema)
            self._writer = pa.parquet.ParquetWriter(
                file, schema, compression="zstd", compression_level=1, store_schema=False
            )

    def close(self) -> None:
        if not self._csv:
            # Candidates are handed over as a dictionary, which is quick to write, but are read back as plain text:
            # not every reader can put lists of dictionaries from several row groups together.
            encoded = base64.b64encode(self._schema.serialize().to_pybytes())
            self._writer.add_key_value_metadata({b"ARROW:schema": encoded})
        self._writer.close()

    def write(self, table: pa.Table) -> None:
        if self._csv:
            flat = _flatten_sets(table)
            columns = [guarded(column) for column in flat.columns]
            self._writer.write_table(pa.table(columns, names=[guarded_text(name) for name in flat.column_names]))
        else:
            self._writer.write_table(table, row_group_size=_ROW_GROUP)


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
