"""Numbers of a release from which records were left out: said to be of the published ones, or true for all."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme
from draws import Generator, generators, seeds
from hypothesis import given, settings

import polyseme as ps
from polyseme.inference.sets.estimate import Estimate
from polyseme.kernel.errors import QuestionError

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PrivacyWarning")

ANATOMY = """
attributes: {sex: {role: quasi-identifier}, ill: {role: sensitive, domain: [0, 1, 2, 3]}}
method: {anatomy: {l: 2}}
"""
CLASSES = """
attributes: {sex: {role: quasi-identifier, hierarchy: suppress}, ill: {role: sensitive, domain: [0, 1, 2, 3]}}
models: [{distinct-diversity: {l: 3}}, {k-anonymity: {k: 6}}]
method: {full-domain: {suppression: 0.5}}
"""
SETS = """
attributes:
  sex: {role: quasi-identifier, hierarchy: suppress}
  ill: {role: sensitive, domain: [0, 1, 2, 3], protect: {diversity: {l: 2}}}
models: [{k-anonymity: {k: 40}}]
method: {decoys: {}, full-domain: {suppression: 0.2}}
"""


def people(counts: Any, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    values = np.repeat(np.arange(len(counts)), counts)
    return pl.DataFrame({"sex": random.choice(["f", "m", "x"], len(values), p=[0.48, 0.48, 0.04]), "ill": values})


def released(text: str, table: pl.DataFrame) -> ps.Release:
    return ps.anonymize(table, ps.Policy.loads(text), seed=1)


def test_the_papers_example_is_no_longer_exact_for_the_whole() -> None:
    """700 and 300 records: what is published is 299 of each, and says so."""
    table = people([700, 300])
    release = released(ANATOMY, table)
    found = ps.estimate(release, of=["ill"])
    assert found.target == "published"
    assert found.left_out == 402
    assert "598 published records (402 more are left out)" in str(found)
    assert "numbers of the published records" in found.notes[0]
    assert "published records" in found.mean().notes[0]
    whole = ps.estimate(release, of=["ill"], target="table")
    assert (whole.target, whole.records, whole.estimator) == ("table", 1000, "scaled")
    assert whole.low.ravel()[0] <= 700 <= whole.high.ravel()[0]
    assert whole.low.ravel()[1] <= 300 <= whole.high.ravel()[1]
    mean = whole.mean()
    assert mean.low[0] <= 0.3 <= mean.high[0]
    assert np.isnan(whole.stderr).all()


def test_limits_are_those_of_all_assignments_of_the_missing_records() -> None:
    """Neither wider nor narrower: by going through every way in which three records can be filled in."""
    table = people([9, 4, 1, 1])
    release = released(ANATOMY, table)
    published = ps.estimate(release, of=["ill"])
    missing = published.left_out
    assert 2 <= missing <= 6
    whole = ps.estimate(release, of=["ill"], target="table")
    counts = published.values.ravel()
    filled = [
        counts + np.bincount(way, minlength=4) for way in itertools.combinations_with_replacement(range(4), missing)
    ]
    assert whole.low.ravel() == pytest.approx(np.min(filled, axis=0))
    assert whole.high.ravel() == pytest.approx(np.max(filled, axis=0))
    shares = whole.proportions()
    assert shares.low.ravel() == pytest.approx(np.min(filled, axis=0) / 15)
    assert shares.high.ravel() == pytest.approx(np.max(filled, axis=0) / 15)
    means = [float(way @ np.arange(4) / 15) for way in filled]
    mean = whole.mean()
    assert (mean.low[0], mean.high[0]) == pytest.approx((min(means), max(means)))
    medians = [float(np.repeat(np.arange(4), way.astype(int))[7]) for way in filled]
    median = whole.quantile(0.5)
    assert (median.low[0], median.high[0]) == (min(medians), max(medians))
    contrast = np.array([[[1.0, 0.0, -1.0, 2.0]]])
    sums = [float(way @ contrast.ravel()) for way in filled]
    _, _, low, high = whole.sums(contrast)
    assert (low[0], high[0]) == pytest.approx((min(sums), max(sums)))


@pytest.mark.parametrize("text", [ANATOMY, CLASSES], ids=["anatomy", "full-domain"])
def test_the_truth_is_never_outside_where_published_records_are_counted(text: str) -> None:
    suppressing = missed = 0

    @settings(max_examples=30)
    @given(generators(), seeds)
    def check(random: Generator, seed: int) -> None:
        nonlocal suppressing, missed
        counts = random.integers(2, 40, 4)
        counts[random.integers(4)] += random.integers(0, 200)
        table = people(counts, seed)
        release = released(text, table)
        published = ps.estimate(release, of=["ill"])
        suppressing += published.left_out > 0
        missed += bool((published.values.ravel() != counts).any())
        whole = ps.estimate(release, of=["ill"], target="table")
        assert whole.records == len(table)
        assert (whole.low.ravel() <= counts + 1e-9).all()
        assert (whole.high.ravel() >= counts - 1e-9).all()
        assert whole.values.sum() == pytest.approx(len(table))
        mean, truth = whole.mean(), table["ill"].mean()
        assert mean.low[0] - 1e-9 <= truth <= mean.high[0] + 1e-9
        shown = whole.margin(of=[])
        assert shown.low.tolist() == shown.high.tolist() == [len(table)]
        if published.left_out:
            found = ps.evaluate(release, table)
            assert found.tables["ill"]["covered"] == found.tables["ill"]["cells"]

    check()
    assert suppressing > 10
    assert missed > 10


def test_groups_of_a_class_may_hold_every_missing_record() -> None:
    table = people([60, 50, 40, 5], 3)
    release = released(CLASSES, table)
    missing = release.manifest.applied.suppressed
    assert missing > 0
    whole = ps.estimate(release, of=["ill"], by=["sex"], target="table")
    published = ps.estimate(release, of=["ill"], by=["sex"])
    for place, sex in enumerate(whole.by["sex"]):
        counts = table.filter(pl.col("sex") == sex)["ill"].value_counts().sort("ill")
        truth = np.zeros(4)
        truth[counts["ill"].to_numpy()] = counts["count"].to_numpy()
        assert (whole.low[place] <= truth).all()
        assert (whole.high[place] >= truth).all()
        shares = whole.proportions()
        assert shares.high[place] == pytest.approx(
            (published.values[place] + missing) / (published.totals[place] + missing)
        )
    left, right = ({"sex": sex} for sex in whole.by["sex"][:2])
    gap, narrow = whole.difference(left, right), published.difference(left, right)
    assert all(low <= near for low, near in zip(gap.low, narrow.low))
    assert all(high >= near for high, near in zip(gap.high, narrow.high))


def test_sets_of_classes_that_are_left_out_are_missed_too() -> None:
    """Decoys beside generalization: rare classes are withheld, and the estimate of the whole holds the truth."""
    counts = np.array([300, 200, 120, 60])
    table = people(counts, 5)
    release = released(SETS, table)
    assert release.manifest.applied is not None
    if not release.manifest.applied.withheld:
        pytest.skip("the suppressed records are fine as a class")
    whole = ps.estimate(release, of=["ill"], target="table")
    assert (whole.low.ravel() <= counts).all()
    assert (whole.high.ravel() >= counts).all()


def test_nothing_is_left_out_where_nothing_is_said() -> None:
    table = people([20, 20, 20, 20])
    release = released(ANATOMY, table)
    one, other = (ps.estimate(release, of=["ill"], target=target) for target in ("published", "table"))
    assert one.left_out == 0
    assert "published" not in str(one).split("\n")[0]
    assert one.low.tolist() == other.low.tolist()
    assert one.stderr.tolist() == other.stderr.tolist()


def test_what_has_no_interval_is_refused() -> None:
    release = released(ANATOMY, people([70, 30]))
    with pytest.raises(QuestionError, match="say nothing about a population"):
        ps.estimate(release, of=["ill"], target="table", population="super")
    with pytest.raises(QuestionError, match="target"):
        ps.estimate(release, of=["ill"], target="all")  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="left out"):
        ps.estimate(release, of=["ill"], target="table").independence()


def test_the_command_line_names_the_target(tmp_path: Path) -> None:
    release = tmp_path / "release"
    ps.anonymize(people([700, 300]), ps.Policy.loads(ANATOMY), release, seed=1)
    said = polyseme("estimate", release, "--of", "ill").stdout
    assert "Estimated numbers of published records (exact)" in said
    document = json.loads(polyseme("estimate", release, "--of", "ill", "--json").stdout)
    assert (document["target"], document["left_out"], document["records"]) == ("published", 402, 598)
    document = json.loads(polyseme("estimate", release, "--of", "ill", "--target", "table", "--json").stdout)
    assert (document["target"], document["left_out"], document["records"]) == ("table", 402, 1000)
    assert Estimate.from_dict(document).target == "table"
