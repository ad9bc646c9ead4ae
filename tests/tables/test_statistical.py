from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import polyseme as ps
from polyseme.kernel.errors import QuestionError, TableError
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import Source

pyreadstat = pytest.importorskip("pyreadstat")

FRAME = pl.DataFrame(
    {
        "sex": [1.0, 2.0, 1.0, 9.0],
        "age": [30.0, 31.0, None, 99.0],
        "bmi": [21.5, None, 23.0, 24.25],
        "name": ["007", "b", "", "d"],
        "born": [dt.date(1990, 1, 31), None, dt.date(1991, 2, 3), dt.date(2000, 1, 1)],
        "seen": [dt.datetime(2024, 1, day, 12, 30) for day in range(1, 5)],
    }
)
LABELS = {"sex": {1: "male", 2: "female", 9: "no answer"}, "age": {99: "no answer"}}


def rows(source: Source) -> list[dict]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


def spss(path: Path, frame: pl.DataFrame = FRAME, **options) -> Path:
    pyreadstat.write_sav(frame, path, compress=path.suffix == ".zsav", **options)
    return path


def column(path: Path, name: str) -> list[object]:
    return [row[name] for row in rows(open_table(path))]


@pytest.mark.parametrize("suffix", [".sav", ".zsav", ".dta", ".xpt"])
def test_kinds_of_columns(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    if suffix == ".xpt":
        pyreadstat.write_xport(FRAME, path)
    elif suffix == ".dta":
        pyreadstat.write_dta(FRAME, path)
    else:
        spss(path)
    source = open_table(path)
    assert source.schema.field("age").type == pa.int64()
    assert source.schema.field("born").type == pa.date32()
    assert pa.types.is_timestamp(source.schema.field("seen").type)
    expected = FRAME.with_columns(pl.col("name").replace("", None), pl.col("age", "sex").cast(pl.Int64))
    assert rows(source) == expected.to_dicts()
    assert source.rows == 4


def test_labels_are_the_values_and_declared_missing_ones_are_missing(tmp_path: Path) -> None:
    ranges = {"sex": [9], "age": [{"lo": 98, "hi": 99}]}
    path = spss(tmp_path / "t.sav", variable_value_labels=LABELS, missing_ranges=ranges)
    assert column(path, "sex") == ["male", "female", "male", None]
    # Only what is missing had a label: the ages that are left are numbers.
    assert column(path, "age") == [30, 31, None, None]


def test_labels_of_stata(tmp_path: Path) -> None:
    path = tmp_path / "t.dta"
    pyreadstat.write_dta(FRAME, path, variable_value_labels=LABELS)
    assert column(path, "sex") == ["male", "female", "male", "no answer"]
    # A label for one value only: the others stay as they are written.
    assert column(path, "age") == ["30", "31", None, "no answer"]


def test_missing_values_of_stata_that_have_a_name(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": pd.Series([1, "a", 3, None], dtype=object)})
    pyreadstat.write_dta(frame, tmp_path / "t.dta", missing_user_values={"a": ["a"]})
    assert column(tmp_path / "t.dta", "a") == [1, None, 3, None]


def test_two_values_with_one_label_stay_two(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, 3.0, 4.0]})
    labels = {"a": {1: "other", 2: "other", 3: "flu", 4: "cold"}, "b": {1: "2"}}
    path = spss(tmp_path / "t.sav", frame, variable_value_labels=labels)
    assert column(path, "a") == ["other (1)", "other (2)", "flu", "cold"]
    assert column(path, "b") == ["2 (1)", "2 (2)", "3", "4"]


def test_the_content_says_which_program_wrote_it(tmp_path: Path) -> None:
    for suffix in (".sav", ".zsav"):
        path = spss(tmp_path / f"t{suffix}").rename(tmp_path / "t.csv")
        assert column(path, "age") == [30, 31, None, 99]
    pyreadstat.write_dta(FRAME, tmp_path / "u.csv")
    pyreadstat.write_xport(FRAME, tmp_path / "v")
    assert column(tmp_path / "u.csv", "age") == column(tmp_path / "v", "age") == [30, 31, None, 99]


@pytest.mark.parametrize("name", ["t.sav", "t.dta", "t.xpt", "t.sas7bdat", "t.por"])
def test_a_damaged_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a,b\nSECRET,2\n" * 100)
    with pytest.raises(TableError, match=rf"{name}: not a readable file of (Stata|SPSS|SAS)") as caught:
        open_table(tmp_path / name)
    assert "SECRET" not in str(caught.value)


def test_a_file_that_ends_early(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [float(number) for number in range(5000)]})
    content = spss(tmp_path / "t.sav", frame).read_bytes()
    (tmp_path / "t.sav").write_bytes(content[: len(content) // 2])
    with pytest.raises(TableError, match="not a readable file of SPSS"):
        open_table(tmp_path / "t.sav")


def test_without_the_extra_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spss(tmp_path / "t.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(QuestionError, match=r"(?s)file of SPSS needs .*pip install 'polyseme\[stats\]'"):
        open_table(path)


def test_the_whole_way(tmp_path: Path) -> None:
    frame = pl.DataFrame({"sex": [1.0, 2.0] * 50, "ill": [float(number % 3) for number in range(100)]})
    labels = {"sex": {1: "male", 2: "female"}, "ill": {0: "flu", 1: "cold", 2: "gout"}}
    path = spss(tmp_path / "t.sav", frame, variable_value_labels=labels)
    policy = ps.Policy.loads(
        "attributes:\n  sex: {role: quasi-identifier}\n"
        "  ill: {role: sensitive, domain: [flu, cold, gout], protect: {diversity: {l: 2}}}\n"
    )
    release = ps.anonymize(path, policy, tmp_path / "release", seed=1)
    assert set(pl.from_arrow(next(release.source.batches(["sex"])))["sex"]) == {"male", "female"}
    assert ps.attack(release, path).to_dict()
    assert ps.risk(path, "sex").records == 100
