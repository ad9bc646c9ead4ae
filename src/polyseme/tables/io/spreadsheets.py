"""Texts that a spreadsheet does not take for formulas.

A spreadsheet runs a cell of a CSV file that begins with `=`, `+`, `-` or `@`. Such a text is written with an apostrophe
in front, which spreadsheets know as the sign for text. A text that begins with an apostrophe gets another one, so that
reading is exact: one apostrophe in front is taken away, and nothing else is. Plain numbers stay as they are.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.arrays import arrow
from polyseme.spelling import with_text

__all__ = ["GUARD", "csv_text", "guarded", "guarded_text", "unguarded", "unguarded_text"]

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
