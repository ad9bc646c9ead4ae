"""What several independent sets of one person tell together, against enumeration and simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream
from polyseme.privacy.analysis import intersection as intersecting
from polyseme.privacy.analysis.intersection import left_alone, success_over
from polyseme.semantics.distances import LineDistance

SHARES = np.array([0.3, 0.05, 0.2, 0.1, 0.02, 0.18, 0.1, 0.05])


def line(l: int, d: float, p: float = 1.0, name: str = "balanced") -> Mechanism:
    return Mechanism(make_design(name, LineDistance.ranks(8).structure(d), l), p)


def enumerated(mechanisms: list[Mechanism], shares: np.ndarray) -> tuple[float, float]:
    """Both figures from the definitions: every combination of sets, every value."""
    channels = [mechanism.channel() for mechanism in mechanisms]
    alone = best = 0.0
    for places in product(*(range(len(sets)) for sets, _ in channels)):
        chance = shares * np.prod([channel[:, place] for place, (_, channel) in zip(places, channels)], axis=0)
        best += chance.max()
        common = set.intersection(*(set(sets[place]) for place, (sets, _) in zip(places, channels)))
        alone += chance[list(common)].sum() if len(common) == 1 else 0.0
    return alone, best


CASES = [
    [line(2, 2)],
    [line(2, 2), line(2, 2)],
    [line(3, 2), line(2, 1)],
    [line(2, 2), line(2, 2), line(2, 3)],
    [line(3, 1, name="simple"), line(2, 2)],
]


@pytest.mark.parametrize("mechanisms", CASES)
def test_truthful_releases_against_enumeration(mechanisms: list[Mechanism]) -> None:
    alone, best = enumerated(mechanisms, SHARES)
    assert left_alone(mechanisms, SHARES).exact
    assert left_alone(mechanisms, SHARES).low == pytest.approx(alone, abs=1e-12)
    assert success_over(mechanisms, SHARES).exact
    assert success_over(mechanisms, SHARES).low == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.8])
def test_success_where_sets_may_lie_against_enumeration(p: float) -> None:
    mechanisms = [line(2, 2, p), line(3, 2, 0.6)]
    assert success_over(mechanisms, SHARES).low == pytest.approx(enumerated(mechanisms, SHARES)[1], abs=1e-12)
    assert left_alone(mechanisms, SHARES).high == 0.0


def test_sets_that_may_lie_leave_the_certainty_of_the_others() -> None:
    truthful = [line(2, 2), line(2, 2)]
    assert left_alone([*truthful, line(2, 2, 0.5)], SHARES) == left_alone(truthful, SHARES)


def test_intersecting_against_a_simulation() -> None:
    mechanism, people = line(3, 2), 40_000
    codes = np.random.default_rng(1).choice(8, people, p=SHARES)
    drawn = [mechanism.sample(codes, SystemStream.seeded(seed)) for seed in (2, 3, 4)]
    held = np.ones((people, 8), dtype=bool)
    for sets in drawn:
        member = np.zeros_like(held)
        np.put_along_axis(member, sets, True, axis=1)
        held &= member
    expected = left_alone([mechanism] * 3, SHARES).low
    assert np.mean(held.sum(axis=1) == 1) == pytest.approx(expected, abs=4 * np.sqrt(expected / people))
    guess = np.where(held, SHARES / mechanism.design.blind_inclusion() ** 3, 0.0).argmax(axis=1)
    reached = success_over([mechanism] * 3, SHARES).low
    assert np.mean(guess == codes) == pytest.approx(reached, abs=4 * np.sqrt(reached / people))


def test_bounds_hold_where_nothing_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*CASES[1:], [line(2, 2, 0.3), line(2, 2, 0.4)]]
    exact = [enumerated(mechanisms, SHARES) for mechanisms in cases]
    monkeypatch.setattr(intersecting, "_PARTS", 0)
    monkeypatch.setattr(intersecting, "_TERMS", 0)
    for mechanisms, (alone, best) in zip(cases, exact):
        found, reached = left_alone(mechanisms, SHARES), success_over(mechanisms, SHARES)
        if mechanisms[0].p == 1.0:
            assert found.low <= alone + 1e-12 <= found.high + 1e-12
        assert reached.low <= best + 1e-12
        assert best <= reached.high + 1e-12
    assert success_over(cases[-1], SHARES).high < 1.0
    # With two candidates the bound is the probability itself.
    assert left_alone(cases[0], SHARES).low == pytest.approx(exact[0][0])


def test_many_releases_of_a_large_domain_take_no_list_of_combinations() -> None:
    shares = np.full(300, 1 / 300)
    mechanism = Mechanism(make_design("balanced", LineDistance.ranks(300).structure(2), 2))
    assert left_alone([mechanism] * 5, shares).low > 0.9999
    assert success_over([mechanism] * 5, shares).low > 0.9999
