"""Designs that are one distribution over valid sets, the same for every person.

    K(R | v) = P(R) [v in R] / rho_v,   B = P

where
    rho_v    probability that v is in the set
"""

from __future__ import annotations

from abc import abstractmethod
from math import inf, log

import numpy as np

from polyseme.arrays import Bools, Floats, Ints
from polyseme.designs import spectrum as spectra
from polyseme.designs.base import LEAST_SHARE, SET_LIMIT, Design
from polyseme.designs.leading import among_listed

__all__ = ["SetDistribution"]

_EQUAL = 1e-12
"""Scores that differ by a smaller part are one score that was computed in several ways."""

_MATCHES = 1e-7
"""Relative errors up to which a prior is the one a design was fitted to: fits are good to 1e-9. Chosen by judgment."""

_STORED = 1e-6
"""How far inclusion probabilities from a manifest may be from adding up to l: they are written with 15 digits, and a
chain of them loses a few."""


class SetDistribution(Design):
    """One distribution over valid sets, the same for every person."""

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

    def can_draw(self, sets: Ints) -> Bools:
        return np.asarray(self.log_probability(sets) > -np.inf)

    def flaw(self) -> str | None:
        rho = self.inclusion()
        if not (np.all(np.isfinite(rho)) and abs(float(rho.sum()) - self.l) <= _STORED * self.l):
            return f"no distribution over sets of {self.l} candidates has these"
        never = int((rho < LEAST_SHARE).sum())
        return f"{never} of {self.size:,} values are in no set that can be drawn" if never else None

    def least_inclusion(self) -> float | None:
        return float(self.inclusion().min())

    def matches(self, prior: Floats) -> bool:
        return bool(np.allclose(self.inclusion(), self.l * prior, rtol=_MATCHES))

    def matched_trace(self) -> float | None:
        if self.size > spectra.DENSE:
            return None
        rho = self.inclusion()
        return spectra.dense_trace(rho, self.conditional_inclusion(np.arange(self.size)) * rho[:, None])

    def _log_ratio(self, p: float) -> float | None:
        return log(1.0 + p / (float(self.inclusion().min()) * (1.0 - p)))

    def leading(self, score: Floats, least: float = -inf) -> Floats | None:
        if not self.has_at_most(SET_LIMIT):
            return None
        sets = self.sets()
        return among_listed(sets, np.exp(self.log_probability(sets)), score, least)

    def success(self, shares: Floats, belief: Floats, p: float) -> float | None:
        odds = p / self.inclusion() + 1.0 - p
        mode = int(belief.argmax())
        score = belief * odds
        same = belief is shares and np.ptp(score) <= _EQUAL * score.max()
        if same and score.min() >= (1.0 - p) * belief[mode]:
            return float(score.mean())
        leads = self.leading(score, (1.0 - p) * float(belief[mode]))
        if leads is None:
            return None
        # Where no member of the set is likelier than the mode outside it, the mode is guessed.
        blind = 1.0 - float(leads.sum())
        return float(leads @ (shares * odds)) + max(blind, 0.0) * (1.0 - p) * float(shares[mode])
