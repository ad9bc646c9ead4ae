"""`closeness: {t, ground, size}`: no set moves the attribute's distribution by more than t.

How far it moves is the earth mover's distance on a ground; how that limits the odds of truth is worked out in
`polyseme.privacy.analysis.closeness`. With a reference distribution the promise is about attackers with that prior,
without it about all attackers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem
from polyseme.kernel.parameters import Parameter
from polyseme.privacy.analysis.closeness import (
    closeness_of_epsilon,
    closeness_reached,
    exact_odds,
    safe_odds,
    uniform_odds,
)
from polyseme.privacy.promises.base import Bounds, Channel, Drawing, Known, Outcome, Quantity, Reached
from polyseme.privacy.promises.ldp import SIZE, TruthPromise
from polyseme.semantics.distances.ground import GROUNDS, Equal, Ground

__all__ = ["Closeness"]

_ALONG = {"equal": "", "ordered": ", counted along their order", "hierarchical": ", counted by how far apart they are"}


@dataclass(frozen=True)
class Closeness(TruthPromise):
    """t-closeness of what a set tells, on a ground (the equal one)."""

    name: ClassVar[str] = "closeness"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("t", low=0, high=1, example=0.2),
        Parameter("ground", "choice", choices=GROUNDS, default=GROUNDS[0], required=False),
        SIZE,
    )

    t: float
    ground: str | None = None

    @property
    def measured_on(self) -> str:
        """The word for its ground."""
        return self.ground or GROUNDS[0]

    @property
    def needs_distance(self) -> bool:
        return self.ground == "hierarchical"

    def problems(self, size: int, has_distance: bool) -> Iterator[Problem]:
        yield from super().problems(size, has_distance)
        if self.needs_distance and not has_distance:
            hint = "give the attribute a tree, or use equal"
            yield Problem(f"{self.name}.ground", "hierarchical needs a distance", hint)

    def moves_on(self, known: Known) -> Ground:
        # Among some of the values the equal ground is at least as dear as any other, and quicker to calibrate for.
        return known.ground(self.measured_on) if known.codes is None else Equal()

    def odds(self, etas: Ints, drawing: Drawing, known: Known) -> Floats:
        safe = safe_odds(self.t, drawing.least_inclusions(etas))
        if known.reference is None or self.t in {0.0, 1.0}:
            return safe
        ground = self.moves_on(known)
        if drawing.uniform:
            return np.maximum(safe, uniform_odds(known.reference, etas, self.t, ground))
        listed = [drawing.listed(eta) for eta in etas.tolist()]
        exact = [0.0 if sets is None else exact_odds(*sets, known.reference, self.t, ground) for sets in listed]
        return np.maximum(safe, exact)

    @property
    def limit(self) -> float:
        return self.t

    def reached(self, channel: Channel) -> Reached:
        known = channel.known
        if known.reference is not None:
            moved = closeness_reached(channel.mechanism, known.reference, known.ground(self.measured_on))
            if moved is not None:
                return Reached(moved, for_reference=True)
        return Reached(_for_any(channel))

    def bounds(self, channel: Channel) -> Bounds:
        for_any = channel.known.reference is None and self.measured_on == "equal"
        return Bounds(moved=self.t, ground=self.measured_on, any_prior=self.t if for_any else None)

    def sentence(self, attribute: str, channels: Sequence[Channel], quantity: Quantity) -> str:
        moved = f"by at most {quantity(self.t)}"
        scale = "where 0 is not at all and 1 is from one certainty to another" + _ALONG[self.measured_on]
        if channels[0].known.reference is None:
            return f"Seeing a record moves an attacker's belief about its {attribute} {moved}, {scale}."
        others = quantity(max(map(_for_any, channels)))
        return (
            f"Seeing a record moves the belief of an attacker with the published distribution of {attribute} {moved}, "
            f"{scale}; with another prior, by at most {others}, all moves counted alike."
        )

    def reasoning(self, outcome: Outcome) -> list[str]:
        of_any, reference = closeness_of_epsilon(outcome.epsilon), outcome.known.reference
        subjects = "every distribution" if reference is None else "the reference distribution"
        moved = of_any if outcome.moved is None else outcome.moved
        lines = [f"closeness: a set moves {subjects} by at most {moved:.4g} (promised: {self.t:g})"]
        if reference is not None and math.isfinite(outcome.epsilon):
            lines.append(f"an attacker with another prior can move by {of_any:.4g}")
        return lines

    def warnings(self, size: int) -> list[str]:
        return ["closeness with t = 1 promises nothing"] if self.t == 1.0 else []


def _for_any(channel: Channel) -> float:
    """How far a set can move any distribution, all moves counted alike."""
    found = channel.mechanism.design.epsilon(channel.mechanism.p)
    return closeness_of_epsilon(math.inf if found is None else found)
