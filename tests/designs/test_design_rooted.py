"""Circles with too many sets to list, on circles small enough to list them."""

import json

import numpy as np
import pytest
from design_structures import circle_of, even_circle, valid_sets
from scipy.stats import chi2

from polyseme.designs import balanced as balanced_module
from polyseme.designs import design_from, make_design

UNEVEN = circle_of([0, 5.5, 1.5, 9, 3, 4, 7, 8.1, 10.4, 11.2], 12.0, 1.6)
CASES = {
    "uneven": (UNEVEN, 3, None),
    "even-prior": (even_circle(12, 2), 4, 1.0 + 0.2 * np.sin(np.arange(12))),
    "pairs": (even_circle(9, 3), 2, 1.0 + 0.2 * np.cos(np.arange(9))),
}


@pytest.fixture(params=CASES)
def pair(request, monkeypatch):
    """The same design by lines and by the list of sets."""
    circle, l, prior = CASES[request.param]
    listed = make_design("balanced", circle, l, prior)
    monkeypatch.setattr(balanced_module, "SET_LIMIT", 0)
    return make_design("balanced", circle, l, prior), listed


def test_lines_and_lists_agree(pair):
    rooted, listed = pair
    assert type(rooted) is not type(listed)
    sets = listed.sets()
    assert np.array_equal(sets, valid_sets(listed.structure, listed.l))
    assert rooted.likelihood(sets) == pytest.approx(listed.likelihood(sets), rel=1e-7)
    assert rooted.inclusion() == pytest.approx(listed.inclusion(), rel=1e-9)
    codes = np.arange(rooted.size)
    assert rooted.conditional_inclusion(codes) == pytest.approx(listed.conditional_inclusion(codes), rel=1e-7)
    prior = np.linspace(1, 2, rooted.size) / np.linspace(1, 2, rooted.size).sum()
    for p in (1.0, 0.5):
        assert rooted.worst_posterior(prior, p) == pytest.approx(listed.worst_posterior(prior, p), rel=1e-7)
    again = design_from("balanced", rooted.structure, rooted.l, json.loads(json.dumps(rooted.parameters())))
    assert np.array_equal(again.likelihood(sets), rooted.likelihood(sets))


def test_walks_follow_the_likelihood(pair):
    rooted, _ = pair
    records = 300_000
    sets = valid_sets(rooted.structure, rooted.l)
    digits = rooted.size ** np.arange(rooted.l)[::-1]
    for value in (0, 5):
        drawn = rooted.sample(np.full(records, value), np.random.default_rng(value).random((rooted.draws, records)))
        place = np.searchsorted(sets @ digits, drawn @ digits)
        assert np.array_equal(sets[place], drawn)
        probability = (rooted.likelihood(sets) * (sets == value)).sum(axis=1)
        possible = probability > 0
        observed = np.bincount(place, minlength=len(sets))[possible]
        for factor, accepted in ((np.ones(possible.sum()), True), (np.resize([1.02, 0.98], possible.sum()), False)):
            expected = probability[possible] * factor
            expected *= records / expected.sum()
            level = chi2.sf(((observed - expected) ** 2 / expected).sum(), possible.sum() - 1)
            assert bool(level > 1e-4) == accepted


def test_a_year_with_an_uneven_prior():
    days = even_circle(366, 30)
    prior = 1.0 + 0.3 * np.sin(np.arange(366) / 58)
    prior /= prior.sum()
    design = make_design("balanced", days, 3, prior)
    assert design.inclusion() == pytest.approx(3 * prior, rel=1e-9)
    assert design.worst_posterior(prior, 1.0) == pytest.approx(1 / 3, rel=1e-8)
