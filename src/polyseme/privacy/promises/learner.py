"""`learner: {success, truthful, tolerance, size}`: a limit on an informed attacker.

An attacker who knows the distribution guesses right with at most `success`.

A release is published so that distributions are learned from it. This promise is made against an attacker who has
learned them: the attacker knows the declared distribution given the untouched columns it is declared by, and names the
likeliest value after seeing a set. In every stratum the attacker is right with at most `success`, on average
over its people (`polyseme.privacy.analysis.learner`); a single set may still say more.

It decides what sets are balanced for, between the uniform and the declared distribution, and how often they are drawn
around the true value (`polyseme.privacy.analysis.success_limit`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.parameters import Parameter
from polyseme.privacy.analysis.learner import Population, misjudged_success, success
from polyseme.privacy.analysis.success_limit import Calibration, Values, calibrate
from polyseme.privacy.promises.base import Bounds, Channel, Drawing, Known, Quantity, Reached
from polyseme.privacy.promises.ldp import SIZE, TruthPromise

__all__ = ["Learner"]


@dataclass(frozen=True)
class Learner(TruthPromise):
    """A limit on the share of right guesses of an attacker who knows the distribution.

    truthful   whether every set must hold the true value
    tolerance  delta: the promise is also kept where the true distribution is off by `|ln(true / declared)| <= delta`
    """

    name: ClassVar[str] = "learner"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("success", low=0, high=1, above=True, example=0.5),
        Parameter("truthful", "switch", default=False, required=False, example=True),
        Parameter("tolerance", low=0, required=False, example=0.1),
        SIZE,
    )

    success: float
    truthful: bool | None = None
    tolerance: float | None = None

    @property
    def computed(self) -> float:
        """What the success may be for the declared distribution, so that a misjudged one is covered."""
        return self.success * math.exp(-(self.tolerance or 0.0))

    def serve(
        self, values: Values, l: int, d: float, shares: Floats, labels: Sequence[object] | None = None
    ) -> Calibration:
        """The mechanism with the least expected error that keeps the promise.

        `ImpossibleError` says what would.

        shares  the distribution that is declared for the people it serves
        labels  names of the values for messages
        """
        population, truthful = Population.of(shares), bool(self.truthful)
        return calibrate(values, l, d, population, self.computed, truthful=truthful, labels=labels)

    def odds(self, etas: Ints, drawing: Drawing, known: Known) -> Floats:
        # It constrains design and truth together: see `serve`.
        return np.full(len(etas), np.inf)

    @property
    def limit(self) -> float:
        return self.success

    def reached(self, channel: Channel) -> Reached:
        prior = channel.known.learner_prior
        if prior is None or (self.truthful and channel.mechanism.p < 1.0):
            return Reached(math.inf)
        found = success(channel.mechanism, prior / prior.sum())
        return Reached(math.inf if found is None else misjudged_success(found, self.tolerance or 0.0), True)

    def bounds(self, channel: Channel) -> Bounds:
        return Bounds(learner=self.success)

    def sentence(self, attribute: str, channels: Sequence[Channel], quantity: Quantity) -> str:
        off = self.tolerance or 0.0
        doubt = f", also where its shares are off by a factor of up to {quantity(math.exp(off))}" if off else ""
        return (
            f"An attacker who knows the declared distribution of {attribute} among people like this one guesses right "
            f"with probability at most {quantity(self.success)} on average{doubt}; a single set may reveal more."
        )
