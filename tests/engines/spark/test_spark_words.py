"""Messages for wrong requests to Spark; no Spark is needed for these."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import polyseme as ps
from polyseme.cli import cli
from polyseme.engines.spark.engine import SparkEngine
from polyseme.engines.spark.jobs import CHANGED, RECOUNTED, counted_by_workers, plain_errors
from polyseme.engines.spark.session import require_address
from polyseme.kernel.errors import Problem, QuestionError, TableError


class SparkException(Exception):
    """Looks like one of PySpark's."""

    __module__ = "pyspark.errors"


def text_from_worker(error: Exception) -> str:
    with pytest.raises(ValueError, match="polyseme-problems") as found, counted_by_workers():
        raise error
    return str(found.value)


def test_problems_come_back_as_they_were() -> None:
    problems = (Problem("b.csv, line 52", "expected 5 fields, found 7", "is the separator right?"), Problem("", "ä:"))
    text = text_from_worker(TableError(problems))
    with pytest.raises(TableError) as raised, plain_errors():
        raise SparkException(f"[PYTHON_EXCEPTION] John\n  File 'x'\nValueError: {text}\n\tat org.apache.spark John")
    assert raised.value.problems == problems


def test_what_is_not_about_the_table_is_left_alone() -> None:
    with pytest.raises(ZeroDivisionError), counted_by_workers():
        raise ZeroDivisionError


@pytest.mark.parametrize("text", [RECOUNTED, CHANGED])
def test_a_table_that_changes_is_named(text: str) -> None:
    with pytest.raises(TableError, match=r"(?s)was changed while it was read.*hint: run it again"), plain_errors():
        raise SparkException(f"ValueError: {text}")


@pytest.mark.parametrize("master", ["sparky;token=secret", "sc://:x/;token=secret"])
def test_an_address_is_shown_without_its_token(master: str) -> None:
    with pytest.raises(QuestionError, match="is not an address of Spark") as raised:
        require_address(master)
    assert "secret" not in str(raised.value)


def test_a_server_that_refuses_is_named_without_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    session = importlib.import_module("polyseme.engines.spark.session")  # a function has the same name
    monkeypatch.setattr(session, "require_address", lambda _: None)
    monkeypatch.setattr(session, "_classic", lambda *_: 1 / 0)
    with pytest.raises(QuestionError, match=r"no Spark session on k8s://host \(ZeroDivisionError\)") as raised:
        session._made("k8s://host/;token=secret")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("files", [0, -3, 1.5, "7", True])
def test_a_number_of_files_is_checked_before_spark_starts(files: Any) -> None:
    with pytest.raises(QuestionError, match=rf"files: expected a whole number of at least 1, got {files!r}"):
        SparkEngine(files=files)


def test_an_engine_that_writes_parquet_only_refuses_other_formats(tmp_path: Path) -> None:
    policy = "attributes: {v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    table = pl.DataFrame({"v": ["a", "b", "c"]})
    with pytest.raises(QuestionError, match=r"(?s)does not write 'csv'.*hint: file_format='parquet'"):
        ps.anonymize(table, policy, tmp_path / "out", engine=SparkEngine(), file_format="csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [("--rows-per-file", "10"), ("--memory", "2GB"), ("--format", "csv")])
def test_options_of_the_local_engine_are_refused_before_spark_starts(option: tuple[str, str]) -> None:
    result = CliRunner().invoke(cli, ["anonymize", "policy.yaml", "people", "--out", "r", "--engine", "spark", *option])
    assert result.exit_code == 2
    assert option[0] in result.output
