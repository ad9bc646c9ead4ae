"""What all releases about the same people tell together about one attribute.

Sticky sets that were drawn alike are the same sets, and tell no more than one. All others count as drawn independently,
which sticky sets whose mechanism changed are not quite: they share more than that. Releases of older programs do not
say which key they were drawn with: it is then taken for the same, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.analysis.intersecting import Between, left_alone, success_over
from polyseme.arrays import Floats
from polyseme.attacks.republishing import differences
from polyseme.mechanism import Mechanism
from polyseme.release import AsIs, Sets
from polyseme.results.ledger import Exposure, Publication, spent
from polyseme.strata import Key

__all__ = ["exposure", "exposures_of"]

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
    """The distribution of the values that an attacker can know, and its source: an estimate first."""
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
    """In the worst stratum: only the truth is left, the success over all draws, and over the most telling one."""
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
