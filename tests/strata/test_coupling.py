"""Sticky sets of one person in several strata: the exact law in each, and as much in common as there can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyseme.designs import make_design, restrict
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import StickyStream
from polyseme.scrutiny.attacks.republication import intersected
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters, Structure
from polyseme.strata import Strata, Stratum
from polyseme.strata.coupling import Coupled, Coupling, Even, Kept, Nested, couple

KEY = bytes(range(32))
PLAIN, LINE = Clusters(np.arange(6)), LineDistance.ranks(14).structure(3)


def strata(
    structure: Structure, l: int, *excluded: tuple[int, ...], design: str = "balanced", p: Sequence[float] = (1.0,)
) -> Strata:
    members = []
    for number, codes in enumerate(((), *excluded)):
        left, _ = restrict(structure, np.delete(np.arange(structure.size), codes))
        mechanism = Mechanism(make_design(design, left, l), p[number % len(p)])
        members.append(Stratum(codes, structure.size, mechanism))
    return Strata((), tuple(members))


SETTINGS: dict[str, Strata] = {
    "plain": strata(PLAIN, 3, (4, 5)),
    "line": strata(LINE, 3, (0, 1)),
    "gap in the line": strata(LINE, 3, (6, 7)),
    "pairs": strata(LineDistance.ranks(14).structure(4), 2, (0, 1)),
    "tree": strata(Clusters(np.repeat(np.arange(4), 3)), 3, (0, 3)),
    "simple": strata(LINE, 3, (0, 1), design="simple"),
    "duplicate": strata(LineDistance.ranks(14).structure(2), 3, (0, 1), design="duplicate"),
    "lies": strata(LineDistance.ranks(10).structure(2), 3, (8, 9), p=(0.7, 0.6)),
    "lies in one stratum": strata(PLAIN, 3, (5,), p=(1.0, 0.5)),
    "blind in one stratum": strata(PLAIN, 3, (5,), p=(0.0, 1.0)),
}
KINDS = {"kept": Kept, "nested": Nested, "even": Even}
EVEN = [name for name, found in SETTINGS.items() if found.members[0].mechanism.design.even]
PAIRS = [(name, kind) for name in SETTINGS for kind in KINDS if kind != "even" or name in EVEN]


def row(stratum: Stratum, value: int) -> Any:
    return stratum.mechanism.channel()[1][stratum.narrow(np.array([value]))[0]]


def sets_of(stratum: Stratum) -> Any:
    return stratum.widen(stratum.mechanism.channel()[0])


def proposals(coupling: Coupling) -> Any:
    """The probability of each proposal given each set of the parent, from its definition."""
    parent, child = coupling.parent, coupling.child
    before, after = sets_of(parent).tolist(), sets_of(child).tolist()
    if isinstance(coupling, Kept):
        return np.array([[float(one == two) for two in after] for one in before])
    blind = child.mechanism.design.blind_likelihood(child.mechanism.channel()[0])
    parts = [{code for code in one if not child.forbids[code]} for one in before]
    weights = np.array([[share if part <= set(two) else 0.0 for two, share in zip(after, blind)] for part in parts])
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def joint(coupling: Coupling, value: int) -> Any:
    """`P(R, R' | v)` from the definition, with `w` as the coupling gives it."""
    before, after = row(coupling.parent, value), row(coupling.child, value)
    proposed = proposals(coupling)
    possible = after > 1e-15
    ratio = np.full(len(after), np.inf)
    ratio[possible] = coupling.ratio(np.full(possible.sum(), value), sets_of(coupling.child)[possible])
    kept = proposed * np.minimum(1.0, 1.0 / np.maximum(ratio, 1e-300))
    spare = np.where(possible, after * np.maximum(1.0 - np.where(possible, ratio, 1.0), 0.0), 0.0)
    afresh = (1.0 - kept.sum(axis=1))[:, None] * (spare / spare.sum() if spare.sum() > 1e-12 else spare)
    return before[:, None] * (kept + afresh)


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_both_sets_have_exactly_the_law_of_their_strata(name: str, kind: str) -> None:
    coupling = KINDS[kind](*SETTINGS[name].members)
    for value in coupling.child.allowed.tolist():
        both = joint(coupling, value)
        assert np.allclose(both.sum(axis=0), row(coupling.child, value), atol=1e-9)
        assert np.allclose(both.sum(axis=1), row(coupling.parent, value), atol=1e-9)


def best_guess(channels: list[Any]) -> float:
    """An attacker who knows every probability and guesses best, where all values are equally likely a priori."""
    return float(np.max(channels, axis=0).sum() / len(channels))


def success(coupling: Coupling) -> float:
    return best_guess([joint(coupling, value) for value in coupling.child.allowed.tolist()])


@pytest.mark.parametrize(
    ("name", "alone", "independent", "coupled"),
    [
        ("plain", 0.500, 0.633, 0.500),
        ("line", 0.389, 0.781, 0.449),
        ("gap in the line", 0.389, 0.795, 0.459),
        ("pairs", 0.583, 0.926, 0.595),
        ("tree", 0.400, 0.790, 0.451),
        ("simple", 0.436, 0.833, 0.451),
        ("duplicate", 0.396, 0.831, 0.434),
        ("lies", 0.329, 0.477, 0.357),
    ],
)
def test_two_sets_tell_hardly_more_than_one_and_what_is_impossible(
    name: str, alone: float, independent: float, coupled: float
) -> None:
    parent, child = SETTINGS[name].members
    values = child.allowed.tolist()
    assert best_guess([row(parent, value) for value in values]) == pytest.approx(alone, abs=5e-4)
    apart = [np.outer(row(parent, value), row(child, value)) for value in values]
    assert best_guess(apart) == pytest.approx(independent, abs=5e-4)
    assert success(couple(parent, child)) == pytest.approx(coupled, abs=5e-4)


def people(count: int, values: Sequence[int], seed: int = 1) -> tuple[StickyStream, Any]:
    codes = np.random.default_rng(seed).choice(values, count)
    return StickyStream(KEY, "a", [b"%d" % number for number in range(count)], codes), codes


def fit(stratum: Stratum, drawn: Any, codes: Any) -> float:
    """The p-value of sets of a stratum, all values together."""
    numbers = {tuple(one): number for number, one in enumerate(sets_of(stratum).tolist())}
    seen, expected = [], []
    for value in np.unique(codes).tolist():
        law = row(stratum, value)
        counts = np.bincount([numbers[tuple(one)] for one in drawn[codes == value].tolist()], minlength=len(law))
        assert counts[law < 1e-15].sum() == 0
        seen.append(counts[law >= 1e-15])
        expected.append(law[law >= 1e-15] * counts.sum())
    seen_all, expected_all = np.concatenate(seen), np.concatenate(expected)
    statistic = ((seen_all - expected_all) ** 2 / expected_all).sum()
    return float(stats.chi2.sf(statistic, len(seen_all) - len(seen)))


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_sampler_follows_that_law(name: str, kind: str) -> None:
    parent, child = SETTINGS[name].members
    stream, codes = people(20_000, child.allowed.tolist())
    before = parent.mechanism.sample(codes, stream)
    drawn = KINDS[kind](parent, child).sample(codes, before, stream, 1)
    assert fit(child, drawn, codes) > 1e-3
    assert fit(parent, before, codes) > 1e-3


def test_even_designs_are_recognized() -> None:
    assert EVEN == ["plain", "lies in one stratum", "blind in one stratum"]
    assert [type(couple(*SETTINGS[name].members)) for name in ("plain", "line", "pairs")] == [Even, Nested, Kept]


@pytest.mark.parametrize("kind", ["kept", "nested"])
def test_a_sampler_that_never_refuses_a_proposal_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, child = SETTINGS["line"].members
    stream, codes = people(20_000, child.allowed.tolist())
    coupling = KINDS[kind](parent, child)
    honest = coupling.propose

    def eager(codes: Any, sets: Any, uniforms: Any) -> Any:
        proposed, ratio = honest(codes, sets, uniforms)
        return proposed, np.where(np.isfinite(ratio), 0.0, np.inf)

    monkeypatch.setattr(coupling, "propose", eager)
    drawn = coupling.sample(codes, parent.mechanism.sample(codes, stream), stream, 1)
    assert fit(child, drawn, codes) < 1e-6


def test_strata_below_strata() -> None:
    found = strata(LINE, 3, (0, 1), (12, 13), (0, 1, 12, 13))
    stream, codes = people(20_000, range(2, 12))
    coupled = Coupled(found)
    drawn = [coupled.sample(np.full(len(codes), place), codes, stream) for place in range(4)]
    for place, member in enumerate(found.members):
        assert fit(member, drawn[place], codes) > 1e-3
    fresh = [
        member.widen(member.mechanism.sample(member.narrow(codes), people(20_000, range(2, 12))[0]))
        for member in found.members
    ]
    for one, two, most in ((0, 1, 0.45), (0, 3, 0.62), (1, 3, 0.54), (1, 2, 0.56)):
        assert intersected(drawn[one], drawn[two], codes) < most < intersected(fresh[one], fresh[two], codes)


def test_the_known_example_is_as_good_as_it_can_be() -> None:
    """Six illnesses, three candidates, two illnesses impossible in one of two waves: it was 61%."""
    found = SETTINGS["plain"]
    stream, codes = people(20_000, range(4))
    first, second = (Coupled(found).sample(np.full(len(codes), place), codes, stream) for place in range(2))
    assert intersected(first, second, codes) == pytest.approx(0.5, abs=0.01)
    left = np.where(first < 4, first, -1)
    assert all((left[:, column, None] == second).any(axis=1)[left[:, column] >= 0].all() for column in range(3))


def test_a_stratum_without_impossible_values_draws_as_ever() -> None:
    found = SETTINGS["plain"]
    stream, codes = people(500, range(4))
    drawn = Coupled(found).sample(np.zeros(500, dtype=np.int64), codes, stream)
    assert np.array_equal(drawn, found.members[0].mechanism.sample(codes, stream))


@pytest.mark.parametrize("name", ["line", "lies", "pairs"])
def test_sets_do_not_depend_on_the_company(name: str) -> None:
    found = SETTINGS[name]
    stream, codes = people(3_000, found.members[1].allowed.tolist())
    places = np.arange(3_000) % 2
    whole = Coupled(found).sample(places, codes, stream)
    rows = np.arange(3_000)[::-1][:700]
    assert np.array_equal(whole[rows], Coupled(found).sample(places[rows], codes[rows], stream.take(rows)))
    alone = [Coupled(found).sample(places[[row]], codes[[row]], stream.take(np.array([row])))[0] for row in range(60)]
    assert np.array_equal(whole[:60], alone)


@pytest.mark.parametrize("kind", ["kept", "even"])
@pytest.mark.parametrize(("size", "l"), [(3_000, 3), (400, 60), (70_000, 5)])
def test_large_domains_keep_what_is_possible(size: int, l: int, kind: str) -> None:
    parent, child = strata(Clusters(np.arange(size)), l, tuple(range(size // 100))).members
    assert isinstance(couple(parent, child), Even)
    stream, codes = people(4_000, range(size // 100, size))
    first = parent.mechanism.sample(codes, stream)
    second = KINDS[kind](parent, child).sample(codes, first, stream, 1)
    possible = ~child.forbids[first]
    whole = possible.all(axis=1)
    assert 0.3 < whole.mean() < 1 or l == 60
    assert np.array_equal(first[whole], second[whole])
    if kind == "even":
        assert all(set(one[here]) <= set(two) for one, here, two in zip(first, possible, second))
    assert not child.forbids[second].any()
    assert (np.diff(second, axis=1) > 0).all()
    # Every decoy is equally likely, those of people with new sets among them.
    others = second[second != codes[:, None]]
    shares = np.bincount((others - size // 100) * 33 // (size - size // 100), minlength=33)
    assert stats.chisquare(shares).pvalue > 1e-3


def test_a_long_line_keeps_what_is_possible() -> None:
    parent, child = strata(LineDistance.ranks(2_000).structure(50), 4, tuple(range(100))).members
    coupling = couple(parent, child)
    assert isinstance(coupling, Kept)
    stream, codes = people(4_000, range(100, 2_000))
    first = parent.mechanism.sample(codes, stream)
    second = coupling.sample(codes, first, stream, 1)
    assert (first == second).all(axis=1).mean() > 0.7
    inclusion = child.mechanism.inclusion_given(child.narrow(codes)).sum(axis=0)
    seen, expected = (
        np.add.reduceat(np.asarray(counts, dtype=float), np.arange(0, 1_900, 50))
        for counts in (np.bincount(child.narrow(second).ravel(), minlength=1_900), inclusion)
    )
    # Four members of a set are not independent, but none of 38 ranges strays far from what is expected.
    assert np.abs((seen - expected) / np.sqrt(expected)).max() < 4
