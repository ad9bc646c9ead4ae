"""Messages for users without Java or PySpark, with a wrong address, or with workers that do not see the files."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import polyseme as ps
from polyseme import spark as on_spark
from polyseme.cli import cli
from polyseme.engines.spark import session as addresses
from polyseme.engines.spark.frame import read_by
from polyseme.engines.spark.jobs import UNSEEN, Tasks, plain_errors
from polyseme.engines.spark.session import _quiet
from polyseme.kernel.errors import InvalidInput
from polyseme.tables.io.readers import open_table

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")
POLICY = """
attributes:
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""
PEOPLE = pl.DataFrame({"sex": ["f", "m"] * 60, "ill": ["a", "b", "c", "d"] * 30})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_parquet("people.parquet")
    PEOPLE.write_csv("people.csv")
    Path("policy.yaml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for a session is too late to complain."""
    monkeypatch.setattr(on_spark, "session", lambda *_: pytest.fail("a session was asked for"))


def refused(*arguments: str) -> str:
    """What a command says that exits with 2."""
    with pytest.raises(InvalidInput) as raised:
        CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)
    assert raised.value.exit_code == 2
    return str(raised.value)


@pytest.mark.parametrize("master", ["sparky", "spark://", "sc://:x", "sc://[", "locals", "local[2]x"])
def test_what_is_no_address_is_refused(master: str) -> None:
    with pytest.raises(ps.QuestionError, match=r"(?s)is not an address of Spark.*sc://HOST:15002"):
        addresses.require_address(master)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local[4,2]", "yarn", "k8s://https://host:443"])
def test_what_only_spark_can_find_is_left_to_it(master: str) -> None:
    addresses.require_address(master)


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in addresses._PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_an_address_where_a_server_answers_is_taken(listening: int, direct: None) -> None:
    addresses.require_address(f"sc://127.0.0.1:{listening}/;token=secret")
    addresses.require_address(f"spark://127.0.0.1:1,127.0.0.1:{listening}")


def test_an_address_where_no_server_answers_is_refused(direct: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ps.QuestionError, match=r"nothing answers at 127.0.0.1:1") as raised:
        addresses.require_address("sc://127.0.0.1:1/;token=secret")
    assert "secret" not in str(raised.value)
    with pytest.raises(ps.QuestionError, match="nothing answers"):
        addresses.require_address("spark://127.0.0.1:1")
    monkeypatch.setenv("https_proxy", "http://proxy.invalid")
    addresses.require_address("sc://127.0.0.1:1")  # a proxy may find it


def test_a_machine_without_java_is_told_what_else_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ps.QuestionError, match=r"(?s)needs Java, and there is none.*Spark Connect server"):
        addresses.require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ps.QuestionError, match="JAVA_HOME names a folder without bin/java"):
        addresses.require_java()


@pytest.mark.parametrize("missing", ["pyspark", "grpc"])
def test_without_the_extra_its_line_is_shown(place: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    said = refused("risk", "people.csv", "--engine", "spark")
    assert "--engine spark needs the extra 'spark'" in said
    assert "pip install 'polyseme[spark]'" in said
    assert "the extra 'spark'" in refused("anonymize", "policy.yaml", "people.csv", "--out", "r", "--engine", "spark")
    assert sorted(path.name for path in place.iterdir()) == ["people.csv", "people.parquet", "policy.yaml"]


def test_what_is_wrong_here_is_said_before_spark_starts(place: Path, no_session: None) -> None:
    (place / "there").mkdir()
    run = ("anonymize", "policy.yaml", "people.parquet", "--engine", "spark")
    assert "there: exists already" in refused(*run, "--out", "there")
    assert "absent.parquet: no such file" in refused("risk", "absent.parquet", "--engine", "spark")
    with pytest.raises(InvalidInput, match="no release here"):
        on_spark.verify("absent")


@pytest.mark.parametrize("name", ["people.parquet", "people.csv"])
def test_a_worker_says_which_file_it_does_not_see(place: Path, name: str) -> None:
    tasks = Tasks.of(open_table(place / name))
    (place / name).unlink()
    with pytest.raises(ps.TableError, match=rf"(?s){name}: {UNSEEN}.*under the names they have here"):
        list(tasks.batches(0, ["sex"]))


def test_paths_are_whole_on_their_way_to_workers(place: Path, sail: Any) -> None:
    """Workers have a working folder of their own."""
    release = on_spark.anonymize("people.parquet", "policy.yaml", "release", spark=sail)
    assert release.manifest.records == PEOPLE.height
    assert on_spark.risk("people.csv", qi=["sex"], spark=sail).records == PEOPLE.height
    assert on_spark.anonymize("people.*v", "policy.yaml", "other", spark=sail).manifest.records == PEOPLE.height


def test_workers_that_do_not_see_the_table_are_named(place: Path, sail: Any) -> None:
    source = on_spark.open_table("people.parquet", POLICY)
    Path("people.parquet").rename("elsewhere.parquet")
    with pytest.raises(ps.TableError, match=rf"people.parquet: {UNSEEN}"):
        on_spark.verify(source, POLICY + "models: [{k-anonymity: {k: 2}}]\n", spark=sail)
    assert sorted(path.name for path in place.iterdir()) == ["elsewhere.parquet", "people.csv", "policy.yaml"]


class _Half:
    """A session that sees only the first file; some take those that they do not see for empty ones."""

    def __init__(self, spark: Any) -> None:
        self._spark, self.read = spark, self

    def parquet(self, first: str, *_: str) -> Any:
        return self._spark.read.parquet(first)


def test_a_release_of_which_spark_sees_a_part_is_refused(place: Path, sail: Any) -> None:
    release = ps.anonymize(PEOPLE, POLICY, "release", rows_per_file=70)
    with pytest.raises(ps.ReleaseError, match=r"Spark finds 70 rows in the files of the release, which have 120 here"):
        read_by(_Half(sail), release)  # type: ignore[arg-type]
    assert on_spark.verify("release", spark=sail).holds


def test_an_unknown_table_is_refused(place: Path, sail: Any) -> None:
    with pytest.raises(
        ps.QuestionError, match=r"neither a file nor a table that Spark knows is called 'nowhere\.visits'"
    ):
        on_spark.anonymize("nowhere.visits", POLICY, "release", spark=sail)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "ModuleNotFoundError: No module named 'polyseme.engines' John Doe",
            "do not have the Python package 'polyseme'",
        ),
        ("[PYTHON_VERSION_MISMATCH] John Doe", "another version of Python"),
        (f"TableError: John Doe: {UNSEEN}", "the workers cannot read the files"),
        ("value of John Doe", r"Spark could not do the work \(PySparkException\)"),
    ],
)
def test_errors_of_spark_quote_nothing(text: str, what: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(ps.TableError, match=what) as raised, plain_errors():
        raise PySparkException(text)
    assert "John" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), plain_errors():
        raise ZeroDivisionError


def test_java_logs_errors_only_unless_the_user_wants_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("SPARK_SUBMIT_OPTS", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    with _quiet():
        file = os.environ["SPARK_SUBMIT_OPTS"].removeprefix("-Dlog4j2.configurationFile=file://")
        assert "level = error" in Path(file).read_text()
    assert "SPARK_SUBMIT_OPTS" not in os.environ
    with monkeypatch.context() as changed:
        changed.setenv("SPARK_CONF_DIR", str(tmp_path))
        (tmp_path / "log4j2.properties").touch()
        with _quiet():
            assert "SPARK_SUBMIT_OPTS" not in os.environ
    with caplog.at_level(logging.INFO, logger="polyseme"), _quiet():
        assert "SPARK_SUBMIT_OPTS" not in os.environ
