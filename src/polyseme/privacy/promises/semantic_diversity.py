"""`semantic-diversity: {l, d, ...}`: at least l candidates, pairwise at least d apart.

The sets come from a design over valid sets, which `mechanism` names. It is the one promise that decides which sets can
be drawn at all; others that stand beside it can make them larger. `check` is for `mechanism: simple`: how it finds out
that a decoy would leave no room for the others, `exact` or as Equations 5 to 10 of the journal paper are `printed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from polyseme.kernel.errors import Problem
from polyseme.kernel.parameters import Parameter
from polyseme.privacy.promises.base import Bounds, Candidates, Channel, Spacing
from polyseme.privacy.promises.diversity import CandidatePromise

__all__ = ["SemanticDiversity"]


MECHANISMS = ("balanced", "sharp", "simple", "duplicate", "least-risk")
CHECKS = ("exact", "printed")
_PRINTED = "simple-printed"
"""The design of `mechanism: simple, check: printed`."""


@dataclass(frozen=True)
class SemanticDiversity(CandidatePromise):
    """Sets of at least l candidates, pairwise at least d apart, drawn by a (balanced) design."""

    name: ClassVar[str] = "semantic-diversity"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("l", "whole", low=1, example=3),
        Parameter("d", low=0, example=2),
        Parameter("mechanism", "choice", choices=MECHANISMS, default=MECHANISMS[0], required=False),
        Parameter("check", "choice", choices=CHECKS, default=CHECKS[0], required=False),
    )

    semantic: ClassVar[bool] = True

    l: int
    d: float
    mechanism: str | None = None
    check: str | None = None

    @classmethod
    def drawn_by(cls, l: int, d: float, design: str) -> SemanticDiversity:
        """The promise whose sets this design draws."""
        return cls(l, d, "simple", "printed") if design == _PRINTED else cls(l, d, design)

    @property
    def design(self) -> str:
        """The name of the design."""
        return _PRINTED if self.check == "printed" else self.mechanism or MECHANISMS[0]

    def problems(self, size: int, has_distance: bool) -> Iterator[Problem]:
        if not has_distance:
            hint = "give it one, or promise diversity, which needs none"
            yield Problem(self.name, "the attribute has no distance", hint)
        if self.check == "printed" and self.mechanism != "simple":
            what = "only the simple mechanism has a printed check"
            yield Problem(f"{self.name}.check", what, "add `mechanism: simple`")
        if self.l > size:
            of = "one value" if size == 1 else f"{size:,} values"
            hint = f"l can be at most {size}, and less when close values exclude each other"
            yield Problem(f"{self.name}.l", f"{self.l:,} candidates from a domain of {of}", hint)

    def least_size(self, size: int | None) -> int:
        return self.l

    @property
    def spacing(self) -> Spacing | None:
        return Spacing(float(self.d), self.design)

    def candidates(self, size: int) -> Candidates | None:
        return Candidates(self.l, self.d)

    def bounds(self, channel: Channel) -> Bounds:
        return Bounds(guess=self._guess(channel), apart=self.d)
