"""From promises to parameters."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.kernel.errors import PolicyError
from polyseme.papers.baselines import algorithm_one, posteriors
from polyseme.privacy import calibration
from polyseme.privacy.analysis.closeness import closeness_of_epsilon
from polyseme.privacy.calibration import expected_l2
from polyseme.privacy.promises import read_promises
from polyseme.semantics.distances.ground import Equal
from polyseme.semantics.distances.line import LineDistance


def choose(size, distance, promises, *more, **options):
    """With promises as a policy says them."""
    return calibration.choose(size, distance, read_promises(promises), *more, **options)


def problems(size, protection, distance=None, **more):
    with pytest.raises(PolicyError) as caught:
        choose(size, distance, protection, **more)
    return {problem.where: problem for problem in caught.value.problems}


def test_diversity_takes_exactly_l_at_full_truth():
    choice = choose(14, None, {"diversity": {"l": 4}})
    assert (choice.l, choice.p, choice.binding, choice.design) == (4, 1.0, "diversity", "balanced")
    assert choice.structure.size == 14
    assert choice.estimable
    assert choice.epsilon == math.inf
    assert choice.t_any == 1.0


def test_entropy_diversity_rounds_up():
    assert choose(14, None, {"entropy-diversity": {"l": 2.3}}).l == 3


def test_the_strictest_diversity_wins():
    choice = choose(14, None, {"diversity": {"l": 3}, "entropy-diversity": {"l": 5}})
    assert (choice.l, choice.binding) == (5, "entropy-diversity")


@pytest.mark.parametrize("t", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("least", [1, 3])
def test_closeness_finds_the_optimum_of_algorithm_one(t, least):
    prior = np.random.default_rng(7).dirichlet(np.ones(8))
    promises = {"closeness": {"t": t}, "diversity": {"l": least}}
    choice = choose(8, None, promises, reference=prior)
    p, eta = algorithm_one(prior, t, Equal(), smallest=least)
    assert choice.l == eta
    assert choice.p == pytest.approx(p, abs=1e-9)
    assert choice.t == pytest.approx(min(t, choice.t), abs=1e-9)
    assert choice.l >= least


@given(st.integers(2, 12), st.floats(0.01, 0.95), st.floats(0.05, 6.0), st.integers(1, 11), st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_all_promises_together(size, t, epsilon, l, seed):
    """Every promise is kept at once, and the smaller odds decide."""
    l = min(l, size - 1)
    prior = np.random.default_rng(seed).dirichlet(np.ones(size))
    promises = {"closeness": {"t": t}, "ldp": {"epsilon": epsilon}, "diversity": {"l": l}}
    choice = choose(size, None, promises, reference=prior)
    assert l <= choice.l < size
    assert choice.epsilon <= epsilon + 1e-9
    ratio = 1 + choice.p / (choice.l / size * (1 - choice.p))
    assert math.log(ratio) <= epsilon + 1e-9
    shift = posteriors(prior, choice.l, choice.p) - prior
    assert float(Equal().work(shift).max()) <= t + 1e-12
    assert float(Equal().work(shift).max()) == pytest.approx(choice.t, abs=1e-9)
    assert choice.t <= choice.t_any + 1e-12
    one_of = [choose(size, None, {"diversity": {"l": l}, name: promises[name]}, prior) for name in ("closeness", "ldp")]
    error = expected_l2(1, size, choice.l, choice.p)
    assert error >= max(expected_l2(1, size, one.l, one.p) for one in one_of) - 1e-9


def test_without_a_reference_closeness_holds_for_every_distribution():
    choice = choose(9, None, {"closeness": {"t": 0.3}})
    assert choice.t is None
    assert choice.t_any == pytest.approx(0.3)
    assert choice.t_any == pytest.approx(closeness_of_epsilon(choice.epsilon))
    with_reference = choose(9, None, {"closeness": {"t": 0.3}}, reference=np.full(9, 1 / 9))
    assert with_reference.expected_l2(1_000) <= choice.expected_l2(1_000)


def test_ldp_with_and_without_a_size():
    choice = choose(20, None, {"ldp": {"epsilon": 1.0, "size": 3}})
    assert (choice.l, choice.binding) == (3, "ldp")
    ratio = 1 + choice.p / ((3 / 20) * (1 - choice.p))
    assert math.log(ratio) == pytest.approx(1.0)
    free = choose(20, None, {"ldp": {"epsilon": 1.0}})
    # The known optimum of subset selection is close to F / (e^epsilon + 1).
    assert abs(free.l - 20 / (math.e + 1)) <= 1
    assert free.expected_l2(100) <= choice.expected_l2(100)


@pytest.mark.parametrize("epsilon", [30.0, 36.5, 100.0, 1e6])
def test_a_huge_epsilon_stays_finite(epsilon):
    choice = choose(5, None, {"ldp": {"epsilon": epsilon, "size": 2}})
    assert choice.p < 1.0
    assert math.log1p(choice.p / (1 - choice.p) * 5 / 2) <= epsilon


def test_nothing_can_be_learned_at_t_zero():
    for promises in ({"closeness": {"t": 0}}, {"ldp": {"epsilon": 0, "size": 2}}):
        choice = choose(6, None, promises, reference=np.arange(1.0, 7.0))
        assert choice.p == 0.0
        assert not choice.estimable
        assert any("nothing can be learned" in warning for warning in choice.warnings)
        assert (choice.epsilon, choice.t_any, choice.t) == (0.0, 0.0, 0.0)


def test_t_one_promises_nothing():
    choice = choose(6, None, {"closeness": {"t": 1}})
    assert (choice.l, choice.p) == (1, 1.0)
    assert any("promises nothing" in warning for warning in choice.warnings)
    assert any("as it is" in warning for warning in choice.warnings)
    assert choose(6, None, {"closeness": {"t": 1}, "diversity": {"l": 2}}).binding == "diversity"


@pytest.mark.parametrize("name", ["diversity", "entropy-diversity"])
def test_l_of_the_domain_size_is_refused_or_adapted(name):
    for l in (8, 9, 100):
        found = problems(8, {name: {"l": l}})[f"{name}.l"]
        assert "nothing can be estimated" in found.what
        assert "at most 7" in found.hint
        choice = choose(8, None, {name: {"l": l, "adapt": True}})
        assert choice.l == 7
        assert any("adapted to 7" in warning for warning in choice.warnings)
    assert choose(8, None, {name: {"l": 7, "adapt": True}}).warnings == ()


def test_two_values():
    found = problems(2, {"diversity": {"l": 2}})["diversity.l"]
    assert "closeness or ldp" in found.hint
    choice = choose(2, None, {"diversity": {"l": 3, "adapt": True}})
    assert choice.l == 1
    assert any("as it is" in warning for warning in choice.warnings)
    randomized_response = choose(2, None, {"ldp": {"epsilon": math.log(3)}})
    assert randomized_response.l == 1
    assert randomized_response.p == pytest.approx(0.5)


def test_one_value():
    assert "nothing can be hidden" in problems(1, {"diversity": {"l": 2}})["diversity.l"].hint
    for promises in ({"closeness": {"t": 0.1}}, {"ldp": {"epsilon": 1}}, {"diversity": {"l": 1}}):
        choice = choose(1, None, promises)
        assert (choice.l, choice.p, choice.epsilon, choice.t_any) == (1, 1.0, 0.0, 0.0)
        assert choice.binding in promises
    assert choose(1, None, {"diversity": {"l": 4, "adapt": True}}).l == 1


def test_ten_thousand_values():
    prior = np.random.default_rng(0).dirichlet(np.ones(10_000))
    choice = choose(10_000, None, {"closeness": {"t": 0.2}, "diversity": {"l": 5}}, reference=prior)
    assert choice.l >= 5
    assert choice.t <= 0.2 + 1e-12
    wide = choose(10_000, None, {"closeness": {"t": 0.2}})
    assert any("large release" in warning for warning in wide.warnings)
    assert choose(10_000, None, {"closeness": {"t": 0.2, "size": 10}}).l == 10


def test_all_problems_at_once():
    found = problems(
        10,
        {
            "diversty": {"l": 3},
            "closeness": {"t": 1.5, "ground": "orderd", "limit": 3},
            "ldp": {"epsilon": -1, "size": 0},
            "entropy-diversity": {"l": "three", "adapt": 1},
            "semantic-diversity": {"l": 2.5},
        },
    )
    assert set(found) == {
        "diversty",
        "closeness.t",
        "closeness.ground",
        "closeness.limit",
        "ldp.epsilon",
        "ldp.size",
        "entropy-diversity.l",
        "entropy-diversity.adapt",
        "semantic-diversity.l",
        "semantic-diversity.d",
    }
    assert found["diversty"].hint == "did you mean 'diversity'?"
    assert found["closeness.ground"].hint == "did you mean 'ordered'?"


def test_all_problems_with_the_domain_at_once():
    promises = {
        "diversity": {"l": 10},
        "entropy-diversity": {"l": 9.5},
        "semantic-diversity": {"l": 11, "d": 2},
        "closeness": {"t": 0.2, "ground": "hierarchical", "size": 12},
        "ldp": {"epsilon": 1, "size": 12},
    }
    assert set(problems(10, promises)) == {
        "diversity.l",
        "entropy-diversity.l",
        "semantic-diversity.l",
        "semantic-diversity",
        "closeness.ground",
        "closeness.size",
        "ldp.size",
    }


@pytest.mark.parametrize(
    ("protection", "where"),
    [
        ({}, ""),
        ({"diversity": 3}, "diversity"),
        ({"diversity": {}}, "diversity.l"),
        ({"diversity": {"l": True}}, "diversity.l"),
        ({"diversity": {"l": 0}}, "diversity.l"),
        ({"closeness": {"t": math.nan}}, "closeness.t"),
        ({"closeness": {"t": 0.2, "ground": "hierarchical"}}, "closeness.ground"),
        ({"ldp": {"epsilon": 1, "size": 2}, "diversity": {"l": 3}}, "ldp.size"),
        ({"ldp": {"epsilon": 1, "size": 2}, "closeness": {"t": 0.2, "size": 3}}, "ldp.size"),
        ({"semantic-diversity": {"l": 3, "d": 2}}, "semantic-diversity"),
    ],
)
def test_one_problem(protection, where):
    assert set(problems(10, protection)) == {where}


def test_semantic_promises_that_cannot_be():
    line = LineDistance.ranks(10)
    assert set(problems(10, {"semantic-diversity": {"l": 11, "d": 2}}, line)) == {"semantic-diversity.l"}
    assert set(problems(9, {"semantic-diversity": {"l": 3, "d": 2}}, line)) == {"distance"}
    wrong = {"semantic-diversity": {"l": 3, "d": 2, "mechanism": "balance"}}
    assert problems(10, wrong, line)["semantic-diversity.mechanism"].hint == "did you mean 'balanced'?"


@pytest.mark.parametrize("reference", [np.ones(3), np.zeros(4), np.array([1, -1, 1, 1.0]), np.array([1, np.nan, 1, 1])])
def test_bad_references(reference):
    assert set(problems(4, {"closeness": {"t": 0.2}}, reference=reference)) == {"reference"}


def test_lines_say_why():
    choice = choose(10, None, {"diversity": {"l": 4}, "closeness": {"t": 0.2}}, reference=np.arange(1.0, 11.0))
    text = "\n".join(choice.lines)
    assert "as diversity asks" in text
    assert "promised: 0.2" in text
    assert "epsilon = " in text


def test_a_large_set_can_keep_closeness_at_full_truth():
    """Equal shares: 8 of 10 values move the distribution by 0.2."""
    choice = choose(10, None, {"diversity": {"l": 4}, "closeness": {"t": 0.2}}, reference=np.ones(10))
    assert (choice.l, choice.p, choice.binding) == (8, 1.0, "closeness")
    assert choice.t == pytest.approx(0.2)
