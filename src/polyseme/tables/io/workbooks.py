"""Sheets of workbooks (Excel, OpenDocument) as tables, and texts safe from formulas.

A workbook has no columns with types, only cells. A column is as narrow as all its cells allow: whole numbers stay
whole, days without a time are dates, and a column that mixes kinds is text. Messages of the reader are not passed on.

A spreadsheet runs a cell of a CSV file that begins with `=`, `+`, `-` or `@`. Such a text is written with an apostrophe
in front, which spreadsheets know as the sign for text. A text that begins with an apostrophe gets another one, so that
reading is exact: one apostrophe in front is taken away, and nothing else is. Plain numbers stay as they are.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.kernel.arrays import arrow
from polyseme.kernel.errors import TableError, nearest
from polyseme.kernel.plugins import require
from polyseme.kernel.spelling import with_text
from polyseme.tables.io.columnar import FrameSource, whole_where_possible

__all__ = [
    "GUARD",
    "SUFFIXES",
    "WorkbookSource",
    "csv_text",
    "guarded",
    "guarded_text",
    "is_workbook",
    "unguarded",
    "unguarded_text",
]

GUARD = "apostrophe"
"""The name of this way of writing, for the manifest."""

_MARK = "'"
_FORMULA = r"\A(?:['\t\r\n]|[\s\x00-\x1f\x{a0}\x{feff}]*[=+\-@＝＋－＠])"
"""Also after blanks and control characters, and in the wide forms of East Asian keyboards, which are run as well."""
_NUMBER = r"\A[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\z"


def guarded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose texts no spreadsheet runs; a column of another type as it is."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not _is_text(kind):
        return column
    return pa.chunked_array([_guarded_chunk(chunk) for chunk in column.chunks], column.type)


def _guarded_chunk(chunk: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(chunk.type):
        return pa.DictionaryArray.from_arrays(
            chunk.indices, _guarded_texts(chunk.dictionary), ordered=chunk.type.ordered
        )
    return _guarded_texts(chunk)


def _guarded_texts(texts: pa.Array) -> pa.Array:
    formula = pc.match_substring_regex(texts, _FORMULA)
    wanted = pc.and_(formula, pc.invert(pc.match_substring_regex(texts, _NUMBER)))
    if not pc.any(wanted).as_py():
        return texts
    mark, nothing = arrow([_MARK, ""], texts.type)
    return pc.if_else(wanted, pc.binary_join_element_wise(mark, texts, nothing), texts)


def csv_text(frame: pl.DataFrame) -> str:
    r"""A frame as the text of a CSV file.

    >>> csv_text(pl.DataFrame({"group": ["=1+1", "-5"], "count": [-1.5, 2.0]}))
    "group,count\n'=1+1,-1.5\n-5,2.0\n"
    """
    guarded = [_guarded_series(with_text(column)) for column in frame]
    return pl.DataFrame({column.name: column for column in guarded}).write_csv()


def _guarded_series(series: pl.Series) -> pl.Series:
    name = guarded_text(series.name)
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return series.alias(name)
    return pl.Series(name, guarded(pa.chunked_array([series.cast(pl.String).rechunk().to_arrow()])), dtype=pl.String)


def unguarded(column: pa.Array) -> pa.Array:
    """The texts of a column that was `guarded`.

    >>> unguarded(guarded(pa.chunked_array([["=1+1", "'s", "-5", "a"]])).combine_chunks()).to_pylist()
    ['=1+1', "'s", '-5', 'a']
    """
    marked = pc.starts_with(column, _MARK)
    if not pc.any(marked).as_py():
        return column
    return pc.if_else(marked, pc.utf8_slice_codeunits(column, 1), column)


def guarded_text(text: str) -> str:
    """One text, such as the name of a column.

    >>> guarded_text("@name"), guarded_text("-5"), guarded_text("age")
    ("'@name", '-5', 'age')
    """
    return str(_guarded_texts(arrow([text]))[0].as_py())


def unguarded_text(text: str) -> str:
    return text.removeprefix(_MARK)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
"""What `.xls` files begin with, and workbooks that want a password."""
_DAY_ZERO = date(1899, 12, 31)
"""The day that a time without a day has."""


def is_workbook(path: Path) -> bool:
    """Whether a file is a workbook, by its name or its content."""
    with path.open("rb") as file:
        first = file.read(4)
    if path.suffix.lower() in SUFFIXES or first == _OLD_EXCEL:
        return True
    if first != b"PK\x03\x04":
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith("xl/workbook") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


class WorkbookSource(FrameSource):
    """A sheet of a workbook; `sheet` is None for the first one."""

    def __init__(self, path: Path, sheet: str | None = None, by_policy: bool = False) -> None:
        self.sheet = sheet
        super().__init__(_sheet(path, sheet, by_policy), path.name)


def _sheet(path: Path, sheet: str | None, by_policy: bool) -> pa.Table:
    """A sheet of a workbook, by default the first; its first non-empty row has the column names."""
    require("excel", f"{path}: reading a workbook")
    import fastexcel

    # It warns of columns without any value, on the standard error of the caller.
    log = logging.getLogger("fastexcel")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        workbook = fastexcel.read_excel(path)
        chosen = _chosen(path, workbook.sheet_names, sheet)
        header = workbook.load_sheet(chosen, header_row=None, n_rows=1, dtypes="string").to_polars()
        cells = workbook.load_sheet(chosen, schema_sample_rows=None).to_polars()
    except fastexcel.FastExcelError:
        hint = "if it opens with a password only, save it without; otherwise save it again, or as CSV"
        raise TableError(f"{path}: not a readable workbook", hint) from None
    finally:
        log.setLevel(level)
    if not header.width:
        others = [name for name in workbook.sheet_names if name != chosen]
        raise TableError(f"{path}: the sheet '{chosen}' is empty", _choice(others, by_policy))
    return _table(path, header.row(0), cells)


def _chosen(path: Path, names: Sequence[str], sheet: str | None) -> str:
    if not names:
        raise TableError(f"{path}: a workbook without sheets")
    if sheet is None or sheet in names:
        return sheet or names[0]
    listed = ", ".join(f"'{name}'" for name in names)
    raise TableError(f"{path}: no sheet '{sheet}'; it has {listed}", nearest(sheet, names))


def _choice(sheets: Sequence[str], by_policy: bool) -> str:
    """How to name one of these sheets."""
    option = "table: {sheet: ...} in the policy" if by_policy else "--sheet"
    return f"choose another one with {option}: {', '.join(map(repr, sheets))}" if sheets else ""


def _table(path: Path, header: Sequence[Any], cells: pl.DataFrame) -> pa.Table:
    """The cells below the header as named columns; columns without name and values are dropped."""
    cells = _without_empty_end(cells)
    columns = [(name, cells.to_series(place)) for place, name in enumerate(header)]
    nameless = [place for place, (name, cell) in enumerate(columns, 1) if not name and cell.count()]
    if nameless:
        places = ", ".join(map(str, nameless))
        hint = "the first row that is not empty must hold the column names"
        raise TableError(f"{path}: columns without a name: {places}", hint)
    named = [(str(name), _narrowed(cell).to_arrow()) for name, cell in columns if name]
    return pa.table([cell for _, cell in named], names=[name for name, _ in named])


def _without_empty_end(cells: pl.DataFrame) -> pl.DataFrame:
    """Rows at the end that have no value, or only blanks: a user deleted or formatted them."""
    blank = [
        column.is_null() | (column.str.strip_chars() == "") if column.dtype == pl.String else column.is_null()
        for column in cells.get_columns()
    ]
    filled = [int(places[-1]) for column in blank if len(places := (~column).arg_true())]
    return cells.head(max(filled, default=-1) + 1)


def _narrowed(column: pl.Series) -> pl.Series:
    if isinstance(column.dtype, pl.Datetime) and column.count():
        days = column.dt.date()
        if bool((days.cast(column.dtype) == column).all()):
            return days
        if bool((days == _DAY_ZERO).all()):
            return column.dt.time()
    return whole_where_possible(column)
