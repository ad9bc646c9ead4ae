"""The interface of a design.

A design draws, for a true value `v`, a valid set that contains it: the distribution `K(R | v)`, zero unless `v` is in
`R`. It also has a blind distribution `B(R)`, drawn without looking at the value, for mechanisms that tell the truth
only with some probability.

- `distribution.py`: one distribution `P(R)` over valid sets; `K(R | v) = P(R) [v in R] / rho_v` and `B = P`.
- the papers' sequential algorithms: `K` by summing over the orders in which decoys are drawn; `B(R)` is `K` averaged
  over a uniform `v`.

A sampler is a pure function of uniform numbers: the same numbers give the same sets, whatever stream they came from.
Sets are rows of codes in ascending order, so that nothing tells which member is true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf, log
from typing import Any

import numpy as np

from polyseme.designs import ring as spectra
from polyseme.designs.ring import Spectrum
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import Structure

__all__ = ["LEAST_SHARE", "SET_LIMIT", "Design", "Trade", "heaviest_outside"]

SET_LIMIT = 2_000_000
"""Largest number of valid sets that is ever listed: 80 MB for sets of five, chosen by judgment."""

_FEW_VALUES = 256
"""Values up to which a design keeps a matrix of them: half a megabyte."""

LEAST_SHARE = 1e-100
"""A value that is rarer is never drawn, and its likelihoods run over what numbers hold."""


@dataclass(frozen=True, eq=False)
class Trade:
    """How a least-risk design came to be.

    step        how far it is from the inclusion probabilities of least risk toward the plain design
    floor       what no mechanism with p = 1 can undercut
    least_step  the step with the least worst posterior
    least       the design of that step
    """

    step: float
    floor: float
    least_step: float
    least: Design


class Design(ABC):
    """How a set is drawn that contains a given value, and what follows from that.

    A design answers for itself: where nothing better is known, by going through its sets; where the structure gives
    more, in closed form.
    """

    name: str
    """The policy's word for it: balanced, simple, duplicate ..."""

    structure: Structure
    l: int
    draws: int
    """How many uniform numbers one record takes in `sample`."""
    trade: Trade | None = None
    """Of a least-risk design that is not balanced, when it has just been made; it is not part of a release."""

    @property
    def size(self) -> int:
        """F, the number of values."""
        return self.structure.size

    @abstractmethod
    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        """Sets for true values `codes` (n,) from `uniforms` (draws, n): (n, l), rows ascending."""

    @abstractmethod
    def sample_blind(self, uniforms: Floats) -> Ints:
        """Sets drawn from `B` from `uniforms` (draws + 1, n): an (n, l) array, rows ascending."""

    @abstractmethod
    def count(self) -> int:
        """How many valid sets there are, exactly."""

    @abstractmethod
    def sets(self) -> Ints:
        """All valid sets, (count, l), rows ascending and in lexicographic order.

        Refuses beyond `SET_LIMIT`.
        """

    @abstractmethod
    def likelihood(self, sets: Ints) -> Floats:
        """`K(R | R[k])` for each set R (n, l) and each of its members k: (n, l).

        Zero for an invalid set.
        """

    @abstractmethod
    def blind_likelihood(self, sets: Ints) -> Floats:
        """`B(R)` for each set: (n,). Zero for an invalid set."""

    @abstractmethod
    def conditional_inclusion(self, codes: Ints) -> Floats:
        """`P(u in R | v)` at p = 1, for the given true values and every u: (len(codes), F).

        Ones where u = v.
        """

    @abstractmethod
    def blind_inclusion(self) -> Floats:
        """`P(u in R)` under `B`: (F,). Adds up to l."""

    @abstractmethod
    def worst_posterior(self, prior: Floats, p: float) -> float:
        """The largest `P(v | R)` over values and possible sets, for an attacker with this prior.

        Exact.
        """

    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """What, beside structure and l, is needed to build the same design again, ready for JSON."""

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        """The sampling document of this design at a truth probability, in whole numbers for devices."""
        raise ImpossibleError(
            f"the design '{self.name}' cannot be drawn on devices: it has no document of whole numbers",
            "use `mechanism: balanced`, which keeps 1/l exactly",
        )

    def log_given(self, codes: Ints, sets: Ints) -> Floats:
        """`ln K(R | v)` for each set and one value v each: (n,).

        Minus infinity where v is not in R, or R not valid.
        """
        given = np.where(sets == codes[:, None], self.likelihood(sets), 0.0).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(given), dtype=np.float64)

    def log_blind(self, sets: Ints) -> Floats:
        """`ln B(R)` for each set: (n,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.blind_likelihood(sets)), dtype=np.float64)

    def weights(self, sets: Ints, p: float) -> tuple[Floats, Floats]:
        """`P(R | v)` up to a factor of the set: for members (n, l), and for values outside (n,)."""
        inside, blind = self.likelihood(sets), self.blind_likelihood(sets)
        outside = (1.0 - p) * blind
        return p * inside + outside[:, None], outside

    @property
    def even(self) -> bool:
        """Whether by its parameters any l values make a set, all sets equally likely."""
        return False

    def has_at_most(self, sets: int) -> bool:
        """Whether there are no more valid sets than this.

        False also where they are too many to count.
        """
        try:
            return self.count() <= sets
        except ImpossibleError:
            return False

    def can_draw(self, sets: Ints) -> Bools:
        """Whether each of these sets can be drawn at all: (n,)."""
        return np.asarray(self.likelihood(sets).max(axis=1) > 0.0)

    def flaw(self) -> str | None:
        """Why this is no distribution over sets in which every value has a chance.

        None when it is one.
        """
        return None

    def least_inclusion(self) -> float | None:
        """`min rho_v` where sets follow one distribution; else None.

        It is one over the largest `K(R | v) / B(R)`.
        """
        return None

    def matches(self, prior: Floats) -> bool:
        """Whether sets for true values with this distribution are distributed as `B`: `rho = l pi`."""
        return False

    def inclusion_given(self, codes: Ints, p: float) -> Floats:
        """`P(u in R | v)` at truth probability p, for given true values, every u: (len(codes), F)."""
        given = p * self.conditional_inclusion(codes)
        return given if p == 1.0 else given + (1.0 - p) * self.blind_inclusion()

    def whole_inclusion(self, p: float) -> Floats:
        """`inclusion_given` of all values; what does not depend on p is kept for few values."""
        if self.size > _FEW_VALUES:
            return self.inclusion_given(np.arange(self.size), p)
        given = p * self._conditional
        return given if p == 1.0 else given + (1.0 - p) * self.blind_inclusion()

    @cached_property
    def _conditional(self) -> Floats:
        return self.conditional_inclusion(np.arange(self.size))

    def spectrum(self, p: float) -> Spectrum:
        """Rank and condition of the whole inclusion matrix, at a truth probability above 0."""
        if self.size > spectra.DENSE:
            note = f"rank and condition: not computed beyond {spectra.DENSE:,} values of this structure"
            return Spectrum(None, None, note=note)
        try:
            matrix = self.whole_inclusion(p)
        except ImpossibleError:
            return Spectrum(None, None, note="rank and condition: too many sets to go through")
        return spectra.dense_spectrum(matrix)

    def matched_trace(self) -> float | None:
        """`tr D Pi^-1 D`, with `Pi` the joint inclusion and `D = diag(rho)`.

        None where it is not computed.

        Of a design whose values can be distinguished (see `spectrum`); otherwise it is infinite, or huge by rounding.
        """
        return None

    def least_error(self, prior: Floats, p: float = 1.0) -> float | None:
        """`tr I^-1 - 1`, with `I` the Fisher information of a report on values with this `prior`.

        Infinite where some values cannot be distinguished; None where it is not computed.
        """
        return inf if p == 0.0 else None

    def information(self, prior: Floats, p: float) -> Floats | None:
        """The Fisher information of a report about true values distributed as `prior`: (F, F).

        None where only a list of all sets would give it.
        """
        return None

    def epsilon(self, p: float) -> float | None:
        """The largest `ln P(R | v) / P(R | v')`; None where there are too many sets to go through."""
        if self.l == self.size or p == 0.0:
            return 0.0
        return inf if p == 1.0 else self._log_ratio(p)

    def _log_ratio(self, p: float) -> float | None:
        if not self.has_at_most(SET_LIMIT):
            return None
        sets = self.sets()
        blind = self.blind_likelihood(sets)
        possible = blind > 0
        highest = (self.likelihood(sets).max(axis=1)[possible] / blind[possible]).max()
        return log(1.0 + p * float(highest) / (1.0 - p))

    def leading(self, score: Floats, least: float = -inf) -> Floats | None:
        """For each value, the probability to have the highest score of a set from P, above `least`.

        Ties go to any one of the tied. In a domain of very many values neighboring scores may be taken together, so
        that an expected score comes out too high, never too low. None where sets would have to be listed and are too
        many, and where they do not follow one distribution.
        """
        return None

    def success(self, shares: Floats, belief: Floats, p: float) -> float | None:
        """How often the likeliest value given the set is true, for values distributed as `shares`.

        belief  what the guesser takes their distribution to be

        Exact, or an upper bound where `leading` is one; None where there are too many sets to go through.
        """
        if not self.has_at_most(SET_LIMIT):
            return None
        sets = self.sets()
        outside = (1.0 - p) * self.blind_likelihood(sets)
        channel = p * self.likelihood(sets) + outside[:, None]
        rows, mode = np.arange(len(sets)), int(belief.argmax())
        top = (belief[sets] * channel).argmax(axis=1)
        guess = sets[rows, top]
        inside = belief[guess] * channel[rows, top] > outside * belief[mode]
        return float(np.where(inside, shares[guess] * channel[rows, top], shares[mode] * outside).sum())


def heaviest_outside(prior: Floats, sets: Ints) -> Floats:
    """For each set, the largest prior probability of a value that is not in it (0 without one)."""
    heaviest = np.argsort(-prior, kind="stable")[: sets.shape[1] + 1]
    out = np.zeros(len(sets))
    for value in heaviest[::-1]:
        out = np.where((sets == value).any(axis=1), out, prior[value])
    return out
