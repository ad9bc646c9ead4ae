"""Tables as a caller gives them: an object in memory, a file, a folder or a name pattern.

Files of Stata, SPSS and SAS become Arrow tables. Values that have a label are read as that label, and values that the
file declares missing are missing, so that the table says what its questionnaire said. Messages of the reader are not
passed on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import polars as pl
import pyarrow as pa

from polyseme.kernel.errors import Problem, TableError, numbered
from polyseme.kernel.plugins import require
from polyseme.kernel.spelling import written
from polyseme.tables.io.columnar import ArrowSource, FrameSource, ParquetSource, whole_where_possible
from polyseme.tables.io.dataset import FilesSource
from polyseme.tables.io.dialects import Dialect, respelled
from polyseme.tables.io.locations import (
    Listed,
    Place,
    files_in,
    files_like,
    first_bytes,
    is_address,
    is_pattern,
    place_of,
    size_of,
)
from polyseme.tables.io.source import Source, TableOptions
from polyseme.tables.io.text import READABLE, CsvSource
from polyseme.tables.io.workbooks import SUFFIXES as WORKBOOKS
from polyseme.tables.io.workbooks import WorkbookSource, is_workbook

__all__ = ["STATISTICAL", "open_table", "open_written", "program_of", "read_statistical"]

_READERS = {
    ".dta": ("Stata", "read_dta"),
    ".sav": ("SPSS", "read_sav"),
    ".zsav": ("SPSS", "read_sav"),
    ".por": ("SPSS", "read_por"),
    ".sas7bdat": ("SAS", "read_sas7bdat"),
    ".xpt": ("SAS", "read_xport"),
}
STATISTICAL = tuple(_READERS)
_FIRST_BYTES = {
    b"<stata_dta>": ".dta",
    b"$FL2": ".sav",
    b"$FL3": ".zsav",
    b"HEADER RECORD*******": ".xpt",
    bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf": ".sas7bdat",
}


def program_of(path: Path) -> str | None:
    """The program whose file it is, by content or name; None where it is none of them."""
    kind = _kind(path)
    return _READERS[kind][0] if kind is not None else None


def _kind(path: Path) -> str | None:
    with path.open("rb") as file:
        first = file.read(20)
    found = next((kind for mark, kind in _FIRST_BYTES.items() if first.startswith(mark)), path.suffix.lower())
    return found if found in _READERS else None


def read_statistical(path: Path, encoding: str = "utf-8") -> pa.Table:
    """A file of Stata, SPSS or SAS.

    An encoding other than UTF-8 goes before the one that the file names.
    """
    program, reader = _READERS[_kind(path) or path.suffix.lower()]
    require("stats", f"{path}: reading a file of {program}")
    import pyreadstat

    try:
        options = {} if encoding == "utf-8" else {"encoding": encoding}
        frame, described = getattr(pyreadstat, reader)(path, output_format="polars", **options)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeError):
        hint = f"copy it again, or save it again in {program}; old files may need their encoding, as in cp1252"
        raise TableError(f"{path}: not a readable file of {program}", hint) from None
    if not frame.width:
        raise TableError(f"{path}: a table without columns")
    labels = described.variable_value_labels
    columns = [_column(frame[name], labels.get(name, {})) for name in frame.columns]
    return pa.table([column.to_arrow() for column in columns], names=frame.columns)


def _column(column: pl.Series, labels: Mapping[Any, str]) -> pl.Series:
    """A column as its labels; empty text is how these programs store that there is none."""
    if column.dtype == pl.String:
        column = column.set(column == "", None)
    column = whole_where_possible(column)
    return _labeled(column, labels) if labels else column


def _labeled(column: pl.Series, labels: Mapping[Any, str]) -> pl.Series:
    """Labels for the values that have one; others stay as written, and all stay distinct."""
    values = [value for value in column.unique().to_list() if value is not None]
    if not any(value in labels for value in values):
        return column
    shared = Counter(labels.get(value, written(value)) for value in values)
    texts = [_text(value, labels, shared) for value in values]
    return column.replace_strict(values, texts, default=None, return_dtype=pl.String)


def _text(value: Any, labels: Mapping[Any, str], shared: Mapping[str, int]) -> str:
    text = labels.get(value, written(value))
    return f"{text} ({written(value)})" if shared[text] > 1 else text


def open_written(data: Any, **written: Unpack[TableOptions]) -> Source:
    """A source for a path or an object, with its numbers and dates read as its dialect has them."""
    dialect = Dialect(written.get("decimal", "point"), written.get("dates"))
    encoding = written.get("encoding", "utf-8")
    return respelled(open_table(data, written.get("separator"), encoding, sheet=written.get("sheet")), dialect)


def open_table(
    data: Any,
    separator: str | None = None,
    encoding: str = "utf-8",
    *,
    sheet: str | None = None,
    by_policy: bool = False,
) -> Source:
    """A source for a path, or for a polars, pandas or pyarrow object.

    The options are those of `TableOptions`.

    by_policy  whether a policy says how the table is stored: errors then speak of what to write there
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        place = place_of(data) if isinstance(data, str) and is_address(data) else Path(data)
        return _open_path(place, _Stored(separator, encoding, sheet, by_policy))
    if isinstance(data, pa.Table):
        return FrameSource(data)
    if isinstance(data, pa.RecordBatch):
        return FrameSource(pa.Table.from_batches([data]))
    if hasattr(data, "collect") and hasattr(data, "lazy"):  # a polars LazyFrame
        data = data.collect()
    if type(data).__module__.startswith("pandas"):
        # The index of a pandas frame is a row label: it must not get out.
        return FrameSource(_from_pandas(data))
    if any(str(kind) == "Object" for kind in getattr(data, "dtypes", ())):
        # polars hands such columns over as addresses in memory.
        raise TableError("the frame has a column of Python objects", "cast it to text, numbers or dates first")
    if hasattr(data, "__arrow_c_stream__"):
        return FrameSource(pa.table(data))
    raise TableError(
        f"cannot read a table from {type(data).__name__}",
        "give a path, a polars or pandas frame, or a pyarrow table",
    )


def _from_pandas(frame: Any) -> pa.Table:
    double = [name for name, number in Counter(map(str, getattr(frame, "columns", ()))).items() if number > 1]
    if double:
        named = ", ".join(f"'{name}'" for name in double)
        raise TableError(f"the same column name more than once: {named}", "rename the columns")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError):
        raise TableError(
            "the pandas frame has a column that mixes types",
            "give each column one type, for example with frame.astype(str)",
        ) from None


@dataclass(frozen=True)
class _Stored:
    """How a table is stored, as its owner says."""

    separator: str | None
    encoding: str
    sheet: str | None
    by_policy: bool


def _open_path(path: Place, stored: _Stored) -> Source:
    if path.is_dir():
        return _open_files(path.name or str(path), files_in(path), stored)
    if not path.exists():
        if is_pattern(str(path)):
            return _open_files(str(path), files_like(path), stored)
        raise TableError(f"{path}: no such file or folder", "a relative path begins in the folder you work in")
    return _open_file(_kind_of(path), path, stored)


def _open_files(name: str, files: Sequence[Listed], stored: _Stored) -> Source:
    """Several files as one table; all of one kind that can be read in batches."""
    empty = [item for item in files if size_of(item.path) == 0]
    if empty:
        hint = "remove it, or use a pattern that leaves it out"
        raise TableError(Problem(str(item.path), "the file is empty", hint) for item in empty[:_SHOWN])
    kinds: dict[str, list[str]] = {}
    for item in files:
        kinds.setdefault(_kind_of(item.path), []).append(item.relative)
    if len(kinds) > 1 or not _STREAMED.issuperset(kinds):
        raise _mixed(name, kinds)
    (kind,) = kinds
    if kind == "text" and stored.separator is None:
        first = CsvSource(files[0].path, None, stored.encoding, by_policy=stored.by_policy)
        stored = replace(stored, separator=first.separator)
    return FilesSource(name, files, partial(_open_file, kind, stored=stored))


_SHOWN = 12
"""Files with the same problem that are named."""
_PARQUET, _ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
_STREAMED = frozenset({"Parquet", "Arrow", "text"})


def _mixed(name: str, kinds: dict[str, list[str]]) -> TableError:
    kinds_text = ", ".join(
        f"{numbered(len(files), 'files')} of kind {kind} ({files[0]})" for kind, files in kinds.items()
    )
    if len(kinds) > 1:
        return TableError(
            f"{name}: files of different kinds: {kinds_text}", "use a pattern for those you mean: 'folder/*.parquet'"
        )
    hint = "a table of several files must be Parquet, Arrow or text; give one of them"
    return TableError(f"{name}: {kinds_text} cannot be put together", hint)


def _kind_of(path: Place) -> str:
    """What a file is, by its name and its first bytes."""
    if size_of(path) == 0:
        raise TableError(f"{path}: the file is empty")
    suffix = path.suffix.lower()
    # From a store even a few bytes take a while.
    first = b"" if suffix in _PARQUET + _ARROW else first_bytes(path, 8)
    if suffix in _PARQUET or first.startswith(b"PAR1"):
        return "Parquet"
    if suffix in _ARROW or first.startswith(b"ARROW1"):
        return "Arrow"
    if isinstance(path, Path):
        program = program_of(path)
        if program is not None:
            return program
        if is_workbook(path):
            return "workbook"
    elif suffix in (*STATISTICAL, *WORKBOOKS):
        raise TableError(f"{path}: from a store, only Parquet, Arrow and text are read", "download it first")
    if first.startswith(b"PK\x03\x04"):
        raise TableError(f"{path}: a ZIP archive, which may hold several files", f"unpack it; {READABLE}")
    return "text"


def _open_file(kind: str, path: Place, stored: _Stored) -> Source:
    if kind == "Parquet":
        return ParquetSource(path)
    if kind == "Arrow":
        return ArrowSource(path)
    if kind == "text" or not isinstance(path, Path):
        return CsvSource(path, stored.separator, stored.encoding, by_policy=stored.by_policy)
    if kind == "workbook":
        return WorkbookSource(path, stored.sheet, stored.by_policy)
    return FrameSource(read_statistical(path, stored.encoding), path.name)
