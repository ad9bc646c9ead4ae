from __future__ import annotations

from datetime import date, datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest

from polyseme.kernel.errors import TableError
from polyseme.kernel.spelling import with_text
from polyseme.tables.readings import alike, plain_text, published_types, read_as

WORDS = ("", "?")


@pytest.mark.parametrize(
    ("original", "shown"),
    [
        (["30", " 31.50", "?"], [31.5, 30.0, None]),
        (["30", "?", ""], [None, 30]),
        (["Yes", "no"], [False, True]),
        (["2024/02/29"], [date(2024, 2, 29)]),
        (["2024-02-29T10:00"], [datetime(2024, 2, 29, 10)]),
        ([1, 2], [2.0, 1.0]),
    ],
    ids=["number", "integer", "boolean", "date", "time", "whole"],
)
def test_what_the_release_read_is_read_again(original: list, shown: list) -> None:
    left, right = alike(pl.Series(original), pl.Series(shown), WORDS)
    assert right.to_list() == shown
    assert set(left) == set(shown)


@pytest.mark.parametrize(
    ("original", "shown"),
    [
        (["30.0", "3e1", "31"], ["30", "31"]),
        ([30.0, 31.5], ["30", "31.5"]),
        ([1, 2], ["2", "1"]),
        (["Yes", "no"], ["true", "false"]),
        (["2024-02-29T10:00"], ["2024-02-29 10:00:00.000000"]),
        (["a", "?"], ["a", None]),
    ],
    ids=["number", "float", "integer", "boolean", "time", "missing"],
)
def test_what_a_text_file_shows_of_it(original: list, shown: list) -> None:
    left, right = alike(pl.Series(original), pl.Series(shown), WORDS)
    assert set(left) == set(right)
    assert right.n_unique() == len(shown)


@pytest.mark.parametrize("texts", [["007", "7", "07"], ["a", "?", ""], ["1.0", "1", "true"]])
def test_texts_that_were_left_as_they_are_stay_apart(texts: list[str]) -> None:
    left, right = alike(pl.Series(texts), pl.Series(texts), WORDS)
    assert left.to_list() == right.to_list() == texts


def test_another_table_is_not_made_to_fit() -> None:
    left, right = alike(pl.Series(["30", "40", "x"]), pl.Series([30.0, None]), WORDS)
    assert set(left).isdisjoint(right)
    with pytest.raises(TableError, match="column 'age': the original and the release"):
        alike(pl.Series([timedelta(1)]), pl.Series("age", ["30"]))


@pytest.mark.parametrize(
    ("published", "original"),
    [
        ([30.0, 7.5, None], ["30", " 7.50", "NA"]),
        ([30, 7, None], [30.0, 7.0, None]),
        ([True, False, None], ["True", "no", "NA"]),
        (pl.Series(["2024-01-31", "1999-12-01"]).str.to_date(), ["2024-01-31", "1999-12-01"]),
        (["007", "a"], ["007", "a"]),
        (["30", "7.5", "", "true"], ["30.0", "7.50", "NA", "TRUE"]),
        (["30", "7"], [30.0, 7.0]),
    ],
)
def test_the_same_values_are_the_same_text(published: list[object], original: list[object]) -> None:
    release = pl.Series("c", published)
    dtype = published_types(pa.table({"c": release.to_arrow()}).schema)["c"]
    texts = (plain_text(series, ["", "NA"]).to_list() for series in (release, read_as(pl.Series(original), dtype)[0]))
    assert next(texts) == next(texts)


def test_leading_zeros_tell_people_apart() -> None:
    assert plain_text(pl.Series(["007", "7", "0.10", "0.1"])).to_list() == ["007", "7", "0.1", "0.1"]


@pytest.mark.parametrize("values", [[["a", "b"], None], [{"a": 1}, None], [timedelta(seconds=5), None], [b"x", None]])
def test_values_without_a_text_of_their_own_get_one(values: list) -> None:
    series = pl.Series("c", values)
    assert with_text(series).dtype == pl.String
    assert plain_text(series).null_count() == 1
    with_text(series).to_frame().write_csv()
