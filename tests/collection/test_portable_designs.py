"""Whole-number documents draw exactly what their design says."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from portable_cases import UNEVEN, cases, circle, graph, random_designs, shares
from scipy.stats import chi2

from polyseme.designs import make_design
from polyseme.designs.distribution import compatibility
from polyseme.designs.mechanism import Mechanism
from polyseme.designs.stored import described, structure_of
from polyseme.device.protected import worst_posterior
from polyseme.device.sampler import ONE, Sampling
from polyseme.kernel.errors import CampaignError, ImpossibleError
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line

CASES = cases()


class Branches:
    """In the place of a stream: follows every outcome of every draw, each with its exact probability."""

    def __init__(self, path):
        self.path, self.taken, self.chance, self.options = path, 0, Fraction(1), []

    def _choose(self, chances):
        known = self.taken < len(self.path)
        chosen = self.path[self.taken] if known else next(k for k, chance in enumerate(chances) if chance)
        if not known:
            self.options.append((self.taken, [k for k, chance in enumerate(chances) if chance and k != chosen]))
            self.path = [*self.path, chosen]
        self.taken += 1
        self.chance *= Fraction(chances[chosen], sum(chances))
        return chosen

    def below(self, bound):
        return self._choose([1] * bound)

    def between(self, sums, low, high):
        return low + self._choose([sums[k + 1] - sums[k] for k in range(low, high)])

    def pick(self, weights):
        return self._choose(list(weights))


def distribution(draw):
    """The exact distribution of what `draw` makes of a stream."""
    found, waiting = {}, [[]]
    while waiting:
        stream = Branches(waiting.pop())
        drawn = tuple(draw(stream))
        found[drawn] = found.get(drawn, 0) + stream.chance
        waiting += [[*stream.path[:place], other] for place, others in stream.options for other in others]
    return found


def channel_of(sampling, code):
    """P(R | v) of a document, exactly."""
    truthful = Fraction(sampling.p53, ONE)
    found = {}
    for part, draw in ((truthful, lambda s: sampling.kind.given(code, s)), (1 - truthful, sampling.kind.blind)):
        for members, chance in (distribution(draw) if part else {}).items():
            found[members] = found.get(members, 0) + part * chance
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_document_has_the_channel_of_its_design(name):
    design, p = CASES[name]
    sampling = Sampling.read(json.loads(json.dumps(design.portable(p))))
    sets, channel = Mechanism(described(sampling.document, design.structure, design.name), sampling.p).channel()
    for code in range(design.size):
        exact = channel_of(sampling, code)
        assert sum(exact.values()) == 1
        assert set(exact) <= set(map(tuple, sets.tolist()))
        found = np.array([float(exact.get(members, 0)) for members in map(tuple, sets.tolist())])
        assert found == pytest.approx(channel[code], abs=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_a_described_design_is_the_one_it_came_from(name):
    design, p = CASES[name]
    document = design.portable(p)
    again = described(document, design.structure, design.name)
    alone = described(document)
    sets = design.sets()
    assert type(again) is type(design) or document["kind"] == "circle"
    assert again.likelihood(sets) == pytest.approx(design.likelihood(sets), rel=1e-9)
    assert alone.likelihood(sets) == pytest.approx(design.likelihood(sets), rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_device_knows_the_worst_posterior(name):
    design, p = CASES[name]
    sampling = Sampling.read(design.portable(p))
    again = described(sampling.document, design.structure, design.name)
    for prior in (None, shares(design.size, 11), shares(design.size, 12, 3.0)):
        known = np.full(design.size, 1 / design.size) if prior is None else prior
        expected = again.worst_posterior(known, sampling.p)
        assert worst_posterior(sampling, prior) == pytest.approx(expected, rel=1e-12)


def test_the_worst_posterior_of_many_designs():
    seen = set()
    for design, p, rng in random_designs(160):
        sampling = Sampling.read(design.portable(p))
        seen.add(sampling.document["kind"])
        again = described(sampling.document, design.structure, design.name)
        prior = rng.dirichlet(np.ones(design.size))
        assert worst_posterior(sampling, prior.tolist()) == pytest.approx(
            again.worst_posterior(prior, sampling.p), rel=1e-12
        )
    assert seen == {"clusters", "line", "circle"} or seen == {"clusters", "line", "circle", "listed"}


def subkey(number):
    return number.to_bytes(32, "big")


def chi_square(counts, expected):
    """The probability of a larger deviation; rare sets are taken together."""
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    return float(chi2.sf(((counts - expected)[keep] ** 2 / expected[keep]).sum(), keep.sum() - 1))


FEW = {
    "clusters": make_design("balanced", Clusters(np.array([0, 0, 1, 2, 2, 3])), 2, shares(6, 21, 0.2)),
    "line": make_design("balanced", LineDistance.ranks(7).structure(2), 2, shares(7, 22, 0.1)),
    "circle": make_design("balanced", circle(UNEVEN[:7], 8, 2.2), 2, shares(7, 23, 0.1)),
    "listed": make_design("balanced", graph(7, 0.75, 24), 2),
    "table": make_design("sharp", LineDistance.ranks(7).structure(2), 2),
}


@pytest.mark.parametrize("kind", FEW)
def test_drawn_sets_follow_the_channel_and_a_near_miss_is_seen(kind):
    design, p, code, rows = FEW[kind], 0.9, 2, 20_000
    sets, channel = Mechanism(design, p).channel()
    number = {members: place for place, members in enumerate(map(tuple, sets.tolist()))}

    def drawn(at):
        sampling = Sampling.read(design.portable(at))
        assert sampling.document["kind"] == kind
        places = [number[sampling.draw(code, subkey(record))] for record in range(rows)]
        return np.bincount(places, minlength=len(sets)).astype(float)

    assert chi_square(drawn(p), rows * channel[code]) > 1e-3
    assert chi_square(drawn(p - 0.02), rows * channel[code]) < 1e-6


@pytest.mark.parametrize("name", ["simple", "duplicate"])
def test_designs_of_the_papers_are_refused(name):
    structure = LineDistance.ranks(9).structure(2) if name == "simple" else circle(np.arange(9), 9, 2, 2)
    with pytest.raises(ImpossibleError, match=f"'{name}' cannot be drawn on devices"):
        make_design(name, structure, 2).portable()


def test_a_document_of_another_structure_is_refused():
    design, _ = CASES["line-ranks"]
    with pytest.raises(CampaignError, match="not that of this line with 9 values"):
        described(design.portable(), LineDistance.ranks(9).structure(2))


@pytest.mark.parametrize("name", ["line-ranks", "circle-uneven", "circle-even", "listed", "clusters-shares"])
def test_a_document_says_which_values_may_stand_together(name):
    design, _ = CASES[name]
    alone = structure_of(design.portable())
    assert isinstance(alone, Line | Clusters | Graph | Circle)
    assert np.array_equal(compatibility(alone), compatibility(design.structure))


def test_large_domains():
    labels = np.arange(70_000) // 35
    prior = shares(70_000, 8)
    for document in (
        make_design("balanced", Clusters(labels), 5, prior).portable(0.9),
        make_design("balanced", Clusters(np.arange(70_000)), 5).portable(),
    ):
        sampling = Sampling.read(document)
        drawn = sampling.draw(69_999, subkey(1))
        assert len(drawn) == 5
        assert all(0 <= code < 70_000 for code in drawn)
