"""Tables and releases of several files, through every verb and command that takes one."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import polyseme as ps
from command_line import polyseme
from polyseme.errors import TableError

POLICY = """
models: [{k-anonymity: {k: 2}}]
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""
pytestmark = pytest.mark.filterwarnings("ignore::polyseme.errors.PrivacyWarning")
ROWS = 900


def people(rows: int = ROWS) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "age": [20 + number % 5 for number in range(rows)],
            "level": ["abcdefgh"[(number * number) % 8] for number in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table as one file, as a folder of Parquet files and as a folder of texts; a policy."""
    folder = tmp_path_factory.mktemp("work")
    table = people()
    table.write_parquet(folder / "people.parquet")
    table.write_csv(folder / "people.csv")
    for kind in ("parquet", "csv"):
        (folder / kind).mkdir()
        (folder / kind / "_SUCCESS").touch()
        for number, rows in enumerate(table.iter_slices(250)):
            getattr(rows, f"write_{kind}")(folder / kind / f"part-{number}.{kind}")
    (folder / "policy.yaml").write_text(POLICY)
    return folder


def published(release: ps.Release) -> list[tuple]:
    return sorted((row["age"], *row["level"]) for row in release.to_polars().to_dicts())


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_seed_draws_the_same_sets_however_the_table_is_cut(work: Path, kind: str) -> None:
    whole = ps.anonymize(work / f"people.{kind}", work / "policy.yaml", seed=4)
    for table in (work / kind, work / kind / f"*.{kind}"):
        parts = ps.anonymize(table, work / "policy.yaml", seed=4)
        assert published(parts) == published(whole)


@pytest.mark.parametrize("table", ["parquet", "csv", "parquet/*.parquet", "csv/part-[0-9].csv"])
def test_every_command_takes_several_files(work: Path, table: str, tmp_path: Path) -> None:
    made = polyseme("init", table, "--out", tmp_path / "drafted.yaml", cwd=work)
    assert made.returncode == 0, made.stderr
    assert "900 rows" in (tmp_path / "drafted.yaml").read_text()
    release = tmp_path / "release"
    for arguments in (
        ("plan", "policy.yaml", "--data", table),
        ("risk", table, "--qi", "age", "--sensitive", "level"),
        ("verify", table, "--policy", work / "policy.yaml"),
        ("anonymize", "policy.yaml", table, "--out", release),
        ("evaluate", release, "--original", table, "--by", "age", "--of", "level"),
        ("attack", release, "--original", table),
        ("report", release, "--original", table, "--out", tmp_path / "report.html"),
        ("prior", "from-table", table, "--of", "level", "--publish-exact"),
    ):
        done = polyseme(*arguments, cwd=work)
        assert done.returncode == 0, (arguments, done.stderr)
    assert ps.Release.open(release).manifest.records == ROWS


def test_a_table_without_a_policy_is_called_what_it_is(work: Path) -> None:
    done = polyseme("verify", "parquet/*.parquet", cwd=work)
    assert done.returncode == 2
    assert "a table needs a policy" in done.stderr


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_problems_name_the_file_and_the_row(tmp_path: Path, kind: str) -> None:
    for number, rows in enumerate(people(20).iter_slices(10)):
        wrong = rows.with_columns(level=pl.when(pl.int_range(10) == 3).then(pl.lit("SECRET")).otherwise("level"))
        getattr(wrong if number else rows, f"write_{kind}")(tmp_path / f"part-{number}.{kind}")
    with pytest.raises(TableError) as caught:
        ps.anonymize(tmp_path, POLICY)
    place = "row 4" if kind == "parquet" else "line 5"
    assert f"{place} of part-1.{kind}" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_a_partition_is_a_column_like_any_other(tmp_path: Path) -> None:
    for age, rows in people().partition_by("age", as_dict=True, include_key=False).items():
        (tmp_path / "t" / f"age={age[0]}").mkdir(parents=True)
        rows.write_parquet(tmp_path / "t" / f"age={age[0]}" / "0.parquet")
    release = ps.anonymize(tmp_path / "t", POLICY, seed=1)
    assert release.to_polars()["age"].value_counts().sort("age").rows() == [(20 + age, 180) for age in range(5)]
