from __future__ import annotations

import math
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from polyseme.kernel.errors import TableError
from polyseme.schema import Bins, Domain, Missing, Periods
from polyseme.tables.codes import as_series, cast_column, encode, label_array, set_array
from polyseme.tables.published import code_sets


def codes(series: pl.Series, domain: Domain) -> list[int]:
    return encode(series, domain).codes.tolist()


def test_labels_missing_and_unseen() -> None:
    domain = Domain(("low", "high"))
    coded = encode(pl.Series(["high", None, "low", "other"]), domain)
    assert coded.codes.tolist() == [1, -1, 0, -2]
    assert (coded.missing, coded.unseen) == (1, 1)


def test_missing_as_a_category() -> None:
    domain = Domain(("a", "b", "none"), missing=Missing("category", "none"))
    assert codes(pl.Series(["b", None]), domain) == [1, 2]


@pytest.mark.parametrize(
    ("series", "domain"),
    [
        (pl.Series([2, 1, 3]), Domain((1, 2))),
        (pl.Series([2.0, 1.0, 3.0]), Domain((1, 2))),
        (pl.Series(["2", "1", "3"]), Domain((1, 2))),
        (pl.Series([2, 1, 3]), Domain(("1", "2"))),
        (pl.Series(["b", "a", "c"], dtype=pl.Categorical), Domain(("a", "b"))),
        (pl.Series([True, False, None]), Domain((False, True), missing=Missing())),
    ],
    ids=["int", "float", "text-of-numbers", "numbers-of-text", "categorical", "boolean"],
)
def test_types_meet(series: pl.Series, domain: Domain) -> None:
    found = codes(as_series(series.to_arrow()), domain)
    assert found[:2] == [1, 0]
    assert found[2] < 0


BIG = 2**53


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([BIG + 1, BIG, 7]),
        pl.Series([BIG + 1, BIG, 7], dtype=pl.UInt64),
        pl.Series([f"{BIG + 1}", f" {BIG}.0", "7.00"]),
    ],
    ids=["signed", "unsigned", "text"],
)
def test_whole_numbers_are_told_apart_where_floats_are_not(series: pl.Series) -> None:
    assert codes(series, Domain((7, BIG, BIG + 1, BIG + 2))) == [2, 1, 0]
    assert codes(series, Domain((7.0, float(BIG), 0.5))) == [-2, 1, 0]


def test_the_ends_of_64_bits() -> None:
    least, most = -(2**63), 2**64 - 1
    domain = Domain((least, 0, most))
    assert codes(pl.Series([least, 1, None, 0]), domain) == [0, -2, -1, 1]
    assert codes(pl.Series([most, most - 1, None, 0], dtype=pl.UInt64), domain) == [2, -2, -1, 1]


def test_floats_that_cannot_tell_the_domain_apart_are_refused() -> None:
    with pytest.raises(TableError, match="column 'account': floats cannot"):
        codes(pl.Series("account", [1.0, float(BIG)]), Domain((1, BIG)))
    assert codes(pl.Series([1e17, 1.0]), Domain((1.0, 1e17))) == [1, 0]


@pytest.mark.parametrize("domain", [Domain((1, 2)), Domain((1, 2, "none"), missing=Missing("category", "none"))])
@pytest.mark.parametrize("texts", [["2.0", "1"], ["2", " 1.00"], ["2e0", "01"]])
def test_numbers_written_as_text_in_any_way(texts: list[str], domain: Domain) -> None:
    assert codes(pl.Series([*texts, "two"]), domain) == [1, 0, -2]


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    domain = Domain(("a", "b"), cut=Bins((0.0, 1.0, 2.0)))
    column = pl.Series([0.0, 0.999, 1.0, 2.0, 2.0001, -0.1, None, math.nan])
    assert codes(as_series(column.to_arrow()), domain) == [0, 0, 1, 1, -2, -2, -1, -1]


def test_bins_of_text_columns_and_open_ends() -> None:
    domain = Domain(("a", "b"), cut=Bins((-math.inf, 1.0, math.inf)))
    assert codes(pl.Series([" 1e3", "-5", "twelve", None]), domain) == [1, 0, -2, -1]


@pytest.mark.parametrize(
    ("every", "label"),
    [("year", "2024"), ("quarter", "2024-Q1"), ("month", "2024-02"), ("week", "2024-W09"), ("day", "2024-02-29")],
)
@pytest.mark.parametrize("value", ["2024-02-29", "2024-02-29T13:00:00", date(2024, 2, 29), datetime(2024, 2, 29, 13)])
def test_periods(every: str, label: str, value: object) -> None:
    domain = Domain(("x", label), cut=Periods(every))
    assert codes(pl.Series([value]), domain) == [1]


def test_unreadable_dates_are_unseen_not_missing() -> None:
    domain = Domain(("2024",), cut=Periods("year"))
    assert codes(pl.Series(["2024-01-01", "yesterday", None]), domain) == [0, -2, -1]


def test_words_for_missing() -> None:
    column = pa.array(["?", "a", ""])
    assert as_series(column, ["", "?"]).to_list() == [None, "a", None]


def test_casts_count_what_they_cannot_read() -> None:
    series, failures = cast_column(pl.Series(["1", " 2", "x", None]), "integer")
    assert series.to_list() == [1, 2, None, None]
    assert failures == 1
    assert cast_column(pl.Series(["Yes", "0", "perhaps"]), "boolean")[0].to_list() == [True, False, None]


@pytest.mark.parametrize("kind", ["date", "datetime", "boolean"])
def test_columns_that_are_nothing_of_the_kind(kind: str) -> None:
    assert cast_column(pl.Series(["x", None, "y"]), kind)[1] == 2
    assert cast_column(pl.Series([b"x", None]), kind)[1] == 1


@pytest.mark.parametrize(
    "values",
    [
        ("a", "b", "c"),
        (1, 2, 3),
        (0.5, 1, 2.5),
        (True, "x", 3),
        (BIG, BIG + 1, BIG + 2),
        (0.5, BIG, BIG + 1),
        (-1, 1, 2**64 - 1),
    ],
)
def test_sets_round_trip(values: tuple) -> None:
    sets = np.array([[0, 2], [1, 2], [0, 1]])
    column = set_array(sets, label_array(values))
    back = code_sets(column, Domain(values)).regular(2)
    assert np.array_equal(back, sets)


@pytest.mark.parametrize("size", [127, 128, 32_768])
def test_sets_over_as_many_labels_as_a_small_integer_counts(size: int) -> None:
    values = tuple(f"v{code}" for code in range(size))
    sets = np.array([[0, size - 1]])
    column = set_array(sets.astype(np.min_scalar_type(-size)), label_array(values))
    assert np.array_equal(code_sets(column, Domain(values)).regular(2), sets)


def test_irregular_sets_are_noticed() -> None:
    domain = Domain(("a", "b", "c"))
    assert code_sets(pa.array([["a", "b"], ["a"]]), domain).regular(2) is None
    assert code_sets(pa.array([["a", "z"]]), domain).regular(2) is None
    assert code_sets(pa.array([["c", "a"]]), domain).regular(2).tolist() == [[0, 2]]


@pytest.mark.parametrize(
    ("values", "kind"),
    [([timedelta(days=1)], "duration"), ([b"\xff"], "binary"), ([["a"]], "list"), ([{"a": 1}], "struct")],
)
@pytest.mark.parametrize("domain", [Domain(("a", "b")), Domain((1, 2)), Domain(("low", "high"), cut=Bins((0, 1, 2)))])
def test_values_that_cannot_be_labels_are_refused_by_their_type(values: list, kind: str, domain: Domain) -> None:
    with pytest.raises(TableError, match=f"column 'stay': values of type {kind} cannot be in a domain"):
        encode(pl.Series("stay", values), domain)
