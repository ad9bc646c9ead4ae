"""The same release from every engine: one machine, classic Spark, Spark Connect and Sail."""

from __future__ import annotations

import datetime as dt
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme import spark as on_spark
from polyseme.cancellation import Cancellation
from polyseme.randomness import new_key

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.errors.PolysemeWarning")

POLICY = """
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  born: {role: insensitive}
  ill:
    role: sensitive
    domain: [a, b, c, d, e, "f's, \\"x\\"", "", "true"]
    distance: {line: rank}
    missing: drop
    protect: {semantic-diversity: {l: 3, d: 2}}
  pay: {role: sensitive, domain: [10, 20, 30, 40, 50], protect: {diversity: {l: 2}}}
impossible:
  - {when: {sex: m}, attribute: pay, values: [50]}
record-key: id
"""
ILL = ["a", "b", "c", "d", "e", 'f\'s, "x"', "", "true"]


def table(rows: int, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows)
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "age": rng.integers(0, 100, rows).astype(np.int8),
            "sex": sex,
            "born": [dt.date(2000, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 9_000, rows)],
            "ill": rng.choice([*ILL, None], rows),
            "pay": np.where(sex == "m", rng.choice([10, 20, 30, 40], rows), rng.choice([10, 20, 30, 40, 50], rows)),
        }
    )


def rows_of(release: ps.Release) -> pl.DataFrame:
    """The rows as a set: in one order, candidates in one order."""
    frame = release.to_polars()
    lists = [name for name in frame.columns if isinstance(frame.schema[name], pl.List)]
    frame = frame.with_columns(pl.col(name).list.eval(pl.element().cast(pl.String)).list.sort() for name in lists)
    texts = frame.with_columns(pl.col(name).list.join("\0") for name in lists)
    return texts.with_columns(pl.all().cast(pl.String)).sort(pl.all(), nulls_last=True)


def described(release: ps.Release) -> Any:
    """What the manifest says of the columns."""
    return release.manifest.to_dict()["attributes"]


def verdicts(found: Any) -> Any:
    """All that is said, but for the row in which a class was first seen: rows that are counted have no number."""
    said = found.to_dict()["verdicts"]
    for verdict in said:
        for item in verdict["worst_classes"]:
            item.pop("row")
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of several files with several row groups each, and its policy."""
    whole = table(5_000)
    (tmp_path / "data").mkdir()
    for number in range(3):
        part = whole[number * 1_700 : (number + 1) * 1_700]
        part.write_parquet(tmp_path / "data" / f"{number}.parquet", row_group_size=500)
    (tmp_path / "p.yaml").write_text(POLICY)
    return tmp_path


@pytest.mark.parametrize("form", ["set", "long"])
def test_the_same_seed_gives_the_same_release(spark: Any, folder: Path, form: str) -> None:
    local = ps.anonymize(folder / "data", folder / "p.yaml", folder / "local", seed=5, form=form)
    other = on_spark.anonymize(
        folder / "data", folder / "p.yaml", folder / "spark", seed=5, form=form, spark=spark, files=3
    )
    assert rows_of(local).equals(rows_of(other))
    ours, theirs = local.manifest, other.manifest
    assert (ours.records, ours.rows, ours.dropped) == (theirs.records, theirs.rows, theirs.dropped)
    assert described(local) == described(other)
    assert len(theirs.data["files"]) == 3
    one, two = ps.verify(folder / "spark"), on_spark.verify(folder / "spark", spark=spark)
    assert verdicts(one) == verdicts(two)
    assert two.holds
    for by in ((), ("sex",)):
        one, two = (
            ps.estimate(folder / "spark", ["pay"], by),
            on_spark.estimate(folder / "spark", ["pay"], by, spark=spark),
        )
        assert one.to_dict() == two.to_dict(), "to the last digit"
    assert not [path for path in folder.rglob("*") if path.name.startswith((".", "_"))], "nothing else is left"


def test_sticky_sets_are_the_same_from_files_and_from_a_frame(spark: Any, folder: Path) -> None:
    new_key(folder / "key")
    local = ps.anonymize(folder / "data", folder / "p.yaml", key_file=folder / "key", records_per_person=2)
    more: dict[str, Any] = {"key_file": folder / "key", "records_per_person": 2, "spark": spark}
    files = on_spark.anonymize(folder / "data", folder / "p.yaml", folder / "a", **more)
    read = spark.read.parquet(*(path.as_uri() for path in sorted((folder / "data").iterdir())))
    frame = on_spark.anonymize(read, folder / "p.yaml", folder / "b", **more)
    assert rows_of(local).equals(rows_of(files))
    assert rows_of(local).equals(rows_of(frame))
    assert described(local) == described(files) == described(frame), "repeats too"


def test_a_frame_is_drawn_once(spark: Any, folder: Path) -> None:
    read = spark.read.parquet(*(path.as_uri() for path in sorted((folder / "data").iterdir())))
    release = on_spark.anonymize(read, folder / "p.yaml", folder / "out", spark=spark)
    local = ps.anonymize(folder / "data", folder / "p.yaml")
    assert release.manifest.records == local.manifest.records
    assert ps.verify(folder / "out").holds
    kept = ["age", "sex", "born"]
    assert release.to_polars().select(kept).sort(kept).equals(local.to_polars().select(kept).sort(kept))
    assert {path.name for path in (folder / "out").iterdir()} == {"data", "manifest.json"}
    with pytest.raises(ps.QuestionError, match="no places"):
        on_spark.anonymize(read, folder / "p.yaml", folder / "no", spark=spark, seed=1)
    assert not (folder / "no").exists()


def test_rows_are_not_in_the_order_of_the_table(spark: Any, tmp_path: Path) -> None:
    rows = 4_000
    pl.DataFrame({"n": np.arange(rows), "v": ["a"] * rows}).write_parquet(tmp_path / "t.parquet", row_group_size=1_000)
    policy = (
        "attributes: {n: {role: insensitive}, v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    )
    release = on_spark.anonymize(tmp_path / "t.parquet", policy, tmp_path / "out", spark=spark, files=2)
    found = release.to_polars()["n"].to_numpy()
    assert sorted(found) == list(range(rows))
    assert abs(np.corrcoef(found, np.arange(rows))[0, 1]) < 0.08
    sizes = [entry["rows"] for entry in release.manifest.data["files"]]
    assert max(sizes) < 0.56 * rows, "rows are dealt out evenly"


def test_all_problems_are_told_and_nothing_is_left(spark: Any, folder: Path) -> None:
    bad = table(400).with_columns(
        ill=pl.lit("a"), pay=pl.when(pl.int_range(pl.len()) % 100 == 7).then(99).otherwise("pay")
    )
    bad.write_parquet(folder / "data" / "3.parquet")
    with pytest.raises(ps.TableError) as local:
        ps.anonymize(folder / "data", folder / "p.yaml", folder / "a")
    with pytest.raises(ps.TableError) as other:
        on_spark.anonymize(folder / "data", folder / "p.yaml", folder / "b", spark=spark)
    assert str(local.value) == str(other.value)
    assert "4 values" in str(other.value)
    assert "99" not in str(other.value)
    read = spark.read.parquet(*(path.as_uri() for path in sorted((folder / "data").iterdir())))
    with pytest.raises(ps.TableError, match="4 values"):
        on_spark.anonymize(read, folder / "p.yaml", folder / "c", spark=spark)
    assert {path.name for path in folder.iterdir()} == {"data", "p.yaml"}


def test_problems_of_a_table_that_is_read_once_are_told_as_a_whole(spark: Any, tmp_path: Path) -> None:
    values = pl.Series("v", ["a", "b", "x", None, "c", "y"] * 50)
    pl.DataFrame({"v": values, "n": range(300)}).write_parquet(tmp_path / "t.parquet", row_group_size=40)
    policy = (
        "attributes: {n: {role: insensitive}, v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    )
    with pytest.raises(ps.TableError) as local:
        ps.anonymize(tmp_path / "t.parquet", policy)
    with pytest.raises(ps.TableError) as other:
        on_spark.anonymize(tmp_path / "t.parquet", policy, tmp_path / "out", spark=spark)
    assert str(local.value) == str(other.value)
    assert "100 values are not in" in str(other.value)
    assert "50 values are missing" in str(other.value)
    assert {path.name for path in tmp_path.iterdir()} == {"t.parquet"}


def test_types_of_other_columns_come_through(spark: Any, tmp_path: Path) -> None:
    moments = [dt.datetime(2024, 1, 1, 12, 0, 0, 123_456), None]
    columns = {
        "u8": pa.array([1, 255], pa.uint8()),
        "u32": pa.array([1, 2**32 - 1], pa.uint32()),
        "text": pa.array(["é", None], pa.large_string()),
        "category": pa.array(["x", "y"]).dictionary_encode(),
        "when": pa.array(moments, pa.timestamp("us")),
        "where": pa.array([True, None]),
        "amount": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "Text.with `dots`": pa.array([1.5, float("nan")]),
        "i16": pa.array([1, 2], pa.int16()),
        "v": pa.array(["a", "b"]),
    }
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    names = [name for name in columns if name != "v"]
    policy = {"attributes": {name: {"role": "insensitive"} for name in names}}
    policy["attributes"]["v"] = {"role": "sensitive", "domain": ["a", "b", "c"], "protect": {"diversity": {"l": 2}}}
    local = ps.anonymize(tmp_path / "t.parquet", ps.Policy.from_dict(policy), seed=1)
    other = on_spark.anonymize(
        tmp_path / "t.parquet", ps.Policy.from_dict(policy), tmp_path / "out", seed=1, spark=spark
    )
    assert rows_of(local).equals(rows_of(other))


def test_names_that_differ_in_their_case_are_refused(sail: Any, tmp_path: Path) -> None:
    columns = {"Age": pa.array([1]), "age": pa.array([1]), "v": pa.array(["a"])}
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    policy = (
        "attributes: {Age: {role: insensitive}, age: {role: insensitive}, "
        "v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    )
    with pytest.raises(ps.TableError, match="columns 'Age', 'age' differ in their case only"):
        on_spark.anonymize(tmp_path / "t.parquet", policy, tmp_path / "out", spark=sail)
    assert not (tmp_path / "out").exists()


def test_what_spark_cannot_carry_is_named_before_anything_is_drawn(spark: Any, tmp_path: Path) -> None:
    columns = {"at": pa.array([1], pa.time64("us")), "long": pa.array([1], pa.duration("s")), "v": pa.array(["a"])}
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    policy = (
        "attributes: {at: {role: insensitive}, long: {role: insensitive}, "
        "v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    )
    with pytest.raises(ps.TableError) as error:
        on_spark.anonymize(tmp_path / "t.parquet", policy, tmp_path / "out", spark=spark)
    assert "column 'at'" in str(error.value)
    assert "column 'long'" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_full_domain_and_risk_are_those_of_one_machine(spark: Any, folder: Path) -> None:
    policy = """
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10, 20]}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  born: {role: identifier}
  ill: {role: identifier}
  pay: {role: insensitive}
models: [{k-anonymity: {k: 40}}]
method: {full-domain: {suppression: 0.1}}
"""
    local = ps.anonymize(folder / "data", policy, seed=3)
    other = on_spark.anonymize(folder / "data", policy, folder / "out", seed=3, spark=spark)
    assert rows_of(local).equals(rows_of(other))
    assert local.manifest.to_dict()["method"] == other.manifest.to_dict()["method"]
    assert verdicts(on_spark.verify(folder / "out", spark=spark)) == verdicts(ps.verify(folder / "out"))
    asked = {"qi": ["age", "sex"], "sensitive": ["pay"]}
    one, two = ps.risk(folder / "data", **asked), on_spark.risk(folder / "data", **asked, spark=spark)
    assert one.to_dict() == two.to_dict()


def test_a_table_of_the_catalog_is_known_by_its_name(local_spark: Any, folder: Path) -> None:
    local_spark.read.parquet((folder / "data" / "0.parquet").as_uri()).write.mode("overwrite").saveAsTable("visits")
    release = on_spark.anonymize("visits", folder / "p.yaml", folder / "out", spark=local_spark)
    assert release.manifest.records == ps.anonymize(folder / "data" / "0.parquet", folder / "p.yaml").manifest.records
    local_spark.read.parquet((folder / "out" / "data").as_uri()).write.mode("overwrite").saveAsTable("published")
    opened = on_spark.open_release(folder / "out", spark=local_spark, data="published")
    assert ps.estimate(opened, ["ill"]).to_dict() == ps.estimate(folder / "out", ["ill"]).to_dict()
    with pytest.raises(ps.QuestionError, match="neither a file nor a table"):
        on_spark.anonymize("nothing_here", folder / "p.yaml", folder / "no", spark=local_spark)


COLUMNS = st.lists(st.sampled_from(["int", "text", "real"]), max_size=3)
SIZES = st.tuples(st.integers(2, 4), st.integers(1, 6))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(kinds=COLUMNS, sizes=SIZES, rows=st.integers(1, 60), group=st.integers(1, 30), seed=st.integers(0, 2**31))
def test_any_small_table_comes_out_alike(
    sail: Any, tmp_path_factory: Any, kinds: list[str], sizes: tuple[int, int], rows: int, group: int, seed: int
) -> None:
    place, rng = tmp_path_factory.mktemp("any"), np.random.default_rng(seed)
    l, more = sizes
    made = {"int": lambda: rng.integers(-5, 5, rows), "text": lambda: rng.choice(["x", "", "y z"], rows)}
    made["real"] = lambda: rng.normal(size=rows).round(2)
    domain = [f"v{number}" for number in range(l + more)]
    others = {f"c {number}": made[kind]() for number, kind in enumerate(kinds)}
    frame = pl.DataFrame({**others, "secret": rng.choice(domain, rows)})
    frame.write_parquet(place / "t.parquet", row_group_size=group)
    promise = {"semantic-diversity": {"l": l, "d": 1}} if seed % 2 else {"diversity": {"l": l}}
    secret = {"role": "sensitive", "domain": domain, "distance": {"line": "rank"}, "protect": promise}
    roles = {name: {"role": "quasi-identifier"} for name in frame.columns if name != "secret"}
    policy = ps.Policy.from_dict({"attributes": {**roles, "secret": secret}})
    local = ps.anonymize(place / "t.parquet", policy, seed=seed)
    other = on_spark.anonymize(place / "t.parquet", policy, place / "out", seed=seed, spark=sail, files=1 + seed % 3)
    assert rows_of(local).equals(rows_of(other))
    assert ps.verify(local).holds == on_spark.verify(place / "out", spark=sail).holds
    one, two = ps.estimate(local, ["secret"]), on_spark.estimate(place / "out", ["secret"], spark=sail)
    assert one.to_dict() == two.to_dict()


def test_work_that_is_stopped_leaves_nothing(local_spark: Any, tmp_path: Path) -> None:
    policy = "attributes: {v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    token = Cancellation()
    timer = threading.Timer(1.0, token.cancel, ["enough"])
    timer.start()
    slow = local_spark.range(0, 400, 1, 4).mapInArrow(_slowly, "v string")
    with pytest.raises(ps.Cancelled, match="enough"):
        on_spark.anonymize(slow, policy, tmp_path / "out", spark=local_spark, cancellation=token)
    assert not list(tmp_path.iterdir())


def _slowly(batches: Any) -> Any:
    for batch in batches:
        for _ in range(batch.num_rows):
            time.sleep(0.5)
            yield pa.RecordBatch.from_pydict({"v": ["a"]})
