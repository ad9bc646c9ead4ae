from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from polyseme.tables.alike import as_published, plain_text, published_types


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
    texts = (plain_text(series, ["", "NA"]).to_list() for series in (release, as_published(pl.Series(original), dtype)))
    assert next(texts) == next(texts)


def test_leading_zeros_tell_people_apart() -> None:
    assert plain_text(pl.Series(["007", "7", "0.10", "0.1"])).to_list() == ["007", "7", "0.1", "0.1"]
