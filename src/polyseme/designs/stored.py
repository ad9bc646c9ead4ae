"""Designs from what a manifest says of them: nothing is fitted again, and nothing is taken on trust."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs.base import Design
from polyseme.designs.circle import CircleDesign
from polyseme.designs.clusters import ClustersDesign, cluster_masses
from polyseme.designs.duplicate import Duplicate
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.enumerated import EnumeratedDesign
from polyseme.designs.line import LineDesign
from polyseme.designs.listing import count_sets, list_sets
from polyseme.designs.rooted import ROOTED_LIMIT, RootedDesign
from polyseme.designs.sequential import Simple
from polyseme.designs.sharp import SHARP_LIMIT, SharpDesign
from polyseme.distances.stored import stored_floats, stored_ints
from polyseme.distances.structure import Circle, Clusters, Line, Structure
from polyseme.errors import PolicyError, Problem, nearest

__all__ = ["DESIGNS", "design_from"]

DESIGNS = ("balanced", "sharp", "least-risk", "simple", "duplicate")
"""The policy's words for designs."""

_TOLERANCE = 1e-6
"""How far shares or probabilities from a manifest may be from adding up to one: they are written with 15 digits, and
other programs may round more. Chosen by judgment."""


def design_from(name: str, structure: Structure, l: int, parameters: Mapping[str, Any]) -> Design:
    """The design whose `parameters()` these are.

    Raises `PolicyError` with places relative to the mechanism when they are not those of a distribution over sets of
    `l` values in which every value has a chance.
    """
    if name not in DESIGNS:
        raise PolicyError(Problem("design", f"unknown design '{name}'", nearest(name, DESIGNS)))
    if not 1 <= l <= structure.size:
        raise PolicyError(Problem("l", f"sets of {l:,} candidates from {structure.size:,} values"))
    # What overflows here is found by the check that follows.
    with np.errstate(all="ignore"):
        design = _Parameters(parameters).design(name, structure, l)
        flaw = design.flaw()
    if flaw is not None:
        raise PolicyError(Problem("parameters", flaw))
    return design


class _Parameters:
    """The parameters of a design, each read once."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given

    def known(self, *keys: str) -> None:
        unknown = [key for key in self.given if key not in keys]
        if unknown:
            raise PolicyError(
                Problem(f"parameters.{key}", "no parameter of this design", f"known: {', '.join(keys) or 'none'}")
                for key in unknown
            )

    def floats(self, key: str, size: int) -> Floats | None:
        return stored_floats(self.given[key], f"parameters.{key}", size) if key in self.given else None

    def ascending(self, key: str, high: int) -> Ints:
        """Whole numbers below `high`, each of them once."""
        numbers = stored_ints(self.given.get(key, []), f"parameters.{key}", 0, high)
        if np.any(np.diff(numbers) <= 0):
            raise PolicyError(Problem(f"parameters.{key}", "expected ascending numbers, each of them once"))
        return numbers

    def design(self, name: str, structure: Structure, l: int) -> Design:
        if name == "simple" or name == "duplicate":
            self.known()
            return Simple(structure, l) if name == "simple" else Duplicate(structure, l)
        if name == "sharp":
            return self._sharp(structure, l)
        if isinstance(structure, Clusters):
            return self._clusters(name, structure, l)
        if isinstance(structure, Circle) and not self.given:
            return self._circle(name, structure, l)
        weights = self.floats("log_weights", structure.size)
        if weights is None:
            raise PolicyError(Problem("parameters.log_weights", f"missing: {structure.size:,} numbers are needed"))
        if isinstance(structure, Line):
            self.known("log_weights", "tight")
            return LineDesign(structure, l, weights, self.ascending("tight", structure.size), name)
        if isinstance(structure, Circle) and "excluded" not in self.given:
            return self._rooted(name, structure, l, weights)
        self.known("log_weights", "excluded")
        listed = len(list_sets(structure, l))
        excluded = self.ascending("excluded", listed)
        if len(excluded) == listed:
            raise PolicyError(Problem("parameters.excluded", "all sets are excluded, or there are none"))
        return EnumeratedDesign(structure, l, weights, excluded, name)

    def _sharp(self, structure: Structure, l: int) -> MaximumEntropy:
        self.known("probabilities")
        count = count_sets(structure, l)
        if not 0 < count <= SHARP_LIMIT:
            raise PolicyError(Problem("l", f"{count:,} valid sets, where one to {SHARP_LIMIT:,} can be listed"))
        chance = self.floats("probabilities", count)
        if chance is None:
            raise PolicyError(Problem("parameters.probabilities", f"missing: {count:,} numbers are needed"))
        if np.any(chance < 0.0) or abs(float(chance.sum()) - 1.0) > _TOLERANCE:
            raise PolicyError(Problem("parameters.probabilities", "expected probabilities that add up to one"))
        return SharpDesign(structure, l, chance)

    def _clusters(self, name: str, clusters: Clusters, l: int) -> MaximumEntropy:
        self.known("log_weights", "shares", "full")
        if l > clusters.count:
            raise PolicyError(Problem("l", f"sets of {l:,} candidates from {clusters.count:,} groups of close values"))
        weights, shares = self.floats("log_weights", clusters.count), self.floats("shares", clusters.size)
        if shares is not None and not (
            np.all(shares > 0.0) and np.allclose(cluster_masses(clusters, shares), 1.0, rtol=0.0, atol=_TOLERANCE)
        ):
            what = "expected positive shares that add up to one within each group of close values"
            raise PolicyError(Problem("parameters.shares", what))
        full = self.ascending("full", clusters.count)
        if weights is None and 0 < len(full) < l:
            raise PolicyError(
                Problem("parameters.full", "groups that are in every set, although all have the same probability")
            )
        return ClustersDesign(clusters, l, weights, shares, full, name)

    def _circle(self, name: str, circle: Circle, l: int) -> MaximumEntropy:
        if circle.spacing is None:
            raise PolicyError(Problem("parameters.log_weights", "missing: the values are not equally spaced"))
        if l * circle.spacing > circle.size:
            raise PolicyError(Problem("l", f"{l:,} candidates, {circle.spacing:,} apart, from {circle.size:,} values"))
        return CircleDesign(circle, l, name)

    def _rooted(self, name: str, circle: Circle, l: int, weights: Floats) -> MaximumEntropy:
        self.known("log_weights")
        if l < 2 or circle.size > ROOTED_LIMIT:
            what = f"required for sets of one value, and on circles of more than {ROOTED_LIMIT:,} values"
            raise PolicyError(Problem("parameters.excluded", what))
        return RootedDesign(circle, l, weights, name)
