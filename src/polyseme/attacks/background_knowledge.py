"""The adversary with background knowledge: can rule out m values for the person it is after.

Success is what its best guess is worth once the m most troublesome other candidates are struck out, for the person
worst off; exact. Where no guess is worth more than b, none of those struck out was, so the bound is b / (1 - m b): with
b = 1/l that is 1 / (l - m), and 1 when nothing remains.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.attacks.posterior import posterior_of, uniform
from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.counts import distinct
from polyseme.mechanism import Mechanism

__all__ = ["attack"]


def attack(
    sets: Ints,
    mechanism: Mechanism,
    m: int,
    *,
    attribute: str = "",
    prior: Floats | None = None,
    bound: float | None = None,
) -> Finding:
    """On published sets; `bound` is the promise about a guess (1/l by default), before anything is struck out."""
    prior = uniform(mechanism.size) if prior is None else np.asarray(prior, dtype=np.float64)
    bound = _after_striking(1.0 / mechanism.l if bound is None else bound, m)
    unique, _ = distinct(sets, mechanism.size)
    inside = np.sort(posterior_of(unique, mechanism, prior).inside, axis=1)[:, ::-1]
    left = 1.0 - inside[:, 1 : m + 1].sum(axis=1)
    success = float(np.minimum(inside[:, 0] / np.maximum(left, inside[:, 0]), 1.0).max())
    return Finding(
        "background-knowledge",
        attribute,
        success,
        bound,
        float(prior.max()),
        above(success, bound),
        f"the set of the person, and {m} {'value' if m == 1 else 'values'} the person does not have",
        "the value, by striking out",
        "a larger l",
        {"m": float(m)},
    )


def _after_striking(bound: float, m: int) -> float:
    left = 1.0 - m * bound
    return bound / left if left > bound else 1.0
