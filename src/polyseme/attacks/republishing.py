"""What two sticky sets of one person tell together when they are not the same set.

Decoys stay the same as long as the person, the value and the mechanism do. A mechanism changes with the values that are
impossible for the record, and with the policy. How far intersecting then gets is measured by drawing for people made up
here, with a key of their own: it depends on the policy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from polyseme.arrays import Ints
from polyseme.coupling import Coupled
from polyseme.errors import Problem, RiskError
from polyseme.randomness import StickyStream, experiment
from polyseme.release import Column, Manifest, Sets
from polyseme.release.codec import entry_of
from polyseme.spelling import names_of
from polyseme.strata import Stratum

__all__ = ["changed_since", "changing_strata", "intersected", "require_same_key"]

_PEOPLE, _DRAWS, _COMPARED = 4_000, 100_000, 1_000_000
"""People who are drawn for, sets that are drawn for them, and pairs of candidates that are compared; at most."""
_STRATA = 64
"""Strata whose pairs are compared, spread over all there are: 301 strata and their 45,150 pairs took 15 s."""
_KEY = bytes(32)
"""Any key will do: what is measured is how often sets differ, on made-up people."""
_NOTICED = 0.01
"""A hundredth more than the promise is what a simulation of this size can tell from nothing."""


def intersected(first: Ints, second: Ints, codes: Ints) -> float:
    """How often a candidate that both sets have is the true value; one of the first set where they share none.

    >>> intersected(np.array([[0, 1, 2], [0, 1, 2]]), np.array([[0, 3, 4], [0, 1, 3]]), np.array([0, 1]))
    0.75
    """
    common = (first[:, :, None] == second[:, None, :]).any(axis=2)
    common[~common.any(axis=1)] = True
    right = ((first == codes[:, None]) & common).any(axis=1)
    return float((right / common.sum(axis=1)).mean())


def changing_strata(columns: Sequence[Column]) -> list[str]:
    """A warning for each attribute whose sets change too much with the columns that say what is impossible."""
    found = []
    for item in columns:
        if not (isinstance(item, Sets) and item.stratified):
            continue
        success, alone = _worst_pair(item)
        if success > alone + _NOTICED:
            found.append(
                f"{item.name}: decoys depend on {_either(item.strata.columns)}, because {_why(item)}. "
                f"When that changes for a person who keeps the value, the sets of two releases can differ: an attacker "
                f"who intersects them is right in up to {success:.0%} of such cases ({alone:.0%} otherwise)."
            )
    return found


def _why(item: Sets) -> str:
    reasons = ["some values are impossible"] if item.attribute.constraints else []
    return " and ".join(reasons + (["priors were declared for groups"] if item.attribute.conditional else []))


def _either(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _worst_pair(item: Sets) -> tuple[float, float]:
    """Intersecting the sets of two strata, at worst, and guessing from one set."""
    members = item.strata.members
    chosen = np.unique(np.linspace(0, len(members) - 1, _STRATA).round().astype(np.int64)).tolist()
    codes = _made_up(members[0], len(chosen))
    stream, coupled = _stream(item.name, codes), Coupled(item.strata)
    sets, possible = [], [~members[number].forbids[codes] for number in chosen]
    for number, here in zip(chosen, possible):
        rows = np.flatnonzero(here)
        drawn = np.full((len(codes), item.l), -1, dtype=np.int64)
        drawn[rows] = coupled.sample(np.full(len(rows), number), codes[rows], stream.take(rows))
        sets.append(drawn)
    worst = 0.0
    for one, two in combinations(range(len(chosen)), 2):
        both = possible[one] & possible[two]
        if both.any():
            worst = max(worst, intersected(sets[one][both], sets[two][both], codes[both]))
    return worst, intersected(sets[0], sets[0], codes)


def _made_up(stratum: Stratum, strata: int = 1, l: int = 0) -> Ints:
    """The values of people who do not exist, in a stratum where all values are possible."""
    people = max(200, min(_PEOPLE, _DRAWS // strata, _COMPARED // max(l, stratum.mechanism.l) ** 2))
    return experiment(0).choice(stratum.size, people, p=stratum.prior)


def _stream(name: str, codes: Ints) -> StickyStream:
    return StickyStream(_KEY, name, [b"%d" % number for number in range(len(codes))], codes)


def require_same_key(columns: Sequence[Column], check: str, earlier: Manifest) -> None:
    """Raise `RiskError` where sticky sets are drawn with another key than those of an earlier release.

    check  the check value of the key, see `randomness.key_check`
    """
    if not (check and earlier.key_check) or check == earlier.key_check:
        return
    again = [item for item in columns if isinstance(item, Sets) and item.name in earlier.names]
    told = [_intersection(item, before) for item in again if isinstance(before := earlier[item.name], Sets)]
    if told:
        hint = "give the key file of the earlier release; --accept-risk publishes all the same"
        what = (
            "the key is not that of the earlier release: an attacker who has both can intersect their sets "
            f"({'; '.join(told)})"
        )
        raise RiskError(Problem("key_file", what, hint))


def _intersection(item: Sets, before: Sets) -> str:
    success = _Twice(item, before, sticky=False).success()
    return item.name if success is None else f"{item.name}: right in about {success:.0%} of the cases"


def changed_since(columns: Sequence[Column], sticky: bool, earlier: Manifest, check: str = "") -> list[str]:
    """Warnings about attributes whose sets an earlier release of the same people makes easier to see through.

    check  the check value of the key, see `randomness.key_check`; empty where it is not known
    """
    other = bool(check and earlier.key_check) and check != earlier.key_check
    found = [_UNKNOWN_KEY] if check and earlier.sticky and not earlier.key_check else []
    for item in columns:
        if item.name not in earlier.names:
            continue
        before = earlier[item.name]
        if isinstance(item, Sets) != isinstance(before, Sets):
            when = "now" if isinstance(before, Sets) else "in the earlier release"
            found.append(f"{item.name}: published as it is {when}, as sets in the other: a reader of both knows it.")
        elif isinstance(item, Sets) and isinstance(before, Sets):
            found += _compared(item, before, sticky, earlier, other)
    return found


_UNKNOWN_KEY = (
    "the earlier release does not say with which key its sets were drawn: if it was another one, an attacker who has "
    "both can intersect them."
)


def _compared(item: Sets, before: Sets, sticky: bool, earlier: Manifest, other_key: bool) -> list[str]:
    both = sticky and earlier.sticky and not other_key
    changes = differences(item, before) if both else []
    success = _Twice(item, before, both).success() if changes or not both else None
    if other_key:
        changes = ["another key"]
    elif not both:
        changes = [f"{'this' if earlier.sticky else 'the earlier'} release has no sticky decoys"]
    elif earlier.uncounted and item.stratified and not changes:
        changes = ["an older program drew for each stratum by itself"]
    told = "" if success is None else f", and is right in about {success:.0%} of the cases"
    advice = "Publish with the same key, values and promises, or do not publish it again."
    return (
        [
            f"{item.name}: sets differ from those of the earlier release ({'; '.join(changes)}): an attacker who has "
            f"both can intersect them{told}. {advice}"
        ]
        if changes
        else []
    )


def differences(item: Sets, before: Sets) -> list[str]:
    """What two descriptions of an attribute do not share, of all that decides about its sticky sets."""
    old, new = entry_of(before), entry_of(item)
    found = _values(old["domain"]["values"], new["domain"]["values"])
    found += [
        f"{name} {_short(old['mechanism'][key])} -> {_short(new['mechanism'][key])}"
        for name, key in (("l", "l"), ("d", "d"), ("mechanism", "design"), ("p", "p"))
        if old["mechanism"][key] != new["mechanism"][key]
    ]
    others: list[tuple[str, Any, Any]] = [
        ("bins", old["domain"].get("bins"), new["domain"].get("bins")),
        ("periods", old["domain"].get("periods"), new["domain"].get("periods")),
        ("prior", old["domain"].get("prior"), new["domain"].get("prior")),
        ("distance", old.get("distance"), new.get("distance")),
        ("impossible combinations", old.get("impossible"), new.get("impossible")),
        ("conditional priors", old.get("conditional"), new.get("conditional")),
        ("groups that share a set", *(item.get("shared_by", {}).get("column") for item in (old, new))),
    ]
    found += [f"other {name}" for name, one, two in others if one != two]
    others = [
        ("weights of the design", old["mechanism"], new["mechanism"]),
        ("strata", old.get("strata"), new.get("strata")),
    ]
    return found or [f"other {name}" for name, one, two in others if one != two]


def _values(old: Sequence[Any], new: Sequence[Any]) -> list[str]:
    if list(old) == list(new):
        return []
    more, fewer = len(set(new) - set(old)), len(set(old) - set(new))
    return [f"{more:,} more and {fewer:,} fewer values"] if more or fewer else ["another order of the values"]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class _Twice:
    """An attribute in two releases.

    theirs  for each code of the first domain that of the same label in the second, -1 where it has none
    ours    for each code of the second domain that in the first; after all of those where it has none
    """

    item: Sets
    before: Sets
    sticky: bool

    @cached_property
    def theirs(self) -> Ints:
        codes = {name: code for code, name in enumerate(names_of(self.before.domain.values))}
        return np.array([codes.get(name, -1) for name in names_of(self.item.domain.values)])

    @cached_property
    def ours(self) -> Ints:
        codes = {name: code for code, name in enumerate(names_of(self.item.domain.values))}
        names = names_of(self.before.domain.values)
        return np.array([codes.get(name, len(codes) + place) for place, name in enumerate(names)])

    def success(self) -> float | None:
        """Intersecting the sets of people without a change of stratum, at worst; None without common values."""
        codes = _made_up(self.item.strata.members[0], l=self.before.l)
        codes = codes[self.theirs[codes] >= 0]
        places = {
            (other.condition, frozenset(self.ours[list(other.excluded)].tolist())): place
            for place, other in enumerate(self.before.strata.members)
        }
        found = [
            self._pair(place, places.get((member.condition, frozenset(member.excluded)), 0), codes)
            for place, member in enumerate(self.item.strata.members)
        ]
        return max((share for share in found if share is not None), default=None)

    def _pair(self, place: int, there: int, codes: Ints) -> float | None:
        member, other = self.item.strata.members[place], self.before.strata.members[there]
        codes = codes[~member.forbids[codes] & ~other.forbids[self.theirs[codes]]]
        if not len(codes):
            return None
        first = Coupled(self.item.strata).sample(np.full(len(codes), place), codes, _stream(self.item.name, codes))
        again = self.theirs[codes]
        stream = _stream(self.item.name if self.sticky else "decoys of another draw", again)
        second = self.ours[Coupled(self.before.strata).sample(np.full(len(codes), there), again, stream)]
        return intersected(first, second, codes)
