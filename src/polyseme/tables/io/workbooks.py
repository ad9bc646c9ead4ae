"""Sheets of workbooks (Excel, OpenDocument) as tables in memory.

A workbook has no columns with types, only cells. A column is as narrow as all its cells allow: whole numbers stay
whole, days without a time are dates, and a column that mixes kinds is text. Messages of the reader are not passed on.
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

from polyseme.errors import TableError, nearest
from polyseme.extras import require
from polyseme.tables.io.frames import FrameSource
from polyseme.tables.io.whole import whole_where_possible

__all__ = ["SUFFIXES", "WorkbookSource", "is_workbook"]

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
    """A sheet of a workbook, the first one by default; its first row that is not empty holds the column names."""
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
    """The cells below the header, as columns of its names; columns without name and values are left out."""
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
