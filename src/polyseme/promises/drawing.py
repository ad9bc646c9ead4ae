"""How sets are going to be drawn, before their size and the truth probability are chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from polyseme.analysis.closeness import closeness_of_epsilon, exact_distance, listed_pulls, uniform_distance
from polyseme.arrays import Floats, Ints
from polyseme.designs import make_design
from polyseme.designs.base import Design
from polyseme.distances.ground import Ground
from polyseme.distances.structure import Clusters, Structure

__all__ = ["Drawing"]


@dataclass(frozen=True, eq=False)
class Drawing:
    """The structure of the values, the design that draws from it, and the prior it is made for."""

    structure: Structure
    d: float
    design: str
    prior: Floats | None
    _designs: dict[int, Design] = field(default_factory=dict, repr=False)
    _listed: dict[int, tuple[Ints, Floats] | None] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """F, the number of values."""
        return self.structure.size

    @property
    def uniform(self) -> bool:
        """Whether every set of the same size is equally likely."""
        free = isinstance(self.structure, Clusters) and self.structure.count == self.structure.size
        return self.prior is None and free

    def build(self, l: int, labels: Sequence[object] | None = None) -> Design:
        return make_design(self.design, self.structure, l, self.prior, labels)

    def made(self, l: int) -> Design:
        """The design with sets of l, made once."""
        if l not in self._designs:
            self._designs[l] = self.build(l)
        return self._designs[l]

    def listed(self, l: int) -> tuple[Ints, Floats] | None:
        """Every valid set of a design that is not uniform and its members' pulls, if they are few enough."""
        if l not in self._listed:
            self._listed[l] = listed_pulls(self.made(l))
        return self._listed[l]

    def least_inclusions(self, etas: Ints) -> Floats:
        """For each set size one over the largest pull `K(R | v) / B(R)`; lower bounds where that is not known."""
        return np.array([self._least_inclusion(eta) for eta in etas.tolist()])

    def _least_inclusion(self, eta: int) -> float:
        if self.uniform:
            return eta / self.size
        least = self.made(eta).least_inclusion()
        if least is not None:
            return least
        # A sequential design's B is K averaged over all values, so no pull can exceed F.
        listed = self.listed(eta)
        return 1.0 / self.size if listed is None else 1.0 / float(listed[1].max())

    def moved(self, eta: int, odds: float, reference: Floats, ground: Ground) -> float:
        """The largest distance from a reference that a set can cause; exact, or an upper bound."""
        if self.uniform:
            return uniform_distance(reference, eta, odds, ground)
        listed = self.listed(eta)
        if listed is None:
            return closeness_of_epsilon(self.epsilon(eta, odds))
        return exact_distance(*listed, reference, odds, ground)

    def epsilon(self, eta: int, odds: float) -> float:
        """The local differential privacy of sets of this size at these odds of truth."""
        if eta == self.size:
            return 0.0
        return math.log1p(odds / self._least_inclusion(eta)) if odds < math.inf else math.inf
