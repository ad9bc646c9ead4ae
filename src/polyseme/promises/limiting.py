"""What the promises that limit the truth probability have in common.

Such a promise looks at the sets that are going to be drawn, and at what is publicly known about the values, and says
how often a set may be drawn around the true value; a finished mechanism is checked from its channel.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from polyseme.arrays import Floats, Ints
from polyseme.errors import Problem
from polyseme.parameters import Parameter
from polyseme.promises.base import Channel, Known, Promise, Reached
from polyseme.promises.drawing import Drawing

__all__ = ["SIZE", "TruthPromise"]

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
