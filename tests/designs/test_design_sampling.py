"""Samplers beyond the reach of tables, and the pieces they are made of."""

import numpy as np
import pytest
from design_structures import compatible, valid_sets
from scipy.stats import chi2

from polyseme.designs import clusters as clusters_module
from polyseme.designs import line as line_module
from polyseme.designs import make_design
from polyseme.designs.chain import Chain, Steps
from polyseme.designs.distribution import compatible_sets
from polyseme.designs.samplers import Inverse, SetTable, alias_cells, sort_rows
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters

RECORDS = 300_000


@pytest.mark.parametrize("count", [1, 2, 3, 17, 1000])
@pytest.mark.parametrize("skew", [0, 1, 6])
def test_alias_cells_add_up_to_the_weights(count, skew):
    weights = np.random.default_rng(count).random(count) ** skew + 1e-12
    keep, alias = alias_cells(weights)
    share = keep.copy()
    np.add.at(share, alias, 1 - keep)
    assert np.all((keep >= 0) & (keep <= 1))
    assert share / count == pytest.approx(weights / weights.sum(), abs=1e-13)


def test_wide_sets_are_drawn_without_packing():
    sets = np.arange(40).reshape(4, 10) * 1000
    table = SetTable(sets, np.ones(4), 39_001)
    assert np.array_equal(table.sample(np.array([0, 10_000, 39_000]), np.zeros(3)), sets[[0, 1, 3]])


@pytest.mark.parametrize("skew", [0, 3, 12])
def test_inverse_finds_every_step(skew):
    rng = np.random.default_rng(skew)
    sums = np.append(0.0, np.cumsum(rng.random(500) ** skew * (rng.random(500) < 0.8)))
    values = np.concatenate([rng.random(20_000) * sums[-1], sums[:-1][np.diff(sums) > 0]])
    found = Inverse(sums)(values)
    assert np.array_equal(found, np.searchsorted(sums, values, side="right") - 1)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
def test_rows_are_sorted(width):
    rows = np.random.default_rng(width).integers(0, 50, (1000, width))
    assert np.array_equal(sort_rows(rows.copy()), np.sort(rows, axis=1))


CHAINS = {
    "ranks": (LineDistance.ranks(11).structure(3), 3),
    "ranks-boundary": (LineDistance.ranks(12).structure(4), 3),
    "scattered": (LineDistance([3.0, 0.0, 7.5, 1.2, 9.0, 4.4, 11.0, 5.1, 13.7, 2.1]).structure(1.4), 4),
    "clusters": (Clusters(np.array([2, 0, 1, 1, 3, 0, 2, 4, 4, 3, 5])), 3),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("skewed", [False, True])
def test_walks_follow_the_likelihood(name, skewed, monkeypatch):
    monkeypatch.setattr(line_module, "TABLE_LIMIT", 0)
    monkeypatch.setattr(clusters_module, "TABLE_LIMIT", 0)
    structure, l = CHAINS[name]
    prior = 1.0 + 0.2 * np.cos(np.arange(structure.size)) if skewed else None
    if skewed and name == "ranks-boundary":
        prior = np.tile([1.0, 1.3, 0.8, 0.9], 3)  # every window still holds exactly a third
    design = make_design("balanced", structure, l, prior)
    assert design.draws >= l
    sets = valid_sets(structure, l)
    likelihood = design.likelihood(sets)
    digits = structure.size ** np.arange(l)[::-1]
    rng = np.random.default_rng(21)
    for value in (0, structure.size // 2):
        drawn = design.sample(np.full(RECORDS, value), rng.random((design.draws, RECORDS)))
        place = np.searchsorted(sets @ digits, drawn @ digits)
        assert np.array_equal(sets[place], drawn)
        probability = (likelihood * (sets == value)).sum(axis=1)
        possible = probability > 0
        observed = np.bincount(place, minlength=len(sets))
        assert observed[~possible].sum() == 0

        def level(share, observed=observed, possible=possible):
            value = ((observed - RECORDS * share)[possible] ** 2 / (RECORDS * share[possible])).sum()
            return chi2.sf(value, possible.sum() - 1)

        if possible.sum() > 1:
            assert level(probability) > 1e-4
            rank = np.argsort(np.argsort(-probability, kind="stable"))
            near = probability * np.where(rank % 2 == 0, 1.02, 0.98)
            assert level(near / near.sum()) < 1e-4


def test_a_boundary_design_draws_only_what_it_may():
    """Twelve ranks, three sets of four apart: every window of four holds exactly one member."""
    design = make_design("balanced", LineDistance.ranks(12).structure(4), 3)
    drawn = design.sample(np.arange(12), np.random.default_rng(0).random((design.draws, 12)))
    assert np.array_equal(drawn % 4, np.repeat(np.arange(12) % 4, 3).reshape(12, 3))


def test_long_lines_need_no_list():
    design = make_design("balanced", LineDistance.ranks(10_000).structure(700), 8)
    assert design.inclusion() == pytest.approx(np.full(10_000, 8 / 10_000), rel=1e-9)
    assert design.count() > 10**20
    codes = np.arange(10_000)
    drawn = design.sample(codes, np.random.default_rng(1).random((design.draws, len(codes))))
    assert compatible_sets(design.structure, drawn).all()
    assert np.all((drawn == codes[:, None]).any(axis=1))
    assert design.worst_posterior(np.full(10_000, 1e-4), 1.0) == pytest.approx(1 / 8, rel=1e-9)


def big_clusters():
    rng = np.random.default_rng(4)
    labels = np.concatenate([np.arange(2_000), rng.integers(0, 2_000, 68_000)])
    return Clusters(rng.permutation(labels))


def test_seventy_thousand_leaves():
    structure = big_clusters()
    design = make_design("balanced", structure, 3)
    assert design.inclusion() == pytest.approx(np.full(70_000, 3 / 70_000), rel=1e-9)
    codes = np.random.default_rng(5).integers(0, 70_000, 50_000)
    drawn = design.sample(codes, np.random.default_rng(6).random((design.draws, len(codes))))
    assert compatible_sets(structure, drawn).all()
    assert np.all((drawn == codes[:, None]).any(axis=1))
    assert design.worst_posterior(np.full(70_000, 1 / 70_000), 1.0) == pytest.approx(1 / 3, rel=1e-9)
    row = design.conditional_inclusion(np.array([17]))[0]
    assert row.sum() == pytest.approx(3, rel=1e-9)


def test_seventy_thousand_leaves_with_a_prior():
    structure = big_clusters()
    prior = np.random.default_rng(7).random(70_000) + 0.2
    prior /= prior.sum()
    design = make_design("balanced", structure, 3, prior)
    assert design.inclusion() == pytest.approx(3 * prior, rel=1e-9)
    drawn = design.sample_blind(np.random.default_rng(6).random((design.draws + 1, 400_000)))
    assert compatible_sets(structure, drawn).all()
    heavy = prior > np.median(prior)
    share = heavy[drawn].mean()
    assert share == pytest.approx(prior[heavy].sum(), abs=4 * np.sqrt(0.25 / drawn.size))


def test_plain_diversity_over_many_values():
    design = make_design("balanced", Clusters(np.arange(70_000)), 4)
    codes = np.arange(70_000)
    drawn = design.sample(codes, np.random.default_rng(6).random((design.draws, len(codes))))
    assert np.all(drawn[:, 1:] > drawn[:, :-1])
    assert np.all((drawn == codes[:, None]).any(axis=1))
    others = drawn[drawn != codes[:, None]]
    assert abs(others.mean() - 34_999.5) < 5 * 70_000 / np.sqrt(12 * len(others))


def test_simple_on_large_domains_uses_intervals():
    structure = LineDistance.ranks(20_000).structure(50)
    design = make_design("simple", structure, 4)
    codes = np.arange(0, 20_000, 7)
    drawn = design.sample(codes, np.random.default_rng(2).random((design.draws, len(codes))))
    assert compatible_sets(structure, drawn).all()
    assert np.all(design.likelihood(drawn) > 0)


def test_chain_rows_do_not_overflow():
    steps = Steps(np.arange(1, 401), np.empty(0, dtype=np.int64))
    weights = np.linspace(-20, 20, 400)
    chain = Chain(steps, 150, weights)
    assert np.isfinite(chain.log_total)
    assert chain.inclusion.sum() == pytest.approx(150, rel=1e-9)


def test_compatibility_matrix_agrees():
    from design_structures import STRUCTURES

    from polyseme.designs.distribution import compatibility

    for structure, _ in STRUCTURES.values():
        assert np.array_equal(compatibility(structure), compatible(structure))
