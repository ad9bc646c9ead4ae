"""Every adversary on every kind of scene: the next one is tested the day it is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream
from polyseme.results.attackers import Finding
from polyseme.scrutiny.attacks.registry import ADVERSARIES, attack
from polyseme.scrutiny.attacks.scene import Gathered, Promised, Scene, Shown, uniform
from polyseme.semantics.distances.base import Clusters
from polyseme.semantics.distances.line import LineDistance
from polyseme.tables.equivalence_classes import Classes

RECORDS = 3_000
RANKS = LineDistance.ranks(9)
FEW = Mechanism(make_design("balanced", Clusters(np.arange(5)), 2))

MECHANISMS: Mapping[str, Mechanism] = {
    "balanced line": Mechanism(make_design("balanced", RANKS.structure(2), 3)),
    "lying line": Mechanism(make_design("balanced", RANKS.structure(2), 2), 0.6),
    "plain clusters": Mechanism(make_design("balanced", Clusters(np.arange(9)), 3)),
    "one candidate": Mechanism(make_design("balanced", Clusters(np.arange(9)), 1), 0.4),
}
"""Under a uniform prior, all of them keep what `worst_posterior` says by construction."""


def classes(records: int) -> Classes:
    sizes = np.full(records // 5, 5)
    return Classes(sizes, np.arange(0, records, 5), records, 0)


def households(mechanism: Mechanism, truth: np.ndarray, seed: int) -> Gathered:
    """Three records each that share a value, with a set of their own for each of them."""
    group = np.arange(len(truth)) // 3
    shared = truth[3 * group]
    sets = mechanism.sample(shared, SystemStream.seeded(seed))
    return Gathered("rank", group, sets, *mechanism.weights(sets), uniform(mechanism.size), "home", shared)


def scene_of(mechanism: Mechanism, records: int = RECORDS, seed: int = 1) -> Scene:
    """Everything that can be shown, and promises that hold by construction."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, mechanism.size, records)
    other = np.where(random.random(records) < 0.7, truth % 5, random.integers(0, 5, records))
    sets, again = (mechanism.sample(truth, SystemStream.seeded(seed + step)) for step in (1, 2))
    helper = FEW.sample(other, SystemStream.seeded(seed + 3))
    apart = mechanism.design.structure == RANKS.structure(2)
    return Scene(
        Shown(sets, mechanism, "rank", distance=RANKS, learner_prior=uniform(mechanism.size)),
        Promised(
            guess=mechanism.worst_posterior(uniform(mechanism.size)),
            apart=2.0 if apart else 1.0,
            moved=1.0 - mechanism.l / mechanism.size,
            any_prior=1.0,
            k=5,
        ),
        truth=truth,
        features=np.column_stack([truth // 3, random.integers(0, 4, records)]),
        helper=Shown(helper, FEW, "other"),
        again=Shown(again, mechanism),
        classes=classes(records),
        seeded=True,
        gathered=households(mechanism, truth, seed + 4),
    )


def found_by(name: str, scene: Scene) -> tuple[Finding, ...]:
    return attack(scene, [name])


SCENES = {name: scene_of(mechanism) for name, mechanism in MECHANISMS.items()}
UNBOUNDED = {"repetition", "shared-value"}
"""Fresh decoys for one value, in two releases or two records, break the promise: that is what these are for."""


@pytest.mark.parametrize("kind", SCENES)
@pytest.mark.parametrize("name", ADVERSARIES)
def test_a_finding_is_complete(name: str, kind: str) -> None:
    assert ADVERSARIES[name].lacks(SCENES[kind]) == ""
    found = found_by(name, SCENES[kind])
    assert found
    for finding in found:
        assert finding.attack.startswith(name)
        assert finding.attribute in (None, "rank")
        assert 0.0 <= finding.success <= 1.0 + 1e-12
        assert 0.0 <= finding.baseline <= 1.0
        assert finding.bound is None or 0.0 <= finding.bound <= 1.0
        assert all(map(np.isfinite, finding.detail.values()))
        assert all((finding.knows, finding.gains, finding.helps))


@pytest.mark.parametrize("kind", SCENES)
@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name not in UNBOUNDED])
@pytest.mark.parametrize("judged", [True, False], ids=["with the original", "without"])
def test_what_holds_by_construction_is_not_exceeded(name: str, kind: str, judged: bool) -> None:
    scene = SCENES[kind] if judged else replace(SCENES[kind], truth=None)
    for finding in found_by(name, scene):
        assert not finding.exceeded
        if finding.bound is not None and not judged:
            assert finding.success <= finding.bound + 1e-9


def test_decoys_that_are_drawn_again_are_noticed() -> None:
    scene = SCENES["balanced line"]
    (fresh,) = found_by("repetition", scene)
    assert fresh.exceeded
    (sticky,) = found_by("repetition", replace(scene, again=scene.column, sticky=True))
    assert not sticky.exceeded


def shuffled(scene: Scene, order: np.ndarray) -> Scene:
    def again(shown: Shown | None) -> Shown | None:
        return None if shown is None else replace(shown, sets=shown.sets[order])

    return replace(
        scene,
        column=again(scene.column),
        helper=again(scene.helper),
        again=again(scene.again),
        truth=None if scene.truth is None else scene.truth[order],
        features=None if scene.features is None else scene.features[order],
        gathered=None if scene.gathered is None else scene.gathered.take(order),
    )


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("kind", ["balanced line", "lying line"])
def test_the_order_of_rows_does_not_matter(name: str, kind: str) -> None:
    scene = SCENES[kind]
    order = np.random.default_rng(2).permutation(RECORDS)
    there, here = (found_by(name, one) for one in (scene, shuffled(scene, order)))
    for one, other in zip(there, here, strict=True):
        assert one.success == pytest.approx(other.success, abs=1e-9)
        assert dict(one.detail) == pytest.approx(dict(other.detail), abs=1e-9)
        assert one.exceeded == other.exceeded


@pytest.mark.parametrize("name", ADVERSARIES)
def test_an_empty_scene_lacks_something(name: str) -> None:
    assert ADVERSARIES[name].lacks(Scene())
    assert found_by(name, Scene()) == ()


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("records", [1, 2])
def test_hardly_any_records(name: str, records: int) -> None:
    """One or two records, and nothing shown but what the adversary asks for."""
    scene = scene_of(MECHANISMS["balanced line"], max(records, 1))
    scene = replace(scene, classes=Classes(np.array([records]), np.array([0]), records, 0))
    for finding in found_by(name, scene):
        assert 0.0 <= finding.success <= 1.0 + 1e-12


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("part", ["column", "truth", "features", "helper", "again", "classes"])
def test_what_is_left_out_is_named_or_not_needed(name: str, part: str) -> None:
    """An adversary without a part of the scene either says what it lacks or attacks all the same."""
    scene = replace(SCENES["balanced line"], **{part: None})
    assert bool(ADVERSARIES[name].lacks(scene)) != bool(found_by(name, scene))


def test_nothing_is_promised_without_a_promise() -> None:
    scene = replace(SCENES["plain clusters"], promised=Promised())
    found = {finding.attack: finding for finding in attack(scene)}
    assert found["bayes"].bound == pytest.approx(1 / 3)  # the mechanism's own
    assert found["skewness"].bound is None
    assert {"similarity", "any-prior"}.isdisjoint(found)
