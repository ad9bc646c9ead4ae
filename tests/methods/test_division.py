"""Mondrian in parts: whatever the sample, every class reaches the goal; and little is lost against the whole table."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from small_tables import random_data, random_ladder

import polyseme as ps
from polyseme.methods.goal import Goal
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Microdata, Sensitive
from polyseme.methods.mondrian import divided, mondrian, settled
from polyseme.randomness import SystemStream
from polyseme.tables.io.frames import FrameSource
from polyseme.verbs.anonymize import resolved_for
from polyseme.verbs.dividing import divide_counted

GOAL = [{"k-anonymity": {"k": 4}}, {"distinct-diversity": {"l": 2, "attribute": "s"}}]
STREAM = SystemStream.seeded(1)


def in_memory(frame):
    return FrameSource(frame.to_arrow())


def table(seed, rows=3_000):
    random = np.random.default_rng(seed)
    ladders = tuple(random_ladder(random, f"q{place}", 24, 3) for place in range(3))
    codes = np.column_stack([np.minimum(*random.integers(0, ladder.leaves, (2, rows))) for ladder in ladders])
    secret = random.choice(5, rows, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    return Microdata(ladders, codes, {"s": Sensitive("s", secret, tuple("abcde"))})


def among(data, rows):
    part = {name: replace(item, codes=item.codes[rows]) for name, item in data.sensitive.items()}
    return replace(data, codes=data.codes[rows], sensitive=part)


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_is_the_partition(seed):
    data = random_data(seed, rows=200)
    made = mondrian(data, Goal.of([{"k-anonymity": {"k": 5}}], data), STREAM)
    assert made.showing is not None
    assert np.array_equal(made.showing.cells(data.codes), made.shown[made.classes])


@pytest.mark.parametrize("ordered", [True, False])
def test_parts_lose_little(ordered):
    data = table(1)
    known = {ladder.name: ordered for ladder in data.ladders}
    goal = Goal.of(GOAL, data)
    whole = mondrian(data, goal, STREAM, ordered=known)
    sample = np.random.default_rng(2).choice(data.rows, 600, replace=False)
    division = settled_on(data, goal, divided(among(data, sample), 12, known))
    part = division.parts_of(data.codes)
    assert 6 <= len(np.unique(part)) <= 24
    assert set(np.unique(part)) <= set(division.numbers)
    lost, classes = 0.0, 0
    for number in np.unique(part):
        some = among(data, np.flatnonzero(part == number))
        made = mondrian(some, Goal.of(GOAL, some), STREAM, ordered=known, totals=goal.totals())
        lost += Loss("loss").of_recoding(some, made) * some.records / data.records
        classes += len(made.shown)
    assert lost == pytest.approx(Loss("loss").of_recoding(data, whole), rel=0.1)
    assert classes == pytest.approx(len(whole.shown), rel=0.1)


def settled_on(data, goal, division):
    return settled(division, division.parts_of(data.codes), goal)


def test_parts_that_do_not_reach_the_goal_are_joined():
    data = table(3)
    # A rare value that every class must have: most parts of a blind division lack it.
    goal = Goal.of([{"distinct-diversity": {"l": 5, "attribute": "s"}}], data)
    sample = among(data, np.arange(300))
    first = divided(sample, 60)
    division = settled_on(data, goal, first)
    before, after = len(np.unique(first.parts_of(data.codes))), len(np.unique(division.parts_of(data.codes)))
    assert 1 < after < before
    owner = np.unique(division.parts_of(data.codes), return_inverse=True)[1]
    assert goal.fine(*goal.counted(owner, after)).all()
    # What stayed apart was cut apart before, and what was joined stayed together.
    pairs = np.unique(np.column_stack([first.parts_of(data.codes), division.parts_of(data.codes)]), axis=0)
    assert len(pairs) == before


def test_a_goal_that_nothing_reaches_is_refused():
    data = table(3)
    goal = Goal.of([{"entropy-diversity": {"l": 4.9, "attribute": "s"}}], data)
    with pytest.raises(ps.ImpossibleError, match="the whole table as one class, of 3,000 records, does not meet"):
        settled_on(data, goal, divided(among(data, np.arange(300)), 10))


ASKED = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 20, 60], missing: wildcard}}
  town: {role: quasi-identifier, hierarchy: {tree: {all: {north: [a, b], south: [c, d], east: [e]}}}}
  ill: {role: sensitive, missing: drop}
  weight: {role: insensitive}
table: {missing-values: ['?']}
models: MODELS
method: mondrian
"""


@pytest.mark.parametrize(
    "models",
    ["[{k-anonymity: {k: 5}}, {distinct-diversity: {l: 3}}]", "[{k-anonymity: {k: 5}}, {closeness: {t: 0.3}}]"],
)
@pytest.mark.parametrize("size", [5, 400])
def test_a_table_is_published_in_parts(models, size):
    random = np.random.default_rng(4)
    ages = random.integers(18, 90, 2_000).astype(str)
    ages[random.random(2_000) < 0.03] = "?"
    people = pl.DataFrame(
        {
            "age": ages,
            "town": random.choice([*"abcde"], 2_000),
            "ill": random.choice(["flu", "cold", "rash", "burn", "?"], 2_000, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "weight": np.arange(2_000),
        }
    )
    asked = ps.Policy.loads(ASKED.replace("MODELS", models))
    made = divide_counted(
        asked, resolved_for(asked, in_memory(people)), in_memory(people), in_memory(people.head(size)), parts=8
    )
    divider = pickle.loads(pickle.dumps(made.divider))  # noqa: S301
    pieces: dict[int, list[pa.RecordBatch]] = {}
    for batch in people.to_arrow().to_batches(max_chunksize=333):
        kept, parts = divider.divide(batch)
        records = batch.filter(pa.array(kept))
        for part in np.unique(parts).tolist():
            pieces.setdefault(part, []).append(records.filter(pa.array(parts == part)))
    done = []
    for part in pieces.values():
        (batch,) = pa.Table.from_batches(part).combine_chunks().to_batches()
        done.append(divider.finish(batch))
    finished = made.finished(piece.summary for piece in done)
    shown = pl.concat([pl.DataFrame(piece.batch) for piece in done])
    assert len(done) > 1
    assert made.records == shown.height == people.filter(pl.col("ill") != "?").height
    assert made.dropped == 2_000 - shown.height
    assert finished.applied.classes == shown.group_by("age", "town").len().height
    # Whoever reads the rows finds that everything holds, and records are those of the table.
    verdict = ps.verify(
        shown.drop("weight"), ps.Policy.loads(ASKED.replace("MODELS", models).replace("method: mondrian", ""))
    )
    assert verdict.holds
    true = shown.join(people, on="weight", suffix=" true")
    assert (true["ill"] == true["ill true"]).all()
    stands_for = finished.columns["town"].stands_for  # type: ignore[attr-defined]
    assert all(row["town true"] in stands_for.get(row["town"], (row["town"],)) for row in true.iter_rows(named=True))
    # As fine as on one machine, up to what the first cuts cost.
    here = ps.anonymize(people, asked, seed=1, warn=lambda text: None).manifest.applied
    assert here is not None
    assert finished.applied.classes >= (0.85 if size == 400 else 0.5) * here.classes
