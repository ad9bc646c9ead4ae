"""`ldp: {epsilon, size}`: a limit on how likely a set is under different true values.

No published set is more than e^epsilon times likelier under one true value than another.

    P(R | v) <= e^epsilon P(R | u)      for all sets R and values u, v

The largest ratio of a channel is between a member with the smallest inclusion probability rho and any value outside,
so it is kept exactly when the odds of truth are at most (e^epsilon - 1) min rho.

Promises that limit the truth probability share this: they look at the sets that are going to be drawn, and at what is
publicly known about the values, and say how often a set may be drawn around the true value; a finished mechanism is
checked from its channel.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem
from polyseme.kernel.parameters import Parameter
from polyseme.privacy.analysis.closeness import closeness_of_epsilon
from polyseme.privacy.promises.base import Bounds, Channel, Drawing, Known, Promise, Quantity, Reached

__all__ = ["SIZE", "Ldp", "TruthPromise"]

SIZE = Parameter("size", "whole", low=1, required=False, example=3)
"""The number of candidates; without it the one with the least expected error is taken."""


@dataclass(frozen=True, kw_only=True)
class TruthPromise(Promise):
    """A limit on the odds of truth; `size` fixes the number of candidates."""

    limits_truth: ClassVar[bool] = True

    size: int | None = None

    def problems(self, size: int, has_distance: bool) -> Iterator[Problem]:
        most = max(size - 1, 1)
        if self.size is not None and self.size > most:
            what = f"expected a whole number from 1 up to {most:,}, found {self.size:,}"
            yield Problem(
                f"{self.name}.size", what, f"the domain has {size:,} values, and a set leaves one of them out"
            )

    @property
    def fixed_size(self) -> int | None:
        return self.size

    def resized(self) -> Self:
        return replace(self, size=None)

    @abstractmethod
    def odds(self, etas: Ints, drawing: Drawing, known: Known) -> Floats: ...

    @property
    @abstractmethod
    def limit(self) -> float: ...

    @abstractmethod
    def reached(self, channel: Channel) -> Reached: ...


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
