"""What a learner's success costs in precision, over the settings of an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from polyseme.results.base import written

__all__ = ["Advice", "Tried", "marked"]


@dataclass(frozen=True)
class Tried:
    """One setting: candidates, distance, strength of the prior, truth probability.

    alpha, p   the strength of the prior and the truth probability; None where strata have their own
    success    of an attacker who knows the distribution, on average; `worst` in the worst stratum
    floor      the lower bound for truthful sets of this l and d
    error      expected root mean squared error of a share; None without a number of records, or where not computed
    dominated  whether another setting of at least this distance has both a lower success and a lower error
    chosen     whether it is what the policy asks for
    """

    l: int
    d: float
    alpha: float | None
    p: float | None
    success: float
    worst: float
    floor: float
    error: float | None
    dominated: bool = False
    chosen: bool = False

    def to_dict(self) -> dict[str, Any]:
        """An entry under `tradeoff` of `plan --json --frontier`."""
        return written(asdict(self))

    def beaten_by(self, other: Tried) -> bool:
        if self.error is None or other.error is None or other.d < self.d:
            return False
        better = other.success < self.success or other.error < self.error
        return better and other.success <= self.success and other.error <= self.error


def marked(tried: Sequence[Tried]) -> list[Tried]:
    """The settings, each saying whether another one is better both ways.

    A smaller distance is no better setting: it gives up what distance protects from, guesses of a range.
    """
    return [replace(one, dominated=any(one.beaten_by(other) for other in tried)) for one in tried]


@dataclass(frozen=True)
class Advice:
    """The setting with the least expected error that keeps a learner's success.

    policy   lines to paste below the attribute
    lines    the reasoning, for people
    success  reached on average, `error` the expected root mean squared error of a share
    """

    attribute: str
    l: int
    d: float
    policy: tuple[str, ...]
    lines: tuple[str, ...]
    success: float
    worst: float
    error: float | None

    def to_dict(self) -> dict[str, Any]:
        """An entry under `advice` of `plan --json --advise`."""
        return written({**asdict(self), "policy": list(self.policy), "lines": list(self.lines)})
