"""`ldp: {epsilon, size}`: no published set is more than e^epsilon times likelier under one true value than another.

    P(R | v) <= e^epsilon P(R | u)      for all sets R and values u, v

The largest ratio of a channel is between a member with the smallest inclusion probability rho and any value outside,
so it is kept exactly when the odds of truth are at most (e^epsilon - 1) min rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyseme.analysis.closeness import closeness_of_epsilon
from polyseme.arrays import Floats, Ints
from polyseme.parameters import Parameter
from polyseme.promises.base import Bounds, Channel, Known, Quantity, Reached
from polyseme.promises.drawing import Drawing
from polyseme.promises.limiting import SIZE, TruthPromise

__all__ = ["Ldp"]

_UNLIMITED = 700.0
"""Epsilons beyond are cut off: e^709 is the largest power that a double holds."""
_SPELT_OUT = 50.0
"""Epsilons from here on stay exponents in a sentence."""


@dataclass(frozen=True)
class Ldp(TruthPromise):
    """Local differential privacy."""

    name: ClassVar[str] = "ldp"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("epsilon", low=0, example=2.0), SIZE)

    epsilon: float

    def odds(self, etas: Ints, drawing: Drawing, known: Known) -> Floats:
        return np.asarray(np.expm1(min(self.epsilon, _UNLIMITED)) * drawing.least_inclusions(etas))

    @property
    def limit(self) -> float:
        return self.epsilon

    def reached(self, channel: Channel) -> Reached:
        found = channel.mechanism.design.epsilon(channel.mechanism.p)
        return Reached(math.inf if found is None else found)

    def bounds(self, channel: Channel) -> Bounds:
        return Bounds(any_prior=closeness_of_epsilon(self.epsilon))

    def sentence(self, attribute: str, channels: Sequence[Channel], quantity: Quantity) -> str:
        factor = quantity(math.exp(self.epsilon)) if self.epsilon < _SPELT_OUT else f"e^{self.epsilon:g}"
        return (
            f"No published set is more than {factor} times as likely for one true {attribute} as for another, "
            "whatever else is known about the person."
        )
