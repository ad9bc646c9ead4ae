"""The interface of a design.

A design draws, for a true value `v`, a valid set that contains it: the distribution `K(R | v)`, zero unless `v` is in
`R`. It also has a blind distribution `B(R)`, drawn without looking at the value, for mechanisms that tell the truth
only with some probability.

- `SetDistribution`: one distribution `P(R)` over valid sets; `K(R | v) = P(R) [v in R] / rho_v` and `B = P`.
- the papers' sequential algorithms: `K` by summing over the orders in which decoys are drawn; `B(R)` is `K` averaged
  over a uniform `v`.

A sampler is a pure function of uniform numbers: the same numbers give the same sets, whatever stream they came from.
Sets are rows of codes in ascending order, so that nothing tells which member is true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyseme.distances.structure import Floats, Ints, Structure

__all__ = ["LEAST_SHARE", "SET_LIMIT", "Design", "SetDistribution"]

SET_LIMIT = 2_000_000
"""Largest number of valid sets that is ever listed."""

LEAST_SHARE = 1e-100
"""A value that is rarer is never drawn, and its likelihoods run over what numbers hold."""


class Design(ABC):
    """How a set is drawn that contains a given value."""

    name: str
    """The policy's word for it: balanced, simple, duplicate .."""

    structure: Structure
    l: int
    draws: int
    """How many uniform numbers one record takes in `sample`."""

    @property
    def size(self) -> int:
        """F, the number of values."""
        return self.structure.size

    @abstractmethod
    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        """Sets for true values `codes` (n,) from `uniforms` (draws, n): an (n, l) array, rows ascending."""

    @abstractmethod
    def sample_blind(self, uniforms: Floats) -> Ints:
        """Sets drawn from `B` from `uniforms` (draws + 1, n): an (n, l) array, rows ascending."""

    @abstractmethod
    def count(self) -> int:
        """How many valid sets there are, exactly."""

    @abstractmethod
    def sets(self) -> Ints:
        """All valid sets, (count, l), rows ascending and in lexicographic order; refuses beyond `SET_LIMIT`."""

    @abstractmethod
    def likelihood(self, sets: Ints) -> Floats:
        """`K(R | R[k])` for each set R (n, l) and each of its members k: (n, l). Zero for an invalid set."""

    @abstractmethod
    def blind_likelihood(self, sets: Ints) -> Floats:
        """`B(R)` for each set: (n,). Zero for an invalid set."""

    @abstractmethod
    def conditional_inclusion(self, codes: Ints) -> Floats:
        """`P(u in R | v)` at p = 1, for the given true values and every u: (len(codes), F). Ones where u = v."""

    @abstractmethod
    def blind_inclusion(self) -> Floats:
        """`P(u in R)` under `B`: (F,). Adds up to l."""

    @abstractmethod
    def worst_posterior(self, prior: Floats, p: float) -> float:
        """The largest `P(v | R)` over every value and every possible set, for an attacker with this prior. Exact."""

    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """What, beside structure and l, is needed to build the same design again, ready for JSON."""

    def log_given(self, codes: Ints, sets: Ints) -> Floats:
        """`ln K(R | v)` for each set and one value v each: (n,); minus infinity where v is not in R, or R not valid."""
        given = np.where(sets == codes[:, None], self.likelihood(sets), 0.0).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(given), dtype=np.float64)

    def log_blind(self, sets: Ints) -> Floats:
        """`ln B(R)` for each set: (n,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.blind_likelihood(sets)), dtype=np.float64)

    def weights(self, sets: Ints, p: float) -> tuple[Floats, Floats]:
        """`P(R | v)` up to a factor of the set: for each member (n, l), and for every value outside (n,)."""
        inside, blind = self.likelihood(sets), self.blind_likelihood(sets)
        outside = (1.0 - p) * blind
        return p * inside + outside[:, None], outside


class SetDistribution(Design):
    """One distribution over valid sets, the same whoever the true value belongs to."""

    @abstractmethod
    def log_probability(self, sets: Ints) -> Floats:
        """`ln P(R)` for each set: (n,); minus infinity for an invalid one."""

    @abstractmethod
    def inclusion(self) -> Floats:
        """`rho_v`, the probability that v is in the set: (F,). Adds up to l."""

    def likelihood(self, sets: Ints) -> Floats:
        probability = np.exp(self.log_probability(sets))
        return probability[:, None] / self.inclusion()[sets]

    def blind_likelihood(self, sets: Ints) -> Floats:
        return np.exp(self.log_probability(sets))

    def log_given(self, codes: Ints, sets: Ints) -> Floats:
        # In logarithms throughout: a single set of a large domain is too unlikely for a double.
        member = (sets == codes[:, None]).any(axis=1)
        return np.where(member, self.log_probability(sets) - np.log(self.inclusion()[codes]), -np.inf)

    def log_blind(self, sets: Ints) -> Floats:
        return self.log_probability(sets)

    def blind_inclusion(self) -> Floats:
        return self.inclusion()

    def weights(self, sets: Ints, p: float) -> tuple[Floats, Floats]:
        # P(R) does not depend on the true value, so it is left out: no underflow in large domains.
        outside = np.full(len(sets), 1.0 - p)
        return p / self.inclusion()[sets] + (1.0 - p), outside
