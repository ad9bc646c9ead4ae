"""Groups from ranks: the same places, the same distribution, and what every group promises."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from draws import generators
from hypothesis import given, settings
from scipy.stats import chisquare

import polyseme as ps
from polyseme.grouping.division import treat_counted
from polyseme.grouping.groups import Assigned
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.bucketization import Ranks, bucketize, compose, distinct, first_ranks
from polyseme.methods.microdata import SUPPRESSED
from polyseme.publishing.publication import resolved_for
from polyseme.semantics.distances.base import Clusters, Graph
from polyseme.tables.io.readers import open_table

DRAWS = 4_000
TREE = "{tree: {any: {lung: [flu, cold, asthma], skin: [rash, burn], heart: [attack, failure]}}}"
ILLNESSES = ("flu", "cold", "asthma", "rash", "burn", "attack", "failure")


def assigned(codes, places, keys, tasks):
    """What a cluster does: records go to tasks by their key, are sorted by it, counted, and ranked in their task."""
    task = keys % np.uint64(tasks)
    parts = [np.flatnonzero(task == number) for number in range(tasks)]
    parts = [part[np.argsort(keys[part])] for part in parts]
    counts = np.array([np.bincount(places.kinds[codes[part]], minlength=len(places.taken)) for part in parts])
    groups = np.full(len(codes), -9)
    for part, first in zip(parts, first_ranks(counts)):
        ranks = Ranks(first)
        for batch in np.array_split(part, 2):
            groups[batch] = places.group_of(codes[batch], ranks.of(places.kinds[codes[batch]]))
    return groups


@pytest.mark.parametrize(
    ("codes", "structure"),
    [
        ([0, 0, 0, 1, 1, 2], distinct(3)),
        ([0, 0, 0, 0, 1, 2], distinct(3)),
        ([0, 1, 2, 3], Clusters(np.array([0, 0, 1, 1]))),
    ],
)
def test_ranks_deal_as_bucketize_does(codes, structure):
    codes = np.array(codes)
    places = compose(np.bincount(codes, minlength=structure.size), structure, 2)
    stream, keys = SystemStream.seeded(4), SystemStream.seeded(5)
    one = Counter(tuple(bucketize(codes, structure, 2, stream).groups.tolist()) for _ in range(DRAWS))
    two = Counter(tuple(assigned(codes, places, keys.words(len(codes)), 3).tolist()) for _ in range(DRAWS))
    assert one.keys() == two.keys()
    # Every way to take the places is as likely as any other, so this is exact for both.
    for seen in (one, two):
        assert chisquare(list(seen.values())).pvalue > 1e-3


@pytest.mark.parametrize("algorithm", ["exact", "mbf"])
@settings(max_examples=20)
@given(generators())
def test_places_are_runs_of_groups(algorithm, random):
    counts = random.integers(0, 30, 7)
    far = np.triu(random.random((7, 7)) < 0.75, 1)
    labels = np.unique(random.integers(0, 4, 7), return_inverse=True)[1]
    for structure in (distinct(7), Clusters(labels), Graph(far | far.T)):
        places = compose(counts, structure, 2, algorithm)
        kinds = np.repeat(np.arange(len(places.taken)), places.taken)
        ranks = np.concatenate([np.arange(taken) for taken in places.taken])
        value = np.array([np.flatnonzero(places.kinds == kind)[0] for kind in range(len(places.taken))])
        assert np.array_equal(places.group_of(value[kinds], ranks), places.groups)
        assert (places.group_of(value, places.taken) == SUPPRESSED).all()
        assert sorted(np.unique(places.groups)) == list(range(places.count))
        # The compatible values of each group, from its places.
        pairs = pl.DataFrame({"group": places.groups, "kind": kinds}).group_by("group").agg("kind")
        assert all(len(set(members)) == len(members) >= 2 for members in pairs["kind"].to_list())


def test_a_plan_does_not_grow_with_the_records():
    few, many = (compose(np.array([5, 4, 3, 3, 2]) * factor, distinct(5), 3) for factor in (1, 10**9))
    assert len(pickle.dumps(many)) <= len(pickle.dumps(few)) + 100
    assert many.count == 17 * 10**9 // 3
    last = many.group_of(np.array([0, 4]), np.array([0, int(many.taken[4]) - 1]))
    assert last.tolist() == [0, (many.total - 1) % many.count]


def patients(count=600):
    random = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "id": np.arange(count),
            "age": random.integers(18, 90, count),
            "ill": random.choice([*ILLNESSES, "?"], count, p=[0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]),
            "job": random.choice(["a", "b"], count),
        }
    )


@pytest.mark.parametrize(
    ("method", "far"),
    [("{anatomy: {l: 3, attribute: ill}}", False), ("{buckets: {l: 2, d: 2, attribute: ill}}", True)],
)
def test_a_table_is_dealt_part_by_part(method, far):
    rules = ps.Policy.loads(f"""
attributes:
  id: {{role: insensitive}}
  age: {{role: quasi-identifier}}
  ill: {{role: sensitive, missing: drop, distance: {TREE}}}
  job: {{role: sensitive}}
table: {{missing-values: ['?']}}
models: [{{distinct-diversity: {{l: 1, attribute: job}}}}]
method: {method}
""")
    table = patients()
    made = treat_counted(rules, resolved_for(rules, open_table(table)), open_table(table))
    assert isinstance(made, Assigned)
    dealer = pickle.loads(pickle.dumps(made.dealer))  # noqa: S301
    rest, codes = [], []
    for batch in table.to_arrow().to_batches(max_chunksize=101):
        kept, found, others = dealer.code(batch)
        assert others.num_rows == len(found) == kept.sum()
        rest.append(others)
        codes.append(found)
    values, others = np.concatenate(codes), pl.DataFrame(pl.from_arrow(pa.Table.from_batches(rest)))
    groups = assigned(values, dealer.places, SystemStream.seeded(1).words(len(values)), 4)
    frame = others.with_columns(group=pl.Series(groups), code=pl.Series(values)).filter(pl.col("group") != SUPPRESSED)
    lists = frame.group_by("group").agg("code")
    lists = lists.with_columns(ill=pl.Series(pl.from_arrow(dealer.listed(pa.array(lists["code"].to_list())))))
    published = frame.drop("code").join(lists.drop("code"), on="group").with_columns(pl.col("group") + 1)
    # Published is what one machine publishes: the same columns, as many groups, no record lost, all values there.
    here = ps.anonymize(table, rules, seed=1, warn=lambda text: None, accept_risk=True)
    assert made.applied == here.manifest.applied
    assert made.dropped == table.filter(ill="?").height == here.manifest.dropped
    assert published.height == made.records - made.applied.suppressed
    assert made.applied.suppressed
    assert [*made.columns] == ["age", "ill", "job", "group"]
    assert [type(item) for item in made.columns.values()] == [type(here.manifest[name]) for name in made.columns]
    assert set(published.columns) == {*here.manifest.names}
    true = published.join(table.select("id", true="ill"), on="id")
    assert true.select(pl.col("ill").list.contains(pl.col("true")).all()).item()
    branch = {name: place for place, part in enumerate((ILLNESSES[:3], ILLNESSES[3:5], ILLNESSES[5:])) for name in part}
    for members in lists["ill"].to_list():
        labels = [branch[name] for name in members] if far else members
        assert len(set(labels)) == len(labels) >= (2 if far else 3)
    assert published.group_by("group").len()["len"].sum() == lists["ill"].list.len().sum()
