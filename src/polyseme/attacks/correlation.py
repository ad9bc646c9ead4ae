"""The correlating adversary: uses the set of one protected attribute to narrow down another.

Sets are drawn independently for each attribute, but true values are not independent. Knowing the joint distribution
(from elsewhere, or estimated from the release by maximum likelihood) the adversary forms

    P(v | R, S)  ~  P(R | v) * sum_u joint(v, u) P(S | u)

where
    R, S   the published sets of the attribute it wants and of the other one
    joint  the joint distribution of both

With the original, success is the observed share of right guesses. Without, it is the adversary's mean confidence: exact
for a known joint distribution; for an estimated one it counts as exceeding only when three standard errors above.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above, hit_rate, significantly_above
from polyseme.attacks.posterior import distinct_rows
from polyseme.distances.structure import Floats, Ints
from polyseme.errors import ImpossibleError
from polyseme.mechanism import Mechanism

__all__ = ["attack"]

_LARGEST_TABLE = 4_000_000
_ROUNDS = 200


def _channel(sets: Ints, mechanism: Mechanism) -> Floats:
    """`P(R | v)` up to a factor of the set, for each set and every value: (sets, F)."""
    inside, outside = mechanism.weights(sets)
    channel: Floats = np.repeat(outside[:, None], mechanism.size, axis=1)
    np.put_along_axis(channel, sets, inside, axis=1)
    channel /= np.maximum(channel.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return channel


def _estimated(first: Floats, second: Floats, counts: Floats) -> Floats:
    """Maximum likelihood joint distribution by expectation maximization, from weights of pairs of distinct sets."""
    joint = np.full((first.shape[1], second.shape[1]), 1.0 / (first.shape[1] * second.shape[1]))
    for _ in range(_ROUNDS):
        likelihood = first @ joint @ second.T
        ratio = np.divide(counts, likelihood, out=np.zeros(counts.shape), where=likelihood > 0)
        joint = joint * (first.T @ ratio @ second)
        joint /= joint.sum()
    return joint


def attack(
    sets: Ints,
    mechanism: Mechanism,
    others: Ints,
    other: Mechanism,
    *,
    attribute: str = "",
    truth: Ints | None = None,
    joint: Floats | None = None,
    bound: float | None = None,
) -> Finding:
    """How much the sets of another attribute add to guessing this one; `joint` is (F, F of the other)."""
    bound = 1.0 / mechanism.l if bound is None else bound
    rows, row = distinct_rows(sets, mechanism.size)
    columns, column = distinct_rows(others, other.size)
    if len(rows) * len(columns) > _LARGEST_TABLE:
        raise ImpossibleError(
            f"{len(rows):,} x {len(columns):,} pairs of distinct sets are too many for this attack",
            "take a sample of the records or merge values",
        )
    first, second = _channel(rows, mechanism), _channel(columns, other)
    known = joint is not None
    if joint is None:
        counts = np.bincount(row * len(columns) + column, minlength=len(rows) * len(columns))
        joint = _estimated(first, second, counts.reshape(len(rows), len(columns)) / len(sets))
    pairs, pair = distinct_rows(np.column_stack([row, column]), max(len(rows), len(columns)))
    posterior = first[pairs[:, 0]] * (second[pairs[:, 1]] @ joint.T)
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    sure = posterior.max(axis=1)[pair]
    alone = first * joint.sum(axis=1)
    alone /= np.maximum(alone.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    detail = {"confidence": float(sure.mean()), "without_the_other": float(alone.max(axis=1)[row].mean())}
    success = float(sure.mean())
    if truth is not None:
        # In the set's own order of candidates; values outside are never guessed when all sets hold the truth.
        score = np.take_along_axis(posterior[pair], sets, axis=1)
        hits = hit_rate(score, sets == truth[:, None])
        success = float(hits.mean())
        exceeded = significantly_above(float(hits.sum()), len(hits), bound)
    elif known:
        exceeded = above(success, bound)
    else:
        exceeded = success - 3.0 * float(sure.std() / np.sqrt(len(sure))) > bound + 1e-9
    return Finding(
        "correlation",
        attribute,
        success,
        bound,
        float(joint.sum(axis=1).max()),
        exceeded,
        knows="the sets of two protected attributes, and how their true values go together",
        gains="the value of one attribute from the candidates of the other",
        helps="protect strongly related attributes as one combined attribute, or raise l for both",
        detail=detail,
    )
