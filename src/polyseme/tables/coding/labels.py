"""Labels of a column as codes of a domain, for tables that anyone may have written.

A verifier cannot count on types: a domain declared as 1, 2, 3 may come back from a file as '1' or 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from polyseme.arrays import Ints
from polyseme.errors import Problem, TableError, nearest, numbered
from polyseme.schema import Domain
from polyseme.spelling import Label, spelled
from polyseme.tables.coding.codes import encode as encode_column

__all__ = ["MissingAs", "encode", "require_columns"]

MissingAs: TypeAlias = Literal["refuse", "category"]

_CODE, _VALUE = "\0code", "\0value"


def require_columns(frame: pl.DataFrame, names: Iterable[str]) -> None:
    """Raise, naming every column that the table lacks."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(Problem(name, "the table has no such column", nearest(name, frame.columns)) for name in absent)


def encode(
    values: pl.Series, counts: pl.Series, domain: Sequence[Label] | None, missing: MissingAs
) -> tuple[Ints, tuple[Label | None, ...], str]:
    """Codes (-1 for what has none), labels in order of codes, and the flaw if there is one.

    Without a domain the values are those that occur: texts by their spelling, so that True and true are not two.
    """
    labels: tuple[Label | None, ...]
    if domain is None:
        values = spelled(values) if values.dtype == pl.String else values
        present = values.drop_nulls().unique().sort()
        labels = tuple(present.to_list())
        table = pl.DataFrame({_VALUE: present}).with_row_index(_CODE)
        joined = pl.DataFrame({_VALUE: values}).join(table, on=_VALUE, how="left", maintain_order="left")
        codes = joined[_CODE].cast(pl.Int64).fill_null(-1).to_numpy().copy()
    else:
        labels = tuple(domain)
        codes = np.maximum(encode_column(values, Domain(tuple(domain))).codes, -1)
    null = values.is_null().to_numpy()
    weight = counts.to_numpy()
    unknown = int(weight[(codes < 0) & ~null].sum())
    absent = int(weight[null].sum())
    if absent and missing == "category":
        codes[null] = len(labels)
        labels, absent = (*labels, None), 0
    flaws = []
    if absent:
        flaws.append(numbered(absent, "records have no value, and missing values were not declared to be a category"))
    if unknown:
        flaws.append(numbered(unknown, "records have a value outside the declared domain"))
    return codes, labels, "; ".join(flaws)
