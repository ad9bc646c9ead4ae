"""A date whose day may also be its month is not guessed: the policy says how it is written."""

from __future__ import annotations

import warnings
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

import polyseme as ps
from polyseme.kernel.errors import TableError
from polyseme.tables.codes import cast_column

POLICY = """
attributes:
  day: {role: quasi-identifier, type: date%s}
  disease: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""
GENERALIZED = ", hierarchy: {dates: [month, year]}"
METHOD = "models: [{k-anonymity: {k: 2}}]\nmethod: {full-domain: {}}\n"


@pytest.mark.parametrize("text", ["01/02/2020", "31/12/2020", "12-31-2020", "1.2.20", "02 Jan 2020"])
@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_only_dates_that_begin_with_the_year_are_read(text: str, kind: str) -> None:
    read, failures = cast_column(pl.Series([text, text, None]), kind)
    assert read.to_list() == [None] * 3
    assert failures == 2


def test_dates_that_begin_with_the_year_are_read() -> None:
    assert cast_column(pl.Series(["2020-02-01", None]), "date")[0].to_list() == [date(2020, 2, 1), None]
    assert cast_column(pl.Series(["2020/2/1"]), "date")[0].to_list() == [date(2020, 2, 1)]
    moment = cast_column(pl.Series(["2020-02-01T10:30:00"]), "datetime")[0].to_list()
    assert moment == [datetime(2020, 2, 1, 10, 30)]


@pytest.mark.parametrize("policy", [POLICY % "", POLICY % GENERALIZED + METHOD], ids=["as it is", "generalized"])
def test_a_release_asks_how_dates_are_written(policy: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("day,disease\n" + "01/02/2020,a\n02/03/2020,b\n" * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TableError, match=r"20 values cannot be read as date(.|\n)*dates: dd.mm.yyyy") as caught:
            ps.anonymize(file, ps.Policy.loads(policy))
        assert "01/02/2020" not in str(caught.value)
        rules = ps.Policy.loads(policy + "table: {dates: mm/dd/yyyy}\n")
        release = ps.anonymize(file, rules)
    shown = {str(value) for batch in release.batches(["day"]) for value in batch.column(0).to_pylist()}
    assert shown in ({"2020-01-02", "2020-02-03"}, {"2020-01", "2020-02"})
