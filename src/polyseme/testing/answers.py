"""Laws of what a design says of itself: every answer against the channel, written out set by set."""

from __future__ import annotations

from math import comb

import numpy as np

from polyseme.arrays import Floats
from polyseme.designs import Design, SetDistribution
from polyseme.randomness import experiment
from polyseme.testing.laws import agree, hold

__all__ = [
    "channel",
    "check_answers",
    "epsilon_is_the_largest_ratio",
    "inclusion_given_is_that_of_its_sets",
    "knows_its_sets",
    "leading_is_that_of_its_sets",
    "least_error_is_that_of_its_information",
    "least_inclusion_is_one_over_the_largest_pull",
    "matched_trace_is_that_of_its_sets",
    "matches_where_reports_look_blind",
    "spectrum_is_that_of_its_matrix",
    "success_is_that_of_its_sets",
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
    """A prior in proportion to the inclusion makes reports that are distributed as blind sets are."""
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
    """How often the best guess is right: for an attacker who knows the shares, and for one who is mistaken."""
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
