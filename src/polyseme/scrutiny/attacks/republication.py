"""What several releases about the same people reveal together about one attribute.

Sticky sets that were drawn alike are the same sets, and tell no more than one. All others count as drawn independently,
which sticky sets whose mechanism changed are not quite: they share more than that. Releases of older programs do not
say which key they were drawn with: it is then taken for the same, and that is said.

Two sticky sets of one person can differ. Decoys stay the same as long as the person, the value and the mechanism do. A
mechanism changes with the values that are impossible for the record, and with the policy. How much an attacker then
learns from the intersection is measured by drawing for simulated people, with a key of their own: it depends on the
policy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, RiskError
from polyseme.kernel.randomness import StickyStream, experiment
from polyseme.kernel.spelling import names_of
from polyseme.privacy.analysis.intersection import Between, left_alone, success_over
from polyseme.release import AsIs, Column, Manifest, Sets
from polyseme.release.codec import entry_of
from polyseme.results.ledger import Exposure, Publication, spent
from polyseme.strata import Key, Stratum
from polyseme.strata.coupling import Coupled

__all__ = ["changed_since", "changing_strata", "exposure", "exposures_of", "intersected", "require_same_key"]

_PEOPLE, _DRAWS, _COMPARED = 4_000, 100_000, 1_000_000
"""People who are drawn for, sets that are drawn for them, and pairs of candidates that are compared; at most."""
_STRATA = 64
"""Strata whose pairs are compared, spread over all there are: 301 strata and their 45,150 pairs took 15 s."""
_KEY = bytes(32)
"""Any key will do: what is measured is how often sets differ, on made-up people."""
_NOTICED = 0.01
"""A hundredth more than the promise is what a simulation of this size can tell from nothing."""


def intersected(first: Ints, second: Ints, codes: Ints) -> float:
    """How often a candidate in both sets is the true value; one of the first if they share none.

    >>> intersected(np.array([[0, 1, 2], [0, 1, 2]]), np.array([[0, 3, 4], [0, 1, 3]]), np.array([0, 1]))
    0.75
    """
    common = (first[:, :, None] == second[:, None, :]).any(axis=2)
    common[~common.any(axis=1)] = True
    right = ((first == codes[:, None]) & common).any(axis=1)
    return float((right / common.sum(axis=1)).mean())


def changing_strata(columns: Sequence[Column]) -> list[str]:
    """A warning for each attribute whose sets change too much with its conditions' columns."""
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
    """Raise `RiskError` where sticky sets have another key than those of an earlier release.

    check  the check value of the key, see `randomness.key_check`
    """
    if not (check and earlier.key_check) or check == earlier.key_check:
        return
    again = [item for item in columns if isinstance(item, Sets) and item.name in earlier.names]
    risks = [_intersection(item, before) for item in again if isinstance(before := earlier[item.name], Sets)]
    if risks:
        hint = "give the key file of the earlier release; --accept-risk publishes all the same"
        what = (
            "the key is not that of the earlier release: an attacker who has both can intersect their sets "
            f"({'; '.join(risks)})"
        )
        raise RiskError(Problem("key_file", what, hint))


def _intersection(item: Sets, before: Sets) -> str:
    success = _Twice(item, before, sticky=False).success()
    return item.name if success is None else f"{item.name}: right in about {success:.0%} of the cases"


def changed_since(columns: Sequence[Column], sticky: bool, earlier: Manifest, check: str = "") -> list[str]:
    """Warnings on attributes whose sets an earlier release of the same people weakens.

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
    success_text = "" if success is None else f", and is right in about {success:.0%} of the cases"
    advice = "Publish with the same key, values and promises, or do not publish it again."
    return (
        [
            f"{item.name}: sets differ from those of the earlier release ({'; '.join(changes)}): an attacker who has "
            f"both can intersect them{success_text}. {advice}"
        ]
        if changes
        else []
    )


def differences(item: Sets, before: Sets) -> list[str]:
    """What two descriptions of an attribute do not share of all that decides its sticky sets."""
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
        """The highest success on sets of people in one stratum; None without common values."""
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


_GROWS = 1e-9
"""By how much success must grow with a second set for the two to be worth intersecting."""


def exposures_of(publications: Sequence[Publication]) -> tuple[Exposure, ...]:
    """One for each attribute that was published as sets; all releases are about the same people."""
    names = dict.fromkeys(column.name for item in publications for column in item.sets)
    return tuple(exposure(name, publications) for name in names)


def exposure(name: str, publications: Sequence[Publication]) -> Exposure:
    """What these releases tell about the attribute."""
    holding = [item for item in publications if item.find(name) is not None]
    draws, reasons = _draws(name, holding)
    shares, assumed = _expected(name, holding, draws)
    bare = [item for item in holding if isinstance(item.find(name), AsIs)]
    if bare:
        reasons.insert(0, "published as it is in another release")
    elif not all(isinstance(item.find(name), Sets) for item in holding):
        reasons.append("published in another way, which is left out here, in another release")
    alone, success, single = _together(draws, shares, reasons)
    truthful = sum(column.mechanism.p == 1.0 for column in draws) > 1
    grows = truthful and success.high > single.high + _GROWS
    sure = Between.exactly(1.0)
    found = [spent(column) for column in draws]
    return Exposure(
        people=holding[0].people,
        attribute=name,
        releases=len(holding),
        draws=len(draws),
        epsilon=None if None in found else sum(value for value in found if value is not None),
        alone=sure if bare else alone,
        success=sure if bare else success,
        single=sure if bare else single,
        assumed=assumed,
        intersected=bool(bare) or grows,
        reasons=tuple(reasons),
    )


def _draws(name: str, holding: Sequence[Publication]) -> tuple[list[Sets], list[str]]:
    """The columns whose sets differ from those before, and why sticky ones do."""
    draws: list[Sets] = []
    sticky: list[tuple[Sets, str]] = []
    reasons: list[str] = []
    for item in holding:
        column = item.find(name)
        if not isinstance(column, Sets):
            continue
        if item.sticky and sticky:
            changes = [_changes(column, other, item.key_check, check) for other, check in sticky]
            if not all(changes):
                continue
            reasons.append(f"sticky, but not the same sets: {'; '.join(changes[-1])}")
        if item.sticky:
            sticky.append((column, item.key_check))
        draws.append(column)
    if len({bool(item.key_check) for item in holding if item.sticky}) > 1:
        reasons.append("some releases do not say which key their sets have: it is taken for the same")
    return draws, reasons


def _changes(column: Sets, other: Sets, check: str, before: str) -> list[str]:
    """Why sticky sets of two releases are not the same."""
    return ["another key"] if check and before and check != before else differences(column, other)


def _expected(name: str, holding: Sequence[Publication], draws: Sequence[Sets]) -> tuple[Floats, str]:
    """The prior distribution that an attacker can know, and its source: an estimate first."""
    size, known = draws[0].domain.size, draws[0].attribute.distributions
    for item in reversed(holding):
        column = item.find(name)
        if isinstance(column, Sets) and column.domain.values == draws[0].domain.values and name in item.learned:
            return np.array(item.learned[name]), f"as estimated from the release of {item.date[:10]}"
    declared = known.reference if known.reference is not None else known.prior
    if declared is not None:
        return declared, "as the policy declares it"
    return np.full(size, 1.0 / size), "all values equally likely: nothing else is known"


def _together(draws: Sequence[Sets], shares: Floats, reasons: list[str]) -> tuple[Between, Between, Between]:
    """In the worst stratum: how often only the truth is left, and the success over all draws.

    Also the success over the most informative draw.
    """
    single = _worst([_success([column], shares, key) for column in draws for key in _keys(column)])
    if len(draws) == 1:
        return Between.exactly(1.0 if draws[0].l == 1 else 0.0), single, single
    if any(column.domain.values != draws[0].domain.values for column in draws):
        reasons.append("other values in other releases: what their sets share is not computed")
        return Between(0.0, 1.0), Between(single.low, 1.0), single
    if any(_keys(column) != _keys(draws[0]) for column in draws):
        reasons.append("other strata in other releases: what their sets share is not computed")
        return Between(0.0, 1.0), Between(single.low, 1.0), single
    keys = _keys(draws[0])
    alone = _worst([left_alone(_mechanisms(draws, key), _given(shares, key)) for key in keys])
    return alone, _worst([_success(draws, shares, key) for key in keys]), single


def _keys(column: Sets) -> tuple[Key, ...]:
    return tuple(member.key for member in column.strata.members)


def _success(draws: Sequence[Sets], shares: Floats, key: Key) -> Between:
    fitting = shares if len(shares) == draws[0].domain.size else np.full(draws[0].domain.size, 1 / draws[0].domain.size)
    return success_over(_mechanisms(draws, key), _given(fitting, key))


def _mechanisms(draws: Sequence[Sets], key: Key) -> list[Mechanism]:
    return [next(item.mechanism for item in column.strata.members if item.key == key) for column in draws]


def _given(shares: Floats, key: Key) -> Floats:
    """Given the values that are left; where none of them is expected, all alike."""
    left = np.delete(shares, list(key.excluded))
    return left / left.sum() if left.sum() > 0.0 else np.full(len(left), 1.0 / len(left))


def _worst(found: Sequence[Between]) -> Between:
    return max(found, key=lambda item: (item.high, item.low))
