"""The headline promise: the highest posterior for an attacker who knows the mechanism and the prior."""

from __future__ import annotations

from math import inf, isfinite

__all__ = ["UNBALANCED", "promised_posterior"]

UNBALANCED = ("simple", "duplicate", "least-risk")
"""Designs that do not stand for 1/l. A policy gets one of them only by naming it."""


def promised_posterior(design: str, l: int, reached: float | None) -> float:
    """The posterior that is never exceeded: 1/l, or what the least-risk design reaches; infinite if none is promised.

    >>> promised_posterior("balanced", 4, 0.25), promised_posterior("simple", 2, 0.727)
    (0.25, inf)
    """
    if design not in UNBALANCED:
        return 1.0 / l
    known = design == "least-risk" and reached is not None and isfinite(reached)
    return float(reached) if known and reached is not None else inf
