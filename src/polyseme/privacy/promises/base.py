"""What every promise answers for itself, and how sets are going to be drawn.

    declared   `parameters`, the declaration, and one field for each
    calibrated `least_size`, `fixed_size` and `spacing` require something of the sets, `odds` limits how often they are
               drawn around the true value
    checked    `candidates` is what every published set must offer; `reached` is what a published mechanism comes to,
               against `limit`
    attacked   `bounds`: what no attacker may exceed
    stated     `sentence` for readers of a report; `reasoning` and `warnings` for readers of a plan

A promise is read before the size of its domain is known. It stays what it was declared to be; what depends on the
domain takes the size as an argument.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.base import Design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem
from polyseme.kernel.parameters import Parameter, Scalar
from polyseme.privacy.analysis.closeness import closeness_of_epsilon, exact_distance, listed_pulls, uniform_distance
from polyseme.semantics.distances.base import Clusters, Distance, Structure
from polyseme.semantics.distances.ground import Ground, ground_from

__all__ = [
    "Bounds",
    "Candidates",
    "Channel",
    "Drawing",
    "Grounds",
    "Known",
    "Outcome",
    "Promise",
    "Quantity",
    "Reached",
    "Spacing",
]


@dataclass(frozen=True, eq=False)
class Drawing:
    """The structure of the values, the design that draws from it, and the prior it is made for."""

    structure: Structure
    d: float
    design: str
    prior: Floats | None
    _designs: dict[int, Design] = field(default_factory=dict, repr=False)
    _listed: dict[int, tuple[Ints, Floats] | None] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """F, the number of values."""
        return self.structure.size

    @property
    def uniform(self) -> bool:
        """Whether every set of the same size is equally likely."""
        free = isinstance(self.structure, Clusters) and self.structure.count == self.structure.size
        return self.prior is None and free

    def build(self, l: int, labels: Sequence[object] | None = None) -> Design:
        return make_design(self.design, self.structure, l, self.prior, labels)

    def made(self, l: int) -> Design:
        """The design with sets of l, made once."""
        if l not in self._designs:
            self._designs[l] = self.build(l)
        return self._designs[l]

    def listed(self, l: int) -> tuple[Ints, Floats] | None:
        """Every valid set of a non-uniform design with its members' pulls, if they are few."""
        if l not in self._listed:
            self._listed[l] = listed_pulls(self.made(l))
        return self._listed[l]

    def least_inclusions(self, etas: Ints) -> Floats:
        """For each set size one over the largest pull `K(R | v) / B(R)`.

        Lower bounds where that is not known.
        """
        return np.array([self._least_inclusion(eta) for eta in etas.tolist()])

    def _least_inclusion(self, eta: int) -> float:
        if self.uniform:
            return eta / self.size
        least = self.made(eta).least_inclusion()
        if least is not None:
            return least
        # A sequential design's B is K averaged over all values, so no pull can exceed F.
        listed = self.listed(eta)
        return 1.0 / self.size if listed is None else 1.0 / float(listed[1].max())

    def moved(self, eta: int, odds: float, reference: Floats, ground: Ground) -> float:
        """The largest distance from a reference that a set can cause; exact, or an upper bound."""
        if self.uniform:
            return uniform_distance(reference, eta, odds, ground)
        listed = self.listed(eta)
        if listed is None:
            return closeness_of_epsilon(self.epsilon(eta, odds))
        return exact_distance(*listed, reference, odds, ground)

    def epsilon(self, eta: int, odds: float) -> float:
        """The local differential privacy of sets of this size at these odds of truth."""
        if eta == self.size:
            return 0.0
        return math.log1p(odds / self._least_inclusion(eta)) if odds < math.inf else math.inf


Quantity: TypeAlias = Callable[[float], str]
"""How a number is written."""


@dataclass(frozen=True, eq=False)
class Grounds:
    """The ground distances of a domain by the policy's words, the costly one made once."""

    distance: Distance | None = None

    def named(self, name: str) -> Ground:
        return self._hierarchy if name == "hierarchical" else ground_from(name)

    @cached_property
    def _hierarchy(self) -> Ground:
        return ground_from("hierarchical", self.distance)


@dataclass(frozen=True, eq=False)
class Known:
    """What is public about the values that a mechanism is made for.

    size           how many values the whole domain has
    prior          the distribution that diversity is promised for; uniform when None
    reference      the distribution that closeness is measured against; any distribution when None
    grounds        of the whole domain
    codes          which values of the domain these are; all of them when None
    learner_prior  the distribution that a learner is taken to know, where sets are balanced for another one
    """

    size: int
    prior: Floats | None = None
    reference: Floats | None = None
    grounds: Grounds = field(default_factory=Grounds)
    codes: Ints | None = None
    learner_prior: Floats | None = None

    def ground(self, name: str) -> Ground:
        """The ground a policy names, for distributions over these values."""
        ground = self.grounds.named(name)
        return ground if self.codes is None else ground.among(self.codes, self.size)


@dataclass(frozen=True, eq=False)
class Channel:
    """A published mechanism, and what is public about its values."""

    mechanism: Mechanism
    known: Known


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of calibration: sets of `eta` values, drawn with these odds of truth.

    moved  the largest distance from the reference that a set can cause, on the promised ground; None where unknown
    """

    drawing: Drawing
    known: Known
    eta: int
    odds: float
    moved: float | None

    @cached_property
    def epsilon(self) -> float:
        """The local differential privacy of these parameters."""
        return self.drawing.epsilon(self.eta, self.odds)


@dataclass(frozen=True)
class Spacing:
    """Candidates at least `d` apart, drawn by the design of this name."""

    d: float
    design: str


@dataclass(frozen=True)
class Candidates:
    """What every published set must offer: at least l candidates, any two at least d apart."""

    l: int
    d: float | None = None


@dataclass(frozen=True)
class Reached:
    """What a channel comes to, for the reference distribution or for any."""

    value: float
    for_reference: bool = False


@dataclass(frozen=True)
class Bounds:
    """What attackers may reach at most; None where nothing was promised.

    guess      the probability of a right guess, for an attacker with the declared prior
    apart      how far apart the candidates are that share this bound
    moved      how far the reference distribution moves, on the ground that is named
    any_prior  how far any distribution moves, all moves counted alike
    learner    the share of right guesses, for an attacker who knows the stated distribution
    """

    guess: float | None = None
    apart: float | None = None
    moved: float | None = None
    ground: str = "equal"
    any_prior: float | None = None
    learner: float | None = None


@dataclass(frozen=True)
class Promise(ABC):
    """One promise for one attribute. A parameter that was not given is None."""

    name: ClassVar[str]
    """The policy's word for it."""
    parameters: ClassVar[tuple[Parameter, ...]]
    semantic: ClassVar[bool] = False
    """Whether it cannot do without a distance between the values."""
    limits_truth: ClassVar[bool] = False
    """Whether it limits how often a set may be drawn around the true value."""

    def given(self) -> dict[str, Scalar]:
        """The parameters as a policy or a manifest says them."""
        values = {parameter.name: getattr(self, parameter.name) for parameter in self.parameters}
        return {name: value for name, value in values.items() if value is not None}

    # Calibration.

    @abstractmethod
    def problems(self, size: int, has_distance: bool) -> Iterator[Problem]:
        """Why it cannot be promised for a domain of this size; places relative to `protect`."""

    @property
    def needs_distance(self) -> bool:
        return self.semantic

    @property
    def hides(self) -> bool:
        """Whether a value is to be hidden among others."""
        return self.limits_truth or (self.least_size(None) or 1) > 1

    def least_size(self, size: int | None) -> int | None:
        """How many candidates a set must hold, where it asks for some.

        size  of the domain; None while it is not known
        """
        return None

    @property
    def fixed_size(self) -> int | None:
        """The number of candidates, where it is named outright."""
        return None

    def resized(self) -> Self:
        """The same promise without a fixed number of candidates."""
        return self

    @property
    def spacing(self) -> Spacing | None:
        """How far apart candidates are to be and which design draws them, where it says so."""
        return None

    def odds(self, etas: Ints, drawing: Drawing, known: Known) -> Floats:
        """For each set size the largest odds of truth `p / (1 - p)` that keep the promise.

        Infinite without a limit.
        """
        return np.full(len(etas), np.inf)

    def moves_on(self, known: Known) -> Ground | None:
        """The ground on which it limits how far the reference moves; None where it does not."""
        return None

    # Checking.

    def candidates(self, size: int) -> Candidates | None:
        """What every published set must offer; None where the channel decides."""
        return None

    @property
    def limit(self) -> float:
        """What `reached` must not exceed."""
        return -math.inf

    def reached(self, channel: Channel) -> Reached:
        """What a published mechanism comes to.

        Infinite where that is not known, so that a check fails closed.
        """
        return Reached(math.inf)

    def flaw(self, has_distance: bool) -> str:
        """Why it cannot be checked, whatever the data say; empty where it can."""
        return "the manifest gives no distance" if self.needs_distance and not has_distance else ""

    # What it means.

    @abstractmethod
    def bounds(self, channel: Channel) -> Bounds:
        """What attackers against this channel may reach at most."""

    @abstractmethod
    def sentence(self, attribute: str, channels: Sequence[Channel], quantity: Quantity) -> str:
        """What the release of an attribute promises, in plain words.

        The first channel is that of the whole domain.
        """

    def reasoning(self, outcome: Outcome) -> list[str]:
        """Lines for a plan."""
        return []

    def warnings(self, size: int) -> list[str]:
        """What the reader of a plan must not miss."""
        return []
