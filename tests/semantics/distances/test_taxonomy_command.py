from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from polyseme.cli.taxonomy import command
from polyseme.kernel.errors import PolicyError, TableError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "patients.csv"
    file.write_text("name;diagnosis\nA;J45.0\nB;K02\nC;marked-value\nD;\nE;J450\n")
    return file


def test_list_names_every_taxonomy() -> None:
    result = CliRunner().invoke(command, ["list"])
    assert result.exit_code == 0
    assert "icd10" in result.stdout
    assert "code < category < block < chapter" in result.stdout
    listed = json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout)
    assert [one["name"] for one in listed["taxonomies"]] == ["countries", "education", "icd10", "occupation"]


def test_show_prints_the_tree() -> None:
    result = CliRunner().invoke(command, ["show", "education"])
    assert result.exit_code == 0
    assert "\n    8  Doctoral or equivalent\n" in result.stdout
    shown = json.loads(CliRunner().invoke(command, ["show", "icd10", "--json"]).stdout)
    assert shown["categories"] == len(shown["nodes"])
    assert shown["nodes"][0]["parent"] is None
    with pytest.raises(PolicyError, match="icd10"):
        CliRunner().invoke(command, ["show", "icd"], catch_exceptions=False)


def test_check_counts_and_shows_no_value(data: Path) -> None:
    result = CliRunner().invoke(command, ["check", "icd10", str(data), "--column", "diagnosis"])
    assert result.exit_code == 1
    assert "marked-value" not in result.output
    counted = CliRunner().invoke(command, ["check", "icd10", str(data), "--column", "diagnosis", "--json"])
    assert counted.exit_code == 1
    assert json.loads(counted.stdout) == {
        "taxonomy": "icd10",
        "found": {"values": 3, "records": 3},
        "unknown": {"values": 1, "records": 1},
        "repeated": {"places": 1, "values": 2},
        "empty": {"records": 1},
    }


def test_check_without_column_knows_a_header_from_a_value(tmp_path: Path) -> None:
    file = tmp_path / "codes.txt"
    for text, records in [("J45.0\nK02\n", 2), ("code\nJ45.0\nK02\n", 2)]:
        file.write_text(text)
        result = CliRunner().invoke(command, ["check", "icd10", str(file), "--json"])
        assert result.exit_code == 0
        assert json.loads(result.stdout)["found"]["records"] == records


def test_check_refuses_a_file_without_a_line(tmp_path: Path) -> None:
    (tmp_path / "codes.txt").write_text("")
    with pytest.raises(TableError, match=r"codes\.txt: the file is empty"):
        CliRunner().invoke(command, ["check", "icd10", str(tmp_path / "codes.txt")], catch_exceptions=False)


def test_check_reads_parquet(tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    pl.DataFrame({"id": [1, 2, 3], "country": ["FR", None, "Japan"]}).write_parquet(file)
    result = CliRunner().invoke(command, ["check", "countries", str(file), "--column", "country", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["empty"] == {"records": 1}
    with pytest.raises(TableError, match="did you mean 'country'"):
        CliRunner().invoke(command, ["check", "countries", str(file), "--column", "contry"], catch_exceptions=False)


def test_unknown_column_does_not_show_the_first_line(data: Path) -> None:
    with pytest.raises(TableError) as caught:
        CliRunner().invoke(command, ["check", "icd10", str(data), "--column", "zzz"], catch_exceptions=False)
    assert "diagnosis" not in str(caught.value)


def test_help_has_an_example_everywhere() -> None:
    for arguments in ([], ["list"], ["show"], ["check"]):
        assert "Example: polyseme taxonomy" in CliRunner().invoke(command, [*arguments, "--help"]).stdout


def test_importing_the_command_is_light() -> None:
    code = "import sys, polyseme.cli.taxonomy; print([m for m in ('polars', 'scipy', 'yaml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    code = (
        "import sys, polyseme.semantics.distances; print([m for m in ('polars', 'scipy', 'yaml') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
