"""What the values of a column are that have no place in a domain: no numbers, infinite, no dates, or merely outside."""

from __future__ import annotations

import numpy as np
import polars as pl

from polyseme.schema import Bins, Domain, Periods
from polyseme.tables.coding.codes import UNSEEN, Coded, cast_column, period_labels

__all__ = ["WIDEN", "strangers"]

WIDEN = "widen the domain, or correct the table"
_NAN = "nan in a column of numbers counts as missing: add 'nan', as it is written there, to table: missing-values"
_NUMBERS = "correct the table; words for missing values are listed under table: missing-values"
_DATES = "write dates as 2024-03-31, and leave those out that no calendar has"


def strangers(series: pl.Series, coded: Coded, domain: Domain) -> dict[tuple[str, str], int]:
    """How many values are not in the domain for which reason: by what they are, and what would help."""
    if not coded.unseen:
        return {}
    odd = series.filter(pl.Series(coded.codes == UNSEEN))
    outside = f"values fall outside the declared range of {domain.size:,} values"
    if isinstance(domain.cut, Bins):
        found = _no_numbers(odd)
    elif isinstance(domain.cut, Periods):
        found = {("values are no dates", _DATES): int(period_labels(odd, domain.cut.every).null_count())}
    else:
        outside, found = f"values are not in the declared domain of {domain.size:,} values", {}
    found[outside, WIDEN] = len(odd) - sum(found.values())
    return {reason: count for reason, count in found.items() if count}


def _no_numbers(odd: pl.Series) -> dict[tuple[str, str], int]:
    read = cast_column(odd, "number")[0]
    known = read.drop_nulls().to_numpy()
    return {
        ("values are no numbers", _NUMBERS): read.null_count(),
        ("values are written as nan, which is not a number", _NAN): int(np.isnan(known).sum()),
        ("values are infinite", "correct the table, or open the ends of the bins with -.inf and .inf"): int(
            np.isinf(known).sum()
        ),
    }
