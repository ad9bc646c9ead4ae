"""What an attack finds, and when a promise counts as broken.

Two kinds of success, two rules:

- *exact*: computed from the release and the public mechanism. It exceeds the bound when it is above it by more than
  `TOLERANCE` (rounding).
- *observed*: a share of right guesses counted against the original. It exceeds the bound only when the one-sided
  Clopper-Pearson lower limit at confidence `CONFIDENCE` is above it: chance alone does that to one finding in 1,000.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from polyseme.arrays import Bools, Floats, Ints
from polyseme.results.findings import Finding

__all__ = ["CONFIDENCE", "TOLERANCE", "Finding", "above", "hit_rate", "largest_share", "significantly_above"]

TOLERANCE = 1e-9
"""Rounding in a sum of up to a million probabilities; a real excess is larger by orders of magnitude."""
CONFIDENCE = 0.999
"""Chance alone puts one finding in 1,000 above its bound: a report with a dozen of them stays quiet."""


def above(success: float, bound: float | None) -> bool:
    """Whether an exact success is above the bound."""
    return bound is not None and success > bound + TOLERANCE


def significantly_above(hits: float, trials: int, bound: float | None) -> bool:
    """Whether an observed share is above the bound beyond chance.

    Guesses between equals count as fractions of a hit; their sum is rounded down.
    """
    if bound is None or trials == 0 or bound >= 1.0:
        return False
    whole = int(np.floor(hits + TOLERANCE))
    if whole == 0:
        return False
    return float(betaincinv(whole, trials - whole + 1, 1.0 - CONFIDENCE)) > bound


def hit_rate(score: Floats, right: Bools) -> Floats:
    """For each row, the chance that a guess among its best-scored entries is right.

    where
        score  how likely each entry of a row looks to the adversary: (n, k)
        right  whether the entry is the truth: (n, k)

    >>> hit_rate(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[True, False], [False, True]])).tolist()
    [0.5, 0.0]
    """
    best = score >= score.max(axis=1, keepdims=True) * (1.0 - TOLERANCE)
    share: Floats = (best & right).sum(axis=1) / best.sum(axis=1)
    return share


def largest_share(codes: Ints | None, prior: Floats) -> float:
    """The baseline: always guess the most frequent value."""
    return float(prior.max()) if codes is None else float(np.bincount(codes).max() / len(codes))
