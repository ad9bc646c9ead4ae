"""The attacker who reads all sets of a record: its success, and the promises it breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.inference.counts import ranked
from polyseme.inference.sets.all_sets import Combined, combined_success, composition
from polyseme.inference.sets.associations import Protected
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import Problem
from polyseme.kernel.work import tracked
from polyseme.models import Verdict
from polyseme.release import COMBINED, Sets
from polyseme.results.attackers import Guesser, Guessers
from polyseme.scrutiny.attacks.agreement import proposal
from polyseme.scrutiny.knowledge import Looked
from polyseme.strata.stratum import Groups

__all__ = [
    "Reader",
    "Shared",
    "broken_promises",
    "combined_verdicts",
    "shared_by",
    "shared_warnings",
    "unknown",
]

_NORMAL = 1.959964
"""Standard errors on both sides of 95%."""
_RECORDS, _ALL_RECORDS, _FEWEST = 30_000, 100_000, 2_000
"""Records of an attribute and of all together that are looked at, and those of an attribute in any case."""
_REMEDY = (
    "protect both as one, in the place of what protects them now, with a public prior of the combinations:\n{}\n"
    "or publish all the same with --accept-risk"
)
_WORTH = 0.02
"""What the sets of other attributes must add for a warning where nothing was promised about learners."""


@dataclass(frozen=True, eq=False)
class Reader:
    """The attacker who reads all sets of a record.

    looked  the records
    sets    the attributes that are published as sets, by name
    exact   whether the records show true values
    """

    looked: Looked
    sets: Mapping[str, Sets]
    exact: bool

    @property
    def applies(self) -> bool:
        """Whether there are several sets to be read, and records whose they are."""
        return len(self._names) > 1 and len(self.looked.places[self._names[0]]) > 0

    @property
    def _names(self) -> list[str]:
        return [name for name in self.sets if name in self.looked.values]

    def with_reader(self, name: str, attackers: Guessers, groups: Groups | None) -> Guessers:
        """With this attacker beside the others; what is not known is said to be not known.

        groups  those of the attribute, to name the worst one
        """
        if not self.applies or name not in self._names:
            return attackers
        rows = self._rows()
        found, numbers, high = self._reached(name, rows)
        if found is None:
            return replace(attackers, combined=unknown(attackers))
        names = [] if groups is None else groups.names()
        worst = int(numbers[found.group])
        guesser = _guesser(attackers, found, high, names[worst] if worst < len(names) > 1 else "", self.exact)
        broken = attackers.learner is not None and found.surely_above(attackers.learner)
        return replace(attackers, combined=guesser, read=found.helpers if found.helping else (), broken=broken)

    def shared(self) -> list[Shared]:
        """What the sets of other attributes reveal about each one beyond its own set."""
        names = tracked(self._names if self.applies else [], "combined", "Reading sets of several attributes")
        reached = [(name, self._reached(name, self._rows(), limit=False)[0]) for name in names]
        return [_shared(self.sets[name], found) for name, found in reached if found is not None and found.helping]

    def _reached(self, name: str, rows: Ints, limit: bool = True) -> tuple[Combined | None, Ints, float]:
        """What the attacker reaches, the numbers of the groups, and the most that it can be."""
        numbers, group = ranked(self.looked.group_of(name, self.sets[name].strata)[rows])
        mine, *others = self._protected(name, rows)
        persons = None if self.looked.persons is None else self.looked.persons[rows]
        found = combined_success(mine, others, group, persons) if len(rows) else None
        if found is None:
            return None, numbers, 1.0
        if not found.helpers:
            return found, numbers, 0.0
        found = found.of_draws(self.sets[name].repeats)
        high = 1.0 if not limit else found.estimate + _NORMAL * found.error
        return found, numbers, composition(mine, others, group) if limit and self.exact else high

    def _rows(self) -> Ints:
        """Evenly spaced records."""
        records = len(self.looked.places[self._names[0]])
        most = min(max(_ALL_RECORDS // len(self._names), _FEWEST), _RECORDS)
        return np.unique(np.linspace(0, max(records - 1, 0), min(records, most)).astype(np.int64))[: max(records, 0)]

    def _protected(self, name: str, rows: Ints) -> Iterator[Protected]:
        """The attribute itself, then all others."""
        for other in [name, *(other for other in self._names if other != name)]:
            strata, looked = self.sets[other].strata, self.looked
            yield Protected(other, strata, looked.values[other][rows], looked.places[other][rows], self.exact)


def unknown(attackers: Guessers) -> Guesser | None:
    """An attacker of unknown success, which may be 1; None if no other attacker is known."""
    return None if attackers.alone is None else Guesser(attackers.alone.before, None, None, None, high=1.0)


def _guesser(attackers: Guessers, found: Combined, high: float, group: str, exact: bool) -> Guesser:
    """At least what is reached without the sets of other attributes: they can be left unread."""
    alone = attackers.alone or Guesser(0.0, None, None, None)
    after = _most(found.estimate, alone.after)
    worst = _most(found.worst, alone.worst_group)
    return Guesser(
        alone.before,
        after,
        None if worst is None else _most(worst, after),
        None,
        group=group if worst == found.worst else alone.group,
        low=alone.low if exact or not found.helpers else _most(0.0, found.success - _NORMAL * found.error, alone.low),
        high=min(_most(high, after, alone.high) or 1.0, 1.0),
    )


def _most(*numbers: float | None) -> float | None:
    """The largest of those that are known."""
    return max((number for number in numbers if number is not None), default=None)


def combined_verdicts(learners: Mapping[str, Guessers]) -> list[Verdict]:
    """Whether promises about learners hold against an attacker who reads all sets of a record."""
    return [
        _verdict(name, attackers, attackers.learner, attackers.combined.after)
        for name, attackers in learners.items()
        if attackers.learner is not None and attackers.combined is not None and attackers.combined.after is not None
    ]


def _verdict(name: str, attackers: Guessers, bound: float, reached: float) -> Verdict:
    margin = bound - reached
    return Verdict(
        COMBINED,
        name,
        {"success": bound},
        not attackers.broken,
        reached,
        bound,
        margin if attackers.broken else max(margin, 0.0),
        note=_why(attackers) if attackers.broken else "within chance" if margin < 0.0 else "",
    )


def _why(attackers: Guessers) -> str:
    return f"the sets of {_listed(attackers.read)} tell more about the value: protect both as one (joint)"


@dataclass(frozen=True)
class Shared:
    """What the sets of other attributes tell about one.

    reached  how often an attacker is right who reads them, too
    alone    how often without them
    learner  what was promised about learners; None where nothing was
    read     the other attributes
    broken   whether the promise is surely exceeded because of them
    """

    name: str
    reached: float
    alone: float
    learner: float | None
    read: tuple[str, ...]
    broken: bool

    @property
    def problem(self) -> str:
        return (
            f"at most {_percent(self.learner)} is promised, but an attacker who also reads the sets of "
            f"{_listed(self.read)} is right in {self.reached:.1%} of cases"
        )

    @property
    def warning(self) -> str:
        others = _listed([f"'{name}'" for name in self.read])
        return (
            f"'{self.name}' goes together with {others}: an attacker who reads all sets of a record is right about it "
            f"in {self.reached:.1%} of cases, and in {self.alone:.1%} with its own set alone. Protect both as one, in "
            "the place of what protects them now:"
        )


def _shared(sets: Sets, found: Combined) -> Shared:
    bound = sets.attribute.promises.bounds(sets.channels[0]).learner
    broken = bound is not None and found.surely_above(bound)
    return Shared(sets.name, found.estimate, found.alone, bound, found.helpers, broken)


def shared_by(learners: Mapping[str, Guessers]) -> list[Shared]:
    """The same from what is known about all attackers."""
    found = []
    for name, attackers in learners.items():
        reached, alone = (None if one is None else one.after for one in (attackers.combined, attackers.alone))
        if attackers.read and reached is not None and alone is not None:
            found.append(Shared(name, reached, alone, attackers.learner, attackers.read, attackers.broken))
    return found


def broken_promises(shared: Sequence[Shared], sets: Mapping[str, Sets]) -> list[Problem]:
    """Promises about learners broken by an attacker who reads all sets of a record; remedies."""
    first: dict[frozenset[str], str] = {}
    found = []
    for one in (one for one in shared if one.broken):
        known = first.setdefault(frozenset({one.name, one.read[0]}), one.name)
        hint = _REMEDY.format(proposal(sets[one.name], sets[one.read[0]])) if known == one.name else f"as for {known}"
        found.append(Problem(f"$.attributes.{one.name}.protect.learner", one.problem, hint))
    return found


def shared_warnings(shared: Sequence[Shared], sets: Mapping[str, Sets], said: Sequence[str] = ()) -> list[str]:
    """Attributes whose sets give each other away, where nothing was promised about learners.

    said  what the data holder hears anyway; nothing is said twice about two attributes
    """
    found: dict[frozenset[str], str] = {}
    for one in shared:
        pair = frozenset({one.name, one.read[0]})
        known = any(all(f"'{name}'" in text for name in pair) for text in said)
        if one.learner is None and one.reached - one.alone >= _WORTH and not known:
            found.setdefault(pair, f"{one.warning}\n{proposal(sets[one.name], sets[one.read[0]])}")
    return list(found.values())


def _percent(number: float | None) -> str:
    return "an unknown share" if number is None else f"{number:.1%}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
