"""Survey weights as numbers: how many people of a population each record stands for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from polyseme.arrays import Floats
from polyseme.tables.coding.codes import cast_column
from polyseme.tables.io.dialects import dialect_hint

__all__ = ["read_weights"]

_MISSING = ("weights are missing", "give a record without a weight 0, or remove it")
_NEGATIVE = ("weights are negative or infinite", "a weight says how many people a record stands for")


def read_weights(column: pl.Series) -> tuple[Floats, Mapping[tuple[str, str], int]]:
    """The weights of a column, 0 where there is none that can be used; and how many have which flaw, with a hint.

    >>> read_weights(pl.Series(["1.5", None, "-2", "many"]))[0]
    array([1.5, 0. , 0. , 0. ])
    """
    column = column.cast(pl.Int64) if column.dtype == pl.Boolean else column
    numbers, unread = cast_column(column, "number")
    hint = dialect_hint(column.filter(numbers.is_null())) or "the weight column holds numbers only"
    weights = numbers.fill_null(np.nan).to_numpy().astype(np.float64)
    usable = np.isfinite(weights) & (weights >= 0.0)
    missing = column.null_count() + int(np.isnan(numbers.drop_nulls().to_numpy()).sum())
    wrong = int((~usable).sum()) - missing - unread
    flaws = {("weights cannot be read as a number", hint): unread, _MISSING: missing, _NEGATIVE: wrong}
    return np.where(usable, weights, 0.0), {flaw: count for flaw, count in flaws.items() if count}
