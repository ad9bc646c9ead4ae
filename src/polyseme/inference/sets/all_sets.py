"""How often an attacker who reads all sets of a record is right.

What he knows comes from other records than those he guesses at: each fold is judged by what was learned from the rest.
From true values his chance is then known for every record,

    s(x, y) = sum over R, S of K(R | x) L(S | y) [he names x]

by going through all pairs of sets where they are few, otherwise for sets S that are drawn, with the error of that. From
published sets it is estimated without bias: once x is known, R says nothing more about S, so the set S is a part of the
kind of a record in `inference.knowledge.held_out`. An attacker who knows the true shares does a little better, by a
regret that is computed for releases drawn from the learned ones.

More than two attributes are combined as if they were independent given the value that is guessed. The attacker takes
the best of some teams, the most telling attribute alone among them, so this is a lower bound of what can be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Self

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.counts import ranked
from polyseme.inference.knowledge.held_out import Judge, Judged, scored
from polyseme.inference.knowledge.learned import combined
from polyseme.inference.sets.associations import (
    LARGEST_TABLE,
    Kinds,
    Protected,
    Rule,
    alike,
    association_strengths,
    information,
    learned,
)
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.randomness import experiment
from polyseme.kernel.work import check_cancelled
from polyseme.strata import Stratum, by_stratum

__all__ = ["Combined", "combined_success", "composition", "pair_chances"]

_FOLDS = 5
"""Each record is guessed at with what four fifths of the records say."""
_PAIRS = 20_000_000
"""Pairs of sets times candidates times groups up to which all of them are gone through."""
_TEAMS = (2, 6)
"""How many of the most telling attributes are taken together, beside the most telling one alone."""
_MANY = 20
"""Attributes from which on only the most telling one is tried, and that only where it surely tells something."""
_RELEASES = 2
"""Releases drawn to see what is lost by learning."""
_CELLS = 20_000_000
"""Kinds of records times values that are looked at at the most: about a second."""
_SCREENED = 5_000
"""Records that are enough to see which attributes tell most."""
_STREAMS = 1_000
"""Attributes that have random numbers of their own: there are never so many at a time."""
_PEOPLE = 30
"""Records that a group has at least, for its own success to be more than chance."""
_COMPARED, _FEWEST_COMPARED = 10_000_000, 100
"""Pairs of records times attributes that are compared for an attacker who knows the exact composition, and the records
of whom he is asked at least."""
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Combined:
    """How often an attacker is right who reads all sets of a record.

    success  with what he learned from other records
    error    its standard error
    alone    without the sets of other attributes, for the same records
    gain     the standard error of the difference
    worst    in the group where he is right most often; None where that is not known
    group    the number of that group
    regret   how much more often he is right with the true shares, where that is estimated
    helpers  the attributes whose sets he reads
    drawn    whether sets were drawn, so that the error is also that of drawing
    """

    success: float
    error: float
    alone: float
    gain: float
    helpers: tuple[str, ...]
    worst: float | None = None
    group: int = 0
    regret: float = 0.0
    drawn: bool = False

    @property
    def estimate(self) -> float:
        """With the true shares."""
        return min(max(self.success + self.regret, 0.0), 1.0)

    @property
    def helping(self) -> bool:
        """Whether the sets of other attributes surely add something: by three standard errors."""
        return self.success - self.alone > 3.0 * self.gain

    def surely_above(self, bound: float) -> bool:
        """Whether success is higher by three standard errors because of other attributes' sets."""
        return self.helping and self.success - 3.0 * self.error > bound

    def of_draws(self, repeats: float) -> Self:
        """The same where so many records share a draw: they say as much as one."""
        return replace(self, error=self.error * sqrt(repeats), gain=self.gain * sqrt(repeats))


def combined_success(
    mine: Protected, others: Sequence[Protected], group: Ints, persons: Ints | None = None
) -> Combined | None:
    """Of the strongest attacker that was tried.

    None where it is not known, because values or sets are too many.

    Where others are many and none surely tells anything, nothing is tried either, and the attacker has no `helpers`.

    group    of each record, from 0 on; records of a group are in one stratum of `mine`
    persons  whose record each is, where people have several: none is learned from to guess at another of the same
    """
    fitting = [other for other in others if mine.size * other.size <= LARGEST_TABLE]
    if not fitting or len(group) < 2 * _FOLDS:
        return None
    fold = (np.arange(len(group)) if persons is None else ranked(persons)[1]) % _FOLDS
    teams = _teams(mine, fitting)
    if not teams:
        return Combined(0.0, 0.0, 0.0, 0.0, ())
    tried = [(_from_values if mine.exact else _from_sets)(mine, team, group, fold) for team in teams]
    return max((one for one in tried if one is not None), key=lambda one: one.success, default=None)


def _teams(mine: Protected, others: Sequence[Protected]) -> list[tuple[Protected, ...]]:
    """The most informative attribute, and the most informative of the significant ones.

    Of many others none is tried where none surely tells something.
    """
    some = np.unique(np.linspace(0, len(mine.codes) - 1, min(len(mine.codes), _SCREENED)).astype(np.int64))
    codes = mine.codes[some]
    bits = np.array([information(codes, mine.size, other.of(some).sets(1), other.size) for other in others])
    chance = np.array([_chance(mine, other, len(some)) for other in others])
    order = np.argsort(bits, kind="stable")[::-1]
    telling = int(np.count_nonzero(bits > 3.0 * chance))
    if not telling and len(others) >= _MANY:
        return []
    together = _TEAMS if len(others) < _MANY else ()
    sizes = dict.fromkeys([1, *(min(many, telling) for many in together if telling > 1)])
    return [tuple(others[place] for place in order[:many].tolist()) for many in sizes]


def _chance(mine: Protected, other: Protected, records: int) -> float:
    """The standard error of the mutual information of two independent attributes."""
    widths = [mine.codes.shape[1], other.strata.members[0].mechanism.l]
    # Candidates of one set are no records of their own.
    free = [max(size / width - 1.0, 0.0) for size, width in zip((mine.size, other.size), widths)]
    return sqrt(2.0 * free[0] * free[1]) / (2.0 * records)


def _split(fold: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The records that are learned from, and those that are guessed at."""
    for number in range(_FOLDS):
        check_cancelled()
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


# -- from true values ------------------------------------------------------------------------------------------------


def _from_values(mine: Protected, helpers: Sequence[Protected], group: Ints, fold: Ints) -> Combined | None:
    """From the true values of all records."""
    rows = _judged_rows(mine, len(group))
    chance, alone, groups = np.zeros(len(group)), np.zeros(len(group)), int(group.max()) + 1
    listed = len(helpers) == 1 and _few_pairs(mine, helpers[0], group)
    strengths = association_strengths(mine, helpers)
    for number, (fit, rest) in enumerate(_split(fold)):
        rule = learned(mine, helpers, group, groups, fit, strengths)
        rest = np.intersect1d(rest, rows)
        own, theirs = mine.of(rest), [helper.of(rest) for helper in helpers]
        alone[rest] = _drawn_chances(own, (), group[rest], Rule(rule.shares, ()), number)
        chance[rest] = (
            _pair_chances(own, theirs[0], group[rest], rule)
            if listed
            else _drawn_chances(own, theirs, group[rest], rule, number)
        )
    return _summed(chance[rows], alone[rows], group[rows], helpers, not listed)


def _judged_rows(mine: Protected, records: int) -> Ints:
    """The records that are guessed at: all of them, unless values are many."""
    most = max(_CELLS // mine.size, 200)
    return np.unique(np.linspace(0, records - 1, min(records, most)).astype(np.int64))


def _summed(chance: Floats, alone: Floats, group: Ints, helpers: Sequence[Protected], drawn: bool) -> Combined:
    people = np.bincount(group)
    means = np.bincount(group, chance) / np.maximum(people, 1)
    means[people < _PEOPLE] = -1.0
    worst = int(means.argmax())
    root = sqrt(len(chance))
    return Combined(
        float(chance.mean()),
        float(chance.std() / root),
        float(alone.mean()),
        float((chance - alone).std() / root),
        tuple(helper.name for helper in helpers),
        float(means[worst]) if means[worst] >= 0.0 else None,
        worst,
        drawn=drawn,
    )


def _few_pairs(mine: Protected, other: Protected, group: Ints) -> bool:
    """Whether all pairs of sets can be gone through, in each group and fold."""
    counts = [_counted(protected) for protected in (mine, other)]
    groups = len(np.unique(combined(np.column_stack([group, other.places]))))
    return all(counts) and counts[0] * counts[1] * mine.strata.members[0].mechanism.l * groups * _FOLDS <= _PAIRS


def _counted(protected: Protected) -> int:
    """The most valid sets of a stratum; 0 where they are too many to list."""
    designs = [member.mechanism.design for member in protected.strata.members]
    listed = all(Judge.lists(member.mechanism) for member in protected.strata.members)
    return max(design.count() for design in designs) if listed else 0


def pair_chances(mine: Mechanism, other: Mechanism, belief: Floats) -> Floats | None:
    """How often an attacker who sees both sets is right about a person with x and y: (F_x, F_y).

    belief  how likely he takes each pair of values to be, up to a factor: (F_x, F_y)

    None where there are too many sets to go through.
    """
    judge, hints = Judge.of(mine), Judge.of(other)
    return None if judge is None or hints is None else _chances_of_pairs(judge, hints, belief)


def _chances_of_pairs(judge: Judge, hints: Judge, belief: Floats) -> Floats:
    by_hint = judge.chances((belief @ hints.channel).T)
    return np.asarray((hints.channel @ by_hint).T)


def _pair_chances(mine: Protected, other: Protected, group: Ints, rule: Rule) -> Floats:
    """The chance of each record, over all pairs of sets."""
    chance = np.empty(len(group))
    for rows in alike(np.column_stack([group, other.places])):
        first, second = _member(mine, rows[0]), _member(other, rows[0])
        judge, hints = Judge.of(first.mechanism), Judge.of(second.mechanism)
        if judge is None or hints is None:
            raise LookupError("sets are too many to list")
        belief = (
            rule.shares[group[rows[0]], first.allowed, None] * rule.tables[0][np.ix_(first.allowed, second.allowed)]
        )
        found = _chances_of_pairs(judge, hints, belief)
        chance[rows] = found[first.narrow(mine.codes[rows, 0]), second.narrow(other.codes[rows, 0])]
    return chance


def _member(protected: Protected, row: int) -> Stratum:
    return protected.strata.members[int(protected.places[row])]


def _drawn_chances(mine: Protected, helpers: Sequence[Protected], group: Ints, rule: Rule, seed: int) -> Floats:
    """Each record's chances for sampled sets of the helpers, and for its own set where needed."""
    kinds, kind = Kinds.of(group, helpers, _drawn([mine, *helpers], seed)[1:])
    own, chance = _drawn([mine], seed)[0], np.empty(len(group))
    for number, rows in by_stratum(mine.places):
        member = mine.strata.members[number]
        judge = Judge.of(member.mechanism)
        present, dense = np.unique(kind[rows], return_inverse=True)
        true = member.narrow(mine.codes[rows, 0])
        if judge is not None and len(present) <= judge.most_kinds:
            belief = rule.belief(kinds.part(present))[:, member.allowed]
            chance[rows] = judge.chances(belief)[dense, true]
        else:
            belief = rule.belief(kinds.part(kind[rows]))[:, member.allowed]
            chance[rows] = _guessed(belief, member.narrow(own[rows]), member.mechanism) == true
    return chance


def _drawn(several: Sequence[Protected], seed: int) -> list[Ints]:
    """Sets of several attributes, each from random numbers of its own."""
    return [one.sets(_STREAMS * seed + place) for place, one in enumerate(several)]


def _guessed(belief: Floats, sets: Ints, mechanism: Mechanism) -> Ints:
    """The likeliest value given each set."""
    inside, outside = mechanism.weights(sets)
    rows, score = np.arange(len(sets)), np.take_along_axis(belief, sets, axis=1) * inside
    top, mode = score.argmax(axis=1), belief.argmax(axis=1)
    return np.asarray(np.where(belief[rows, mode] * outside > score[rows, top], mode, sets[rows, top]), dtype=np.int64)


# -- from published sets ---------------------------------------------------------------------------------------------


def _from_sets(mine: Protected, helpers: Sequence[Protected], group: Ints, fold: Ints) -> Combined | None:
    """From the published sets of all records; None where these are too many or uninformative."""
    groups, scores, alone = int(group.max()) + 1, list[Floats](), list[Floats]()
    strengths = association_strengths(mine, helpers)
    for fit, rest in _split(fold):
        rule = learned(mine, helpers, group, groups, fit, strengths)
        own, theirs = mine.of(rest), [helper.of(rest) for helper in helpers]
        score = _scores(own, theirs, group[rest], rule)
        plain = _scores(own, (), group[rest], Rule(rule.shares, ()))
        if score is None or plain is None:
            return None
        scores.append(score)
        alone.append(plain)
    judged, without = Judged.of(scores), Judged.of(alone)
    gain = Judged.of([one - other for one, other in zip(scores, alone)])
    if judged is None or without is None or gain is None:
        return None
    names = tuple(helper.name for helper in helpers)
    law = learned(mine, helpers, group, groups, np.arange(len(group)), strengths)
    regret = _regret(mine, helpers, group, law, strengths)
    return Combined(judged.success, judged.error, without.success, gain.error, names, regret=regret)


def _scores(mine: Protected, helpers: Sequence[Protected], group: Ints, rule: Rule) -> Floats | None:
    """What each record says about the success of a rule."""
    kinds, kind = Kinds.of(group, helpers, [helper.codes for helper in helpers])
    return scored(rule.belief(kinds), rule.shares.mean(axis=0), mine.codes, kind, mine.strata, mine.places)


def _regret(mine: Protected, helpers: Sequence[Protected], group: Ints, law: Rule, strengths: Sequence[float]) -> float:
    """What is lost by learning, if what was learned were true."""
    groups, lost = len(law.shares), []
    for number in range(_RELEASES):
        check_cancelled()
        people = _people(mine, helpers, group, law, number)
        seen = [replace(one, codes=sets, exact=False) for one, sets in zip(people, _drawn(people, number))]
        fit = np.flatnonzero(np.arange(len(group)) % _FOLDS != number % _FOLDS)
        rule = learned(seen[0], seen[1:], group, groups, fit, strengths)
        lost.append(_lost(seen[0], seen[1:], group, law, rule))
    return max(float(np.mean(lost)), 0.0)


def _lost(mine: Protected, helpers: Sequence[Protected], group: Ints, law: Rule, rule: Rule) -> float:
    """How much more often the law is right than a rule, for people who follow the law."""
    kinds, kind = Kinds.of(group, helpers, [helper.codes for helper in helpers])
    total = 0.0
    for number, rows in by_stratum(mine.places):
        member = mine.strata.members[number]
        judge = Judge.of(member.mechanism)
        if judge is None:
            return 0.0
        present, people = np.unique(kind[rows], return_counts=True)
        true, other = (one.belief(kinds.part(present))[:, member.allowed] for one in (law, rule))
        weights = true / np.maximum(true.sum(axis=1, keepdims=True), _TINY)
        better = ((judge.chances(true) - judge.chances(other)) * weights).sum(axis=1)
        total += float(people @ better)
    return total / len(group)


def _people(mine: Protected, helpers: Sequence[Protected], group: Ints, law: Rule, seed: int) -> list[Protected]:
    """People of these groups who follow the law, with their true values."""
    random = experiment(seed)
    own = _values(law.shares[group], mine, random)
    return [own, *(_values(table[own.codes[:, 0]], helper, random) for table, helper in zip(law.tables, helpers))]


def _values(shares: Floats, protected: Protected, random: np.random.Generator) -> Protected:
    """A value for each record, of those that its stratum has left."""
    codes = np.empty((len(shares), 1), dtype=np.int64)
    for number, rows in by_stratum(protected.places):
        allowed = protected.strata.members[number].allowed
        steps = np.cumsum(shares[rows][:, allowed] + _TINY, axis=1)
        place = (random.random(len(rows))[:, None] * steps[:, -1:] > steps).sum(axis=1)
        codes[rows, 0] = allowed[np.minimum(place, len(allowed) - 1)]
    return replace(protected, codes=codes, exact=True)


# -- the exact composition -------------------------------------------------------------------------------------------


def composition(mine: Protected, others: Sequence[Protected], group: Ints) -> float:
    """The success of an attacker who knows how many of each combination every group has.

    No attacker who reads the sets of a record and knows its group does better. For two attributes it is computed where
    pairs of sets are few; otherwise for sets that are drawn, with an error of about a point.
    """
    if len(others) == 1 and _few_pairs(mine, others[0], group):
        return _composed_pairs(mine, others[0], group)
    everyone = [mine, *others]
    sets = _drawn(everyone, 0)
    some = max(_COMPARED // (len(group) * len(everyone)), _FEWEST_COMPARED)
    looked = np.unique(np.linspace(0, len(group) - 1, min(len(group), some)).astype(np.int64))
    sure = []
    for rows in alike(np.column_stack([group, *(other.places for other in others)])):
        chosen = np.intersect1d(rows, looked)
        if len(chosen):
            sure.append(_sure(everyone, sets, rows, chosen))
    return float(np.concatenate(sure).mean())


def _composed_pairs(mine: Protected, other: Protected, group: Ints) -> float:
    total = 0.0
    for rows in alike(np.column_stack([group, other.places])):
        first, second = _member(mine, rows[0]), _member(other, rows[0])
        x, y = first.narrow(mine.codes[rows, 0]), second.narrow(other.codes[rows, 0])
        shape = (first.mechanism.size, second.mechanism.size)
        counts = np.bincount(x * shape[1] + y, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        chances = pair_chances(first.mechanism, second.mechanism, counts)
        total += float((counts * chances).sum()) if chances is not None else float(len(rows))
    return total / len(group)


def _sure(everyone: Sequence[Protected], sets: Sequence[Ints], rows: Ints, chosen: Ints) -> Floats:
    """How sure of the likeliest value an attacker is, of some records among others: (asked,)."""
    # Pairs of a record that is asked about and one that it could be: fewer with every set that is read.
    who, subjects = (each.ravel() for each in np.indices((len(chosen), len(rows))))
    weight = np.ones(len(who))
    for one, codes in zip(everyone, sets):
        member = _member(one, rows[0])
        inside, outside = member.mechanism.weights(member.narrow(codes[chosen]))
        likely, values = outside[who], one.codes[rows, 0][subjects]
        for place in range(codes.shape[1]):
            likely = likely + (codes[chosen, place][who] == values) * (inside[:, place] - outside)[who]
        weight = weight * likely / np.maximum(inside.max(axis=1), _TINY)[who]
        kept = weight > 0.0
        who, subjects, weight = who[kept], subjects[kept], weight[kept]
    size = everyone[0].size
    cells, number = ranked(who * size + everyone[0].codes[rows, 0][subjects])
    totals = np.bincount(number, weight)
    best = np.zeros(len(chosen))
    np.maximum.at(best, cells // size, totals)
    return np.asarray(best / np.maximum(np.bincount(who, weight, len(chosen)), _TINY))
