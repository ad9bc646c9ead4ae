"""Labels of a column as codes of a domain, for tables that anyone may have written.

A verifier cannot count on types: a domain declared as 1, 2, 3 may come back from a file as '1' or 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import polars as pl

from polyseme.distances.structure import Ints
from polyseme.errors import Problem, TableError, nearest
from polyseme.schema import Label

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
    """Codes (-1 for what has none), labels in order of codes, and the flaw if there is one."""
    labels: tuple[Label | None, ...]
    if domain is None:
        present = values.drop_nulls().unique().sort()
        labels = tuple(present.to_list())
    else:
        values, present = _as_labels(values, domain)
        labels = tuple(domain)
    table = pl.DataFrame({_VALUE: present}).with_row_index(_CODE)
    joined = pl.DataFrame({_VALUE: values}).join(table, on=_VALUE, how="left", maintain_order="left")
    codes = joined[_CODE].cast(pl.Int64).fill_null(-1).to_numpy().copy()
    null = values.is_null().to_numpy()
    weight = counts.to_numpy()
    unknown = int(weight[(codes < 0) & ~null].sum())
    absent = int(weight[null].sum())
    if absent and missing == "category":
        codes[null] = len(labels)
        labels, absent = (*labels, None), 0
    flaws = []
    if absent:
        flaws.append(f"{absent:,} records have no value, and missing values were not declared to be a category")
    if unknown:
        flaws.append(f"{unknown:,} records have a value outside the declared domain")
    return codes, labels, "; ".join(flaws)


def _as_labels(values: pl.Series, domain: Sequence[Label]) -> tuple[pl.Series, pl.Series]:
    """The column and the domain in one type, so that 1 read from a file meets the declared 1, 1.0 or '1'."""
    if all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in domain):
        null = values.is_null()
        numbers = values.cast(pl.String).cast(pl.Float64, strict=False) if values.dtype == pl.String else values
        numbers = numbers.cast(pl.Float64, strict=False)
        # What is no number must stay an unknown value, not become a missing one.
        numbers = pl.select(pl.when(numbers.is_null() & ~null).then(float("nan")).otherwise(numbers)).to_series()
        return numbers, pl.Series([float(label) for label in domain], dtype=pl.Float64)
    return values.cast(pl.String), pl.Series([_text(label) for label in domain], dtype=pl.String)


def _text(label: Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)
