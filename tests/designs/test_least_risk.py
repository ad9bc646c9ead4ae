"""The least-risk design against enumeration, linear programs over listed sets, and figures measured elsewhere."""

import json
import time
from functools import cache

import numpy as np
import pytest
from design_structures import circle_of, line_of, random_graph, valid_sets
from scipy.optimize import linprog
from scipy.stats import chi2

from polyseme.designs import design_from, make_design
from polyseme.designs.balanced import ListedReach, floor_posterior, reach_of
from polyseme.designs.chain import Chain, Steps
from polyseme.designs.feasibility import least_uneven
from polyseme.designs.information import exponentials
from polyseme.designs.least_risk import DOUBT, STEPS, lower_risk
from polyseme.designs.line import fit_line
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import ImpossibleError
from polyseme.privacy.analysis import facts
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters

REPRESENTATIVE = [*range(1, 11), 15, 20, 25, 30]
NONE = np.empty(0, dtype=np.int64)
RARE = np.array([0.00775, 15, 34, 17.9, 6, 0.00775, 0.00775, 9, 17.5, 0.5])


def random_structure(kind, rng):
    size = int(rng.integers(6, 12))
    if kind == "line":
        return line_of(rng.permutation(rng.random(size)), float(rng.uniform(0.1, 0.4)))
    if kind == "circle":
        return circle_of(rng.random(size), 1.0, float(rng.uniform(0.05, 0.3)))
    if kind == "clusters":
        return Clusters(np.unique(rng.integers(0, 5, size), return_inverse=True)[1].astype(np.int64))
    return random_graph(size, 0.6, int(rng.integers(1_000)))


@cache
def random_cases(kind, count):
    """Structures, set sizes and priors for which there is no balanced design."""
    rng = np.random.default_rng(["line", "circle", "clusters", "graph"].index(kind))
    found = []
    while len(found) < count:
        structure, l = random_structure(kind, rng), int(rng.integers(2, 5))
        prior = rng.dirichlet(np.full(structure.size, rng.choice([0.5, 2.0]))) + 1e-4
        prior /= prior.sum()
        sets = valid_sets(structure, l)
        if len(np.unique(sets)) < structure.size or len(sets) < 2:
            continue
        try:
            make_design("balanced", structure, l, prior)
        except ImpossibleError:
            found.append((structure, l, prior, sets))
    return found


KINDS = ["line", "circle", "clusters", "graph"]
CASES = [case for kind in KINDS for case in random_cases(kind, 5)]


def membership(sets, size):
    matrix = np.zeros((size, len(sets)))
    matrix[sets.T, np.arange(len(sets))] = 1.0
    return matrix


def worst(prior, rho, sets):
    cost = prior / rho
    return (cost[sets] / cost[sets].sum(axis=1, keepdims=True)).max()


@pytest.mark.parametrize("kind", KINDS)
def test_the_floor_is_the_optimum_of_the_covering_program(kind):
    for structure, l, prior, sets in random_cases(kind, 12):
        # V* = min sum m_R subject to sum over R with v of m_R >= pi_v
        cover = linprog(np.ones(len(sets)), A_ub=-membership(sets, len(prior)), b_ub=-prior, method="highs").fun
        assert floor_posterior(reach_of(structure, l), prior) == pytest.approx(cover, rel=1e-7)
        assert make_design("least-risk", structure, l, prior).trade.floor == pytest.approx(cover, rel=1e-7)


def test_the_floor_can_be_above_the_heaviest_crowd():
    # Values 1 and 4 are far enough apart, but no set of three holds both.
    prior = np.array([0.01, 0.48, 0.01, 0.01, 0.48, 0.01])
    assert floor_posterior(reach_of(line_of(np.arange(6), 2), 3), prior) == pytest.approx(0.96)


@pytest.mark.parametrize("kind", KINDS)
def test_lightest_sets_by_enumeration(kind):
    rng = np.random.default_rng(4)
    for structure, l, prior, sets in random_cases(kind, 8):
        cost = rng.random(structure.size)
        lightest = reach_of(structure, l).lightest_sets(cost)
        totals = cost[sets].sum(axis=1)
        for value, row in enumerate(lightest):
            assert value in row
            assert tuple(sorted(row)) in set(map(tuple, sets.tolist()))
            assert cost[row].sum() == pytest.approx(totals[(sets == value).any(axis=1)].min())
        rho = membership(sets, structure.size) @ rng.dirichlet(np.ones(len(sets)))
        assert reach_of(structure, l).worst_posterior(prior, rho) == pytest.approx(worst(prior, rho, sets))


def least_of_all(prior, sets):
    """The least worst posterior of any mechanism with p = 1, by bisection over linear programs."""
    count, l = sets.shape
    belongs = np.zeros((len(prior), count * l))
    belongs[sets.ravel(), np.arange(count * l)] = 1.0
    low, high = 1.0 / l, 1.0
    for _ in range(14):
        t = (low + high) / 2
        # J(v, R) <= t * sum over R, and J adds up to the prior
        share = np.kron(np.eye(count), np.eye(l) - t * np.ones((l, l)))
        fits = linprog(np.zeros(count * l), share, np.zeros(count * l), belongs, prior, method="highs").status == 0
        low, high = (low, t) if fits else (t, high)
    return low


def test_nothing_goes_below_what_a_linear_program_says_and_descent_comes_near():
    gaps, before = [], []
    for structure, l, prior, sets in random_cases("line", 16):
        reach = reach_of(structure, l)
        floor, bound = floor_posterior(reach, prior), least_of_all(prior, sets)
        even = least_uneven(structure, l, prior)
        reached = min(
            worst(prior, lower_risk(reach, prior, start, floor), sets) for start in (even, _plain(prior, sets))
        )
        assert floor <= bound + 1e-3
        assert reached >= bound - 1e-3
        assert reached <= worst(prior, even, sets) + 1e-12
        gaps.append(reached / bound - 1.0)
        before.append(worst(prior, even, sets) / bound - 1.0)
    assert np.mean(gaps) < 0.5 * np.mean(before)
    assert np.median(gaps) < 0.02


def _plain(prior, sets):
    weight = prior[sets].prod(axis=1)
    return membership(sets, len(prior)) @ (weight / weight.sum())


# -- the design -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_design_against_enumeration(number):
    structure, l, prior, sets = CASES[number]
    design = make_design("least-risk", structure, l, prior)
    probability = np.exp(design.log_probability(sets))
    assert np.all(probability > 0)
    assert probability.sum() == pytest.approx(1.0)
    assert membership(sets, len(prior)) @ probability == pytest.approx(design.inclusion(), rel=1e-8)
    for made in (design, design.trade.least):
        assert made.worst_posterior(prior, 1.0) == pytest.approx(worst(prior, made.inclusion(), sets), rel=1e-8)
    _is_of_maximum_entropy(sets, probability, len(prior))
    chosen, least = design.worst_posterior(prior, 1.0), design.trade.least.worst_posterior(prior, 1.0)
    assert design.trade.floor <= least * (1.0 + 1e-7) <= chosen * (1.0 + 2e-7)
    assert chosen / (1.0 - chosen) <= np.exp(2 * DOUBT) * least / (1.0 - least) * (1.0 + 1e-6)


def _is_of_maximum_entropy(sets, probability, size):
    """The log probabilities are sums over the members: no residual of a least-squares fit."""
    member = membership(sets, size).T
    logs = np.log(probability)
    fitted = member @ np.linalg.lstsq(member, logs, rcond=None)[0]
    assert fitted == pytest.approx(logs, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_step_leads_to_the_plain_design(kind):
    for structure, l, prior, sets in random_cases(kind, 5):
        design = make_design("least-risk", structure, l, prior)
        trade, plain = design.trade, _plain(prior, sets)
        if trade.least_step == 1.0:
            assert design.inclusion() == pytest.approx(plain, rel=1e-6)
            continue
        # Two points of a straight line that ends at the plain design.
        ratio = (1.0 - trade.step) / (1.0 - trade.least_step)
        expected = plain + ratio * (trade.least.inclusion() - plain)
        assert design.inclusion() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_follow_the_design(kind):
    structure, l, prior, sets = random_cases(kind, 1)[0]
    design = make_design("least-risk", structure, l, prior)
    again = design_from("least-risk", structure, l, json.loads(json.dumps(design.parameters())))
    records, value = 200_000, int(np.argmax(prior))
    uniforms = np.random.default_rng(6).random((design.draws, records))
    drawn = design.sample(np.full(records, value), uniforms)
    assert np.array_equal(again.sample(np.full(records, value), uniforms), drawn)
    here = sets[(sets == value).any(axis=1)]
    probability = np.exp(design.log_probability(here)) / design.inclusion()[value]
    keys = {tuple(row): number for number, row in enumerate(here.tolist())}
    observed = np.bincount([keys[tuple(row)] for row in drawn.tolist()], minlength=len(here))
    assert _surprise(observed, probability) > 1e-4
    distorted = probability * np.where(np.arange(len(here)) % 2, 1.05, 0.95)
    assert len(here) == 1 or _surprise(observed, distorted / distorted.sum()) < 1e-4


def _surprise(observed, probability):
    expected = probability * observed.sum()
    enough = expected >= 5
    rest = np.array([[observed[~enough].sum(), max(expected[~enough].sum(), 1e-9)]])
    pairs = np.concatenate([np.stack([observed[enough], expected[enough]], axis=1), rest[rest[:, 1] >= 5]])
    return chi2.sf(((pairs[:, 0] - pairs[:, 1]) ** 2 / pairs[:, 1]).sum(), max(len(pairs) - 1, 1))


# -- figures ----------------------------------------------------------------------------------------------------------


def root_mse(design, prior, records=100_000):
    return np.sqrt(facts(Mechanism(design), prior, records).mse_limit)


def test_both_less_risk_and_less_error_than_on_the_wall():
    """Values 1..10, 15..30, (3,7): on the wall 0.579 and 457e-4; stepping back from there by 0.1, 0.596 and 46e-4."""
    structure, prior = LineDistance(REPRESENTATIVE).structure(7), np.full(14, 1 / 14)
    even, plain = least_uneven(structure, 3, prior), Chain(Steps(structure.ahead, NONE), 3, np.zeros(14)).inclusion
    wall = reach_of(structure, 3).worst_posterior(prior, 0.999 * even + 0.001 * plain)
    assert wall == pytest.approx(0.579, abs=5e-4)
    design = make_design("least-risk", structure, 3)
    assert design.trade.floor == pytest.approx(0.5)
    assert design.trade.least.worst_posterior(prior, 1.0) == pytest.approx(0.545, abs=2e-3)
    assert design.worst_posterior(prior, 1.0) == pytest.approx(0.569, abs=2e-3)
    assert root_mse(design, prior) < 62e-4
    assert root_mse(design.trade.least, prior) > 450e-4


def test_rare_values_are_not_included_too_often():
    """Mixing in sets that are all alike gave 0.720 here, where 0.519 is possible."""
    structure, prior = LineDistance.ranks(10).structure(2), RARE / RARE.sum()
    even, alike = least_uneven(structure, 2, prior), Chain(Steps(structure.ahead, NONE), 2, np.zeros(10)).inclusion
    assert reach_of(structure, 2).worst_posterior(prior, 0.999 * even + 0.001 * alike) == pytest.approx(0.72, abs=2e-3)
    design = make_design("least-risk", structure, 2, prior)
    assert design.trade.floor == pytest.approx(0.5194, abs=1e-4)
    assert design.trade.least.worst_posterior(prior, 1.0) == pytest.approx(0.5197, abs=3e-4)
    assert design.worst_posterior(prior, 1.0) < 0.546
    assert root_mse(design, prior) < 36e-4 < 0.15 * root_mse(design.trade.least, prior)


def test_the_step_has_the_least_product_of_risk_and_error():
    structure, prior = LineDistance(REPRESENTATIVE).structure(7), np.full(14, 1 / 14)
    design = make_design("least-risk", structure, 3)
    least, step = design.trade.least, design.trade.step
    plain = Chain(Steps(structure.ahead, NONE), 3, np.log(prior)).inclusion
    start = plain + (least.inclusion() - plain) / (1.0 - design.trade.least_step)
    chosen = design.worst_posterior(prior, 1.0) * np.sqrt(design.least_error(prior))
    sets = valid_sets(structure, 3)
    for other in [tried for tried in STEPS if tried < step]:
        rho = (1.0 - other) * start + other * plain
        error = fit_line(structure, 3, rho, NONE).least_error(prior)
        assert worst(prior, rho, sets) * np.sqrt(error) > chosen


def test_heavy_clusters_can_be_estimated():
    """Putting a heavy cluster into every set leaves its total to guesswork."""
    structure = Clusters(np.array([0, 0, 0, 0, 0, 0, 1, 2, 3]))
    shares = (1 / np.bincount(structure.labels))[structure.labels].tolist()
    capped = {"log_weights": [0.0, 0.0, 0.0, 0.0], "shares": shares}
    in_every_set = design_from("least-risk", structure, 3, {**capped, "full": [0]})
    assert facts(Mechanism(in_every_set)).identifiable is False
    design = make_design("least-risk", structure, 3)
    assert facts(Mechanism(design)).identifiable is True
    assert design.trade.floor == pytest.approx(2 / 3)
    assert design.trade.least.worst_posterior(np.full(9, 1 / 9), 1.0) == pytest.approx(2 / 3, abs=1e-3)
    assert design.worst_posterior(np.full(9, 1 / 9), 1.0) < 0.69


def test_where_nothing_can_be_estimated_the_least_risk_is_taken():
    prior = np.array([0.3, 0.2, 0.01, 0.01, 0.2, 0.1, 0.01, 0.17])
    structure = LineDistance.ranks(8).structure(4)
    design = make_design("least-risk", structure, 2, prior)
    assert facts(Mechanism(design)).identifiable is False
    assert design.trade.step == design.trade.least_step == STEPS[0]


def test_very_rare_values():
    """Shares far below the tolerance of a linear program."""
    prior = 0.5 ** np.arange(30)
    prior /= prior.sum()
    design = make_design("least-risk", LineDistance.ranks(30).structure(3), 2, prior)
    assert design.trade.least.worst_posterior(prior, 1.0) == pytest.approx(design.trade.floor, abs=1e-3)
    assert np.isfinite(design.least_error(prior))


@pytest.mark.slow
def test_a_thousand_values_take_seconds():
    rng = np.random.default_rng(0)
    position = np.cumsum(rng.gamma(2.0, 1.0, 1_000))
    prior = np.exp(-0.5 * ((position - position.mean()) / position.std() / 0.7) ** 2) * rng.dirichlet(
        np.full(1_000, 3.0)
    )
    prior /= prior.sum()
    start = time.process_time()
    design = make_design("least-risk", LineDistance(position.tolist()).structure(0.2 * position[-1]), 3, prior)
    assert time.process_time() - start < 60
    least, chosen = (made.worst_posterior(prior, 1.0) for made in (design.trade.least, design))
    assert design.trade.floor <= least < chosen < 1.15 * design.trade.floor
    assert np.isfinite(design.least_error(prior))


def test_too_many_sets_of_a_circle_are_refused():
    rng = np.random.default_rng(2)
    prior = np.append(np.full(10, 0.07), np.full(590, 0.3 / 590))
    with pytest.raises(ImpossibleError, match="too many for the least-risk design"):
        make_design("least-risk", circle_of(np.sort(rng.random(600)), 1.0, 0.2), 2, prior)


def test_designs_of_earlier_releases_are_read():
    structure = LineDistance(REPRESENTATIVE).structure(7)
    weights = np.linspace(-1, 1, 14).tolist()
    design = design_from("least-risk", structure, 3, {"log_weights": weights, "tight": []})
    sets = valid_sets(structure, 3)
    expected = np.exp(np.array(weights)[sets].sum(axis=1))
    assert np.exp(design.log_probability(sets)) == pytest.approx(expected / expected.sum())
    assert design.trade is None


# -- the expected error -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 0.6])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_error_is_that_of_the_fisher_information(number, p):
    structure, l, prior, _ = CASES[number]
    design = make_design("least-risk", structure, l, prior)
    found = design.least_error(prior, p)
    _, channel = Mechanism(design, p).channel()
    marginal = prior @ channel
    information = (channel / marginal) @ channel.T
    scaled = information * np.sqrt(np.outer(prior, prior))
    if found is None:
        assert isinstance(structure, Clusters)
        assert p < 1
    elif np.linalg.eigvalsh(scaled).min() < 1e-9:
        assert found > 1e6
    else:
        assert found == pytest.approx(np.trace(np.linalg.inv(information)) - 1.0, rel=1e-5)


def test_the_error_of_a_listed_and_of_a_chained_design_agree():
    structure, prior = LineDistance(REPRESENTATIVE).structure(7), np.linspace(1, 2, 14) / 21
    design = make_design("least-risk", structure, 3, prior)
    listed = ListedReach(valid_sets(structure, 3), 14)
    assert listed.worst_posterior(prior, design.inclusion()) == pytest.approx(design.worst_posterior(prior, 1.0))
    found = facts(Mechanism(design), prior, 1)
    assert design.least_error(prior) / 14 == pytest.approx(found.mse_limit, rel=1e-8)


@pytest.mark.parametrize("ratio", [1.0, 2.0, 30.0, 1000.0])
def test_one_over_m_as_a_sum_of_exponentials(ratio):
    rates, weights = exponentials(0.3, 0.3 * ratio)
    m = np.geomspace(0.3, 0.3 * ratio, 77)
    assert np.exp(-np.outer(m, rates)) @ weights == pytest.approx(1.0 / m, rel=1e-7)
