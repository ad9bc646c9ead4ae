"""Laws of designs: probabilities against enumeration, samples against probabilities.

They are for domains of a dozen values. Every answer of a design about itself is compared with the channel, written out
set by set.

A sampler is judged by Pearson's statistic on `RECORDS` sets at the level `LEVEL`, which rejects sets whose
probabilities are 2% off (`distorted` makes such a near miss, and the package's own tests show that it is rejected).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
from scipy.stats import chi2

from polyseme.designs import Design, SetDistribution, design_from
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.testing.distances import agree, compatible_pairs, hold

__all__ = [
    "RECORDS",
    "adds_up",
    "blind_samples_follow",
    "channel",
    "check_answers",
    "check_design",
    "distorted",
    "epsilon_is_the_largest_ratio",
    "follows",
    "inclusion_given_is_that_of_its_sets",
    "inclusion_is_that_of_its_sets",
    "invalid_sets_have_no_likelihood",
    "knows_its_sets",
    "leading_is_that_of_its_sets",
    "least_error_is_that_of_its_information",
    "least_inclusion_is_one_over_the_largest_pull",
    "lists_the_valid_sets",
    "matched_trace_is_that_of_its_sets",
    "matches_where_reports_look_blind",
    "restored",
    "samples_follow",
    "serves_every_uniform_number",
    "spectrum_is_that_of_its_matrix",
    "success_is_that_of_its_sets",
    "survives_json",
    "valid_sets",
    "weights_are_the_channel",
    "worst_posterior_is_that_of_its_sets",
]

_SOUND = 1e8
"""Condition numbers up to which an inverse by enumeration is good to the tolerances here."""
_ZERO = 1e-9
"""Singular values below this part of the largest count as zero: a decade from where designs draw the line (1e-10)."""


def check_answers(design: Design, prior: Floats) -> None:
    """Every law of this page, for an attacker with this prior, or a table with these shares."""
    knows_its_sets(design)
    least_inclusion_is_one_over_the_largest_pull(design)
    matches_where_reports_look_blind(design, prior)
    matched_trace_is_that_of_its_sets(design)
    leading_is_that_of_its_sets(design)
    for p in (1.0, 0.7, 0.0):
        epsilon_is_the_largest_ratio(design, p)
        success_is_that_of_its_sets(design, prior, p)
        inclusion_given_is_that_of_its_sets(design, p)
        least_error_is_that_of_its_information(design, prior, p)
        if p > 0.0:
            spectrum_is_that_of_its_matrix(design, p)


def channel(design: Design, p: float) -> Floats:
    """`P(R | v)` of every value and set, (F, sets), from the likelihoods alone."""
    sets = design.sets()
    out = np.tile((1.0 - p) * design.blind_likelihood(sets), (design.size, 1))
    for number, (row, values) in enumerate(zip(sets, design.likelihood(sets))):
        out[row, number] += p * values
    return out


def _members(design: Design) -> Floats:
    """Whether each set holds each value: (sets, F)."""
    inside = np.zeros((len(design.sets()), design.size))
    np.put_along_axis(inside, design.sets(), 1.0, axis=1)
    return inside


def knows_its_sets(design: Design) -> None:
    """How many there are, whether they are all alike, which can be drawn."""
    sets, count = design.sets(), len(design.sets())
    hold(design.flaw() is None, "a design that was made has no flaw")
    hold(design.has_at_most(count) and not design.has_at_most(count - 1), "`has_at_most` goes by the number of sets")
    if design.even:
        hold(count == comb(design.size, design.l), "where sets are even, any l values make one")
        agree(design.blind_likelihood(sets), np.full(count, 1.0 / count), "even sets are equally likely", rtol=1e-12)
    drawn = [np.sort(experiment(4 + number).permutation(design.size)[: design.l]) for number in range(50)]
    rows = np.concatenate([sets, np.array(drawn)])
    agree(design.can_draw(rows), design.likelihood(rows).max(axis=1) > 0.0, "`can_draw` where there is a likelihood")


def least_inclusion_is_one_over_the_largest_pull(design: Design) -> None:
    """`min rho` bounds `K(R | v) / B(R)`, and only one distribution has it."""
    sets, least = design.sets(), design.least_inclusion()
    hold((least is not None) == isinstance(design, SetDistribution), "`least_inclusion` is that of one distribution")
    if least is not None:
        blind = design.blind_likelihood(sets)
        pulls = design.likelihood(sets)[blind > 0.0] / blind[blind > 0.0, None]
        agree(least, 1.0 / pulls.max(), "`least_inclusion` is one over the largest K / B", rtol=1e-9)


def matches_where_reports_look_blind(design: Design, prior: Floats) -> None:
    """Under a prior in proportion to inclusion, reports are distributed as blind sets."""
    blind = design.blind_likelihood(design.sets())
    in_proportion = bool(np.allclose(blind @ _members(design), design.l * prior, rtol=1e-7))
    expected = in_proportion and design.least_inclusion() is not None
    hold(design.matches(prior) == expected, "a prior `matches` where inclusion is in proportion to it")
    if expected:
        agree(prior @ channel(design, 1.0), blind, "where a prior matches, reports look blind", rtol=1e-6, atol=1e-15)


def inclusion_given_is_that_of_its_sets(design: Design, p: float) -> None:
    """Inclusion given the true value, at a truth probability."""
    some = np.array([design.size - 1, 0, min(2, design.size - 1)])
    expected = (channel(design, p) @ _members(design))[some]
    law = f"`inclusion_given` is the sum over the sets at p = {p}"
    agree(design.inclusion_given(some, p), expected, law, rtol=1e-9, atol=1e-14)


def spectrum_is_that_of_its_matrix(design: Design, p: float) -> None:
    """Rank, condition and confounded values, from the singular values of the matrix of all sets."""
    vectors, values, _ = np.linalg.svd(channel(design, p) @ _members(design))
    found, zero = design.spectrum(p), values <= _ZERO * values.max()
    hold(found.identifiable == (not zero.any()), f"`identifiable` where the matrix has full rank, p = {p}")
    if not zero.any():
        law = f"`condition` is that of the matrix, p = {p}"
        agree(found.condition or 0.0, float(values.max() / values.min()), law, rtol=1e-6)
    moved = np.flatnonzero(np.abs(vectors[:, zero]).max(axis=1, initial=0.0) > 1e-6)
    confounded = {code for group in found.confounded for code in group}
    hold(confounded == set(moved.tolist()), f"`confounded` are the values that the reports do not show, p = {p}")


def matched_trace_is_that_of_its_sets(design: Design) -> None:
    """`tr D Pi^-1 D` with the joint inclusion as a sum over sets."""
    inside, blind, found = _members(design), design.blind_likelihood(design.sets()), design.matched_trace()
    joint, rho = inside.T @ (blind[:, None] * inside), blind @ inside
    if found is not None and np.linalg.cond(joint) < _SOUND:
        expected = float(np.trace(np.diag(rho) @ np.linalg.inv(joint) @ np.diag(rho)))
        agree(found, expected, "`matched_trace` is that of the joint inclusion", rtol=1e-6)


def least_error_is_that_of_its_information(design: Design, prior: Floats, p: float) -> None:
    """`tr I^-1 - 1` with the Fisher information as a sum over sets."""
    reports, found = channel(design, p), design.least_error(prior, p)
    marginal = prior @ reports
    seen = marginal > 0.0
    information = (reports[:, seen] / marginal[seen]) @ reports[:, seen].T
    if found is None:
        return
    if np.linalg.cond(information) < _SOUND:
        expected = float(np.trace(np.linalg.inv(information))) - 1.0
        agree(found, expected, f"`least_error` is that of the information at p = {p}", rtol=1e-5)
    else:
        hold(found > 1e3, f"`least_error` is large where values can hardly be distinguished, p = {p}")


def epsilon_is_the_largest_ratio(design: Design, p: float) -> None:
    """Local differential privacy, from the largest and the smallest likelihood of every set."""
    reports = channel(design, p)
    reports = reports[:, reports.max(axis=0) > 0.0]
    with np.errstate(divide="ignore"):
        expected = float(np.log(reports.max(axis=0) / reports.min(axis=0)).max())
    found = design.epsilon(p)
    hold(found is not None, "`epsilon` is known where sets can be listed")
    agree(found or 0.0, expected, f"`epsilon` is the largest log ratio at p = {p}", rtol=1e-9, atol=1e-12)


def success_is_that_of_its_sets(design: Design, shares: Floats, p: float) -> None:
    """How often the best guess is right, with the true shares and with mistaken ones."""
    reports, mistaken = channel(design, p), experiment(6).dirichlet(np.ones(design.size))
    for belief in (shares, mistaken):
        guess = (belief[:, None] * reports).argmax(axis=0)
        expected = float((shares[guess] * reports[guess, np.arange(len(guess))]).sum())
        found = design.success(shares, belief, p)
        hold(found is not None, "`success` is known where sets can be listed")
        agree(found or 0.0, expected, f"`success` is how often the best guess is right, p = {p}", rtol=1e-9)


def leading_is_that_of_its_sets(design: Design, least: float = 0.4) -> None:
    """Which value of a set has the highest score, set by set."""
    score = experiment(7).random(design.size)
    found = design.leading(score, least)
    if found is None:
        hold(design.least_inclusion() is None, "`leading` is known where sets can be listed")
        return
    expected = np.zeros(design.size)
    for row, probability in zip(design.sets(), design.blind_likelihood(design.sets())):
        top = row[score[row].argmax()]
        expected[top] += probability * (score[top] > least)
    agree(found, expected, "`leading` is how often each value has the highest score", rtol=1e-9, atol=1e-13)


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
    """A design built again from its parameters draws the same sets from the same numbers."""
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
    """Whether drawn sets can have come from these probabilities of `design.sets()`.

    An invalid set raises.
    """
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
    """A near miss: every other set, from the likeliest down, 2% too likely, the rest too rare."""
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
