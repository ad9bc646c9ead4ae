"""Laws of `publish_batch`: it follows from its arguments alone, and its tallies add up."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyseme as ps
from polyseme.engines.batch import Job, check_batch, publish_batch
from polyseme.engines.checks import DRAWS, PEOPLE, SETS, BatchTally
from polyseme.kernel.randomness import RecordStream, StreamKey, new_key
from polyseme.publishing.publication import prepare
from polyseme.tables.io import source as sources
from polyseme.tables.io.columnar import FrameSource

POLICY = """
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier}
  size: {role: insensitive}
  ill: {role: sensitive, domain: [a, b, c, d, e, f], protect: {diversity: {l: 3}}}
  job: {role: sensitive-qid, domain: [x, y, z, u], missing: drop, protect: {diversity: {l: 2}}}
record-key: id
impossible:
  - {when: {age: child}, attribute: ill, values: [e, f]}
"""
ROWS, KEY = 60, bytes(range(32))
STREAMS = StreamKey.seeded("laws of a batch")


def table(rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "id": rng.integers(0, rows // 2, rows),
            "age": rng.choice(["adult", "child"], rows),
            "size": pl.Series(rng.choice(["S", "L", "M"], rows), dtype=pl.Enum(["S", "M", "L", "XL"])),
            "ill": rng.choice(list("abcd"), rows),
            "job": rng.choice(["x", "y", "z", None], rows),
        }
    )


@cache
def job(sticky: bool = False) -> Job:
    made = prepare(ps.Policy.loads(POLICY), FrameSource(table().to_arrow())).job
    return replace(made, key=KEY if sticky else None)


def batch(frame: pl.DataFrame) -> pa.RecordBatch:
    return next(FrameSource(frame.to_arrow()).batches())


def records(frame: pl.DataFrame, first: int = 0) -> RecordStream:
    """The numbers of records that are in a table from this row on."""
    return STREAMS.records(np.arange(first, first + frame.height))


def with_faults() -> pl.DataFrame:
    """Illnesses that are unknown, missing, and impossible for a child; all rows have a job."""
    number = pl.int_range(pl.len()) % 20
    ill = pl.when(number == 3).then(pl.lit("zz")).when(number == 5).then(None).when(number == 7).then(pl.lit("f"))
    return table().with_columns(ill=ill.otherwise("ill"), age=pl.lit("child"), job=pl.lit("x"))


def same_prints(one: BatchTally, two: BatchTally) -> bool:
    return one.prints.keys() == two.prints.keys() and all(
        np.array_equal(found, two.prints[name]) for name, found in one.prints.items()
    )


@pytest.mark.parametrize("sticky", [False, True])
def test_equal_arguments_give_equal_results(sticky: bool) -> None:
    first, tally = publish_batch(job(sticky), batch(table()), records(table()))
    copied = pickle.loads(pickle.dumps(job(sticky)))  # noqa: S301 - our own
    again, other = publish_batch(copied, batch(table()), records(table()))
    assert first.equals(again)
    assert tally == other
    assert same_prints(tally, other)
    elsewhere, _ = publish_batch(job(sticky), batch(table()), records(table(), ROWS))
    assert first.equals(elsewhere) is sticky, "sticky decoys do not depend on where records are"


def test_another_process_publishes_the_same() -> None:
    arguments = (job(True), batch(table()))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        theirs, counted = pool.submit(_publish, *arguments).result()
    ours, tally = publish_batch(*arguments, records(table()))
    assert ours.equals(theirs)
    assert tally == counted
    assert same_prints(tally, counted)


def _publish(work: Job, found: pa.RecordBatch) -> tuple[pa.RecordBatch, BatchTally]:
    return publish_batch(work, found, records(table()))


def test_a_job_is_small_and_stays_small() -> None:
    before = len(pickle.dumps(replace(job(True))))
    publish_batch(job(True), batch(table()), records(table()))
    assert job(True).coupled["ill"]._couplings, "there is something to leave out"
    assert len(pickle.dumps(job(True))) < 1.2 * before < 12_000
    assert KEY.hex() not in repr(job(True))
    assert repr(KEY) not in repr(job(True))


@given(st.integers(0, ROWS), st.booleans())
def test_tallies_of_parts_add_up_and_sets_do_not_depend_on_the_parts(place: int, sticky: bool) -> None:
    rows, work = table(), job(sticky)
    whole, tally = publish_batch(work, batch(rows), records(rows))
    cut = [(rows[:place], 0), (rows[place:], place)]
    parts = [publish_batch(work, batch(part), records(part, first)) for part, first in cut if len(part)]
    added = sum((counted for _, counted in parts), BatchTally())
    assert added == tally
    assert same_prints(added, tally)
    drawn = {(DRAWS, "ill"), (DRAWS, "job"), (SETS, "ill")} if sticky else set()
    assert tally.prints.keys() == set(work.prints) == {(PEOPLE, ""), *drawn}
    assert tally.records + tally.dropped == ROWS
    assert 0 < tally.dropped == rows["job"].null_count()
    assert pa.Table.from_batches([part for part, _ in parts]).combine_chunks() == pa.Table.from_batches([whole])


@given(st.integers(1, ROWS - 1))
def test_problems_add_up_and_nothing_of_a_faulty_batch_is_published(place: int) -> None:
    rows = with_faults()
    whole, tally = publish_batch(job(True), batch(rows), records(rows))
    assert whole.num_rows == 0
    assert whole.schema == publish_batch(job(True), batch(table()), records(table()))[0].schema
    assert check_batch(job(True), batch(rows)) == tally
    added = sum((check_batch(job(True), batch(part)) for part in (rows[:place], rows[place:])), BatchTally())
    assert added == tally
    assert {(column, what.split(" of ")[0]): count for (column, what, _), count in tally.problems.items()} == {
        ("ill", "values are not in the declared domain"): 3,
        ("ill", "values are missing"): 3,
        ("ill", "values are declared impossible in the policy"): 3,
    }


def test_a_tally_shows_no_value_of_the_table() -> None:
    _, tally = publish_batch(job(True), batch(table()), records(table()))
    assert {"S", "M", "L"} <= set(tally.levels.met["size"])
    assert not any(f"'{size}'" in repr(tally) for size in ("S", "M", "L", "XL"))
    assert not tally.counts.prints
    assert tally.counts == tally


def test_every_set_holds_the_truth_wherever_records_are() -> None:
    rows = table().filter(pl.col("job").is_not_null())
    truth = np.array(["abcdef".index(value) for value in rows["ill"]])
    published = [publish_batch(job(), batch(rows), records(rows, number * ROWS))[0] for number in range(20)]
    sets = np.array([part.column("ill").flatten().to_numpy().reshape(-1, 3) for part in published])
    assert (sets == truth[:, None]).any(axis=2).all()
    child = (rows["age"] == "child").to_numpy()
    assert sets[:, child].max() == 3, "children have no e and no f"
    # Of 10 sets of an adult that hold the truth, and 3 of a child, two partitions draw the same by chance only.
    same = (sets[:-1] == sets[1:]).all(axis=2)
    assert same[:, ~child].mean() == pytest.approx(0.1, abs=4 * (0.09 / same[:, ~child].size) ** 0.5)
    assert same[:, child].mean() == pytest.approx(1 / 3, abs=4 * (2 / 9 / same[:, child].size) ** 0.5)


@pytest.mark.parametrize("form", ["set", "long"])
def test_a_sticky_release_does_not_depend_on_the_size_of_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    new_key(tmp_path / "key")
    rows = table(300).with_columns(age=pl.when(pl.col("id") % 2 == 0).then(pl.lit("child")).otherwise(pl.lit("adult")))
    found = []
    for size in (1, 7, 1 << 16):
        monkeypatch.setattr(sources, "BATCH_ROWS", size)
        release = ps.anonymize(
            rows, ps.Policy.loads(POLICY), key_file=tmp_path / "key", form=form, warn=lambda text: None
        )
        found.append((release.manifest.to_dict(), sorted(map(repr, release.table.to_pylist()))))
    assert found[0] == found[1] == found[2]
