"""What three people can guess who know more and more about the values: gathered for a plan and for a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polyseme.analysis.floor import Floor, floor
from polyseme.analysis.learner import success
from polyseme.analysis.ranges import Ranges, range_success, ranges_of
from polyseme.analysis.summary import attacker_prior
from polyseme.arrays import Floats, Ints
from polyseme.distances.structure import Graph
from polyseme.errors import ImpossibleError, ReleaseError
from polyseme.estimators.learning import Reached
from polyseme.methods.decoys import sets_of
from polyseme.policy import Policy
from polyseme.progress import tracked
from polyseme.release import Release, Sets
from polyseme.results.guessers import Guesser, Guessers, RangeGuess
from polyseme.results.plan import AttributePlan, Plan
from polyseme.schema import Resolved
from polyseme.spelling import Label
from polyseme.strata import Strata, Stratum
from polyseme.strata.groups import Groups
from polyseme.tables.io.source import Source
from polyseme.verbs.knowledge import Learnt, declared, from_release, look

__all__ = ["guessers", "guessers_of_release", "with_guessers"]

_UNIFORM = (
    "the prior is uniform, and nobody declared it: what is promised about a guess holds for somebody who expects every "
    "value equally. Declare what is publicly known with prior: .. or reference: .."
)
_FROM_DATA = (
    "what somebody knows about the distribution is taken from the table itself: these numbers describe its records. "
    "They are not part of a release; do not publish them"
)
_WORK = 20_000
"""Values times groups up to which every group is looked at; beyond (1 s a group with 5,000 values) only everybody."""
_CROWDED = 200
"""Values of a graph up to which its crowds are listed, to know what a range is."""


@dataclass(frozen=True, eq=False)
class _Known:
    """One group, as somebody knows it who guesses.

    shares  the distribution of its true values, over the values its stratum has left
    belief  what the guesser takes it to be
    """

    weight: float
    stratum: Stratum
    shares: Floats
    belief: Floats
    name: str = ""

    def before(self) -> float:
        return float(self.shares[int(self.belief.argmax())])

    def after(self) -> float | None:
        believed = None if self.belief is self.shares else self.belief
        return success(self.stratum.mechanism, self.shares, believed)

    def floor(self) -> Floor | None:
        """For somebody who believes what is true; none where a truthful set would be the value itself."""
        if self.stratum.mechanism.l == 1:
            return None
        try:
            return floor(self.stratum.mechanism.design.structure, self.stratum.mechanism.l, self.shares)
        except ImpossibleError:
            return None


class _Tables:
    """The ranges of each stratum's values, listed once."""

    def __init__(self, apart: bool) -> None:
        self._apart = apart
        self._found: dict[int, Ranges | None] = {}

    def of(self, stratum: Stratum) -> Ranges | None:
        key = id(stratum)
        if key not in self._found:
            self._found[key] = _ranges(stratum) if self._apart else None
        return self._found[key]


def _ranges(stratum: Stratum) -> Ranges | None:
    structure = stratum.mechanism.design.structure
    if isinstance(structure, Graph) and structure.size > _CROWDED:
        return None
    try:
        return ranges_of(structure)
    except ImpossibleError:
        return None


@dataclass(frozen=True, eq=False)
class _Facing:
    """An attribute as guessers face it.

    strata  how its sets are drawn
    apart   whether candidates are a distance apart, so that ranges mean something
    labels  of its values
    """

    strata: Strata
    apart: bool
    labels: Sequence[Label]

    @cached_property
    def ranges(self) -> _Tables:
        return _Tables(self.apart)

    def guesser(self, known: Sequence[_Known], learnt: bool = True) -> Guesser:
        """The success of somebody over all groups; with floor and ranges where he knows each of them."""
        weights = np.array([one.weight for one in known])
        weights = weights / weights.sum()
        after = [one.after() for one in known]
        told = [value for value in after if value is not None]
        complete = len(told) == len(known)
        worst = int(np.argmax(told)) if complete else 0
        lowest = [one.floor() for one in known] if learnt else []
        floors = [one for one in lowest if one is not None]
        proved = len(floors) == len(known)
        return Guesser(
            before=float(weights @ [one.before() for one in known]),
            after=float(weights @ told) if complete else None,
            worst_group=told[worst] if complete else None,
            floor=float(weights @ [one.value for one in floors]) if proved else None,
            crowd=self._crowd(known, floors) if proved else "",
            group=known[worst].name if complete and len(known) > 1 else "",
            ranges=self._range_guess(known, weights) if learnt else None,
        )

    def _crowd(self, known: Sequence[_Known], floors: Sequence[Floor]) -> str:
        highest = max(range(len(floors)), key=lambda index: floors[index].value)
        group = known[highest]
        why = floors[highest].why([self.labels[code] for code in group.stratum.allowed.tolist()])
        return f"{group.name}: {why}" if group.name and len(known) > 1 else why

    def _range_guess(self, known: Sequence[_Known], weights: Floats) -> RangeGuess | None:
        before, after = [], []
        for one in known:
            ranges = self.ranges.of(one.stratum)
            found = None if ranges is None else range_success(one.stratum.mechanism, ranges, one.shares)
            if ranges is None or found is None:
                return None
            before.append(float(ranges.masses(one.shares).max()))
            after.append(found)
        return RangeGuess(float(weights @ before), float(weights @ after), max(after))


def guessers(strata: Strata, groups: Groups | None, apart: bool, labels: Sequence[Label], source: str = "") -> Guessers:
    """The three people for one attribute.

    groups  how the values are distributed, where that is known
    source  where that comes from, in words
    """
    facing = _Facing(strata, apart, labels)
    places = None if groups is None else groups.places(strata)
    if groups is None or places is None:
        missing = () if groups is None else (_undecided(strata, groups),)
        return Guessers(facing.guesser(list(_reference(strata, None))), source=source, warnings=missing)
    population = groups.population
    weights: Floats = np.bincount(places, population.weights, len(strata.members)).astype(np.float64)
    known = list(_given(strata, groups, places))
    fine = bool(groups.by) and len(known) * strata.members[0].size <= _WORK
    margin = population.margin
    told = Guessers(
        facing.guesser(list(_reference(strata, weights))),
        _marginal(facing, known if fine else list(_gathered(strata, known)), margin),
        facing.guesser(known) if fine else None,
        source,
        groups.by if fine else (),
        len(known) if fine else 1,
    )
    return told if fine or not groups.by else replace(told, warnings=(_too_many(groups),))


def with_guessers(
    made: Plan, policy: Policy, resolved: Resolved, statistics: Mapping[str, Groups], source: Source | None
) -> Plan:
    """A plan that says how often three people guess right.

    statistics  public distributions beside those of the policy; they go before the table
    source      the table, where it is at hand
    """
    drawn = {item.name: sets_of(item) for item in made.attributes if item.feasible}
    asked = {name: sets.strata for name, sets in drawn.items() if name not in statistics}
    looked = look(policy, resolved.schema, asked, source) if source is not None and asked else None

    def known(sets: Sets) -> tuple[Groups | None, str, tuple[str, ...]]:
        if sets.name in statistics:
            return statistics[sets.name], "public statistics", ()
        found = looked.groups(sets.name, sets.strata, exact=True) if looked is not None else None
        if found is not None:
            return found, "the table itself", (_FROM_DATA,)
        found = declared(sets.attribute)
        return found, "the policy" if found is not None else "", ()

    def planned(item: AttributePlan) -> AttributePlan:
        if item.name not in drawn:
            return item
        sets = drawn[item.name]
        groups, origin, warnings = known(sets)
        told = _of_sets(sets, groups, origin)
        undeclared = (_UNIFORM,) if told.promised is not None and _nobody_declared(sets) else ()
        return replace(item, learner=replace(told, warnings=(*undeclared, *told.warnings, *warnings)), groups=groups)

    return replace(made, attributes=tuple(map(planned, tracked(made.attributes, "Guessing values"))))


def guessers_of_release(release: Release) -> dict[str, Guessers]:
    """How often three people guess right who read a release; what they know is estimated from it, as anybody can.

    Of attributes that are not published as valid sets nothing is said, nor of the long form, where it is not known
    which candidates belong together.
    """
    if release.manifest.form != "set":
        return {}
    looked = from_release(release)
    found = {}
    for sets in tracked(release.manifest.sets, "Guessing values"):
        if sets.name not in looked.values:
            continue
        try:
            groups, reached = looked.learnt(sets.name, sets.strata)
        except ReleaseError:
            continue
        records = len(looked.places[sets.name])
        told = _of_sets(sets, groups, f"the release itself, estimated from {records:,} records")
        found[sets.name] = _judged(told, reached, sets.repeats)
    return found


def _judged(told: Guessers, reached: Learnt, repeats: float) -> Guessers:
    """With what records say about guesses that were learnt from others, in place of what follows from learnt shares."""
    return replace(
        told,
        marginal=_limited(told.marginal, reached.marginal, repeats),
        conditional=_limited(told.conditional, reached.conditional, repeats),
    )


def _limited(one: Guesser | None, reached: Reached | None, repeats: float) -> Guesser | None:
    if one is None or reached is None:
        return one
    reached = reached.of_draws(repeats)
    worst = max(one.worst_group or 0.0, reached.estimate)
    return replace(one, after=reached.estimate, worst_group=worst, low=reached.low, high=reached.high)


def _nobody_declared(sets: Sets) -> bool:
    """Whether sets are balanced for a uniform prior, and the policy says nothing about what is expected."""
    expected = sets.attribute.distributions
    return expected.prior is None and expected.reference is None and not sets.attribute.conditional


def _of_sets(sets: Sets, groups: Groups | None, origin: str) -> Guessers:
    told = guessers(sets.strata, groups, sets.threshold is not None, sets.domain.values, origin)
    bounds = sets.attribute.promises.bounds(sets.channels[0])
    return replace(told, promised=bounds.guess, learner=bounds.learner)


def _undecided(strata: Strata, groups: Groups) -> str:
    lacking = ", ".join(name for name in strata.columns if name not in groups.by)
    return f"the distribution is not given by {lacking}, which decides how sets are drawn: it says nothing here"


def _too_many(groups: Groups) -> str:
    return f"too many values for every one of {int(groups.some.sum()):,} groups: only everybody together is shown"


def _reference(strata: Strata, weights: Floats | None) -> Iterator[_Known]:
    """Somebody whose belief is the prior of the sets, in his own eyes; strata alike where nobody says how large."""
    for number, member in enumerate(strata.members):
        prior = attacker_prior(member.prior, member.mechanism.size)
        weight = 1.0 if weights is None else float(weights[number])
        if weight > 0.0:
            yield _Known(weight, member, prior, prior)


def _given(strata: Strata, groups: Groups, places: Ints) -> Iterator[_Known]:
    """Every group as somebody knows it who knows all of them."""
    population = groups.population
    for number, (place, name) in enumerate(zip(places.tolist(), groups.names(), strict=True)):
        member = strata.members[place]
        shares = _left(population.shares[number], member)
        if shares is not None:
            yield _Known(float(population.weights[number]), member, shares, shares, name)


def _left(shares: Floats, member: Stratum) -> Floats | None:
    """Shares of the values that a stratum has left; None where none of them occurs."""
    left = shares[member.allowed]
    return np.asarray(left / left.sum()) if left.sum() > 0.0 else None


def _gathered(strata: Strata, known: Sequence[_Known]) -> Iterator[_Known]:
    """The groups of each stratum put together."""
    for member in strata.members:
        mine = [one for one in known if one.stratum is member]
        weight = sum(one.weight for one in mine)
        if mine:
            shares = np.asarray(sum(one.weight * one.shares for one in mine) / weight)
            yield _Known(weight, member, shares, shares)


def _marginal(facing: _Facing, known: Sequence[_Known], margin: Floats) -> Guesser:
    """Somebody who knows the distribution among all people, and nothing about groups."""
    believing = [replace(one, belief=belief) for one in known if (belief := _left(margin, one.stratum)) is not None]
    found = facing.guesser(believing, learnt=False)
    # The floor and the ranges are those of the distribution he knows.
    whole = facing.guesser([replace(one, belief=one.shares) for one in _gathered(facing.strata, known)])
    return replace(found, floor=whole.floor, crowd=whole.crowd, ranges=whole.ranges)
