"""Groups that workers deal: those of the plan, with everybody in one of them, and what they promise holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from command_line import polyseme
from scipy.stats import chisquare

import polyseme as ps
from polyseme import spark as on_spark
from polyseme.engines.spark import groups as dealing
from polyseme.engines.spark.groups import KEYS, Dealing, Veil
from polyseme.kernel.randomness import StreamKey
from polyseme.methods.bucketization import compose, distinct
from polyseme.semantics.distances.base import Clusters

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")

ROWS = 900
BRANCH = {"flu": 0, "cold's": 0, "asthma": 0, "rash": 1, "burn": 1, "attack": 2, "failure": 2}
TREE = """{tree: {any: {lung: [flu, "cold's", asthma], skin: [rash, burn], heart: [attack, failure]}}}"""
METHODS = {"anatomy": "{anatomy: {l: 3, attribute: ill}}", "buckets": "{buckets: {l: 2, d: 2, attribute: ill}}"}
POLICY = f"""
attributes:
  id: {{role: insensitive}}
  age: {{role: quasi-identifier}}
  town: {{role: quasi-identifier}}
  ill: {{role: sensitive, missing: drop, distance: {TREE}}}
  job: {{role: sensitive}}
  pay: {{role: sensitive, domain: [10, 20, 30, 40], protect: {{diversity: {{l: 2}}}}}}
table: {{missing-values: ['?']}}
models: [{{distinct-diversity: {{l: 1, attribute: job}}}}]
method: """


def patients() -> pl.DataFrame:
    random = np.random.default_rng(2)
    shares = [0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]
    return pl.DataFrame(
        {
            "id": np.arange(ROWS),
            "age": random.integers(18, 90, ROWS),
            "town": random.choice(["Ulm", "Köln", None], ROWS).tolist(),
            "ill": random.choice([*BRANCH, "?"], ROWS, p=shares),
            "job": random.choice(["a", "b"], ROWS),
            "pay": random.choice([10, 20, 30, 40], ROWS),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of several files with several row groups each; kinds of which some need several cells."""
    monkeypatch.setattr(dealing, "CELL_ROWS", 100)
    (tmp_path / "data").mkdir()
    for number, part in enumerate(patients().iter_slices(400)):
        part.write_parquet(tmp_path / "data" / f"{number}.parquet", row_group_size=150)
    return tmp_path


def require_valid(release: ps.Release, folder: Path, method: str, each: int = 1) -> None:
    """What one machine publishes, but for chance: everybody once, own values among those of the group."""
    form = "set" if each == 1 else "long"
    table = patients()
    ps.anonymize(table, POLICY + METHODS[method], folder / "local", form=form, overwrite=True, accept_risk=True)
    local = ps.Release.open(folder / "local")
    ours, theirs = local.manifest.to_dict(), release.manifest.to_dict()
    for name in ("method", "models", "attributes", "records", "dropped"):
        assert ours.get(name) == theirs.get(name), name
    assert release.manifest.applied is not None
    assert release.manifest.applied == local.manifest.applied
    assert release.manifest.applied.suppressed
    frame = release.to_polars()
    assert frame.schema == local.to_polars().schema
    frame = frame.with_columns(pl.col("ill").cast(pl.List(pl.String)), pl.col("town", "job").cast(pl.String))
    assert frame.height == each * (ROWS - release.manifest.dropped - release.manifest.applied.suppressed)
    assert (frame.group_by("id").len()["len"] == each).all()
    true = frame.join(table, on="id", suffix=" true")
    assert true.select(pl.col("ill").list.contains(pl.col("ill true")).all()).item()
    for name in ("age", "town", "job"):
        assert true[name].equals(true[f"{name} true"], null_equal=True), name
    groups = frame.group_by("group").agg(pl.col("ill").first(), pl.col("ill").n_unique().alias("lists"), pl.len())
    assert sorted(groups["group"]) == list(range(1, release.manifest.applied.classes + 1))
    assert (groups["lists"] == 1).all()
    assert (groups["len"] == each * groups["ill"].list.len()).all()
    order = list(release.manifest["ill"].attribute.domain.values)
    for members in groups["ill"].to_list():
        assert members == sorted(set(members), key=order.index)
        kinds = {BRANCH[name] for name in members} if method == "buckets" else members
        assert len(kinds) == len(members) >= (2 if method == "buckets" else 3)
    assert release.manifest.accepted == ()


@pytest.mark.parametrize("method", METHODS)
def test_records_of_files_are_dealt_to_groups(sail: Any, folder: Path, method: str) -> None:
    policy = POLICY + METHODS[method]
    one, two = (
        on_spark.anonymize(folder / "data", policy, folder / name, seed=4, spark=sail, files=files, accept_risk=True)
        for name, files in (("one", 2), ("two", 3))
    )
    require_valid(one, folder, method)
    assert ps.verify(folder / "one").holds
    assert on_spark.verify(folder / "one", spark=sail).holds
    first, second = (release.to_polars().with_columns(pl.col("pay").list.sort()).sort("id") for release in (one, two))
    assert first.equals(second), "the same seed, the same groups"


def test_rows_of_a_frame_too_and_in_the_long_form(sail: Any, folder: Path) -> None:
    read = sail.read.parquet(*(path.as_uri() for path in sorted((folder / "data").iterdir())))
    policy = POLICY + METHODS["anatomy"]
    require_valid(on_spark.anonymize(read, policy, folder / "set", spark=sail, accept_risk=True), folder, "anatomy")
    for data, name in ((read, "long"), (folder / "data", "long from files")):
        long = on_spark.anonymize(data, policy, folder / name, spark=sail, form="long", accept_risk=True)
        require_valid(long, folder, "anatomy", each=2)
    assert {path.name for path in (folder / "set").iterdir()} == {"data", "manifest.json"}


def test_what_groups_cannot_reach_is_refused_when_their_rows_are_there(sail: Any, folder: Path) -> None:
    policy = (POLICY + METHODS["anatomy"]).replace("models: [", "models: [{k-anonymity: {k: 4}}, ")
    with pytest.raises(ps.ImpossibleError) as local:
        ps.anonymize(patients(), policy, folder / "local", accept_risk=True)
    with pytest.raises(ps.ImpossibleError) as other:
        on_spark.anonymize(folder / "data", policy, folder / "out", spark=sail, accept_risk=True)
    assert str(local.value) == str(other.value)
    assert "cannot reach k-anonymity" in str(other.value)
    assert {path.name for path in folder.iterdir()} == {"data"}


def test_levels_cannot_be_taken_over(sail: Any, folder: Path) -> None:
    policy = POLICY + METHODS["anatomy"]
    earlier = ps.anonymize(patients(), policy, accept_risk=True)
    with pytest.raises(ps.QuestionError, match="only levels"):
        on_spark.anonymize(folder / "data", policy, folder / "out", spark=sail, apply=earlier, accept_risk=True)


def test_the_command_line_deals_too(sail: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "session", lambda spark, master: sail)
    monkeypatch.setattr(dealing, "CELL_ROWS", ROWS)
    (folder / "p.yaml").write_text(POLICY + METHODS["buckets"])
    command = ("p.yaml", folder / "data", "--out", "out", "--engine", "spark", "--seed", 3, "--accept-risk")
    done = polyseme("anonymize", *command, cwd=folder)
    assert done.returncode == 0, done.stderr
    release = ps.Release.open(folder / "out")
    require_valid(release, folder, "buckets")
    assert polyseme("verify", "out", cwd=folder).returncode == 0
    # In the order of ranks, all records with one value would stand in the order of their groups.
    drawn = release.to_polars().with_row_index("row").join(patients().select("id", true="ill"), on="id")
    rows, groups = drawn.filter(true="flu").select("row", "group").to_numpy().T
    assert len(rows) > 150
    assert abs(np.corrcoef(rows, groups)[0, 1]) < 0.3


def planned(codes: list[int], structure: Any, monkeypatch: pytest.MonkeyPatch) -> Dealing:
    """For so few records, with cells of two."""
    monkeypatch.setattr(dealing, "CELL_ROWS", 2)
    places = compose(np.bincount(codes, minlength=structure.size), structure, 2)
    counts = np.bincount(places.kinds[codes], minlength=len(places.taken))
    return Dealing.of(SimpleNamespace(attribute="v", group="g", places=places, counts=counts), ["v", "g"])


@pytest.mark.parametrize(
    ("codes", "structure"),
    [([0, 0, 0, 0, 1, 2], distinct(3)), ([0, 0, 0, 1, 2, 3], Clusters(np.array([0, 0, 1, 1])))],
)
def test_every_way_to_take_the_places_is_as_likely(
    codes: list[int], structure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, values = planned(codes, structure, monkeypatch), np.array(codes)
    seen: Counter[tuple[int, ...]] = Counter()
    for number in range(3_000):
        cell, key, tie = made.keys(values, StreamKey.seeded(f"{number}").records(np.arange(len(values))))
        order = np.lexsort((tie, key, cell))
        found = np.bincount(cell, minlength=made.cells)
        rank = np.empty(len(values), dtype=np.int64)
        rank[order] = np.arange(len(values)) - (np.cumsum(found) - found)[cell[order]]
        seen[tuple(made.places.group_of(values, made.starts(found)[cell] + rank).tolist())] += 1
    assert max(made.widths) > 1
    assert chisquare(list(seen.values())).pvalue > 1e-3
    sizes = made.counts[made.counts > 0]
    ways = np.prod(
        [np.prod(np.arange(size, size - min(size, taken), -1)) for size, taken in zip(sizes, made.places.taken)]
    )
    assert len(seen) == ways


def test_a_table_that_changed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned([0, 0, 0, 1, 1, 2], distinct(3), monkeypatch)
    assert made.starts(np.array([1, 2, 2, 1])).tolist() == [0, 1, 0, 0]
    with pytest.raises(ps.TableError, match="changed"):
        made.starts(np.array([1, 2, 1, 2]))


@pytest.mark.parametrize("rows", [1, 500])
def test_values_that_wait_in_files_are_hidden(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, codes = planned([0, 0, 0, 1, 1, 2], distinct(3), monkeypatch), np.arange(rows) % 3
    drawn = StreamKey.seeded(1).records(np.arange(rows))
    names = ("c0_0", "c1_0", "place", *(item.name for item in KEYS))
    columns = [codes.astype(np.int32), np.zeros(rows, dtype=np.int64), drawn.words()[0].view(np.int64)]
    batch = pa.RecordBatch.from_arrays([pa.array(item) for item in (*columns, *made.keys(codes, drawn))], names=names)
    veil = Veil(batch.schema, made, StreamKey.seeded(2))
    hidden = veil.hide(batch)
    assert len(np.unique(hidden.column("c0_0").to_numpy())) == rows, "as good as random: equal values do not show"
    assert not hidden.column("cell").to_numpy().any()
    assert hidden.schema == batch.schema
    assert next(veil(iter([hidden]))).equals(batch)
