"""Verbs that look at every attribute read the data once for all of them, and get the same whatever memory allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import polyseme as ps
from polyseme.kernel.errors import QuestionError
from polyseme.release import release as counts
from polyseme.scrutiny import knowledge
from polyseme.scrutiny.attacks.audit import scenes as sampled
from polyseme.tables.io.columnar import ParquetSource
from polyseme.tables.io.text import CsvSource

NAMES = ["a", "b", "c", "d"]


def people(rows: int = 1_500) -> pl.DataFrame:
    random = np.random.default_rng(3)
    columns = {name: random.choice(list("uvwxyz"), rows) for name in NAMES}
    # So that no record has an impossible value.
    columns["d"] = np.where(columns["d"] == "z", "y", columns["d"])
    return pl.DataFrame({"zip": np.arange(rows) // 2, "sex": random.choice(["f", "m"], rows), **columns})


def policy() -> ps.Policy:
    protected = "".join(
        f"  {name}: {{role: sensitive, domain: [u, v, w, x, y, z], protect: {{diversity: {{l: 2}}}}}}\n"
        for name in NAMES
    )
    untouched = "  zip: {role: quasi-identifier}\n  sex: {role: quasi-identifier}\n"
    impossible = "impossible:\n  - {when: {sex: f}, attribute: d, values: [z]}\n"
    return ps.Policy.loads(f"attributes:\n{untouched}{protected}{impossible}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readings")
    people(600).write_parquet(folder / "table.parquet")
    ps.anonymize(folder / "table.parquet", policy(), folder / "release")
    ps.anonymize(folder / "table.parquet", policy(), folder / "text", file_format="csv")
    return folder


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read, one for each reading."""
    found: list[str] = []
    for kind in (ParquetSource, CsvSource):
        plain = kind._read

        def counted(
            self: ParquetSource | CsvSource, columns: Sequence[str], plain: object = plain
        ) -> Iterator[pa.RecordBatch]:
            found.append(self.name)
            yield from plain(self, columns)  # type: ignore[operator]

        monkeypatch.setattr(kind, "_read", counted)
    return found


def test_how_often_a_release_is_read(folder: Path, readings: list[str]) -> None:
    def read(run: object) -> int:
        readings.clear()
        run()  # type: ignore[operator]
        return sum(name != "table.parquet" for name in readings)

    release = folder / "release"
    # To count sets, and to see what its readers can learn; those who put groups together look at the same records.
    assert read(lambda: ps.verify(release)) == 2
    assert read(lambda: ps.estimate(release, ["d"], by=["sex"])) == 1
    # Who is alike is decided by untouched columns; only then is it known whose sets are shown.
    assert read(lambda: ps.attack(release)) == 2
    assert read(lambda: ps.attack(release, folder / "table.parquet")) == 2
    assert read(lambda: ps.report(release)) == 4
    assert read(lambda: ps.report(release, by="sex")) == 4
    assert read(lambda: ps.report(release, folder / "table.parquet", by="sex")) == 4
    assert read(lambda: ps.evaluate(release, folder / "table.parquet")) == 1


def test_a_release_of_which_only_the_first_records_are_held_is_read_twice_more(
    tmp_path: Path, readings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = people().with_columns(pl.col("a").first().over("zip"))
    ps.anonymize(alike, policy(), tmp_path / "alike")
    readings.clear()
    once = ps.verify(tmp_path / "alike").remarks
    assert len(readings) == 2
    assert any(remark.startswith("a: a reader knows which records have the same zip") for remark in once)
    monkeypatch.setattr(knowledge, "_ROWS", 1_000)
    readings.clear()
    # To count sets, to learn from the first records, to see by its untouched columns who is in a group, and to put the
    # sets of groups together: only then is it known whose.
    assert ps.verify(tmp_path / "alike").remarks == once
    assert len(readings) == 4


def test_how_often_an_original_is_read(folder: Path, readings: list[str]) -> None:
    ps.report(folder / "release", folder / "table.parquet")
    # To attack, to look up what those have untouched who cannot be matched, and to count.
    assert readings.count("table.parquet") == 3
    readings.clear()
    ps.evaluate(folder / "release", folder / "table.parquet")
    assert readings.count("table.parquet") == 1


@pytest.mark.parametrize("name", ["release", "text"])
def test_little_memory_means_more_readings_and_the_same_answers(
    folder: Path, name: str, readings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = folder / name
    once = ps.verify(release), ps.attack(release), ps.report(release, by="sex")
    before = len(readings)
    monkeypatch.setattr(counts, "_MOST", 1)
    monkeypatch.setattr(sampled, "_MOST", 1)
    readings.clear()
    again = ps.verify(release), ps.attack(release), ps.report(release, by="sex")
    assert len(readings) > before
    assert once[0].to_dict() == again[0].to_dict()
    assert [found.success for found in once[1]] == [found.success for found in again[1]]
    assert once[2] == again[2]


def test_a_bad_column_is_no_fault_of_the_others(folder: Path) -> None:
    release = ps.anonymize(folder / "table.parquet", policy())
    assert release.table is not None
    short = release.table.set_column(
        release.table.schema.get_field_index("b"), "b", pa.array([["u"]] * release.table.num_rows)
    )
    broken = ps.Release(release.manifest, table=short)
    failed = {verdict.attribute for verdict in ps.verify(broken).verdicts if not verdict.holds}
    assert failed == {"b"}


def test_a_report_by_no_such_column_is_refused_before_anything_is_read(folder: Path, readings: list[str]) -> None:
    for name in ("nothing", "a"):
        with pytest.raises(QuestionError, match=name):
            ps.report(folder / "release", by=name)
    assert not readings
