"""Every design on every structure: probabilities against enumeration, samples against probabilities."""

import json
from itertools import product

import numpy as np
import pytest
from design_structures import STRUCTURES, circle_of, compatible, even_circle, line_of, random_graph, valid_sets
from scipy.stats import chi2

from polyseme.designs import design_from, make_design
from polyseme.distances import LineDistance
from polyseme.distances.structure import Circle, Clusters, Graph, Line
from polyseme.errors import ImpossibleError

DESIGNS = ["balanced", "least-risk", "simple", "duplicate"]


def uneven_prior(size):
    weights = 1.0 + 0.25 * np.sin(1.7 * np.arange(size))
    return weights / weights.sum()


def make(design, name, prior=None):
    structure, l = STRUCTURES[name]
    try:
        return make_design(design, structure, l, prior)
    except ImpossibleError:
        return None


CASES = [
    (design, name, skewed)
    for design, name in product(DESIGNS, STRUCTURES)
    for skewed in ([False, True] if design in ("balanced", "least-risk") else [False])
    if make(design, name, uneven_prior(STRUCTURES[name][0].size) if skewed else None) is not None
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}{'-prior' if case[2] else ''}", scope="module")
def case(request):
    design, name, skewed = request.param
    structure, _ = STRUCTURES[name]
    prior = uneven_prior(structure.size) if skewed else np.full(structure.size, 1 / structure.size)
    return make(design, name, prior if skewed else None), prior


def test_most_cases_are_possible():
    made = {(design, name) for design, name, _ in CASES}
    assert {name for design, name in made if design == "simple"} == set(STRUCTURES)
    assert len([1 for design, _ in made if design == "balanced"]) >= 9
    assert len([1 for design, _ in made if design == "duplicate"]) >= 3


def test_lists_exactly_the_valid_sets(case):
    design, _ = case
    expected = valid_sets(design.structure, design.l)
    assert design.count() == len(expected)
    assert np.array_equal(design.sets(), expected)


def test_likelihoods_add_up_to_one_for_every_value(case):
    design, _ = case
    sets = design.sets()
    total = np.zeros(design.size)
    np.add.at(total, sets, design.likelihood(sets))
    assert total == pytest.approx(np.ones(design.size), rel=1e-9)
    assert design.blind_likelihood(sets).sum() == pytest.approx(1.0, rel=1e-9)


def test_invalid_sets_have_no_likelihood(case):
    design, _ = case
    pairs = compatible(design.structure)
    close = [(u, v) for u in range(design.size) for v in range(u + 1, design.size) if not pairs[u, v]]
    if not close:
        return
    rest = [w for w in range(design.size) if w not in close[0]][: design.l - 2]
    row = np.sort(np.array([[*close[0], *rest]]), axis=1)
    assert not design.likelihood(row).any()
    assert not design.blind_likelihood(row).any()


def test_inclusion_and_joint_inclusion_by_enumeration(case):
    design, _ = case
    sets = design.sets()
    likelihood, blind = design.likelihood(sets), design.blind_likelihood(sets)
    given, alone = np.zeros((design.size, design.size)), np.zeros(design.size)
    for row, values, probability in zip(sets, likelihood, blind):
        given[np.ix_(row, row)] += values[:, None]
        alone[row] += probability
    assert design.conditional_inclusion(np.arange(design.size)) == pytest.approx(given, rel=1e-9, abs=1e-14)
    some = np.array([design.size - 1, 0, 2])
    assert design.conditional_inclusion(some) == pytest.approx(given[some], rel=1e-9, abs=1e-14)
    assert design.blind_inclusion() == pytest.approx(alone, rel=1e-9)
    assert design.blind_inclusion().sum() == pytest.approx(design.l, rel=1e-12)


@pytest.mark.parametrize("p", [1.0, 0.7, 0.0])
def test_worst_posterior_by_enumeration(case, p):
    design, prior = case
    for attacker in (prior, uneven_prior(design.size)[::-1].copy()):
        sets = design.sets()
        likelihood, blind = design.likelihood(sets), design.blind_likelihood(sets)
        worst = 0.0
        for row, values, probability in zip(sets, likelihood, blind):
            channel = np.full(design.size, (1 - p) * probability)
            channel[row] += p * values
            joint = attacker * channel
            if joint.sum() > 0:
                worst = max(worst, (joint / joint.sum()).max())
        assert design.worst_posterior(attacker, p) == pytest.approx(worst, rel=1e-9)


def test_weights_are_the_channel_up_to_a_factor(case):
    design, _ = case
    sets = design.sets()
    possible = design.blind_likelihood(sets) > 0
    inside, outside = design.weights(sets, 0.6)
    expected = 0.6 * design.likelihood(sets) + 0.4 * design.blind_likelihood(sets)[:, None]
    factor = outside / (0.4 * np.maximum(design.blind_likelihood(sets), 1e-300))
    assert (expected * factor[:, None])[possible] == pytest.approx(inside[possible], rel=1e-9)


def test_parameters_round_trip_through_json(case):
    design, _ = case
    again = design_from(design.name, design.structure, design.l, json.loads(json.dumps(design.parameters())))
    uniforms = np.random.default_rng(5).random((design.draws, 500))
    codes = np.arange(500) % design.size
    assert np.array_equal(again.sample(codes, uniforms), design.sample(codes, uniforms))
    assert np.array_equal(again.likelihood(design.sets()), design.likelihood(design.sets()))
    assert again.name == design.name


def balanced_promise(design, prior):
    return design.inclusion() == pytest.approx(design.l * prior, rel=1e-9)


def test_balanced_means_one_in_l(case):
    design, prior = case
    if design.name == "balanced":
        assert balanced_promise(design, prior)
        assert design.worst_posterior(prior, 1.0) == pytest.approx(1 / design.l, rel=1e-9)


# -- samples ---------------------------------------------------------------------------------------------------------

RECORDS = 400_000
LEVEL = 1e-4


def statistic(design, drawn, expected):
    """Pearson's statistic of drawn sets against expected counts, and its degrees of freedom."""
    digits = design.size ** np.arange(design.l)[::-1]
    keys = design.sets() @ digits
    place = np.minimum(np.searchsorted(keys, drawn @ digits), len(keys) - 1)
    assert np.array_equal(keys[place], drawn @ digits), "a set that is not valid"
    observed = np.bincount(place, minlength=len(keys))
    possible = expected > 0
    assert observed[~possible].sum() == 0
    return (
        ((observed - expected)[possible] ** 2 / expected[possible]).sum(),
        max(possible.sum() - 1, 0),
    )


def accepts(design, drawn, probability):
    value, freedom = statistic(design, drawn, probability * len(drawn))
    return freedom == 0 or chi2.sf(value, freedom) > LEVEL


def distorted(probability):
    """A near miss: every other set, from the likeliest down, 2% more likely than it should be, the rest 2% less."""
    rank = np.argsort(np.argsort(-probability, kind="stable"))
    factor = np.where(rank % 2 == 0, 1.02, 0.98)
    return probability * factor / (probability * factor).sum()


def test_samples_follow_the_likelihood(case):
    design, _ = case
    sets = design.sets()
    rng = np.random.default_rng(11)
    for value in (0, design.size // 2):
        codes = np.full(RECORDS, value)
        drawn = design.sample(codes, rng.random((design.draws, RECORDS)))
        assert drawn.dtype == np.int64
        assert drawn.shape == (RECORDS, design.l)
        assert np.all(drawn[:, 1:] > drawn[:, :-1])
        assert np.all((drawn == value).any(axis=1))
        probability = (design.likelihood(sets) * (sets == value)).sum(axis=1)
        assert accepts(design, drawn, probability)


def test_blind_samples_follow_the_blind_likelihood(case):
    design, _ = case
    drawn = design.sample_blind(np.random.default_rng(12).random((design.draws + 1, RECORDS)))
    assert accepts(design, drawn, design.blind_likelihood(design.sets()))


def test_the_test_rejects_a_two_percent_distortion(case):
    design, _ = case
    sets = design.sets()
    drawn = design.sample(np.zeros(RECORDS, dtype=np.int64), np.random.default_rng(13).random((design.draws, RECORDS)))
    probability = (design.likelihood(sets) * (sets == 0)).sum(axis=1)
    if probability.max() < 0.95:  # else there is hardly anything to distort
        assert not accepts(design, drawn, distorted(probability))


def test_the_smallest_and_largest_uniform_numbers_are_served(case):
    design, _ = case
    pairs = compatible(design.structure)
    codes = np.arange(design.size)
    for number in (0.0, 1.0 - 2.0**-53):
        drawn = design.sample(codes, np.full((design.draws, design.size), number))
        for row, value in zip(drawn.tolist(), codes):
            assert value in row
            assert all(pairs[u, v] for u in row for v in row if u != v)


# -- order of values -------------------------------------------------------------------------------------------------


def permuted(structure, new_code):
    """The same structure with value v renamed to new_code[v]."""
    if isinstance(structure, Line):
        return Line(new_code[structure.order], structure.ahead)
    if isinstance(structure, Circle):
        return Circle(
            new_code[structure.order], structure.positions, structure.length, structure.threshold, structure.spacing
        )
    back = np.argsort(new_code)
    if isinstance(structure, Clusters):
        return Clusters(structure.labels[back])
    return Graph(structure.compatible[np.ix_(back, back)])


def test_renaming_values_renames_everything(case):
    design, prior = case
    if design.name == "duplicate" and isinstance(design.structure, Clusters):
        pytest.skip("the order of singletons is the order of their codes")
    new_code = np.random.default_rng(3).permutation(design.size)
    renamed = np.empty(design.size)
    renamed[new_code] = prior
    uniform = np.ptp(prior) == 0
    other = make_design(design.name, permuted(design.structure, new_code), design.l, None if uniform else renamed)
    sets = design.sets()
    moved = new_code[sets]
    order = np.argsort(moved, axis=1)
    expected = np.take_along_axis(design.likelihood(sets), order, axis=1)
    assert other.likelihood(np.take_along_axis(moved, order, axis=1)) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    uniforms = np.random.default_rng(8).random((other.draws, 3000))
    codes = np.arange(3000) % design.size
    drawn = other.sample(codes, uniforms)
    pairs = compatible(other.structure)
    for row, value in zip(drawn.tolist(), codes):
        assert row == sorted(row)
        assert value in row
        assert all(pairs[u, v] for u in row for v in row if u != v)


# -- every small domain ----------------------------------------------------------------------------------------------

SMALL = [(size, l) for size in range(2, 13) for l in range(2, 6) if l <= size]


@pytest.mark.parametrize(("size", "l"), SMALL)
def test_small_domains_against_enumeration(size, l):
    rng = np.random.default_rng(100 * size + l)
    structures = [line_of(rng.permutation(size), d) for d in range(1, size + 1)]
    structures += [even_circle(size, d) for d in range(1, size // 2 + 1)]
    structures += [line_of(rng.random(size), 0.15), circle_of(rng.random(size), 1.0, 0.1)]
    structures += [Clusters(rng.integers(0, l + 1, size)), random_graph(size, 0.8, size)]
    for structure in structures:
        if isinstance(structure, Clusters):
            structure = Clusters(np.unique(structure.labels, return_inverse=True)[1])
        expected = valid_sets(structure, l)
        for name in DESIGNS:
            try:
                design = make_design(name, structure, l)
            except ImpossibleError:
                covered = len(np.unique(expected)) == size
                assert name in ("balanced", "duplicate") or not covered, (name, structure)
                continue
            assert np.array_equal(design.sets(), expected)
            total = np.zeros(size)
            np.add.at(total, expected, design.likelihood(expected))
            assert total == pytest.approx(np.ones(size), rel=1e-8)
            if name == "balanced":
                assert design.inclusion() == pytest.approx(np.full(size, l / size), rel=1e-9)


@pytest.mark.parametrize("size", range(2, 15))
def test_ranks_have_a_balanced_design_exactly_when_l_times_d_is_at_most_f(size):
    for l in range(2, 6):
        for d in range(1, size + 1):
            structure = LineDistance.ranks(size).structure(d)
            if l * d <= size:
                assert make_design("balanced", structure, l).worst_posterior(
                    np.full(size, 1 / size), 1.0
                ) == pytest.approx(1 / l, rel=1e-9)
            else:
                with pytest.raises(ImpossibleError, match="no balanced design"):
                    make_design("balanced", structure, l)
