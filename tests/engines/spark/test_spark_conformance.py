"""The same release from every engine: one machine, classic Spark, Spark Connect and Sail."""

from __future__ import annotations

import datetime as dt
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from comparing import described, rows_of, verdicts
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme import spark as on_spark
from polyseme.kernel.randomness import new_key
from polyseme.kernel.work import Cancellation

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")

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


def test_groups_share_one_set_whichever_worker_draws_it(spark: Any, tmp_path: Path) -> None:
    home = np.arange(3_000) // 2
    pay = np.random.default_rng(3).choice([10, 20, 30, 40, 50], 1_500)[home]
    pay[:20:2] = (pay[:20:2] // 10) % 5 * 10 + 10
    whole = pl.DataFrame({"home": home, "age": np.arange(3_000) % 90, "pay": pay})
    (tmp_path / "data").mkdir()
    for number in range(2):
        # Members of one group are in different files.
        whole[number::2].write_parquet(tmp_path / "data" / f"{number}.parquet", row_group_size=500)
    rules = """
        attributes:
          home: {role: identifier}
          age: {role: quasi-identifier}
          pay: {role: sensitive, shared-by: home, domain: [10, 20, 30, 40, 50], protect: {diversity: {l: 2}}}
    """
    (tmp_path / "p.yaml").write_text(rules)
    new_key(tmp_path / "key")
    local = ps.anonymize(tmp_path / "data", tmp_path / "p.yaml", key_file=tmp_path / "key")
    more: dict[str, Any] = {"key_file": tmp_path / "key", "spark": spark}
    files = on_spark.anonymize(tmp_path / "data", tmp_path / "p.yaml", tmp_path / "a", **more)
    read = spark.read.parquet(*(path.as_uri() for path in sorted((tmp_path / "data").iterdir())))
    frame = on_spark.anonymize(read, tmp_path / "p.yaml", tmp_path / "b", **more)
    assert rows_of(local).equals(rows_of(files))
    assert rows_of(local).equals(rows_of(frame))
    assert described(local) == described(files) == described(frame), "what is counted of groups too"
    assert local.manifest["pay"].differing == 0.007
    once = on_spark.anonymize(tmp_path / "data", tmp_path / "p.yaml", tmp_path / "c", spark=spark)
    assert once.manifest["pay"].repeats == local.manifest["pay"].repeats
    assert not rows_of(once).equals(rows_of(local)), "a key of its own, that is thrown away"
    pay[:60:2] = (pay[:60:2] // 10) % 5 * 10 + 10
    whole.with_columns(pay=pl.Series(pay)).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(ps.RiskError, match="of 1,500 groups of 'home'"):
        on_spark.anonymize(tmp_path / "other.parquet", tmp_path / "p.yaml", tmp_path / "d", spark=spark)


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
    hidden = "{role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}"
    policy = f"attributes: {{n: {{role: quasi-identifier}}, v: {hidden}}}"
    release = on_spark.anonymize(tmp_path / "t.parquet", policy, tmp_path / "out", spark=spark, files=2)
    found = release.to_polars()["n"].to_numpy()
    assert sorted(found) == list(range(rows))
    assert abs(np.corrcoef(found, np.arange(rows))[0, 1]) < 0.08
    sizes = [entry["rows"] for entry in release.manifest.data["files"]]
    assert max(sizes) < 0.56 * rows, "rows are dealt out evenly"


PEOPLE = """
attributes:
  pid: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10, 20]}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  ill: {role: sensitive, domain: [a, b, c]}
record-key: pid
models: [{k-anonymity: {k: 4}}, {frequency-diversity: {l: 2}}]
method: {%s}
"""


@pytest.mark.parametrize("method", ["full-domain: {suppression: 0.05}", "mondrian: {}", "anatomy: {l: 2}"])
def test_people_are_counted_alike(spark: Any, tmp_path: Path, method: str) -> None:
    """Three rows for each person: classes of four rows would be of two people."""
    rng, pid = np.random.default_rng(4), np.repeat(np.arange(300), 3)
    ill = np.where(rng.random(900) < 0.2, rng.integers(0, 3, 900), rng.integers(0, 3, 300)[pid])
    frame = pl.DataFrame(
        {
            "pid": pid,
            "age": rng.integers(20, 60, 300)[pid],
            "sex": rng.choice(["f", "m"], 300)[pid],
            "ill": np.array(["a", "b", "c"])[ill],
        }
    )
    frame.write_parquet(tmp_path / "visits.parquet", row_group_size=100)
    policy = ps.Policy.loads(PEOPLE % method)
    if "anatomy" in method:
        for refused in (
            lambda: ps.anonymize(frame, policy),
            lambda: on_spark.anonymize(tmp_path / "visits.parquet", policy, tmp_path / "out", spark=spark),
        ):
            with pytest.raises(ps.InvalidInput, match="900 records belong to 300 people"):
                refused()
        return
    local = ps.anonymize(frame, policy)
    other = on_spark.anonymize(tmp_path / "visits.parquet", policy, tmp_path / "out", spark=spark)
    assert rows_of(local).equals(rows_of(other))
    assert local.manifest.people == other.manifest.people is not None
    ours, theirs = local.manifest.applied, other.manifest.applied
    assert ours is not None
    assert theirs is not None
    assert (ours.classes, ours.suppressed, ours.people) == (theirs.classes, theirs.suppressed, theirs.people)
    assert verdicts(ps.verify(local)) == verdicts(on_spark.verify(tmp_path / "out", spark=spark))
    assert ps.verify(other, original=frame).holds
    one = ps.risk(frame, ["age", "sex"], ["ill"], person="pid").to_dict()
    two = on_spark.risk(tmp_path / "visits.parquet", ["age", "sex"], ["ill"], person="pid", spark=spark).to_dict()
    assert one == {**two, "choices": []}


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
    hidden = "{role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}"
    policy = f"attributes: {{n: {{role: quasi-identifier}}, v: {hidden}}}"
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
    options = {"qi": ["age", "sex"], "sensitive": ["pay"]}
    one, two = ps.risk(folder / "data", **options), on_spark.risk(folder / "data", **options, spark=spark)
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


@dataclass(frozen=True)
class Drawn:
    """A small table and how it is published, all of it from a few numbers.

    kinds  of the columns that are published as they are
    l      candidates to a set, of `l + more` values
    group  rows of a row group
    """

    kinds: tuple[str, ...]
    l: int
    more: int
    rows: int
    group: int
    seed: int
    form: str

    def table(self) -> pl.DataFrame:
        rng, rows = np.random.default_rng(self.seed), self.rows
        made = {
            "int": lambda: rng.integers(-5, 5, rows),
            "text": lambda: rng.choice(["x", "", "y z", None], rows).tolist(),
            "real": lambda: rng.normal(size=rows).round(2),
        }
        others = {f"c {number}": made[kind]() for number, kind in enumerate(self.kinds)}
        return pl.DataFrame({**others, "secret": rng.choice(self.domain, rows)})

    @property
    def domain(self) -> list[str]:
        return [f"v{number}" for number in range(self.l + self.more)]

    def policy(self) -> ps.Policy:
        promise = {"semantic-diversity": {"l": self.l, "d": 1}} if self.seed % 2 else {"diversity": {"l": self.l}}
        secret = {"role": "sensitive", "domain": self.domain, "distance": {"line": "rank"}, "protect": promise}
        roles = {f"c {number}": {"role": "quasi-identifier"} for number in range(len(self.kinds))}
        return ps.Policy.from_dict({"attributes": {**roles, "secret": secret}})


DRAWN = st.builds(
    Drawn,
    kinds=st.lists(st.sampled_from(["int", "text", "real"]), max_size=3).map(tuple),
    l=st.integers(2, 4),
    more=st.integers(1, 6),
    rows=st.integers(1, 60),
    group=st.integers(1, 30),
    seed=st.integers(0, 2**31),
    form=st.sampled_from(["set", "long"]),
)


def require_alike(spark: Any, place: Path, drawn: Drawn) -> None:
    """The same seed gives the same rows, and these the same verdicts and estimates, here and there."""
    drawn.table().write_parquet(place / "t.parquet", row_group_size=drawn.group)
    options: dict[str, Any] = {"seed": drawn.seed, "form": drawn.form}
    local = ps.anonymize(place / "t.parquet", drawn.policy(), **options)
    files = 1 + drawn.seed % 3
    on_spark.anonymize(place / "t.parquet", drawn.policy(), place / "out", spark=spark, files=files, **options)
    assert rows_of(local).equals(rows_of(ps.Release.open(place / "out")))
    here, there = ps.verify(local), on_spark.verify(place / "out", spark=spark)
    assert here.holds == there.holds
    assert verdicts(ps.verify(place / "out")) == verdicts(there)
    one, two = ps.estimate(local, ["secret"]), on_spark.estimate(place / "out", ["secret"], spark=spark)
    assert one.to_dict() == two.to_dict()


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


@settings(QUICK, max_examples=12)
@given(drawn=DRAWN)
def test_any_small_table_comes_out_alike(sail: Any, tmp_path_factory: Any, drawn: Drawn) -> None:
    require_alike(sail, tmp_path_factory.mktemp("any"), drawn)


@settings(QUICK, max_examples=5)
@given(drawn=DRAWN)
def test_any_small_table_comes_out_alike_from_classic_spark(
    local_spark: Any, tmp_path_factory: Any, drawn: Drawn
) -> None:
    require_alike(local_spark, tmp_path_factory.mktemp("any"), drawn)


def test_work_that_is_stopped_leaves_nothing(local_spark: Any, tmp_path: Path) -> None:
    policy = "attributes: {v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    token = Cancellation()
    timer = threading.Timer(1.0, token.cancel, ["enough"])
    timer.start()
    slow = local_spark.range(0, 400, 1, 4).mapInArrow(_slowly, "v string")
    started = time.monotonic()
    with pytest.raises(ps.Cancelled, match="enough"):
        on_spark.anonymize(slow, policy, tmp_path / "out", spark=local_spark, cancellation=token)
    assert time.monotonic() - started < 40, "the work of 100 seconds was done to its end"
    assert not list(tmp_path.iterdir())


def _slowly(batches: Any) -> Any:
    for batch in batches:
        for _ in range(batch.num_rows):
            time.sleep(0.5)
            yield pa.RecordBatch.from_pydict({"v": ["a"]})
