"""The naive Bayes fit of the deFinetti adversary, against its formula written out record by record."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream
from polyseme.scrutiny.attacks import definetti
from polyseme.scrutiny.attacks.definetti import Learned, beliefs, levels_of
from polyseme.scrutiny.attacks.scene import Scene, Shown
from polyseme.semantics.distances import LineDistance

RECORDS = 150


def ranks(l: int, p: float) -> Mechanism:
    return Mechanism(make_design("balanced", LineDistance.ranks(7).structure(2), l), p)


def release(mechanism: Mechanism, records: int = RECORDS) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(4)
    truth = random.integers(0, 7, records)
    levels = np.column_stack([truth // 3, random.integers(0, 4, records), np.zeros(records, dtype=np.int64)])
    return mechanism.sample(truth, SystemStream.seeded(5)), levels


def written_out(sets: np.ndarray, mechanism: Mechanism, levels: np.ndarray, rounds: int = 20) -> np.ndarray:
    """`belief(r, v)` after so many rounds, one candidate at a time."""
    inside, outside = (weights.tolist() for weights in mechanism.weights(sets))
    records, size, share = len(sets), mechanism.size, [1.0 / mechanism.size] * mechanism.size
    logs = [[0.0] * sets.shape[1] for _ in range(records)]
    belief: list[list[float]] = []
    for _ in range(rounds + 1):
        if belief:
            held, revised = [0.0] * size, [0.0] * size
            for row, beliefs_of in zip(sets.tolist(), belief):
                beyond, left = 1.0 - sum(share[value] for value in row), 1.0 - sum(beliefs_of)
                for value in range(size):
                    held[value] += beliefs_of[row.index(value)] if value in row else 0.0
                    revised[value] += beliefs_of[row.index(value)] if value in row else share[value] * left / beyond
            logs = [[evidence(sets, belief, held, levels, r, value) for value in sets[r]] for r in range(records)]
            share = [value / records for value in revised]
        belief = []
        for row, weights, other, hints in zip(sets.tolist(), inside, outside, logs):
            joint = [share[v] * w * math.exp(hint) for v, w, hint in zip(row, weights, hints)]
            lie = other * (1.0 - sum(share[v] for v in row))
            belief.append([one / (sum(joint) + lie) for one in joint])
    return np.array(belief)


def evidence(
    sets: np.ndarray, belief: list[list[float]], held: list[float], levels: np.ndarray, record: int, value: int
) -> float:
    """`ln P_j(q | v) / P_j(q)`, added up over the columns."""
    said = 0.0
    for level in levels.T:
        alike, added = level == level[record], 0.5 * len(set(level.tolist()))
        together = float((np.array(belief) * (sets == value) * alike[:, None]).sum())
        said += math.log((together / alike.mean() + added) / (held[value] + added))
    return said


@pytest.mark.parametrize(("l", "p"), [(2, 1.0), (3, 1.0), (2, 0.5)])
def test_beliefs_are_those_of_the_formula(l: int, p: float) -> None:
    mechanism = ranks(l, p)
    sets, levels = release(mechanism, 40)
    assert beliefs(sets, mechanism, levels) == pytest.approx(written_out(sets, mechanism, levels), abs=1e-10)


def test_what_was_learned_is_what_is_believed_of_others() -> None:
    """The shares of a record with some levels, times the chance of its set, are the next revision of its beliefs."""
    mechanism = ranks(2, 1.0)
    sets, levels = release(mechanism, 40)
    learned = Learned.from_records(sets, mechanism, levels, [3, 4, 1])
    assert learned.sure == pytest.approx(written_out(sets, mechanism, levels).max(axis=1).mean(), abs=1e-10)
    joint = np.take_along_axis(learned.shares_of(levels), sets, axis=1) * mechanism.weights(sets)[0]
    next_one = written_out(sets, mechanism, levels, rounds=21)
    assert joint / joint.sum(axis=1, keepdims=True) == pytest.approx(next_one, abs=1e-10)


def test_a_column_of_as_many_levels_as_records_is_left_out() -> None:
    features = np.column_stack([np.arange(20), np.arange(20) % 10, [7] * 20])
    levels = levels_of(features)
    assert levels.tolist() == [[number % 10, 0] for number in range(20)]
    assert levels_of(np.arange(5)[:, None]).shape == (5, 0)


def test_without_columns_beliefs_follow_from_the_shares_alone() -> None:
    mechanism = ranks(2, 1.0)
    sets, levels = release(mechanism)
    alone = beliefs(sets, mechanism, levels[:, :0])
    assert alone == pytest.approx(beliefs(sets, mechanism, levels[:, 2:]), abs=1e-12)
    assert alone.sum(axis=1) == pytest.approx(np.ones(RECORDS))


@pytest.mark.parametrize("records", [1, 2, 3, 4])
@pytest.mark.filterwarnings("error")
def test_few_records_are_no_trouble(records: int) -> None:
    mechanism = ranks(2, 1.0)
    sets, levels = release(mechanism, records)
    (found,) = definetti.attack(Scene(Shown(sets, mechanism), features=levels))
    assert 0.0 < found.detail["confidence"] <= 1.0
    assert not found.exceeded
