from __future__ import annotations

import polars as pl
import pytest

from polyseme.tables.expansion import classes_for
from polyseme.tables.labels import encode

BIG = 2**53


@pytest.mark.parametrize("values", [[2, 1, None, 3], [2.0, 1.0, None, 3.0], ["2", "1.0", None, "three"]])
def test_types_meet_and_what_is_unknown_is_not_missing(values: list) -> None:
    codes, labels, flaw = encode(pl.Series(values), pl.Series([1, 1, 5, 7]), (1, 2), "refuse")
    assert codes.tolist() == [1, 0, -1, -1]
    assert labels == (1, 2)
    assert "5 records have no value" in flaw
    assert "7 records have a value outside" in flaw


def test_whole_numbers_are_told_apart_where_floats_are_not() -> None:
    domain = [BIG, BIG + 1, BIG + 2]
    values = pl.Series([BIG + 1, BIG, BIG + 3])
    assert encode(values, pl.Series([1, 1, 1]), domain, "refuse")[0].tolist() == [1, 0, -1]
    table = pl.DataFrame({"a": pl.Series([[BIG + 1, BIG]], dtype=pl.List(pl.UInt64))})
    assert classes_for(table, "a", domain=domain).value.tolist() == [1, 0]
