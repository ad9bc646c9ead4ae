"""What the values of a column are that have no place in a domain: no numbers, infinite, no dates, or merely outside."""

from __future__ import annotations

import numpy as np
import polars as pl

from polyseme.arrays import Bools, Ints
from polyseme.marks import UNSEEN, period_labels
from polyseme.schema import Bins, Domain, Periods
from polyseme.tables.coding.codes import Coded, cast_column

__all__ = ["WIDEN", "strangers"]

WIDEN = "widen the domain, or correct the table"
_NAN = "nan in a column of numbers counts as missing: add 'nan', as it is written there, to table: missing-values"
_NUMBERS = "correct the table; words for missing values are listed under table: missing-values"
_DATES = "write dates as 2024-03-31, and leave those out that no calendar has"


def strangers(series: pl.Series, coded: Coded, domain: Domain) -> dict[tuple[str, str], Ints]:
    """Which values are not in the domain for which reason: places, by what they are and what would help."""
    if not coded.unseen:
        return {}
    places = np.flatnonzero(coded.codes == UNSEEN)
    odd = series.gather(places)
    outside = f"values fall outside the declared range of {domain.size:,} values"
    if isinstance(domain.cut, Bins):
        found = _no_numbers(odd)
    elif isinstance(domain.cut, Periods):
        found = {("values are not a possible date", _DATES): period_labels(odd, domain.cut.every).is_null().to_numpy()}
    else:
        outside, found = f"values are not in the declared domain of {domain.size:,} values", {}
    found[outside, WIDEN] = ~np.any([np.zeros(len(odd), dtype=np.bool_), *found.values()], axis=0)
    return {reason: places[which] for reason, which in found.items() if which.any()}


def _no_numbers(odd: pl.Series) -> dict[tuple[str, str], Bools]:
    read = cast_column(odd, "number")[0]
    known, absent = read.fill_null(0.0).to_numpy(), read.is_null().to_numpy()
    return {
        ("values are not a number", _NUMBERS): absent,
        ("values are written as nan, which is not a number", _NAN): np.isnan(known),
        ("values are infinite", "correct the table, or open the ends of the bins with -.inf and .inf"): np.isinf(known),
    }
