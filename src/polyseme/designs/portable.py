"""Designs as whole numbers: sampling documents, from which devices draw exactly what the design says.

A device cannot repeat floating point bit for bit (exponentials differ in the last place between machines), so weights
become integers once, here. `described.py` is the way back: the estimator then uses the rounded weights too, and device
and estimator share one channel. What devices do with a document is in `polyseme.device`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.arrays import Bools, Floats
from polyseme.designs.ring import clockwise
from polyseme.device.listed import MOST_SETS
from polyseme.device.sampling import ONE
from polyseme.distances.structure import Circle
from polyseme.errors import ImpossibleError

__all__ = ["SCALE", "document", "neighbours", "portable_circle", "require_few", "whole"]

SCALE = 1 << 52
"""The largest weight: every program reads it exactly from JSON."""


def whole(log_weights: Floats) -> list[int]:
    """Weights as whole numbers from 1 to `SCALE`.

    >>> whole(np.log(np.array([1.0, 0.5, 1e-300])))
    [4503599627370496, 2251799813685248, 1]
    """
    scaled = np.rint(np.exp(log_weights - log_weights.max()) * SCALE)
    return [int(weight) for weight in np.maximum(scaled, 1.0)]


def document(kind: str, l: int, p: float, **fields: Any) -> dict[str, Any]:
    """A sampling document; fields come in the order of their kind, and those that are None are left out."""
    head: dict[str, Any] = {"kind": kind, "l": l, "p53": round(p * ONE)}
    return {**head, **{key: value for key, value in fields.items() if value is not None}}


def portable_circle(circle: Circle, l: int, log_weights: Floats, p: float) -> dict[str, Any]:
    """The document of a circle with weights (by code)."""
    order, weights = circle.order, whole(log_weights[circle.order])
    return document("circle", l, p, order=order.tolist(), ahead=clockwise(circle).tolist(), weights=weights)


def neighbours(compatible: Bools) -> list[list[int]]:
    """For each value the greater ones that may share a set with it."""
    return [(np.flatnonzero(row[code + 1 :]) + code + 1).tolist() for code, row in enumerate(compatible)]


def require_few(sets: int) -> None:
    """Refuse what a device would have to list and cannot."""
    if sets > MOST_SETS:
        raise ImpossibleError(
            f"a device would have to list {sets:,} sets (limit {MOST_SETS:,})",
            "a line, a circle, a tree or a smaller l needs no list, or a shorter one",
        )
