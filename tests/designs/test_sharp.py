"""The sharp design: the promise by enumeration, the error by prediction, certificate and simulation."""

import json

import numpy as np
import pytest
from design_structures import STRUCTURES, even_circle, random_graph, valid_sets
from scipy.optimize import linprog

from polyseme.designs import design_from, make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.designs.sharp import GAP, VALUES_LIMIT, sharpen
from polyseme.inference.base import Reports
from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.privacy.analysis.summary import Spectrum, precision, spectrum
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters

RANKS = LineDistance.ranks(14)
UNIFORM = np.full(14, 1 / 14)


def error(design, shares, p=1.0):
    """F N times the expected mean squared error of a share."""
    return design.size * precision(Mechanism(design, p), shares, 1, Spectrum(True, 1.0), []).limit


@pytest.mark.parametrize(
    ("l", "d", "ratio"), [(2, 2, 0.9994), (3, 2, 0.9959), (3, 3, 0.9504), (3, 4, 0.8753), (4, 3, 0.8683)]
)
def test_the_same_promise_at_less_error(l, d, ratio):
    structure = RANKS.structure(d)
    sharp, balanced = make_design("sharp", structure, l), make_design("balanced", structure, l)
    # The promise, by enumeration: every member of every set has posterior 1/l.
    sets, channel = Mechanism(sharp).channel()
    assert np.array_equal(sets, valid_sets(structure, l))
    drawn = channel.sum(axis=0) > 0
    posterior = channel[:, drawn] / channel[:, drawn].sum(axis=0)
    np.testing.assert_allclose(posterior[posterior > 0], 1 / l, rtol=1e-9)
    np.testing.assert_allclose(sharp.inclusion(), l / 14, rtol=1e-12)
    assert error(sharp, UNIFORM) / error(balanced, UNIFORM) == pytest.approx(ratio, abs=1e-4)
    assert sharp.gap <= 10 * GAP
    # What is best at p = 1 is best at every p.
    assert error(sharp, UNIFORM, 0.7) <= error(balanced, UNIFORM, 0.7)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_no_feasible_direction_lowers_the_error(kind):
    structure, l = STRUCTURES[kind]
    try:
        balanced = make_design("balanced", structure, l)
    except ImpossibleError:
        return
    sets = balanced.sets()
    start = np.exp(balanced.log_probability(sets))
    possible = start > 0
    rho = balanced.inclusion()
    found = sharpen(sets[possible], rho, start[possible])
    if found is None:
        return
    member = np.zeros((structure.size, possible.sum()))
    member[sets[possible].T, np.arange(possible.sum())] = 1.0
    joint = (member * found.probability) @ member.T
    inverse = np.linalg.inv(joint)
    assert found.error == pytest.approx(rho**2 @ np.diag(inverse) - 1.0)
    # The Frank-Wolfe gap: the best distribution against the gradient, by a linear program.
    gains = np.einsum("vr,vu,ur->r", member, (inverse * rho**2) @ inverse, member)
    best = linprog(-gains, A_eq=member, b_eq=rho, bounds=(0, None), method="highs")
    scale = max(found.error, 1.0)
    assert -best.fun - gains @ found.probability <= 1e-4 * scale
    assert found.gap <= 1e-4 * scale
    assert np.all(found.probability >= 0)


def test_a_prior_is_kept():
    prior = 1.0 + 0.3 * np.sin(np.arange(14))
    prior /= prior.sum()
    design = make_design("sharp", RANKS.structure(3), 3, prior)
    assert Mechanism(design).worst_posterior(prior) == pytest.approx(1 / 3, rel=1e-9)
    assert error(design, prior) < 0.97 * error(make_design("balanced", RANKS.structure(3), 3, prior), prior)


def test_without_distances_the_even_design_is_the_best():
    sharp, even = (make_design(name, Clusters(np.arange(10)), 3) for name in ("sharp", "balanced"))
    sets = even.sets()
    np.testing.assert_allclose(sharp.log_probability(sets), even.log_probability(sets), atol=1e-5)


def test_where_nothing_can_be_estimated_the_promise_still_holds():
    design = make_design("sharp", RANKS.structure(7), 2)
    assert Mechanism(design).worst_posterior(UNIFORM) == pytest.approx(0.5, rel=1e-9)


def test_what_a_manifest_stores():
    design = make_design("sharp", RANKS.structure(4), 3)
    stored = json.loads(json.dumps(design.parameters()))
    again = design_from("sharp", RANKS.structure(4), 3, stored)
    sets = design.sets()
    np.testing.assert_allclose(again.log_probability(sets), design.log_probability(sets))
    codes, uniforms = np.arange(14), np.random.default_rng(0).random((1, 14))
    assert np.array_equal(again.sample(codes, uniforms), design.sample(codes, uniforms))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda row: row[:-1], "expected 56 numbers"),
        (lambda row: [-row[0], *row[1:]], "add up to one"),
        (lambda row: [2 * number for number in row], "add up to one"),
        (lambda row: [1.0] + [0.0] * (len(row) - 1), "in no set that can be drawn"),
    ],
)
def test_a_manifest_is_not_taken_on_trust(spoil, message):
    row = make_design("sharp", RANKS.structure(4), 3).parameters()["probabilities"]
    with pytest.raises(PolicyError, match=message):
        design_from("sharp", RANKS.structure(4), 3, {"probabilities": spoil(row)})


@pytest.mark.parametrize("size", [VALUES_LIMIT + 1, 50])
def test_what_cannot_be_listed_is_refused_with_a_way_out(size):
    with pytest.raises(ImpossibleError, match="sharp design") as caught:
        make_design("sharp", LineDistance.ranks(size).structure(2), 4)
    assert "mechanism: balanced" in str(caught.value)


def wavy(size):
    shares = 1.0 + 0.5 * np.sin(np.arange(size))
    return shares / shares.sum()


def sloping(size):
    shares = np.exp(-1.2 * np.arange(size) / size)
    return shares / shares.sum()


def peaked(size):
    shares = np.exp(-(((np.arange(size) - size / 3) / (size / 6)) ** 2)) + 1e-3
    return shares / shares.sum()


SETTINGS = {
    **{
        f"line {size} ({l}, {d})": (LineDistance.ranks(size).structure(d), l)
        for size, l, d in [(5, 2, 2), (8, 2, 3), (10, 4, 2), (14, 3, 3), (20, 3, 4), (30, 2, 3), (40, 2, 2)]
    },
    **{f"circle {size} ({l}, {d})": (even_circle(size, d), l) for size, l, d in [(8, 3, 2), (14, 4, 3), (20, 3, 4)]},
    **{
        f"clusters {size}/{many} ({l})": (Clusters(np.arange(size) % many), l)
        for size, many, l in [(8, 5, 3), (20, 5, 3), (40, 8, 2)]
    },
    **{
        f"graph {size} ({l})": (random_graph(size, share, size), l)
        for size, share, l in [(8, 0.6, 2), (10, 0.85, 3), (20, 0.85, 3)]
    },
}


@pytest.mark.parametrize("prior", [None, wavy, sloping])
@pytest.mark.parametrize("setting", SETTINGS)
def test_where_the_prior_is_right_it_is_never_worse(setting, prior):
    structure, l = SETTINGS[setting]
    shares = np.full(structure.size, 1 / structure.size) if prior is None else prior(structure.size)
    try:
        balanced = make_design("balanced", structure, l, shares)
    except ImpossibleError:
        assert prior is not None  # some values are too crowded for an uneven prior
        return
    sharp = make_design("sharp", structure, l, shares)
    _, channel = Mechanism(sharp).channel()
    joint = shares[:, None] * channel
    drawn = joint.sum(axis=0) > 0
    posterior = joint[:, drawn] / joint[:, drawn].sum(axis=0)
    np.testing.assert_allclose(posterior[posterior > 0], 1 / l, rtol=1e-9)
    assert spectrum(Mechanism(balanced)).identifiable
    assert spectrum(Mechanism(sharp)).identifiable
    assert error(sharp, shares) <= error(balanced, shares) * (1 + 1e-9)


def test_where_the_prior_is_wrong_it_can_be_worse():
    """Why it is not the default: docs/decisions/sharp-default.md."""
    structure, prior, truth = LineDistance.ranks(8).structure(2), sloping(8), peaked(8)
    sharp, balanced = (make_design(name, structure, 2, prior) for name in ("sharp", "balanced"))
    assert error(sharp, prior) / error(balanced, prior) == pytest.approx(0.974, abs=1e-3)
    assert error(sharp, truth) / error(balanced, truth) == pytest.approx(1.209, abs=1e-3)


def simulated(design, counts, repeats, seed):
    """Squared errors of the shares, times the number of records, by the estimator `ml`: (repeats,)."""
    rng, mechanism, records = np.random.default_rng(seed), Mechanism(design), counts.sum()
    sets, channel = mechanism.channel()
    channel = channel / channel.sum(axis=1, keepdims=True)
    found = []
    for _ in range(repeats):
        drawn = rng.multinomial(counts, channel).sum(axis=0)
        seen = drawn > 0
        reports = Reports((sets[seen],), np.zeros(int(seen.sum()), dtype=np.int64), drawn[seen], 1, True)
        shares = ESTIMATORS["ml"].fit(reports, [mechanism]).values.ravel() / records
        found.append(records * float(((shares - counts / records) ** 2).sum()))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "prior"),
    [
        ("line 5 (2, 2)", None),
        ("line 14 (3, 3)", wavy),
        ("circle 20 (3, 4)", wavy),
        ("clusters 20/5 (3)", None),
        ("graph 8 (2)", None),
    ],
)
def test_ml_reaches_the_limit_of_a_finite_population(setting, prior):
    """Within 1.05 of `CRB - multinomial variance`, with a standard error that would show a tenth."""
    structure, l = SETTINGS[setting]
    shares = np.full(structure.size, 1 / structure.size) if prior is None else prior(structure.size)
    counts = np.floor(200_000 * shares).astype(np.int64)
    design = make_design("sharp", structure, l, shares)
    found = simulated(design, counts, 5_000, seed=7) / error(design, counts / counts.sum())
    assert found.std() / np.sqrt(len(found)) <= 0.015
    assert 0.95 <= found.mean() <= 1.05


@pytest.mark.slow
@pytest.mark.parametrize(("l", "d"), [(3, 4), (4, 3)])
def test_the_predicted_error_by_simulation(l, d):
    errors = {}
    for name in ("balanced", "sharp"):
        design = make_design(name, RANKS.structure(d), l)
        drawn = simulated(design, np.full(14, 10_000), 1_000, seed=7)
        errors[name] = (drawn.mean(), drawn.std() / np.sqrt(len(drawn)))
        # ml comes as close to the limit as the simulation can tell.
        assert errors[name][0] == pytest.approx(error(design, UNIFORM), abs=4 * errors[name][1])
    ratio = errors["sharp"][0] / errors["balanced"][0]
    spread = ratio * np.hypot(errors["sharp"][1] / errors["sharp"][0], errors["balanced"][1] / errors["balanced"][0])
    predicted = error(make_design("sharp", RANKS.structure(d), l), UNIFORM) / error(
        make_design("balanced", RANKS.structure(d), l), UNIFORM
    )
    assert abs(ratio - predicted) <= 3 * spread
