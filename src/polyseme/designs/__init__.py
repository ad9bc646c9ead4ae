"""Designs: distributions over valid sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.designs.base import SET_LIMIT, Design, SetDistribution
from polyseme.designs.sequential import Simple
from polyseme.distances.structure import Floats, Structure
from polyseme.errors import PolicyError, nearest

__all__ = ["SET_LIMIT", "Design", "SetDistribution", "design_from", "make_design"]

_NAMES = ("balanced", "simple", "duplicate", "least-risk")


def make_design(name: str, structure: Structure, l: int, prior: Floats | None = None) -> Design:
    """The design called `name`; raises `ImpossibleError` with the reason and the best that can be had."""
    if name == "simple":
        return Simple(structure, l)
    raise PolicyError(f"unknown design '{name}'", nearest(name, _NAMES))


def design_from(name: str, structure: Structure, l: int, parameters: Mapping[str, Any]) -> Design:
    """The design whose `parameters()` these are: nothing is fitted again."""
    if name == "simple":
        return Simple(structure, l)
    raise PolicyError(f"unknown design '{name}'", nearest(name, _NAMES))
