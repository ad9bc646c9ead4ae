"""Adversaries against literal transcriptions, exact channels and published values."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.optimize import linprog

from polyseme.designs import make_design
from polyseme.designs.distribution import SetDistribution
from polyseme.designs.mechanism import Mechanism
from polyseme.designs.sequential import Simple
from polyseme.inference.sets.associations import information
from polyseme.kernel.errors import TableError
from polyseme.kernel.randomness import StickyStream, SystemStream
from polyseme.scrutiny.attacks import (
    any_prior,
    background_knowledge,
    bayes,
    correlation,
    definetti,
    homogeneity,
    linkage,
    repetition,
    similarity,
    skewness,
    transparency,
)
from polyseme.scrutiny.attacks.registry import ADVERSARIES, attack
from polyseme.scrutiny.attacks.scene import Promised, Scene, Shown, hit_rate, posterior_of, significantly_above
from polyseme.semantics.distances.base import Clusters
from polyseme.semantics.distances.ground import Hierarchical, Ordered
from polyseme.semantics.distances.line import LineDistance
from polyseme.tables.equivalence_classes import classes_of, match_counts

SHARED = Path(__file__).parents[3] / ".." / "shared" / "data" / "adult"
needs_adult = pytest.mark.skipif(not SHARED.exists(), reason="the Adult data are not beside the project")


class Listed(SetDistribution):
    """Every valid set of a small line, with inclusion probabilities that equal a prior times l."""

    name = "listed"

    def __init__(self, size, l, d, prior=None):
        self.structure, self.l, self.draws = LineDistance.ranks(size).structure(d), l, 1
        sets = itertools.combinations(range(size), l)
        self._sets = np.array([s for s in sets if all(b - a >= d for a, b in itertools.pairwise(s))])
        target = l * (np.full(size, 1 / size) if prior is None else np.asarray(prior))
        # Any distribution with these inclusion probabilities is balanced; here the least likely set is likeliest.
        member = np.array([(self._sets == v).any(axis=1) for v in range(size)], dtype=float)
        found = linprog(
            np.append(np.zeros(len(self._sets)), -1.0),
            A_ub=np.column_stack([-np.eye(len(self._sets)), np.ones(len(self._sets))]),
            b_ub=np.zeros(len(self._sets)),
            A_eq=np.column_stack([member, np.zeros(size)]),
            b_eq=target,
        )
        self._p = np.maximum(found.x[:-1], 0.0)
        assert np.allclose(self.inclusion(), target, atol=1e-12)
        self._key = {tuple(s): p for s, p in zip(self._sets.tolist(), self._p)}

    def inclusion(self):
        return np.bincount(self._sets.ravel(), np.repeat(self._p, self.l), self.size)

    def log_probability(self, sets):
        with np.errstate(divide="ignore"):
            return np.log([self._key.get(tuple(s), 0.0) for s in sets.tolist()])

    def sample(self, codes, uniforms):
        out = np.empty((len(codes), self.l), dtype=np.int64)
        for value in range(self.size):
            rows = np.flatnonzero(codes == value)
            p = self._p * (self._sets == value).any(axis=1)
            out[rows] = self._sets[np.searchsorted(np.cumsum(p / p.sum()), uniforms[0, rows], side="right")]
        return out

    def sample_blind(self, uniforms):
        return self._sets[np.searchsorted(np.cumsum(self._p), uniforms[0] * (1 - 1e-12), side="right")]

    def count(self):
        return len(self._sets)

    def sets(self):
        return self._sets

    def conditional_inclusion(self, codes):
        raise NotImplementedError

    def worst_posterior(self, prior, p):
        raise NotImplementedError

    def parameters(self):
        return {}


def simple(size, l, d):
    return Mechanism(Simple(LineDistance.ranks(size).structure(d), l))


def balanced(size, l, d, p=1.0):
    return Mechanism(Listed(size, l, d), p)


def one(adversary, *shown, promised=None, **scene):
    """What an adversary finds on the sets of an attribute, shown with what is public about them."""
    (found,) = adversary.attack(Scene(Shown(*shown), promised or Promised(), **scene))
    return found


def publish(mechanism, n, seed, prior=None):
    truth = np.random.default_rng(seed).choice(mechanism.size, n, p=prior)
    return truth, mechanism.sample(truth, SystemStream.seeded(seed))


@pytest.mark.parametrize("p", [1.0, 0.6])
@pytest.mark.parametrize("make", [simple, lambda *a: Mechanism(Listed(*a))])
def test_posterior_is_bayes_rule_on_the_channel(make, p):
    mechanism = Mechanism(make(8, 2, 3).design, p)
    prior = np.random.default_rng(1).dirichlet(np.ones(8))
    sets, channel = mechanism.channel()
    exact = prior[:, None] * channel
    exact /= exact.sum(axis=0)
    found = posterior_of(sets, mechanism, prior)
    for column, members in enumerate(sets):
        assert found.inside[column] == pytest.approx(exact[members, column])
        outside = np.delete(exact[:, column], members)
        assert found.outside[column] == pytest.approx(outside.max(), abs=1e-15)


WORST = [(2, 3, 0.550), (2, 6, 0.727), (2, 7, 0.875), (3, 2, 0.365), (3, 4, 0.506), (4, 3, 0.393)]


@pytest.mark.parametrize(("l", "d", "worst"), WORST)
def test_simple_exceeds_one_over_l_and_balanced_does_not(l, d, worst):
    """The worst posteriors of the sequential algorithm on 14 ranks; balanced is 1/l in every one."""
    mechanism = simple(14, l, d)
    truth, _ = publish(mechanism, 20_000, 1)
    every = mechanism.design.sets()
    found = one(bayes, every, mechanism)
    assert found.success == pytest.approx(worst, abs=6e-4)
    assert found.exceeded
    fair = balanced(14, l, d)
    found = one(bayes, fair.sample(truth, SystemStream.seeded(2)), fair, truth=truth)
    assert found.success == pytest.approx(1 / l)
    assert not found.exceeded


@pytest.mark.parametrize(("l", "d"), [(2, 3), (2, 6), (3, 4)])
def test_transparency_breaks_simple_and_not_balanced(l, d):
    mechanism, fair = simple(14, l, d), balanced(14, l, d)
    truth, sets = publish(mechanism, 40_000, 3)
    for original in (truth, None):
        broken = one(transparency, sets, mechanism, truth=original)
        assert broken.exceeded
        assert broken.success > 1 / l
        kept = one(transparency, fair.sample(truth, SystemStream.seeded(4)), fair, truth=original)
        assert not kept.exceeded
        assert kept.success == pytest.approx(1 / l)
    # What the adversary expects to happen is what happens.
    assert broken.success == pytest.approx(one(transparency, sets, mechanism, truth=truth).success, abs=0.01)


@pytest.mark.parametrize(("l", "d", "worst"), WORST)
def test_the_designs_of_the_package(l, d, worst):
    structure = LineDistance.ranks(14).structure(d)
    truth = np.random.default_rng(1).integers(0, 14, 30_000)
    for name, broken in (("simple", True), ("balanced", False)):
        mechanism = Mechanism(make_design(name, structure, l))
        sets = mechanism.sample(truth, SystemStream.seeded(1))
        exact = one(bayes, sets, mechanism)
        assert exact.success == pytest.approx(worst if broken else 1 / l, abs=6e-4)
        assert exact.success <= mechanism.worst_posterior() + 1e-12
        assert exact.exceeded == broken
        assert one(transparency, sets, mechanism, truth=truth).exceeded == broken


def test_observed_success_needs_significance():
    assert not significantly_above(520, 1_000, 0.5)
    assert significantly_above(560, 1_000, 0.5)
    assert not significantly_above(0, 10, 0.0)
    assert not significantly_above(10, 10, 1.0)
    assert not significantly_above(3, 3, None)
    for hits in range(100, 160):
        low = stats.binomtest(hits, 400, alternative="greater").proportion_ci(0.999, method="exact").low
        assert significantly_above(hits, 400, 0.25) == (low > 0.25)


def test_ties_are_guessed_at_random():
    score = np.array([[1.0, 1.0, 0.0]])
    assert hit_rate(score, np.array([[False, True, False]])) == [0.5]


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_set_attacks_literally(p):
    mechanism = balanced(8, 3, 2, p)
    _, sets = publish(mechanism, 300, 5)
    prior = np.random.default_rng(2).dirichlet(np.ones(8) * 3)
    every, channel = mechanism.channel()
    column = {tuple(s): i for i, s in enumerate(every.tolist())}
    exact = prior[:, None] * channel
    exact /= exact.sum(axis=0)
    posterior = np.array([exact[:, column[tuple(s)]] for s in sets.tolist()])
    tv = np.abs(posterior - prior).sum(axis=1) / 2
    found = one(skewness, sets, mechanism, "", prior, promised=Promised(moved=0.1))
    assert found.success == pytest.approx(tv.max())
    assert found.detail["mean"] == pytest.approx(tv.mean())
    for m in (1, 2):
        struck = [
            row[v] / (1 - sum(sorted((row[u] for u in s if u != v), reverse=True)[:m]))
            for row, s in zip(posterior, sets)
            for v in s
        ]
        found = one(background_knowledge, sets, mechanism, "", prior, struck=m)
        assert found.success == pytest.approx(max(struck))
        assert found.bound == pytest.approx(1 / (3 - m))
    for ground in (Ordered(), Hierarchical.from_distance(LineDistance.ranks(8))):
        found = one(skewness, sets, mechanism, "", prior, promised=Promised(ground=ground))
        assert found.success == pytest.approx(ground.work(posterior - prior).max())
        assert found.detail["mean"] == pytest.approx(ground.work(posterior - prior).mean())
    near = [max(sum(row[u] for u in s if abs(u - v) < 3) for v in s) for row, s in zip(posterior, sets)]
    found = one(similarity, sets, mechanism, "", prior, LineDistance.ranks(8), promised=Promised(apart=3))
    assert found.success == pytest.approx(max(near))


def test_skewness_on_a_ground_is_never_too_large_where_it_looks_at_some_sets_only(monkeypatch):
    mechanism = balanced(8, 3, 2, 0.7)
    sets = mechanism.design.sets()
    whole = one(skewness, sets, mechanism, promised=Promised(ground=Ordered()))
    monkeypatch.setattr(skewness, "_MOST", len(sets) * 4)
    some = one(skewness, sets, mechanism, promised=Promised(ground=Ordered()))
    assert 0 < some.detail["sets_looked_at"] < len(sets)
    assert some.success <= whole.success


def test_plain_diversity_gives_the_range_away_and_semantic_diversity_does_not():
    ranks = LineDistance.ranks(9)
    plain, apart = balanced(9, 3, 1), balanced(9, 3, 3)
    truth, sets = publish(plain, 5_000, 6)
    promised = Promised(apart=3)
    assert one(similarity, sets, plain, "", None, ranks, promised=promised).exceeded
    kept = apart.sample(truth, SystemStream.seeded(1))
    assert not one(similarity, kept, apart, "", None, ranks, promised=promised).exceeded


def test_background_knowledge_of_a_balanced_set():
    mechanism = balanced(9, 3, 2)
    _, sets = publish(mechanism, 500, 1)
    for m, expected in ((0, 1 / 3), (1, 1 / 2), (2, 1.0)):
        found = one(background_knowledge, sets, mechanism, struck=m)
        assert found.success == pytest.approx(expected)
        assert not found.exceeded


def test_shortened_sets_are_found():
    mechanism, promised = balanced(6, 2, 2), Promised(guess=0.5)
    assert not one(homogeneity, np.array([[0, 3], [1, 4]]), mechanism, promised=promised).exceeded
    assert one(homogeneity, np.array([[0, 3], [1, 1]]), mechanism, promised=promised).exceeded


def test_repetition_breaks_fresh_decoys_and_not_sticky_ones():
    mechanism = balanced(12, 3, 2)
    truth, first = publish(mechanism, 5_000, 7)
    second = mechanism.sample(truth, SystemStream.seeded(8))
    broken = one(repetition, first, mechanism, again=Shown(second, mechanism))
    assert broken.exceeded
    left = (first[:, :, None] == second[:, None, :]).sum(axis=(1, 2))
    assert broken.success == pytest.approx((1 / left).mean())
    assert broken.detail["records_certain"] == pytest.approx((left == 1).mean())
    keys = [b"%d" % i for i in range(len(truth))]
    first_keyed, again = (mechanism.sample(truth, StickyStream(b"k" * 32, "a", keys, truth)) for _ in range(2))
    kept = one(repetition, first_keyed, mechanism, again=Shown(again, mechanism))
    assert not kept.exceeded
    assert kept.success == pytest.approx(1 / 3)
    assert kept.detail["same_set"] == 1.0
    with pytest.raises(TableError):
        one(repetition, first, mechanism, again=Shown(second[:10], mechanism))


def test_repetition_of_sets_that_may_lie():
    mechanism = balanced(8, 2, 2, 0.5)
    truth, first = publish(mechanism, 20_000, 7)
    second = mechanism.sample(truth, SystemStream.seeded(8))
    every, channel = mechanism.channel()
    column = {tuple(s): i for i, s in enumerate(every.tolist())}
    there, here = ([column[tuple(s)] for s in sets.tolist()] for sets in (first, second))
    exact = channel[:, there] * channel[:, here]
    exact /= exact.sum(axis=0)
    found = one(repetition, first, mechanism, again=Shown(second, mechanism))
    assert found.success == pytest.approx(exact.max(axis=0).mean())
    assert found.success == pytest.approx((exact.argmax(axis=0) == truth).mean(), abs=0.02)
    # One draw shown twice says what it says once.
    alone = channel[:, there] / channel[:, there].sum(axis=0)
    found = one(repetition, first, mechanism, again=Shown(first, mechanism), sticky=True)
    assert found.success == pytest.approx(alone.max(axis=0).mean())


@pytest.mark.parametrize("p", [0.3, 0.8, 1.0])
def test_any_prior_is_the_worst_of_all_priors(p):
    mechanism = balanced(6, 2, 2, p)
    sets, channel = mechanism.channel()
    found = one(any_prior, sets, mechanism)
    rng = np.random.default_rng(3)
    reached = 0.0
    for prior in [*rng.dirichlet(np.full(6, 0.2), 2_000), *_two_values(channel)]:
        moved = one(skewness, sets, mechanism, "", prior).success
        assert moved <= found.success + 1e-9
        reached = max(reached, moved)
    assert reached == pytest.approx(found.success, abs=1e-3)


def _two_values(channel):
    """Priors over two values for which their odds are reversed by the set that tells them apart best."""
    for one, other in itertools.permutations(range(len(channel)), 2):
        ratio = np.sqrt((channel[one] + 1e-9) / (channel[other] + 1e-9)).max()
        prior = np.zeros(len(channel))
        prior[[one, other]] = np.array([1.0, ratio]) / (1.0 + ratio)
        yield prior


@needs_adult
def test_linkage_on_adult():
    table = pl.read_csv(SHARED / "adult-arx.csv", separator=";")
    found = linkage.risks(classes_of(table, table.columns))
    assert found.classes == 19_502
    assert found.average == 0.6465751607983555
    assert found.unique == pytest.approx(0.5142895033485844, rel=1e-15)
    assert found.highest == 1.0


def test_linkage_adversaries():
    table = pl.DataFrame({"zip": [1, 1, 2, 2, 2]})
    people = pl.DataFrame({"zip": [1] * 10 + [2] * 4 + [3] * 7})
    classes = classes_of(table, ["zip"])
    matches = match_counts(table, people, ["zip"])
    prosecutor, journalist, marketer = linkage.attack(Scene(classes=classes, matches=matches, promised=Promised(k=3)))
    assert (prosecutor.success, prosecutor.exceeded) == (0.5, True)
    assert (journalist.success, journalist.exceeded) == (0.25, False)
    assert marketer.success == pytest.approx((2 / 10 + 3 / 4) / 5)
    assert linkage.attack(Scene(classes=classes))[1].success == pytest.approx(2 / 5)
    assert not any(f.exceeded for f in linkage.attack(Scene(classes=classes)))


def test_definetti_learns_correlations_in_sets():
    mechanism, third = balanced(9, 3, 2), Promised(learned=1 / 3)
    truth, sets = publish(mechanism, 6_000, 9)
    rng = np.random.default_rng(1)
    features = np.where(rng.random((6_000, 1)) < 0.8, truth[:, None] // 3, rng.integers(0, 3, (6_000, 1)))
    assert one(definetti, sets, mechanism, features=features, truth=truth, promised=third).exceeded
    assert one(definetti, sets, mechanism, features=features, promised=third).exceeded
    noise = rng.integers(0, 3, (6_000, 1))
    assert not one(definetti, sets, mechanism, features=noise, truth=truth, promised=third).exceeded


@pytest.mark.parametrize(("l", "p"), [(1, 0.3), (2, 0.5)])
def test_definetti_is_no_surer_than_it_is_right(l, p):
    """A set that may lie leaves room for values outside it."""
    mechanism = Mechanism(make_design("balanced", Clusters(np.arange(8)), l), p)
    truth, sets = publish(mechanism, 20_000, 9, prior=np.array([3, 2, 1, 1, 1, 1, 1, 1]) / 11)
    for feature in (np.zeros(20_000, dtype=np.int64), truth // 4):
        found = one(definetti, sets, mechanism, features=feature[:, None], truth=truth)
        assert found.detail["confidence"] < found.success + 0.02


def test_definetti_looks_only_at_pairs_that_occur():
    """Neither a large domain nor a column with a level for everybody makes a table of all pairs."""
    mechanism = Mechanism(make_design("balanced", Clusters(np.arange(2_000)), 3))
    truth, sets = publish(mechanism, 10_000, 9)
    features = np.column_stack([truth % 10, np.arange(10_000), np.arange(10_000) // 3])
    tracemalloc.start()
    found = one(definetti, sets, mechanism, features=features, truth=truth)
    assert tracemalloc.get_traced_memory()[1] < 30_000_000
    tracemalloc.stop()
    assert found.success > 0.7


@pytest.mark.parametrize("p", [1.0, 0.6])
def test_correlation_literally(p):
    first, second = balanced(6, 2, 2, p), balanced(5, 2, 1, p)
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.ones(30) * 0.2).reshape(6, 5)
    draws = rng.choice(30, 4_000, p=joint.ravel())
    a, b = draws // 5, draws % 5
    sets_a, sets_b = first.sample(a, SystemStream.seeded(1)), second.sample(b, SystemStream.seeded(2))
    every_a, channel_a = first.channel()
    every_b, channel_b = second.channel()
    at_a = {tuple(s): i for i, s in enumerate(every_a.tolist())}
    at_b = {tuple(s): i for i, s in enumerate(every_b.tolist())}
    scores = correlation.scores(Shown(sets_a, first), Shown(sets_b, second), joint)
    right = 0
    for ra, rb, true, score in zip(sets_a.tolist(), sets_b.tolist(), a, scores):
        post = (channel_a[:, at_a[tuple(ra)]] * (joint @ channel_b[:, at_b[tuple(rb)]]))[ra]
        assert score / score.sum() == pytest.approx(post / post.sum())
        right += ra[post.argmax()] == true
    found = one(correlation, sets_a, first, helper=Shown(sets_b, second), truth=a)
    assert found.success == pytest.approx(right / 4_000, abs=0.05)
    assert found.success > found.detail["without_the_other"] + 0.02


def test_what_a_set_says_about_another_attribute():
    rng = np.random.default_rng(4)
    values = rng.integers(0, 5, 20_000)
    mechanism = Mechanism(make_design("balanced", Clusters(np.arange(5)), 2))
    equal, none = (mechanism.sample(other, SystemStream.seeded(1)) for other in (values, rng.permutation(values)))
    # A random candidate is the value itself in one case of two, each of the others in one of eight.
    exact = np.log(5) + 0.5 * np.log(0.5) + 4 * 0.125 * np.log(0.125)
    assert information(values[:, None], 5, equal, 5) == pytest.approx(exact, abs=0.01)
    assert abs(information(values[:, None], 5, none, 5)) < 0.0005


def test_correlation_of_independent_attributes_adds_nothing():
    first, second = balanced(6, 2, 2), balanced(6, 2, 2)
    a, sets_a = publish(first, 4_000, 1)
    _, sets_b = publish(second, 4_000, 2)
    found = one(correlation, sets_a, first, helper=Shown(sets_b, second), truth=a)
    assert found.success == pytest.approx(0.5, abs=0.03)


def test_the_whole_battery():
    mechanism = balanced(9, 3, 2, 0.8)
    truth, sets = publish(mechanism, 2_000, 3)
    found = attack(
        Scene(
            Shown(sets, mechanism, "s", distance=LineDistance.ranks(9), learner_prior=np.full(9, 1 / 9)),
            Promised(apart=2, any_prior=0.9),
            truth=truth,
            features=np.zeros((2_000, 1), dtype=np.int64),
        )
    )
    assert {f.attack for f in found} | {
        "repetition",
        "linkage",
        "correlation",
        "seed",
        "learner",
        "shared-value",
    } == set(ADVERSARIES)
    for finding in found:
        assert 0 <= finding.success <= 1
        assert finding.knows
        assert finding.gains
        assert finding.helps
    assert not any(f.exceeded for f in found)


def test_adversaries_do_not_depend_on_row_order():
    mechanism = balanced(9, 3, 2)
    truth, sets = publish(mechanism, 500, 3)
    order = np.random.default_rng(1).permutation(500)
    there, here = (
        attack(Scene(Shown(s, mechanism, distance=LineDistance.ranks(9)), Promised(apart=2), truth=t))
        for s, t in ((sets, truth), (sets[order], truth[order]))
    )
    assert [f.success for f in there] == pytest.approx([f.success for f in here])
