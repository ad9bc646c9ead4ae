"""Laws of designs: probabilities against enumeration, samples against probabilities. For domains of a dozen values.

A sampler is judged by Pearson's statistic on `RECORDS` sets at the level `LEVEL`, which rejects sets whose
probabilities are 2% off (`distorted` makes such a near miss, and the package's own tests show that it is rejected).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy.stats import chi2

from polyseme.arrays import Floats, Ints
from polyseme.designs import Design, design_from
from polyseme.randomness import experiment
from polyseme.testing.answers import check_answers
from polyseme.testing.distances import compatible_pairs
from polyseme.testing.laws import agree, hold

__all__ = [
    "RECORDS",
    "adds_up",
    "blind_samples_follow",
    "check_design",
    "distorted",
    "follows",
    "inclusion_is_that_of_its_sets",
    "invalid_sets_have_no_likelihood",
    "lists_the_valid_sets",
    "restored",
    "samples_follow",
    "serves_every_uniform_number",
    "survives_json",
    "valid_sets",
    "weights_are_the_channel",
    "worst_posterior_is_that_of_its_sets",
]

RECORDS = 400_000
"""How many sets are drawn to judge a sampler: enough to see 2% in the probabilities of some hundred sets."""

LEVEL = 1e-4
"""A right sampler fails one run in ten thousand, and seeds are fixed."""


def restored(design: Design) -> Design:
    """The same design, built from its parameters as a manifest holds them."""
    return design_from(design.name, design.structure, design.l, json.loads(json.dumps(design.parameters())))


def check_design(design: Design, prior: Floats | None = None, restore: Callable[[Design], Design] = restored) -> None:
    """Every law of designs.

    prior    of an attacker, beside the uniform one
    restore  builds the same design from its parameters; by its registered name unless given
    """
    uniform = np.full(design.size, 1.0 / design.size)
    lists_the_valid_sets(design)
    adds_up(design)
    invalid_sets_have_no_likelihood(design)
    inclusion_is_that_of_its_sets(design)
    for attacker in (uniform, *([] if prior is None else [prior])):
        for p in (1.0, 0.7, 0.0):
            worst_posterior_is_that_of_its_sets(design, attacker, p)
        check_answers(design, attacker)
    weights_are_the_channel(design)
    survives_json(design, restore)
    samples_follow(design)
    blind_samples_follow(design)
    serves_every_uniform_number(design)


def valid_sets(design: Design) -> Ints:
    """All sets of pairwise compatible values, in lexicographic order, from the definition."""
    far = compatible_pairs(design.structure)
    rows = [
        row
        for row in combinations(range(design.size), design.l)
        if all(far[one, other] for one, other in combinations(row, 2))
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, design.l)


def lists_the_valid_sets(design: Design) -> None:
    """`sets` are exactly the valid ones, and `count` is their number."""
    expected = valid_sets(design)
    hold(design.count() == len(expected), "`count` is the number of valid sets")
    agree(design.sets(), expected, "`sets` are all valid sets in lexicographic order")


def adds_up(design: Design) -> None:
    """`K(. | v)` is a distribution for every v, and so is `B`."""
    sets = design.sets()
    total = np.zeros(design.size)
    np.add.at(total, sets, design.likelihood(sets))
    agree(total, np.ones(design.size), "the likelihoods of a value's sets add up to one", rtol=1e-9)
    agree(design.blind_likelihood(sets).sum(), 1.0, "the blind likelihoods add up to one", rtol=1e-9)


def invalid_sets_have_no_likelihood(design: Design) -> None:
    """A set with two values that are too close is never drawn."""
    far = compatible_pairs(design.structure)
    close = [pair for pair in combinations(range(design.size), 2) if not far[pair]]
    if not close or design.l < 2:
        return
    rest = [value for value in range(design.size) if value not in close[0]][: design.l - 2]
    row = np.sort(np.array([[*close[0], *rest]]), axis=1)
    hold(not design.likelihood(row).any(), "a set that is not valid has no likelihood")
    hold(not design.blind_likelihood(row).any(), "a set that is not valid has no blind likelihood")


def inclusion_is_that_of_its_sets(design: Design) -> None:
    """Inclusion probabilities are sums over the sets."""
    sets = design.sets()
    given, alone = np.zeros((design.size, design.size)), np.zeros(design.size)
    for row, values, probability in zip(sets, design.likelihood(sets), design.blind_likelihood(sets)):
        given[np.ix_(row, row)] += values[:, None]
        alone[row] += probability
    law = "`conditional_inclusion` is the sum over the sets of a value"
    agree(design.conditional_inclusion(np.arange(design.size)), given, law, rtol=1e-9, atol=1e-14)
    some = np.array([design.size - 1, 0, min(2, design.size - 1)])
    agree(
        design.conditional_inclusion(some),
        given[some],
        f"{law}, for the codes that are asked for",
        rtol=1e-9,
        atol=1e-14,
    )
    agree(design.blind_inclusion(), alone, "`blind_inclusion` is the sum over all sets", rtol=1e-9)
    agree(design.blind_inclusion().sum(), design.l, "`blind_inclusion` adds up to l", rtol=1e-12)


def worst_posterior_is_that_of_its_sets(design: Design, prior: Floats, p: float) -> None:
    """The largest posterior over all sets and values, by Bayes' rule."""
    sets = design.sets()
    worst = 0.0
    for row, values, probability in zip(sets, design.likelihood(sets), design.blind_likelihood(sets)):
        channel = np.full(design.size, (1 - p) * probability)
        channel[row] += p * values
        joint = prior * channel
        if joint.sum() > 0:
            worst = max(worst, float((joint / joint.sum()).max()))
    agree(design.worst_posterior(prior, p), worst, f"`worst_posterior` is exact at p = {p}", rtol=1e-9)


def weights_are_the_channel(design: Design, p: float = 0.6) -> None:
    """`weights` are the channel up to a factor of the set."""
    sets = design.sets()
    blind = design.blind_likelihood(sets)
    possible = blind > 0
    inside, outside = design.weights(sets, p)
    expected = p * design.likelihood(sets) + (1 - p) * blind[:, None]
    factor = outside / ((1 - p) * np.maximum(blind, 1e-300))
    law = "`weights` are the channel up to a factor of the set"
    agree(inside[possible], (expected * factor[:, None])[possible], law, rtol=1e-9, atol=1e-12)


def survives_json(design: Design, restore: Callable[[Design], Design] = restored) -> None:
    """A design that is built again from its parameters draws the same sets from the same numbers."""
    again = restore(design)
    uniforms = experiment(5).random((design.draws, 500))
    codes = np.arange(500) % design.size
    hold(again.name == design.name, "a restored design has the same name")
    agree(again.sample(codes, uniforms), design.sample(codes, uniforms), "a restored design draws the same sets")
    found, expected = again.likelihood(design.sets()), design.likelihood(design.sets())
    agree(found, expected, "a restored design has the same likelihoods")


def samples_follow(design: Design) -> None:
    """Drawn sets hold the true value, ascend, and follow the likelihood."""
    sets = design.sets()
    generator = experiment(11)
    for value in (0, design.size // 2):
        drawn = design.sample(np.full(RECORDS, value), generator.random((design.draws, RECORDS)))
        hold(drawn.dtype == np.int64, "sets are arrays of 64-bit codes")
        hold(drawn.shape == (RECORDS, design.l), "every record gets a set of l candidates")
        hold(np.all(drawn[:, 1:] > drawn[:, :-1]), "the candidates of a set ascend")
        hold(np.all((drawn == value).any(axis=1)), "a set holds the true value")
        probability = (design.likelihood(sets) * (sets == value)).sum(axis=1)
        hold(follows(design, drawn, probability), f"sets of the value {value} are drawn with their likelihood")


def blind_samples_follow(design: Design) -> None:
    """Sets that are drawn without looking follow the blind likelihood."""
    drawn = design.sample_blind(experiment(12).random((design.draws + 1, RECORDS)))
    probability = design.blind_likelihood(design.sets())
    hold(follows(design, drawn, probability), "blind sets are drawn with their blind likelihood")


def follows(design: Design, drawn: Ints, probability: Floats) -> bool:
    """Whether drawn sets can have come from these probabilities of `design.sets()`; an invalid set raises."""
    value, freedom = _statistic(design, drawn, probability * len(drawn))
    return freedom == 0 or bool(chi2.sf(value, freedom) > LEVEL)


def _statistic(design: Design, drawn: Ints, expected: Floats) -> tuple[float, int]:
    """Pearson's statistic of drawn sets against expected counts, and its degrees of freedom."""
    digits = design.size ** np.arange(design.l)[::-1]
    keys = design.sets() @ digits
    place = np.minimum(np.searchsorted(keys, drawn @ digits), len(keys) - 1)
    hold(np.array_equal(keys[place], drawn @ digits), "every drawn set is valid")
    observed = np.bincount(place, minlength=len(keys))
    possible = expected > 0
    hold(observed[~possible].sum() == 0, "a set of probability zero is never drawn")
    apart = (observed - expected)[possible] ** 2 / expected[possible]
    return float(apart.sum()), max(int(possible.sum()) - 1, 0)


def distorted(probability: Floats) -> Floats:
    """A near miss: every other set, from the likeliest down, 2% more likely than it should be, the rest 2% less."""
    rank = np.argsort(np.argsort(-probability, kind="stable"))
    factor = np.where(rank % 2 == 0, 1.02, 0.98)
    return np.asarray(probability * factor / (probability * factor).sum(), dtype=np.float64)


def serves_every_uniform_number(design: Design) -> None:
    """The smallest and the largest uniform number give valid sets too."""
    far = compatible_pairs(design.structure)
    codes = np.arange(design.size)
    for number in (0.0, 1.0 - 2.0**-53):
        drawn = design.sample(codes, np.full((design.draws, design.size), number))
        for row, value in zip(drawn.tolist(), codes.tolist()):
            hold(value in row, f"a set drawn with the number {number!r} holds the true value")
            valid = all(far[one, other] for one, other in combinations(row, 2))
            hold(valid, f"a set drawn with the number {number!r} is valid")
