"""Designs: distributions over valid sets."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.designs.balanced import balanced as make_balanced
from polyseme.designs.base import SET_LIMIT, Design
from polyseme.designs.distribution import SetDistribution, restrict
from polyseme.designs.duplicate import Duplicate
from polyseme.designs.feasibility import best_l, largest_l
from polyseme.designs.least_risk import least_risk
from polyseme.designs.sequential import Simple, SimplePrinted
from polyseme.designs.sharp import sharp as make_sharp
from polyseme.designs.stored import DESIGNS, design_from
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import PolicyError, nearest
from polyseme.semantics.distances.base import Structure

__all__ = [
    "DESIGNS",
    "SET_LIMIT",
    "Design",
    "SetDistribution",
    "best_l",
    "design_from",
    "largest_l",
    "make_design",
    "restrict",
]


def make_design(
    name: str,
    structure: Structure,
    l: int,
    prior: Floats | None = None,
    labels: Sequence[object] | None = None,
) -> Design:
    """The design called `name`.

    Raises `ImpossibleError` with the reason and the best that can be had.

    prior   reference prior of the balanced, sharp and least-risk designs, uniform by default
    labels  names of the values for messages, by code
    """
    if l < 1:
        raise PolicyError(f"a set needs at least one candidate, not {l}")
    if name == "balanced":
        return make_balanced(structure, l, prior, labels)
    if name == "sharp":
        return make_sharp(structure, l, prior, labels)
    if name == "least-risk":
        return least_risk(structure, l, prior)
    if name == "simple":
        return Simple(structure, l, labels)
    if name == "simple-printed":
        return SimplePrinted(structure, l, labels)
    if name == "duplicate":
        return Duplicate(structure, l)
    raise PolicyError(f"unknown design '{name}'", nearest(name, DESIGNS))
