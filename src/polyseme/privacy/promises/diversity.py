"""`diversity: {l, adapt}`: every published cell holds at least l candidates.

In every equivalence class for the attribute no value has more than 1/l of the rows, because a record adds each of its
l candidates once to a class (Theorem 2 of the sensitive quasi-identifier paper). What promises about the number of
candidates have in common is here too.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from polyseme.kernel.errors import Problem
from polyseme.kernel.parameters import Parameter
from polyseme.privacy.promises.base import Bounds, Candidates, Channel, Promise, Quantity

__all__ = ["ADAPT", "AdaptablePromise", "CandidatePromise", "Diversity"]

ADAPT = Parameter("adapt", "switch", default=False, required=False, example=True)


@dataclass(frozen=True)
class CandidatePromise(Promise):
    """Enough candidates that an attacker who relies on a set is right at most 1 in l."""

    @abstractmethod
    def least_size(self, size: int | None) -> int: ...

    def candidates(self, size: int) -> Candidates | None:
        return Candidates(self.least_size(size))

    def bounds(self, channel: Channel) -> Bounds:
        return Bounds(guess=self._guess(channel))

    def _guess(self, channel: Channel) -> float:
        promised = 1.0 / self.least_size(channel.known.size)
        if channel.mechanism.design.name != "least-risk":
            return promised
        # Made where 1/l cannot be had: what it comes to is promised in its place.
        worst = channel.mechanism.worst_posterior(channel.known.prior)
        return 1.0 if math.isnan(worst) else max(promised, worst)

    def sentence(self, attribute: str, channels: Sequence[Channel], quantity: Quantity) -> str:
        if any(channel.known.learner_prior is not None for channel in channels):
            expecting = ", with the prior that the sets are balanced for,"
        elif all(channel.known.prior is None for channel in channels):
            expecting = ", with a uniform prior,"
        else:
            expecting = ", with the declared prior,"
        return (
            f"An attacker who knows the method and nothing else about a person{expecting} guesses right with "
            f"probability at most {quantity(max(map(self._guess, channels)))}."
        )


@dataclass(frozen=True)
class AdaptablePromise(CandidatePromise):
    """At least l candidates, or with `adapt` as many as leave something to estimate.

    That is one less than the domain has.
    """

    l: float
    adapt: bool | None = None

    def least_size(self, size: int | None) -> int:
        least = math.ceil(self.l)
        if not self.adapt:
            return least
        return 1 if size is None else min(least, _useful(size))

    @property
    def hides(self) -> bool:
        return self.l > 1

    def problems(self, size: int, has_distance: bool) -> Iterator[Problem]:
        if self.least_size(size) > _useful(size):
            yield Problem(f"{self.name}.l", *_too_many(self.l, size))

    def warnings(self, size: int) -> list[str]:
        least = self.least_size(size)
        adapted = f"{self.name}: l = {self.l:g} was adapted to {least}, as the domain has {size:,} values"
        return [adapted] if self.l > least else []


def _useful(size: int) -> int:
    """The most candidates that leave something to estimate."""
    return max(size - 1, 1)


def _too_many(l: float, size: int) -> tuple[str, str]:
    if size == 1:
        return (
            f"{l:,.15g} candidates from a domain of one value",
            "every record has this value, so nothing can be hidden",
        )
    what = (
        f"{l:,.15g} candidates from a domain of {size:,} values leave every set the same, so nothing can be estimated"
    )
    if size == 2:
        return what, "a yes/no attribute is protected by closeness or ldp, which also answer with the other value"
    return what, f"l can be at most {size - 1}; adapt: true chooses that automatically"


@dataclass(frozen=True)
class Diversity(AdaptablePromise):
    """At least l candidates, a whole number.

    >>> Diversity(5).least_size(4), Diversity(5, adapt=True).least_size(4)
    (5, 3)
    """

    name: ClassVar[str] = "diversity"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("l", "whole", low=1, example=3), ADAPT)

    l: int
