"""Mondrian in parts that Spark's workers finish: the release that one process makes of the same sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import polyseme as ps
from polyseme import spark as on_spark
from polyseme.engines import Engine, local
from polyseme.engines.spark.worker import SparkWorkers
from polyseme.grouping import division as dividing
from polyseme.tables.io.source import Source
from polyseme.testing.workers import WorkersHere

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")

ROWS = 2_000
POLICY = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 20, 60], missing: wildcard}}
  "the town's": {role: quasi-identifier, hierarchy: {tree: {all: {north: [a, b], south: [c, d], east: [e]}}}}
  ill: {role: sensitive, missing: drop}
  job: {role: sensitive, missing: {category: unknown}}
  weight: {role: insensitive}
  pay: {role: sensitive, domain: [10, 20, 30, 40], protect: {diversity: {l: 2}}}
table: {missing-values: ['?']}
models:
  - {k-anonymity: {k: 5}}
  - {closeness: {t: 0.4, attribute: ill}}
  - {distinct-diversity: {l: 2, attribute: job}}
method: mondrian
"""
TOWN = "the town's"


def people() -> pl.DataFrame:
    random = np.random.default_rng(4)
    ages = random.integers(18, 90, ROWS).astype(str)
    ages[random.random(ROWS) < 0.03] = "?"
    return pl.DataFrame(
        {
            "age": ages,
            TOWN: random.choice([*"abcde"], ROWS),
            "ill": random.choice(["flu", "cold", "rash", "burn", "?"], ROWS, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "job": random.choice(["x", "y", "z", "?"], ROWS),
            "weight": np.arange(ROWS),
            "pay": random.choice([10, 20, 30, 40], ROWS),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of several files that claims to be too large for one machine."""
    monkeypatch.setattr(dividing, "HELD", 300)
    monkeypatch.setattr(dividing, "PART_ROWS", 150)
    monkeypatch.setattr(dividing, "SAMPLE", 500)
    monkeypatch.setattr(dividing, "_SAMPLED", 1)
    (tmp_path / "data").mkdir()
    for number, part in enumerate(people().iter_slices(900)):
        part.write_parquet(tmp_path / "data" / f"{number}.parquet", row_group_size=300)
    (tmp_path / "p.yaml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> list[pa.RecordBatch]:
    """What Spark drew."""
    drawn: list[pa.RecordBatch] = []
    draw = SparkWorkers.sample

    def sample(self: SparkWorkers, share: float, seed: int) -> Iterator[pa.RecordBatch]:
        drawn[:] = list(draw(self, share, seed))
        yield from drawn

    monkeypatch.setattr(SparkWorkers, "sample", sample)
    return drawn


class Here(Engine):
    """An engine of one process, with the sample that Spark drew."""

    scaled = True

    def __init__(self, drawn: list[pa.RecordBatch]) -> None:
        self.drawn = drawn

    def __call__(self, *arguments: Any) -> Any:
        return local.publish(*arguments)

    def workers(self, source: Source, cancellation: Any, columns: Sequence[str]) -> WorkersHere:
        drawn = self.drawn

        class Workers(WorkersHere):
            def sample(self, share: float, seed: int) -> Iterator[pa.RecordBatch]:
                yield from drawn

        return Workers(source, columns)


def rows_of(release: ps.Release) -> pl.DataFrame:
    return release.to_polars().drop("pay").sort("weight")


def require_parts(release: ps.Release, spark: Any, folder: Path, samples: list[pa.RecordBatch]) -> None:
    """The same classes as in one process; no record lost or doubled, and everything holds."""
    assert 350 < sum(batch.num_rows for batch in samples) < 650
    pure = ps.anonymize(people(), POLICY, engine=Here(samples), accept_risk=True)
    assert rows_of(release).equals(rows_of(pure))
    assert release.manifest.applied == pure.manifest.applied
    assert release.manifest.to_dict()["attributes"] == pure.manifest.to_dict()["attributes"]
    shown, applied = release.to_polars(), release.manifest.applied
    assert applied is not None
    assert applied.classes == shown.select("age", TOWN).n_unique()
    assert shown["weight"].sort().equals(people().filter(pl.col("ill") != "?")["weight"].sort())
    assert ps.verify(release.folder or folder / "out").holds
    assert on_spark.verify(folder / "out", spark=spark).holds
    assert not [path for path in folder.rglob("*") if path.name.startswith((".", "_"))], "nothing else is left"


def test_parts_of_files(spark: Any, folder: Path, samples: list[pa.RecordBatch]) -> None:
    release = on_spark.anonymize(
        folder / "data", folder / "p.yaml", folder / "out", spark=spark, files=2, accept_risk=True
    )
    require_parts(release, spark, folder, samples)


@pytest.fixture(params=["local_spark", "sail"])
def other(request: pytest.FixtureRequest) -> Any:
    """A session with Java, and one without."""
    return request.getfixturevalue(request.param)


def test_parts_of_a_frame(other: Any, folder: Path, samples: list[pa.RecordBatch]) -> None:
    read = other.read.parquet(*(path.as_uri() for path in sorted((folder / "data").iterdir())))
    release = on_spark.anonymize(read, folder / "p.yaml", folder / "out", spark=other, files=2, accept_risk=True)
    require_parts(release, other, folder, samples)


def test_the_same_seed_gives_the_same_parts(sail: Any, folder: Path) -> None:
    made = [
        on_spark.anonymize(folder / "data", folder / "p.yaml", folder / name, spark=sail, seed=seed, accept_risk=True)
        for name, seed in (("one", 5), ("two", 5), ("other", 6))
    ]
    one, two, other = (release.to_polars().sort("weight") for release in made)
    assert one.equals(two)
    assert not one.drop("pay").equals(other.drop("pay"))


def test_below_the_limit_nothing_is_cut_in_parts(
    other: Any, folder: Path, samples: list[pa.RecordBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ps.anonymize(people(), POLICY, accept_risk=True)
    # Rows beyond the limit, but not rows that differ; and not even those.
    for name, held in (("some", ROWS - 1), ("all", ROWS)):
        monkeypatch.setattr(dividing, "HELD", held)
        release = on_spark.anonymize(folder / "data", folder / "p.yaml", folder / name, spark=other, accept_risk=True)
        assert rows_of(release).equals(rows_of(whole))
        assert release.manifest.applied == whole.manifest.applied
    assert not samples


def test_what_a_worker_cannot_do_is_told_plainly(sail: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividing, "CLASSES", 20)
    with pytest.raises(ps.ImpossibleError, match="classes would be formed, more than the 20"):
        on_spark.anonymize(folder / "data", folder / "p.yaml", folder / "out", spark=sail, accept_risk=True)
    assert not (folder / "out").exists()
