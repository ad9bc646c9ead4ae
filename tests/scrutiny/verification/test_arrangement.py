"""The order of candidates and of rows: honest releases pass, whatever their rows hold, and sorted ones do not.

What an honest order is, is drawn here: random permutations of rows that were made once.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from draws import replications
from scipy.stats import binom

import polyseme as ps
from polyseme.kernel.randomness import new_key
from polyseme.models import Verdict
from polyseme.scrutiny.verification import LEVEL
from polyseme.scrutiny.verification.evidence import order_evidence
from polyseme.tables.published import RowOrder

SIZE = 12
POLICY = """
attributes:
  person: {role: identifier}
  g: {role: quasi-identifier}
  x: {role: sensitive, domain: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], protect: {diversity: {l: 3}}}
"""


def sets_of(truth: np.ndarray, random: np.random.Generator, width: int = 3) -> np.ndarray:
    """The true value among uniform decoys, ascending."""
    noise = random.random((len(truth), SIZE))
    noise[np.arange(len(truth)), truth] = -1.0
    return np.sort(np.argsort(noise, axis=1)[:, :width], axis=1)


def p_value(sets: np.ndarray, pieces: int = 1) -> float:
    order = RowOrder(SIZE, sets.shape[1], len(sets))
    for piece in np.array_split(sets, pieces):
        order.add(piece)
    return order_evidence(order).p_value


def rows_of(kind: str, random: np.random.Generator) -> np.ndarray:
    """Rows before they are shuffled."""
    records = int(random.choice([6, 30, 200, 1_000]))
    truth = np.minimum(random.geometric(0.3, records) - 1, SIZE - 1)
    sets = sets_of(truth, random)
    if kind == "repeated":  # a few people with very many records, always with the same set
        return np.repeat(sets, np.where(np.arange(records) % 10 == 0, 20, 1), axis=0)[:3_000]
    if kind == "shared":  # households of up to six with one set
        return np.repeat(sets, random.integers(1, 7, records), axis=0)
    if kind == "long":
        return sets.reshape(-1, 1)
    return sets


@pytest.mark.parametrize("kind", ["plain", "repeated", "shared", "long"])
def test_honest_orders_are_seldom_doubted(kind: str) -> None:
    """At most as often as the p-value says, over 200 releases of each kind, in one piece and in many."""
    random = np.random.default_rng(1)
    found = [p_value(random.permutation(rows_of(kind, random)), pieces) for pieces in (1, 7) for _ in range(100)]
    for level in (0.3, 0.1, 0.02):
        assert np.mean(np.array(found) < level) <= level


def test_both_statistics_come_near_what_they_bound() -> None:
    """A bound that is never reached would prove nothing: the tails of a simulation are within a factor of the bound."""
    random = np.random.default_rng(2)
    rows = sets_of(np.repeat(np.arange(SIZE), 50), random)
    shared, held = [], []
    for _ in range(400):
        order = RowOrder(SIZE, 3, len(rows))
        order.add(random.permutation(rows))
        pairs, (_, blocks) = order.neighbors(), order.blocks()
        shared.append((pairs.shared - pairs.expected) / 3)
        held.append(blocks[0])
    expected = order.neighbors().expected / 3
    # Chatterjee: variance below 2 E S; here each pair shares a third of 0.75 candidates on average.
    assert 0.05 < np.var(shared) / (2 * expected) < 1.0
    share = order.held / len(rows)
    length = len(rows) / 64
    assert np.var(held, axis=0) == pytest.approx(length * share * (1 - share), rel=0.35)


@pytest.mark.parametrize("records", [300, 3_000])
def test_rows_that_are_sorted_by_the_true_value_are_found(records: int) -> None:
    random = np.random.default_rng(records)
    truth = np.minimum(random.geometric(0.3, records) - 1, SIZE - 1)
    assert 2 * p_value(sets_of(np.sort(truth), random)) < LEVEL
    assert 2 * p_value(sets_of(random.permutation(truth), random)) > 0.05


def test_rows_that_are_sorted_in_parts_are_found() -> None:
    """A table in the order of its hospitals, whose patients differ somewhat."""
    random = np.random.default_rng(5)
    truth = np.concatenate([random.binomial(11, share, 400) for share in (0.2, 0.5, 0.8, 0.4)])
    assert 2 * p_value(sets_of(truth, random)) < LEVEL


pytestmark = pytest.mark.filterwarnings("ignore::polyseme.PrivacyWarning")


def mechanism(release: ps.Release) -> Verdict:
    return next(verdict for verdict in ps.verify(release).verdicts if verdict.model == "mechanism")


def table(records: int = 600, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    truth = np.minimum(random.geometric(0.3, records) - 1, SIZE - 1)
    return pl.DataFrame({"person": np.arange(records) // 3, "g": random.integers(0, 2, records), "x": truth})


def with_sets(release: ps.Release, sets: np.ndarray) -> ps.Release:
    """The same release with other sets, as a forger would write it."""
    assert release.table is not None
    column = pa.array(sets.tolist(), release.table.schema.field("x").type)
    return replace(release, table=release.table.set_column(1, "x", column))


def test_a_release_whose_order_tells_the_truth_is_violated() -> None:
    random = np.random.default_rng(3)
    truth = random.permutation(table()["x"].to_numpy())
    release = ps.anonymize(table(), ps.Policy.loads(POLICY))
    assert mechanism(release).holds
    honest = sets_of(truth, random)
    assert mechanism(with_sets(release, honest)).holds
    by_truth = mechanism(with_sets(release, sets_of(np.sort(truth), random)))
    assert not by_truth.holds
    assert "order that can tell true values" in by_truth.note
    assert by_truth.parameters["blocks_p_value"] < LEVEL
    first = np.array([[value, *(other for other in row if other != value)] for value, row in zip(truth, honest)])
    checked = mechanism(with_sets(release, first))
    assert (checked.holds, checked.worst) == (False, 0.0)
    assert "in another order than the domain's" in checked.note


def test_the_order_of_a_table_of_another_program_is_a_remark() -> None:
    random, truth = np.random.default_rng(4), np.sort(table()["x"].to_numpy())
    sets = sets_of(truth, random)
    foreign = pl.DataFrame({"g": table()["g"], "x": sets.tolist()})
    policy = ps.Policy.loads(POLICY.replace("  person: {role: identifier}\n", ""))
    verdict = mechanism(ps.adopt(foreign, policy))
    assert verdict.holds
    assert "publish candidates in the domain's order and rows in random order" in verdict.note
    shuffled = mechanism(ps.adopt(foreign.sample(fraction=1.0, shuffle=True, seed=1), policy))
    assert "random order" not in shuffled.note


WAYS: dict[str, dict[str, Any]] = {
    "one file": {},
    "many files": {"rows_per_file": 70},
    "csv": {"file_format": "csv", "rows_per_file": 150},
    "long": {"form": "long"},
}


@pytest.mark.parametrize("way", WAYS)
def test_honest_releases_hold_however_they_are_written(way: str, tmp_path: Path) -> None:
    for seed in replications(6):
        folder = tmp_path / str(seed)
        ps.anonymize(table(400, seed).sort("x"), ps.Policy.loads(POLICY), folder, **WAYS[way])
        verdict = mechanism(ps.Release.open(folder))
        assert verdict.holds
        assert min(verdict.parameters["blocks_p_value"], verdict.parameters["neighbors_p_value"]) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("way", ["one file", "many files"])
def test_honest_releases_are_seldom_called_sorted(way: str, tmp_path: Path) -> None:
    """Of sorted tables, over 200 releases each: p-values are below a level no more often than it says."""
    found, policy = [], ps.Policy.loads(POLICY)
    for seed in replications(200):
        people, folder = table((60, 200, 700)[seed % 3], seed).sort("x"), tmp_path / "r"
        ps.anonymize(people, policy, folder, overwrite=True, **WAYS[way])
        verdict = mechanism(ps.Release.open(folder))
        assert verdict.holds
        found.append(2 * min(verdict.parameters["blocks_p_value"], verdict.parameters["neighbors_p_value"]))
    for level in (0.3, 0.1, 0.05):
        assert np.sum(np.array(found) < level) <= binom.ppf(0.99, len(found), level)


@pytest.mark.slow
@pytest.mark.parametrize(("records", "blur", "caught"), [(700, 2.0, 0.9), (3_000, 5.0, 0.9)])
def test_releases_that_are_weakly_sorted_by_the_true_value_are_found(records: int, blur: float, caught: float) -> None:
    """By the true value and noise: the place of a row and its value correlate by 0.7, and in more rows by 0.4."""
    random, people = np.random.default_rng(7), table(records)
    release, truth, doubted = ps.anonymize(people, ps.Policy.loads(POLICY)), people["x"].to_numpy(), []
    for _ in range(30):
        order = np.argsort(truth + random.normal(0.0, blur, records))
        doubted.append(not mechanism(with_sets(release, sets_of(truth[order], random))).holds)
        assert mechanism(with_sets(release, sets_of(random.permutation(truth), random))).holds
    assert np.mean(doubted) >= caught


def test_people_with_several_records_have_the_same_set_and_hold(tmp_path: Path) -> None:
    key = tmp_path / "key"
    new_key(key)
    policy = ps.Policy.loads(POLICY + "record-key: person\n")
    people = table(600).with_columns(x=pl.col("x").first().over("person")).sort("x")
    release = ps.anonymize(people, policy, tmp_path / "r", key_file=key, records_per_person=3)
    verdict = mechanism(release)
    assert verdict.holds
    assert json.loads((tmp_path / "r" / "manifest.json").read_text(encoding="utf-8"))["sticky"]
