"""Writing published tables, and folders that appear only when they are whole."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from polyseme import stopping
from polyseme.errors import InvalidInput, Problem, TableError
from polyseme.tables.spreadsheets import guarded, guarded_text

__all__ = ["FORMATS", "TableWriter", "whole_file", "whole_folder"]

FORMATS = ("parquet", "csv")
_ROW_GROUP = 1 << 20


class TableWriter:
    """Appends Arrow tables to a Parquet or CSV file; in CSV a set is a JSON list, and no text is a formula."""

    def __init__(self, path: Path, schema: pa.Schema, file_format: str) -> None:
        self._csv = file_format == "csv"
        self._writer: Any
        if self._csv:
            _refuse_nested(schema)
            flat = pa.schema(
                [(guarded_text(field.name), pa.string() if _is_list(field.type) else field.type) for field in schema]
            )
            options = pa.csv.WriteOptions(quoting_style="needed")
            self._writer = pa.csv.CSVWriter(path, flat, write_options=options)
        else:
            self._schema = _plain_schema(schema)
            self._writer = pa.parquet.ParquetWriter(
                path, schema, compression="zstd", compression_level=1, store_schema=False
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


@contextmanager
def whole_folder(target: Path, overwrite: bool = False, contents: Collection[str] = ()) -> Iterator[Path]:
    """A temporary folder beside `target` that takes its place when the block ends well, and vanishes otherwise.

    contents  what a folder must hold to be replaced, or else be a release: nothing but our own work is ever removed
    """
    _refuse_existing(target, overwrite)
    if target.exists():
        _refuse_foreign(target, contents)
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(target, ".partial")
    try:
        partial.mkdir(mode=0o700)
        yield partial
        stopping.check()
        partial.chmod(0o777 & ~_umask())
        # Others may have come to the same place in the meantime.
        _refuse_existing(target, overwrite)
        if target.exists():
            _refuse_foreign(target, contents)
            _exchange(target, partial, contents)
        else:
            _move_folder(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _refuse_foreign(folder: Path, contents: Collection[str] = ()) -> None:
    """Raise unless a folder is empty, or whole work of ours without any other file."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: a file, so it is not replaced by a folder", "choose another place")
    found = {path.name for path in folder.iterdir()}
    ours = set(contents) if found.issuperset(contents) and contents else _files_of_release(folder)
    if found and not ours:
        raise InvalidInput(f"{folder}: not made by this command, so it is not replaced", "choose another place")
    if found - ours:
        raise InvalidInput(
            f"{folder}: holds other files too, so it is not replaced: {', '.join(sorted(found - ours)[:6])}",
            "move them away, or choose another place",
        )
    for path in folder.iterdir():
        if path.is_dir():
            _refuse_foreign(path)


def _files_of_release(folder: Path) -> set[str]:
    """The names of the files of a release; none where there is no manifest of ours."""
    try:
        document = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        ours = isinstance(document["format"], int) and isinstance(document["checksum"], str)
        return {"manifest.json", str(document["data"]["file"])} if ours else set()
    except (OSError, ValueError, TypeError, KeyError):
        return set()


def _exchange(target: Path, partial: Path, contents: Collection[str]) -> None:
    """Put one folder in the place of another; when that fails, the old one stays."""
    old = _beside(target, ".old")
    try:
        target.rename(old)
        _refuse_foreign(old, contents)  # nobody can add to it under its name any more
        _move_folder(partial, target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _move_folder(folder: Path, target: Path) -> None:
    """Give a folder a name that nothing has; at most an empty folder is replaced."""
    try:
        folder.rename(target)
    except OSError:
        _refuse_existing(target)
        raise


def _beside(target: Path, suffix: str) -> Path:
    """A new name in the same folder, known before anything has it: so it can be cleared away at any moment."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}{suffix}")


@contextmanager
def whole_file(target: Path, overwrite: bool = False) -> Iterator[Path]:
    """A temporary file beside `target` that takes its place when the block ends well, and vanishes otherwise."""
    _refuse_existing(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(target, f".partial{target.suffix}")
    try:
        partial.touch(mode=0o600, exist_ok=False)
        yield partial
        stopping.check()
        partial.chmod(0o666 & ~_umask())
        if overwrite:
            partial.replace(target)
        else:
            _move_file(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _move_file(file: Path, target: Path) -> None:
    """Give a file a name that nothing has: unlike a new name, a second name never replaces another file."""
    try:
        target.hardlink_to(file)
    except OSError:
        _refuse_existing(target)
        file.rename(target)  # not every file system has second names


def _refuse_existing(target: Path, overwrite: bool = False) -> None:
    _refuse_dangling(target)
    if target.exists() and not overwrite:
        raise InvalidInput(f"{target}: exists already", "choose another place, or say --force to replace it")


def _refuse_dangling(target: Path) -> None:
    """Raise where a link leads to nothing: whoever made it would choose where our work appears."""
    for path in (target, *target.parents):
        if path.is_symlink() and not path.exists():
            raise InvalidInput(
                f"{path}: a symbolic link that leads to nothing, and is not followed",
                "remove it, or choose another place",
            )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
