"""Files of Stata, SPSS and SAS as Arrow tables.

Values that have a label are read as that label, and values that the file declares missing are missing, so that the
table says what its questionnaire said. Messages of the reader are not passed on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from polyseme.errors import TableError
from polyseme.extras import require
from polyseme.spelling import written
from polyseme.tables.io.whole import whole_where_possible

__all__ = ["SUFFIXES", "program_of", "read_statistical"]

_READERS = {
    ".dta": ("Stata", "read_dta"),
    ".sav": ("SPSS", "read_sav"),
    ".zsav": ("SPSS", "read_sav"),
    ".por": ("SPSS", "read_por"),
    ".sas7bdat": ("SAS", "read_sas7bdat"),
    ".xpt": ("SAS", "read_xport"),
}
SUFFIXES = tuple(_READERS)
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
    """A file of Stata, SPSS or SAS; an encoding other than UTF-8 goes before the one that the file names."""
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
    return _labelled(column, labels) if labels else column


def _labelled(column: pl.Series, labels: Mapping[Any, str]) -> pl.Series:
    """Labels for the values that have one; the others stay as they are written. No two values become one."""
    values = [value for value in column.unique().to_list() if value is not None]
    if not any(value in labels for value in values):
        return column
    shared = Counter(labels.get(value, written(value)) for value in values)
    texts = [_text(value, labels, shared) for value in values]
    return column.replace_strict(values, texts, default=None, return_dtype=pl.String)


def _text(value: Any, labels: Mapping[Any, str], shared: Mapping[str, int]) -> str:
    text = labels.get(value, written(value))
    return f"{text} ({written(value)})" if shared[text] > 1 else text
