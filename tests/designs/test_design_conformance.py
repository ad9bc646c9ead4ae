"""Every design on every structure: probabilities against enumeration, samples against probabilities."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from design_structures import STRUCTURES, circle_of, compatible, even_circle, line_of, random_graph, valid_sets

from polyseme.designs import make_design
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line
from polyseme.testing import check_design
from polyseme.testing import designs as answers
from polyseme.testing import designs as laws

DESIGNS = ["balanced", "sharp", "least-risk", "simple", "simple-printed", "duplicate"]


def uneven_prior(size):
    weights = 1.0 + 0.25 * np.sin(1.7 * np.arange(size))
    return weights / weights.sum()


@cache
def make(design, name, skewed):
    """The same for the list of cases and for the tests: some take a while to find."""
    structure, l = STRUCTURES[name]
    try:
        return make_design(design, structure, l, uneven_prior(structure.size) if skewed else None)
    except ImpossibleError:
        return None


CASES = [
    (design, name, skewed)
    for design, name in product(DESIGNS, STRUCTURES)
    for skewed in ([False, True] if design in ("balanced", "sharp", "least-risk") else [False])
    if make(design, name, skewed) is not None
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}{'-prior' if case[2] else ''}", scope="module")
def case(request):
    design, name, skewed = request.param
    structure, _ = STRUCTURES[name]
    prior = uneven_prior(structure.size) if skewed else np.full(structure.size, 1 / structure.size)
    return make(design, name, skewed), prior


def test_most_cases_are_possible():
    made = {(design, name) for design, name, _ in CASES}
    assert {name for design, name in made if design == "simple"} == set(STRUCTURES)
    assert len([1 for design, _ in made if design == "balanced"]) >= 9
    assert len([1 for design, _ in made if design == "duplicate"]) >= 3


def test_lists_exactly_the_valid_sets(case):
    laws.lists_the_valid_sets(case[0])


def test_likelihoods_add_up_to_one_for_every_value(case):
    laws.adds_up(case[0])


def test_invalid_sets_have_no_likelihood(case):
    laws.invalid_sets_have_no_likelihood(case[0])


def test_inclusion_and_joint_inclusion_by_enumeration(case):
    laws.inclusion_is_that_of_its_sets(case[0])


@pytest.mark.parametrize("p", [1.0, 0.7, 0.0])
def test_worst_posterior_by_enumeration(case, p):
    design, prior = case
    for attacker in (prior, uneven_prior(design.size)[::-1].copy()):
        laws.worst_posterior_is_that_of_its_sets(design, attacker, p)


def test_weights_are_the_channel_up_to_a_factor(case):
    laws.weights_are_the_channel(case[0])


def test_parameters_round_trip_through_json(case):
    laws.survives_json(case[0])


def balanced_promise(design, prior):
    return design.inclusion() == pytest.approx(design.l * prior, rel=1e-9)


def test_balanced_means_one_in_l(case):
    design, prior = case
    if design.name in ("balanced", "sharp"):
        assert balanced_promise(design, prior)
        assert design.worst_posterior(prior, 1.0) == pytest.approx(1 / design.l, rel=1e-9)


# -- what a design says of itself ------------------------------------------------------------------------------------


def attackers(design, prior):
    return prior, uneven_prior(design.size)[::-1].copy()


def test_a_design_knows_its_sets(case):
    answers.knows_its_sets(case[0])


def test_any_values_make_a_set_where_all_are_apart(case):
    design, prior = case
    apart = isinstance(design.structure, Clusters) and design.structure.count == design.size
    if design.name == "balanced" and apart:
        assert design.even == (np.ptp(prior) == 0)


def test_least_inclusion_is_one_over_the_largest_pull(case):
    answers.least_inclusion_is_one_over_the_largest_pull(case[0])


def test_reports_look_as_if_drawn_blindly_where_a_prior_matches(case):
    for shares in attackers(*case):
        answers.matches_where_reports_look_blind(case[0], shares)


@pytest.mark.parametrize("p", [1.0, 0.7, 0.0])
def test_inclusion_given_a_value_by_enumeration(case, p):
    answers.inclusion_given_is_that_of_its_sets(case[0], p)


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_spectrum_by_enumeration(case, p):
    answers.spectrum_is_that_of_its_matrix(case[0], p)


def test_matched_trace_by_enumeration(case):
    answers.matched_trace_is_that_of_its_sets(case[0])
    assert (case[0].matched_trace() is None) == (case[0].least_inclusion() is None)


@pytest.mark.parametrize("p", [1.0, 0.7, 0.0])
def test_least_error_by_enumeration(case, p):
    for shares in attackers(*case):
        answers.least_error_is_that_of_its_information(case[0], shares, p)


def test_least_error_is_known_where_a_plan_needs_it(case):
    design, prior = case
    if design.least_inclusion() is not None and not isinstance(design.structure, Circle):
        assert design.least_error(prior) is not None


@pytest.mark.parametrize("p", [1.0, 0.7, 0.0])
def test_epsilon_by_enumeration(case, p):
    answers.epsilon_is_the_largest_ratio(case[0], p)


@pytest.mark.parametrize("p", [1.0, 0.7, 0.0])
def test_success_of_a_guesser_by_enumeration(case, p):
    for shares in attackers(*case):
        answers.success_is_that_of_its_sets(case[0], shares, p)


def test_which_value_leads_by_enumeration(case):
    answers.leading_is_that_of_its_sets(case[0])


# -- samples ---------------------------------------------------------------------------------------------------------


def test_samples_follow_the_likelihood(case):
    laws.samples_follow(case[0])


def test_blind_samples_follow_the_blind_likelihood(case):
    laws.blind_samples_follow(case[0])


def test_the_test_rejects_a_two_percent_distortion(case):
    design, _ = case
    sets, codes = design.sets(), np.zeros(laws.RECORDS, dtype=np.int64)
    drawn = design.sample(codes, np.random.default_rng(13).random((design.draws, laws.RECORDS)))
    probability = (design.likelihood(sets) * (sets == 0)).sum(axis=1)
    if probability.max() < 0.95:  # else there is hardly anything to distort
        assert not laws.follows(design, drawn, laws.distorted(probability))


def test_the_smallest_and_largest_uniform_numbers_are_served(case):
    laws.serves_every_uniform_number(case[0])


def test_the_whole_suite_holds():
    structure, l = STRUCTURES["scattered"]
    check_design(make_design("balanced", structure, l), uneven_prior(structure.size))


def test_a_design_that_breaks_a_law_is_told_which():
    structure, l = STRUCTURES["ranks"]

    class Overconfident(type(make_design("simple", structure, l))):
        def worst_posterior(self, prior, p):
            return 1.0 / self.l

    with pytest.raises(AssertionError, match="`worst_posterior` is exact"):
        check_design(Overconfident(structure, l))


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
    # A sharp design is the optimum of a problem to within a gap, not to the last digit.
    rounding = 1e-5 if design.name == "sharp" else 1e-12
    found = other.likelihood(np.take_along_axis(moved, order, axis=1))
    assert found == pytest.approx(expected, rel=1e-6, abs=rounding)
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
                assert name in ("balanced", "sharp", "simple-printed", "duplicate") or not covered, (name, structure)
                continue
            assert np.array_equal(design.sets(), expected)
            total = np.zeros(size)
            np.add.at(total, expected, design.likelihood(expected))
            assert total == pytest.approx(np.ones(size), rel=1e-8)
            if name in ("balanced", "sharp"):
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
