"""What published sets say about the success of a rule, against the exact channel and known truths."""

from __future__ import annotations

import numpy as np
import pytest
from draws import replications

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.knowledge.held_out import Judge, Judged, folds, judged_groups, likeliest
from polyseme.kernel.randomness import SystemStream
from polyseme.privacy.analysis.learner import success
from polyseme.scrutiny.attacks import definetti, published_estimate
from polyseme.scrutiny.attacks.scene import Promised, Scene, Shown
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters


def ranks(size: int, l: int, d: int, p: float = 1.0) -> Mechanism:
    return Mechanism(make_design("balanced", LineDistance.ranks(size).structure(d), l), p)


def drawn(mechanism: Mechanism, shares: np.ndarray, records: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    truth = np.random.default_rng(seed).choice(mechanism.size, records, p=shares)
    return truth, mechanism.sample(truth, SystemStream.seeded(seed))


STEEP = 0.6 ** np.arange(9) / (0.6 ** np.arange(9)).sum()


@pytest.mark.parametrize("p", [1.0, 0.6, 0.3])
@pytest.mark.parametrize(("l", "d"), [(2, 2), (3, 2)])
def test_every_set_speaks_without_bias(l: int, d: int, p: float) -> None:
    """The mean of what a set says, over the sets that a value draws, is the chance of the rule for that value."""
    mechanism = ranks(9, l, d, p)
    judge = Judge.of(mechanism)
    assert judge is not None
    belief = np.random.default_rng(3).dirichlet(np.ones(9), 2)
    sets, channel = mechanism.channel()
    for kind in (0, 1):
        said = judge.scores(belief, STEEP, sets, np.full(len(sets), kind))
        assert said is not None
        # The rule, written out: the likeliest of all values, inside or outside the set.
        right = (belief[kind][:, None] * channel).argmax(axis=0)
        chance = np.array([channel[value, right == value].sum() for value in range(9)])
        assert channel @ said == pytest.approx(chance, abs=1e-9)
        assert STEEP @ chance == pytest.approx(success(mechanism, STEEP, belief[kind]), abs=1e-9)


def test_the_likeliest_value_may_be_outside_a_set_that_may_lie() -> None:
    mechanism = ranks(9, 2, 2, 0.3)
    sets, channel = mechanism.channel()
    members, beyond = likeliest(STEEP[None, :], sets, *mechanism.weights(sets))
    assert beyond is not None
    assert 0 < beyond.sum() < len(sets)
    which = np.column_stack([*members, beyond])
    assert (which.sum(axis=1) == 1).all()
    named = np.column_stack([sets, np.full(len(sets), STEEP.argmax())])[which]
    joint = STEEP[:, None] * channel
    assert joint[named, np.arange(len(sets))] == pytest.approx(joint.max(axis=0), rel=1e-9)


def test_the_first_of_several_alike_is_named() -> None:
    sets, _ = ranks(9, 2, 2).channel()
    (first, second), beyond = likeliest(np.ones((3, 9)), sets, np.ones(sets.shape), np.zeros(len(sets)))
    assert first.all()
    assert not second.any()
    assert beyond is None


def test_folds_are_a_partition_and_never_judge_themselves() -> None:
    parts = list(folds(11, 3))
    assert sorted(np.concatenate([rest for _, rest in parts]).tolist()) == list(range(11))
    assert all(not set(fit.tolist()) & set(rest.tolist()) for fit, rest in parts)


def test_errors_are_those_of_many_releases_where_all_candidates_are_alike() -> None:
    """The hardest case: chance alone decides what is named, so confidence is far too high."""
    mechanism, found = ranks(9, 2, 2), []
    group = np.arange(2_000) % 20
    for seed in replications(60):
        _, sets = drawn(mechanism, np.full(9, 1 / 9), 2_000, seed)
        judged = judged_groups(sets, group, mechanism)
        assert judged is not None
        found.append((judged.success, judged.error))
    estimates, errors = np.array(found).T
    assert estimates.mean() == pytest.approx(0.5, abs=0.006)
    assert 0.75 < estimates.std() / errors.mean() < 1.15


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_success_is_estimated_as_it_is(p: float) -> None:
    mechanism = ranks(9, 2, 2, p)
    exact = success(mechanism, STEEP)
    _, sets = drawn(mechanism, STEEP, 20_000, 5)
    judged = judged_groups(sets, np.zeros(20_000, dtype=np.int64), mechanism)
    assert judged is not None
    assert judged.error < 0.015
    assert judged.success == pytest.approx(exact, abs=3 * judged.error)


def test_what_sets_cannot_tell_is_not_judged() -> None:
    huge = Mechanism(make_design("balanced", Clusters(np.arange(2_000)), 3))
    assert Judge.of(huge) is None
    # Three ranks apart, three of nine are always v, v + 3 and v + 6: nothing tells them apart.
    for silent in (ranks(9, 2, 2, 0.0), ranks(9, 3, 3)):
        judge = Judge.of(silent)
        assert judge is not None
        assert judge.scores(STEEP[None, :], STEEP, silent.channel()[0][:3], np.zeros(3, dtype=np.int64)) is None
    assert Judged.of([np.zeros(1)]) is None


ADVERSARIES = [definetti, published_estimate]


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("l", [2, 3])
def test_a_kept_promise_is_not_taken_for_a_broken_one(adversary: object, l: int) -> None:
    """All candidates are alike, so exactly 1/l is right; an adversary's own confidence is higher, by chance."""
    mechanism, sure = ranks(9, l, 2), []
    noise = np.random.default_rng(1_000).integers(0, 8, (2_000, 2))
    for seed in replications(25):
        _, sets = drawn(mechanism, np.full(9, 1 / 9), 2_000, seed)
        (found,) = adversary.attack(  # type: ignore[attr-defined]
            Scene(Shown(sets, mechanism), Promised(learned=1 / l), features=noise)
        )
        assert not found.exceeded
        assert found.success < 1 / l + 3 * found.detail["error"]
        sure.append(found.detail["confidence"])
    assert np.mean(sure) > 1 / l + 0.02


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_a_promise_broken_by_three_percentage_points_is_found(adversary: object) -> None:
    mechanism = ranks(9, 2, 2)
    truth, sets = drawn(mechanism, STEEP, 30_000, 2)
    exact = success(mechanism, STEEP)
    assert exact is not None
    features = np.column_stack([truth % 2, np.arange(30_000) % 5])
    scene = Scene(Shown(sets, mechanism), Promised(learned=exact - 0.03), features=features)
    assert adversary.attack(scene)[0].exceeded  # type: ignore[attr-defined]
    alone = Scene(Shown(sets, mechanism), Promised(learned=exact - 0.03), features=features[:, 1:])
    assert adversary.attack(alone)[0].exceeded  # type: ignore[attr-defined]
