"""All promises by the policy's names, their one reader, and the promises of an attribute.

A new promise is its file and its line here. The reader takes names and parameters of a policy or a manifest to typed
promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.parameters import read_parameters
from polyseme.privacy.promises.base import Bounds, Channel, Drawing, Known, Outcome, Promise, Quantity, Spacing
from polyseme.privacy.promises.closeness import Closeness
from polyseme.privacy.promises.diversity import Diversity
from polyseme.privacy.promises.entropy_diversity import EntropyDiversity
from polyseme.privacy.promises.ldp import Ldp
from polyseme.privacy.promises.learner import Learner
from polyseme.privacy.promises.semantic_diversity import SemanticDiversity
from polyseme.semantics.distances.ground import Ground

__all__ = ["PROMISES", "Promises", "Unreadable", "read_promises", "stored_promises"]

_ALL: tuple[type[Promise], ...] = (
    Diversity,
    EntropyDiversity,
    SemanticDiversity,
    Closeness,
    Ldp,
    Learner,
)

PROMISES: Mapping[str, type[Promise]] = {promise.name: promise for promise in _ALL}
"""Every promise by the policy's word for it. Where two of them ask for the same, the first one is named."""


@dataclass(frozen=True)
class Unreadable:
    """A promise that this program cannot read: it is kept as it was given, and never holds.

    problems  what is wrong with its parameters; none where the promise itself is not known
    """

    name: str
    values: Mapping[str, Any]
    problems: tuple[Problem, ...] = ()

    @property
    def flaw(self) -> str:
        """Why it cannot be checked."""
        found = "; ".join(f"{problem.where}: {problem.what}" for problem in self.problems)
        return found or "the verifier does not know this promise"


@dataclass(frozen=True)
class Promises:
    """What was promised for one attribute, in the order in which it was said.

    False when nothing was.

    unreadable  what a manifest says beside that and this program cannot check
    """

    items: tuple[Promise, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    @classmethod
    def of(cls, *items: Promise) -> Promises:
        """
        >>> from polyseme.privacy.promises import Diversity, Ldp
        >>> Promises.of(Diversity(3), Ldp(1.0)).given()
        {'diversity': {'l': 3}, 'ldp': {'epsilon': 1.0}}
        """
        return cls(items)

    def __bool__(self) -> bool:
        return bool(self.items or self.unreadable)

    def __iter__(self) -> Iterator[Promise]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def given(self) -> dict[str, dict[str, Any]]:
        """As a policy or a manifest says it."""
        return {item.name: item.given() for item in self.items} | {
            item.name: dict(item.values) for item in self.unreadable
        }

    @property
    def semantic(self) -> bool:
        """Whether one of them, readable or not, cannot do without a distance between the values."""
        return any(PROMISES[name].semantic for name in self.given() if name in PROMISES)

    @property
    def hides(self) -> bool:
        """Whether a value is to be hidden among others."""
        return any(item.hides for item in self.items)

    @property
    def limiting(self) -> tuple[Promise, ...]:
        """Those that limit how often a set may be drawn around the true value."""
        return tuple(item for item in self._ranked if item.limits_truth)

    @property
    def learner(self) -> Learner | None:
        """The promise about an attacker who knows the distribution: what designs are balanced for."""
        return next((item for item in self.items if isinstance(item, Learner)), None)

    @property
    def _ranked(self) -> list[Promise]:
        order = list(PROMISES)
        return sorted(self.items, key=lambda item: order.index(item.name))

    # What they ask of the sets.

    def for_domain(self, size: int, has_distance: bool) -> Promises:
        """Themselves, once the domain is known.

        Raises with every reason why they cannot be promised for it.
        """
        problems = [problem for item in self.items for problem in item.problems(size, has_distance)]
        problems += [problem for item in self.unreadable for problem in item.problems]
        problems += self.conflicts(size)
        if problems:
            raise PolicyError(problems)
        return self

    def conflicts(self, size: int | None) -> list[Problem]:
        """Where promises name set sizes or designs that cannot be had together."""
        least, asking = self.least_size(size)
        named = [(item.name, item.fixed_size) for item in self._ranked if item.fixed_size is not None]
        problems = [
            Problem(f"{name}.size", f"{fixed} is below the l = {least} of {asking}", "leave it out")
            for name, fixed in named
            if fixed < least
        ]
        problems += [
            Problem(f"{name}.size", f"{named[0][0]} asks for another size", "a set has only one size: state it once")
            for name, fixed in named[1:]
            if fixed != named[0][1]
        ]
        named_design = self.spacing.design if self.spacing is not None else "balanced"
        if self.learner is not None and named_design != "balanced":
            what = f"{self.learner.name} decides what sets are balanced for, which the {named_design} design is not"
            problems.append(Problem(f"{SemanticDiversity.name}.mechanism", what, "leave it out"))
        return problems

    def least_size(self, size: int | None) -> tuple[int, str]:
        """The smallest set that is large enough for all, and the promise that requires it."""
        wanted = [(item.least_size(size), item.name) for item in self._ranked]
        sizes = [(least, name) for least, name in wanted if least is not None]
        return max(sizes, default=(1, ""), key=lambda pair: pair[0])

    @property
    def fixed_size(self) -> tuple[int, str] | None:
        """The set size that is named outright, and the promise that names it."""
        return next(((item.fixed_size, item.name) for item in self._ranked if item.fixed_size is not None), None)

    @property
    def spacing(self) -> Spacing | None:
        """How far apart candidates are to be and which design draws them, where one of them says so."""
        return next((item.spacing for item in self.items if item.spacing is not None), None)

    @property
    def unspaced(self) -> Promises:
        """Those that do not say how far apart candidates are to be."""
        return Promises(tuple(item for item in self.items if item.spacing is None))

    def respaced(self, l: int, spacing: Spacing) -> Promises:
        """With sets of another size, distance and design, and the same limits on truth."""
        sets = SemanticDiversity.drawn_by(l, spacing.d, spacing.design)
        return Promises.of(sets, *(item.resized() for item in self.limiting))

    # What they ask of the truth probability.

    def odds(self, etas: Ints, drawing: Drawing, known: Known) -> Mapping[str, Floats]:
        """For each promise that limits truth, the largest odds by set size."""
        return {item.name: item.odds(etas, drawing, known) for item in self.limiting}

    def moves_on(self, known: Known) -> Ground | None:
        """The ground on which it is promised how far the reference moves.

        None where that is not promised.
        """
        grounds = (item.moves_on(known) for item in self.items)
        return next((ground for ground in grounds if ground is not None), None)

    def reasoning(self, outcome: Outcome) -> list[str]:
        return [line for item in self._ranked for line in item.reasoning(outcome)]

    def warnings(self, size: int) -> list[str]:
        return [warning for item in self._ranked for warning in item.warnings(size)]

    # What they mean.

    def sentences(self, attribute: str, channels: Sequence[Channel], quantity: Quantity) -> list[str]:
        """What the release of an attribute promises, in plain words.

        Of the numbers of candidates only the largest.
        """
        size = channels[0].known.size
        _, strictest = self.least_size(size)
        said = [item for item in self._ranked if item.least_size(size) is None or item.name == strictest]
        return [item.sentence(attribute, channels, quantity) for item in said]

    def bounds(self, channel: Channel) -> Bounds:
        """The strictest of each kind."""
        each = [item.bounds(channel) for item in self.items]
        moving = next((found for found in each if found.moved is not None), Bounds())
        return Bounds(
            guess=min((found.guess for found in each if found.guess is not None), default=None),
            apart=max((found.apart for found in each if found.apart is not None), default=None),
            moved=moving.moved,
            ground=moving.ground,
            any_prior=min((found.any_prior for found in each if found.any_prior is not None), default=None),
            learner=min((found.learner for found in each if found.learner is not None), default=None),
        )


def read_promises(given: Mapping[str, Any]) -> Promises:
    """The promises of one attribute.

    Raises `PolicyError` with every problem, places relative to `protect`.

    Nothing is known of the domain yet: see `Promises.for_domain`.

    >>> read_promises({"ldp": {"epsilon": 2}}).items
    (Ldp(size=None, epsilon=2),)
    """
    promises, problems = _read(given)
    if not given:
        problems.append(Problem("", "nothing is promised", f"one of: {', '.join(PROMISES)}"))
    if problems:
        raise PolicyError(problems)
    return promises


def stored_promises(given: Mapping[str, Any]) -> Promises:
    """The promises of a manifest.

    What cannot be read is kept as it is, for the verifier to say so.
    """
    return _read(given)[0]


def _read(given: Mapping[str, Any]) -> tuple[Promises, list[Problem]]:
    items: list[Promise] = []
    unreadable: list[Unreadable] = []
    unknown: list[Problem] = []
    for name, values in given.items():
        if name not in PROMISES:
            unknown.append(Problem(str(name), "unknown promise", nearest(str(name), PROMISES)))
            unreadable.append(Unreadable(str(name), values if isinstance(values, Mapping) else {}))
            continue
        found, problems = _one(PROMISES[name], values)
        if found is not None:
            items.append(found)
        else:
            unreadable.append(Unreadable(name, values if isinstance(values, Mapping) else {}, tuple(problems)))
    promises = Promises(tuple(items), tuple(unreadable))
    faulty = [problem for item in unreadable for problem in item.problems]
    return promises, [*unknown, *faulty, *promises.conflicts(None)]


def _one(promise: type[Promise], values: object) -> tuple[Promise | None, list[Problem]]:
    if not isinstance(values, Mapping):
        example = ", ".join(item.shown() for item in promise.parameters if item.required)
        hint = f"for example {promise.name}: {{{example}}}"
        return None, [Problem(promise.name, "expected a mapping of parameters", hint)]
    fitting, problems = read_parameters(promise.name, promise.parameters, values)
    return (None, problems) if problems else (promise(**fitting), [])
