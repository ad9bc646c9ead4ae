"""`diversity: {l, adapt}`: every published cell holds at least l candidates.

In every equivalence class for the attribute no value has more than 1/l of the rows, because a record adds each of its
l candidates once to a class (Theorem 2 of the sensitive quasi-identifier paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyseme.parameters import Parameter
from polyseme.promises.counting import ADAPT, AdaptablePromise

__all__ = ["Diversity"]


@dataclass(frozen=True)
class Diversity(AdaptablePromise):
    """At least l candidates, a whole number.

    >>> Diversity(5).least_size(4), Diversity(5, adapt=True).least_size(4)
    (5, 3)
    """

    name: ClassVar[str] = "diversity"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("l", "whole", low=1, example=3), ADAPT)

    l: int
