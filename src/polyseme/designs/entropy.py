"""What all designs of maximum entropy share.

`P(R)` is proportional to the product of weights over the members of R. With inclusion `rho_v = l * pi_v` every member
of every set has posterior `1/l` under the prior `pi`: such a design is called balanced.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs.distribution import SetDistribution
from polyseme.designs.listing import count_sets, list_sets
from polyseme.designs.samplers import Inverse
from polyseme.distances.structure import Structure

__all__ = ["MaximumEntropy"]


class MaximumEntropy(SetDistribution):
    """A distribution over valid sets in the shape of a product of weights."""

    def __init__(self, structure: Structure, l: int, name: str) -> None:
        self.structure, self.l, self.name = structure, l, name

    @abstractmethod
    def lightest(self, cost: Floats) -> Floats:
        """For each value, the least total `cost` of a possible set that holds it."""

    @abstractmethod
    def joint(self, codes: Ints) -> Floats:
        """`Pi[v, u]`, the probability that v and u are both in the set, for the given v: (len(codes), F)."""

    @cached_property
    def _blind(self) -> Inverse:
        return Inverse(np.append(0.0, np.cumsum(self.inclusion())))

    def sample_blind(self, uniforms: Floats) -> Ints:
        # A value drawn in proportion to its inclusion, then a set that holds it, is a set drawn from P.
        return self.sample(self._blind(uniforms[0] * self._blind.sums[-1]), uniforms[1:])

    def count(self) -> int:
        return count_sets(self.structure, self.l)

    def sets(self) -> Ints:
        return list_sets(self.structure, self.l)

    def conditional_inclusion(self, codes: Ints) -> Floats:
        given: Floats = self.joint(codes) / self.inclusion()[codes][:, None]
        given[np.arange(len(codes)), codes] = 1.0
        return given

    def worst_posterior(self, prior: Floats, p: float) -> float:
        """The largest of `(p c_v + (1-p) pi_v) / (p sum_R c + 1-p)` with `c = pi / rho`: the lightest set counts.

        A value outside the lightest set of all has `(1-p) pi_v / (p min_R sum c + 1-p)`; one that is in every such set
        has more as a member.
        """
        cost = prior / self.inclusion()
        least = self.lightest(cost)
        total = p * least + 1.0 - p
        # A set of which this prior believes no member is never seen by its owner.
        inside = np.divide(p * cost + (1.0 - p) * prior, total, out=np.zeros_like(total), where=total > 0.0)
        outside = (1.0 - p) * prior.max() / total.min() if p < 1.0 else 0.0
        return float(max(inside.max(), outside))
