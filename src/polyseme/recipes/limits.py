"""How large a set must be and how often it may tell the truth, promise by promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.base import Design, SetDistribution
from polyseme.distances.structure import Clusters, Floats, Ints, Structure
from polyseme.recipes.closeness import (
    closeness_of_epsilon,
    exact_distance,
    exact_odds,
    listed_pulls,
    safe_odds,
    uniform_distance,
    uniform_odds,
)
from polyseme.recipes.ground import Ground
from polyseme.recipes.promises import Promises

__all__ = ["Frame", "Limits"]


@dataclass(frozen=True, eq=False)
class Frame:
    """What is settled before any number is sought."""

    structure: Structure
    d: float
    design: str
    prior: Floats | None

    @property
    def uniform(self) -> bool:
        """Whether every set of the same size is equally likely."""
        free = isinstance(self.structure, Clusters) and self.structure.count == self.structure.size
        return self.prior is None and free

    def build(self, l: int, labels: Sequence[object] | None = None) -> Design:
        return make_design(self.design, self.structure, l, self.prior, labels)


@dataclass(frozen=True, eq=False)
class Limits:
    """The largest odds of truth that each promise allows, by set size."""

    frame: Frame
    promises: Promises
    reference: Floats | None
    ground: Ground

    @property
    def size(self) -> int:
        return self.frame.structure.size

    def etas(self) -> Ints:
        """The set sizes to choose from."""
        least, _ = self.promises.least_size
        for size in self.promises.fixed_sizes.values():
            return np.array([size])
        # Without a limit on truth the smallest set is the most accurate (Theorem 1). The expected error has a closed
        # form for uniform sets only; a design with distances keeps the size it was asked for.
        limited = self.promises.ldp is not None or self.promises.closeness is not None
        if not limited or not self.frame.uniform or least >= self.size:
            return np.array([least])
        return np.arange(least, self.size)

    def odds(self, etas: Ints) -> tuple[Floats, list[str]]:
        """For each size the largest odds that keep every promise, and the promise that sets them."""
        by_name: dict[str, Floats] = {}
        if self.promises.closeness is not None:
            by_name["closeness"] = self._closeness_odds(self.promises.closeness.t, etas)
        if self.promises.ldp is not None:
            least = np.array([self.least_inclusion(eta) for eta in etas.tolist()])
            by_name["ldp"] = np.expm1(min(self.promises.ldp.epsilon, 700.0)) * least
        if not by_name:
            return np.full(len(etas), np.inf), [self.promises.least_size[1]] * len(etas)
        table, names = np.array(list(by_name.values())), list(by_name)
        smallest = table.min(axis=0)
        least_size, asking = self.promises.least_size
        # Where truth is unlimited the set size did it: the one a diversity asked for, or a larger one.
        free = np.isinf(smallest) & (etas == least_size) & bool(asking)
        return smallest, [
            asking if idle else names[index] for index, idle in zip(table.argmin(axis=0), free, strict=True)
        ]

    def _closeness_odds(self, t: float, etas: Ints) -> Floats:
        least = np.array([self.least_inclusion(eta) for eta in etas.tolist()])
        safe = safe_odds(t, least)
        if self.reference is None or t in {0.0, 1.0}:
            return safe
        if self.frame.uniform:
            return np.maximum(safe, uniform_odds(self.reference, etas, t, self.ground))
        listed = self._listed
        return safe if listed is None else np.maximum(safe, exact_odds(*listed, self.reference, t, self.ground))

    def least_inclusion(self, eta: int) -> float:
        """One over the largest pull `K(R | v) / B(R)`; a lower bound where it cannot be had exactly."""
        if self.frame.uniform:
            return eta / self.size
        if isinstance(self._design, SetDistribution):
            return float(self._design.inclusion().min())
        # A sequential design's B is K averaged over all values, so no pull can exceed F.
        return 1.0 / self.size if self._listed is None else 1.0 / float(self._listed[1].max())

    @cached_property
    def _design(self) -> Design:
        """The design of a frame that is not uniform; such a frame has one set size only."""
        return self.frame.build(int(self.etas()[0]))

    @cached_property
    def _listed(self) -> tuple[Ints, Floats] | None:
        """Every valid set of that design and its members' pulls, if they are few enough."""
        return listed_pulls(self._design)

    def reached(self, eta: int, odds: float) -> float | None:
        """The largest distance from the reference that a set can cause; exact, or an upper bound."""
        if self.reference is None:
            return None
        if self.frame.uniform:
            return uniform_distance(self.reference, eta, odds, self.ground)
        if self._listed is None:
            return closeness_of_epsilon(self.epsilon(eta, odds))
        return exact_distance(*self._listed, self.reference, odds, self.ground)

    def epsilon(self, eta: int, odds: float) -> float:
        """The local differential privacy of these parameters."""
        if eta == self.size:
            return 0.0
        return math.log1p(odds / self.least_inclusion(eta)) if odds < math.inf else math.inf
