"""What three attackers with more and more knowledge of the values can guess.

The numbers are gathered for a plan and for a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polyseme.inference.knowledge.held_out import Reached
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, ReleaseError
from polyseme.kernel.spelling import Label
from polyseme.kernel.work import tracked
from polyseme.methods.decoys import sets_of
from polyseme.policy import Policy
from polyseme.privacy.analysis.learner import Ranges, range_success, ranges_of, success
from polyseme.privacy.analysis.leave_one_out import LeftOut, Part, composition, left_out, shrunk
from polyseme.privacy.analysis.lower_bound import Floor, floor
from polyseme.privacy.analysis.summary import attacker_prior
from polyseme.release import Release, Sets
from polyseme.results.attackers import Guesser, Guessers, RangeGuess
from polyseme.results.plan import AttributePlan, Plan
from polyseme.results.verification import Verification
from polyseme.schema import Resolved, Schema
from polyseme.scrutiny.combined import Reader, broken_promises, combined_verdicts, shared_by, shared_warnings, unknown
from polyseme.scrutiny.knowledge import Learned, Looked, declared, from_release, look
from polyseme.semantics.distances.base import Graph
from polyseme.strata import Strata, Stratum
from polyseme.strata.stratum import Groups
from polyseme.tables.io.source import Source

__all__ = ["guessers", "guessers_of_release", "with_guessers", "with_learners"]

_UNIFORM = (
    "no prior is declared, so it is uniform: the promise about a guess holds for an attacker who expects every value "
    "equally. Declare what is publicly known with prior: ... or reference: ..."
)
_FROM_DATA = (
    "what an attacker knows about the distribution is taken from the table itself: these numbers describe its records. "
    "They are not part of a release; do not publish them"
)
_DRAWN = (
    "there are too many valid sets to list: the success of an attacker who knows the distribution by group is "
    "simulated with 100,000 sets, and right to about 0.3 percentage points"
)
_NO_GROUPS = (
    "no published column puts several records into one group: an attacker who knows the distribution by group knows no "
    "more than that of all people"
)
_NO_TABLE = (
    "the success of an attacker who reads all sets of a record is not known without the table, and may be 100%: plan "
    "with --data"
)
_TABLE = "the table itself"
"""Where the distribution comes from in `plan --data`."""
_WORK = 20_000
"""Values times groups up to which every group is looked at by itself: 1 s a group with 5,000 values."""
_ALL_GROUPS = 1_000
"""Groups of all attributes that are looked at by themselves: two seconds."""
_MORE = 1e-9
"""What one attacker must know more than another: rounding aside."""
_CONCENTRATED = 200
"""Values of a graph up to which its crowds are listed, to know what a range is."""


@dataclass(frozen=True, eq=False)
class _Known:
    """One group, as the attacker knows it.

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
        """For an attacker who knows the distribution; None where a true set is the value itself."""
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
    if isinstance(structure, Graph) and structure.size > _CONCENTRATED:
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

    def guesser(self, known: Sequence[_Known], learned: bool = True) -> Guesser:
        """An attacker's success over all groups; with floor and ranges where each of them is known."""
        weights = np.array([one.weight for one in known])
        weights = weights / weights.sum()
        after = [one.after() for one in known]
        known_after = [value for value in after if value is not None]
        complete = len(known_after) == len(known)
        worst = int(np.argmax(known_after)) if complete else 0
        lowest = [one.floor() for one in known] if learned else []
        floors = [one for one in lowest if one is not None]
        proved = len(floors) == len(known)
        return Guesser(
            before=float(weights @ [one.before() for one in known]),
            after=float(weights @ known_after) if complete else None,
            worst_group=known_after[worst] if complete else None,
            floor=float(weights @ [one.value for one in floors]) if proved else None,
            crowd=self._crowd(known, floors) if proved else "",
            group=known[worst].name if complete and len(known) > 1 else "",
            ranges=self._range_guess(known, weights) if learned else None,
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


@dataclass(frozen=True, eq=False)
class _Grouped:
    """How the values are distributed in groups, and the two attackers who know that.

    groups      as they are known
    places      the stratum of each
    attributes  that are looked at together
    """

    facing: _Facing
    groups: Groups
    places: Ints
    attributes: int

    @cached_property
    def left(self) -> LeftOut | None:
        """What other records tell about each one; None where the numbers are not those of records."""
        return left_out(self._parts) if self.groups.own and self._parts else None

    @cached_property
    def believed(self) -> Groups:
        """What the attacker believes of the groups: shrunk toward the whole if made of records."""
        if self.left is None:
            return self.groups
        counts = self.groups.counts.copy()
        for (place, mine), part in zip(self._rows, self._parts, strict=True):
            allowed = self._strata.members[place].allowed
            belief = shrunk(part.counts, part.whole, self.left.strength)
            people = counts[mine].sum(axis=1, keepdims=True)
            counts[mine] = 0.0
            counts[np.ix_(mine, allowed)] = people * belief / belief.sum(axis=1, keepdims=True)
        return self.groups.believed(counts)

    def guessers(self, reference: Guesser, source: str) -> Guessers:
        marginal = self._marginal()
        by, alone = self.groups.by, not self.groups.by and self.left is None
        attackers = Guessers(
            reference, marginal, None if alone else self._conditional(marginal), source, by, self._count
        )
        return replace(attackers, warnings=tuple(self._remarks()))

    @property
    def _strata(self) -> Strata:
        return self.facing.strata

    @cached_property
    def _parts(self) -> list[Part]:
        """The groups of each stratum that occurs."""
        margin = self.groups.population.margin
        parts = []
        for place, mine in self._rows:
            member = self._strata.members[place]
            cells, whole = np.ix_(mine, member.allowed), margin[member.allowed]
            own = {taken: part[cells] for taken, part in self.groups.own.items() if part[cells].any()}
            parts.append(Part(member.mechanism, self.groups.counts[cells], own, whole / whole.sum()))
        return parts

    @cached_property
    def _rows(self) -> list[tuple[int, Ints]]:
        """The strata that occur, each with its groups of people who have a possible value."""
        counts, rows = self.groups.counts, np.flatnonzero(self.groups.some)
        found = []
        for place in np.unique(self.places).tolist():
            mine, allowed = rows[self.places == place], self._strata.members[place].allowed
            found.append((place, mine[counts[np.ix_(mine, allowed)].any(axis=1)]))
        return [(place, mine) for place, mine in found if len(mine)]

    @cached_property
    def _known(self) -> list[_Known]:
        return list(_given(self._strata, self.believed, self.places))

    @property
    def _count(self) -> int:
        return len(self._known)

    @property
    def _most(self) -> int:
        """Groups that are looked at one by one."""
        return max(min(_WORK // self._strata.members[0].size, _ALL_GROUPS // self.attributes), 1)

    @cached_property
    def _largest(self) -> list[_Known]:
        return sorted(self._known, key=lambda one: -one.weight)[: self._most] if self._many else self._known

    @property
    def _many(self) -> bool:
        return self._count > self._most

    def _marginal(self) -> Guesser:
        """An attacker who knows the distribution among all people, and nothing about groups."""
        margin, exact = self.groups.population.margin, _given(self._strata, self.groups, self.places)
        whole = list(_gathered(self._strata, list(exact)))
        found = self.facing.guesser(list(_expecting(whole, margin)), learned=False)
        worst = self.facing.guesser(list(_expecting(self._largest, margin)), learned=False)
        # The floor and the ranges are those of the distribution he knows.
        known = self.facing.guesser(whole)
        found = replace(found, floor=known.floor, crowd=known.crowd, ranges=known.ranges)
        if self.left is not None and found.after is not None:
            # Values that are equally frequent are guessed equally often.
            before, after = self.left.whole
            found = replace(found, before=before, after=after, worst_group=max(found.worst_group or 0.0, after))
        return _with_worst(found, worst)

    def _conditional(self, marginal: Guesser) -> Guesser:
        """An attacker who knows the distribution in each group, or learns it from other records."""
        found = self.facing.guesser(self._largest, learned=not self._many)
        if self._many:
            # What no mechanism undercuts for all people together, it does not undercut for groups.
            before = float(sum(one.weight * one.before() for one in self._known))
            after = composition(self._parts) if self.left is None else None
            found = replace(found, before=before, after=after, floor=marginal.floor, crowd=marginal.crowd)
        return found if self.left is None else _by_others(found, self.left)

    def _remarks(self) -> Iterator[str]:
        if self._many:
            yield _too_many(self._count, self._most)
        if self.left is not None and self.left.drawn:
            yield _DRAWN
        if self.left is not None and not self.groups.by:
            yield _NO_GROUPS


def _with_worst(found: Guesser, worst: Guesser) -> Guesser:
    """With the group in which a guess is right most often."""
    if found.after is None or worst.worst_group is None or worst.worst_group <= found.after:
        return found
    return replace(found, worst_group=worst.worst_group, group=worst.group)


def _by_others(found: Guesser, left: LeftOut) -> Guesser:
    """Success from each record's group without the record, in place of that from shares."""
    floor = None if found.floor is None else min(found.floor, left.after)
    worst = None if found.worst_group is None else max(found.worst_group, left.after)
    return replace(found, before=left.before, after=left.after, worst_group=worst, floor=floor, high=left.high)


def guessers(
    strata: Strata, groups: Groups | None, apart: bool, labels: Sequence[Label], source: str = "", attributes: int = 1
) -> tuple[Guessers, Groups | None]:
    """The three attackers for one attribute, and what the last of them takes the groups to be.

    groups      how the values are distributed, where that is known
    source      where that comes from, in words
    attributes  that are looked at together
    """
    facing = _Facing(strata, apart, labels)
    places = None if groups is None else groups.places(strata)
    if groups is None or places is None:
        missing = () if groups is None else (_undecided(strata, groups),)
        return Guessers(facing.guesser(list(_reference(strata, None))), source=source, warnings=missing), groups
    weights: Floats = np.bincount(places, groups.population.weights, len(strata.members)).astype(np.float64)
    reference = facing.guesser(list(_reference(strata, weights)))
    grouped = _Grouped(facing, groups, places, attributes)
    return grouped.guessers(reference, source), grouped.believed


def with_guessers(
    made: Plan,
    policy: Policy,
    resolved: Resolved,
    statistics: Mapping[str, Groups],
    source: Source | None,
    kept: Callable[[Schema, Mapping[str, Strata]], Looked] | None = None,
) -> Plan:
    """A plan that says how often three people guess right.

    statistics  public distributions beside those of the policy; they go before the table
    source      the table, where it is at hand
    kept        how its records are looked at, where some of that may be known already
    """
    drawn = {item.name: sets_of(item) for item in made.attributes if item.feasible}
    secrets = {name: sets.strata for name, sets in drawn.items() if len(drawn) > 1 or name not in statistics}
    looked = None
    if source is not None and secrets:
        looked = look(policy, resolved.schema, secrets, source) if kept is None else kept(resolved.schema, secrets)
    reader = Reader(looked, drawn, exact=True) if looked is not None else None

    def known(sets: Sets) -> tuple[Groups | None, str, tuple[str, ...]]:
        if sets.name in statistics:
            return statistics[sets.name], "public statistics", ()
        found = looked.groups(sets.name, sets.strata) if looked is not None else None
        if found is not None:
            return found, _TABLE, (_FROM_DATA,)
        found = declared(sets.attribute)
        return found, "the policy" if found is not None else "", ()

    def planned(item: AttributePlan) -> AttributePlan:
        if item.name not in drawn:
            return item
        sets = drawn[item.name]
        groups, origin, warnings = known(sets)
        attackers, believed = _of_sets(sets, groups, origin, len(drawn))
        if looked is not None and origin == _TABLE:
            attackers = _with_columns(attackers, *looked.gained(sets.name, sets.strata))
        if reader is not None:
            attackers = reader.with_reader(sets.name, attackers, groups)
        elif len(drawn) > 1 and attackers.alone is not None:
            attackers = replace(attackers, combined=unknown(attackers), warnings=(*attackers.warnings, _NO_TABLE))
        undeclared = (_UNIFORM,) if attackers.promised is not None and _without_a_prior(sets) else ()
        return replace(
            item, learner=replace(attackers, warnings=(*undeclared, *attackers.warnings, *warnings)), groups=believed
        )

    attributes = tuple(map(planned, tracked(made.attributes, "guesses", "Guessing values")))
    learners = {item.name: item.learner for item in attributes if item.learner is not None}
    shared = shared_by(learners)
    broken = (f"{one.where}: {one.what}, which anonymize refuses; {one.hint}" for one in broken_promises(shared, drawn))
    return replace(made, attributes=attributes, remarks=(*made.remarks, *broken, *shared_warnings(shared, drawn)))


def _with_columns(attackers: Guessers, columns: tuple[str, ...], before: float, after: float) -> Guessers:
    """The attackers, with the naive Bayes one instead of the grouped one if it knows more."""
    one, whole = attackers.conditional, attackers.marginal
    if one is None or whole is None or one.after is None or whole.after is None:
        return attackers
    reached = min(max(whole.after + after, whole.before + before), 1.0)
    before = min(max(one.before, whole.before + before), 1.0)
    if reached <= one.after + _MORE:
        return replace(attackers, conditional=replace(one, before=min(before, one.after)))
    worst = None if one.worst_group is None else max(one.worst_group, reached)
    high = max(one.high or 0.0, reached)
    return replace(
        attackers, conditional=replace(one, before=before, after=reached, worst_group=worst, high=high), columns=columns
    )


def with_learners(verification: Verification, release: Release, looked: Looked | None = None) -> Verification:
    """A verification with the success of attackers who learn from the release; what it breaks.

    looked  the first records, for those who have read them
    """
    learners = guessers_of_release(release, looked)
    verdicts = (*verification.verdicts, *combined_verdicts(learners))
    return replace(verification, verdicts=verdicts, learners=learners)


def guessers_of_release(release: Release, looked: Looked | None = None) -> dict[str, Guessers]:
    """How often three attackers guess right; what they know is estimated from the release.

    Of attributes that are not published as valid sets nothing is said, nor of the long form, where it is not known
    which candidates belong together.
    """
    if release.manifest.form != "set":
        return {}
    looked = from_release(release) if looked is None else looked
    reader = Reader(looked, {sets.name: sets for sets in release.manifest.sets}, exact=False)
    found = {}
    for sets in tracked(release.manifest.sets, "guesses", "Guessing values"):
        if sets.name not in looked.values:
            continue
        try:
            groups, reached = looked.learned(sets.name, sets.strata)
        except ReleaseError:
            continue
        records = len(looked.places[sets.name])
        origin = f"the release itself, estimated from {records:,} records"
        attackers, _ = _of_sets(sets, groups, origin, len(release.manifest.sets))
        found[sets.name] = reader.with_reader(sets.name, _judged(attackers, reached, sets.repeats), groups)
    return found


def _judged(attackers: Guessers, reached: Learned, repeats: float) -> Guessers:
    """The attackers with success measured on held-out records instead of learned shares."""
    ways = [way.of_draws(repeats) for way in reached.conditional]
    marginal = None if reached.marginal is None else reached.marginal.of_draws(repeats)
    attackers = replace(attackers, marginal=_limited(attackers.marginal, marginal))
    if attackers.conditional is None:
        # Without groups there is nothing more to learn.
        return replace(attackers, conditional=attackers.marginal, warnings=(*attackers.warnings, _NO_GROUPS))
    known = Reached.largest(ways)
    if known is None:
        return replace(
            attackers, conditional=replace(attackers.conditional, after=None, worst_group=None, low=None, high=1.0)
        )
    return replace(attackers, conditional=_limited(attackers.conditional, known))


def _limited(one: Guesser | None, reached: Reached | None) -> Guesser | None:
    if one is None or reached is None:
        return one
    worst = max(one.worst_group or 0.0, reached.estimate)
    return replace(one, after=reached.estimate, worst_group=worst, low=reached.low, high=reached.high)


def _without_a_prior(sets: Sets) -> bool:
    """Whether sets are balanced for a uniform prior, and the policy declares none."""
    expected = sets.attribute.distributions
    return expected.prior is None and expected.reference is None and not sets.attribute.conditional


def _of_sets(sets: Sets, groups: Groups | None, origin: str, attributes: int) -> tuple[Guessers, Groups | None]:
    """The attackers of one of so many attributes, with what was promised about them."""
    attackers, believed = guessers(
        sets.strata, groups, sets.threshold is not None, sets.domain.values, origin, attributes
    )
    bounds = sets.attribute.promises.bounds(sets.channels[0])
    return replace(attackers, promised=bounds.guess, learner=bounds.learner), believed


def _undecided(strata: Strata, groups: Groups) -> str:
    lacking = ", ".join(name for name in strata.columns if name not in groups.by)
    return f"the distribution is not given by {lacking}, which decides how sets are drawn: it says nothing here"


def _too_many(groups: int, most: int) -> str:
    return f"the worst group is that of the {most:,} largest of {groups:,} groups"


def _reference(strata: Strata, weights: Floats | None) -> Iterator[_Known]:
    """The attacker with the prior of the sets; strata have equal weight without known sizes."""
    for number, member in enumerate(strata.members):
        prior = attacker_prior(member.prior, member.mechanism.size)
        weight = 1.0 if weights is None else float(weights[number])
        if weight > 0.0:
            yield _Known(weight, member, prior, prior)


def _given(strata: Strata, groups: Groups, places: Ints) -> Iterator[_Known]:
    """Every group, for an attacker who knows all of them."""
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


def _expecting(known: Sequence[_Known], margin: Floats) -> Iterator[_Known]:
    """Groups as an attacker faces them who takes each to be like everybody."""
    for one in known:
        if (belief := _left(margin, one.stratum)) is not None:
            yield replace(one, belief=belief)
