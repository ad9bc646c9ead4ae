"""What a privacy model answers: a verdict.

A model compares one number for each equivalence class (or each published set) with a bound. How it is compared:

- counts are compared as integers, and products of counts by cross multiplication;
- a ratio of counts is rounded once to the nearest double before it meets a decimal bound, so 3 of 10 is not above 0.3;
- entropies, logarithms and sums of many ratios are compared with the tolerance `TOLERANCE`, in favor of the table.

A model fails closed: what cannot be checked does not hold, and the note says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from polyseme.arrays import Bools, Floats, Ints

__all__ = ["SHOWN", "SLACK", "TOLERANCE", "Merging", "Place", "Score", "Verdict", "judge", "place_of", "unchecked"]

TOLERANCE = 1e-12
"""Slack where a comparison cannot be made in integers."""

SLACK = 1e-9
"""Room that a relaxation leaves for rounding: it must never refuse what its model allows."""

SHOWN = 5
"""How many of the worst classes a verdict names."""


Merging: TypeAlias = Literal["absorbing", "additive", "neither"]
"""What becomes of classes that are merged: fine with anything is fine; fine with fine is fine; neither is certain."""


@dataclass(frozen=True)
class Place:
    """A class or a published set: its number, how many records it holds, one row (from 0) that belongs to it.

    row  None where records were only counted
    """

    index: int
    size: int
    row: int | None


def place_of(index: int, size: int, row: int) -> Place:
    """A place; a row of -1 is not known."""
    return Place(index, size, row if row >= 0 else None)


@dataclass(frozen=True)
class Verdict:
    """Whether a model holds, and how far the worst class is from the bound.

    model          the policy's word for it
    attribute      the sensitive attribute, None where there is none
    parameters     as asked for
    holds          for every class
    worst          the value of the worst class; None when nothing could be checked
    bound          what it was compared with
    margin         how far `worst` is on the right side of `bound`; negative when violated
    worst_classes  the worst few of the violating classes, or the worst one when there are none
    checked        how many classes or sets were looked at
    violations     how many of them violate
    note           what the reader must know; why, when nothing could be checked
    strict         whether `worst` must not equal `bound`
    counts         what was counted in each class: "rows", or "people" where it is known whose rows they are
    """

    model: str
    attribute: str | None
    parameters: Mapping[str, Any]
    holds: bool
    worst: float | None
    bound: float | None
    margin: float | None
    worst_classes: tuple[Place, ...] = field(default=())
    checked: int = 0
    violations: int = 0
    note: str = ""
    strict: bool = False
    counts: str = "rows"


@dataclass(frozen=True, eq=False)
class Score:
    """One number for each class, which classes are fine, and the bound.

    value     (classes,)
    fine      (classes,), decided exactly
    bound     what `value` is compared with
    at_least  whether large values are good
    note      for the verdict
    strict    whether a value that equals the bound is not fine
    """

    value: Floats | Ints
    fine: Bools
    bound: float
    at_least: bool
    note: str = ""
    strict: bool = False


class Subject(Protocol):
    """What a model looks at: classes, counts of a sensitive attribute, or published sets."""

    @property
    def flaw(self) -> str: ...

    @property
    def first(self) -> Ints:
        """A row of each; -1 where records were only counted."""
        ...


def unchecked(model: str, attribute: str | None, parameters: Mapping[str, Any], note: str) -> Verdict:
    """The verdict on what could not be looked at: it does not hold."""
    return Verdict(model, attribute, dict(parameters), False, None, None, None, note=note)


def judge(
    model: str,
    attribute: str | None,
    parameters: Mapping[str, Any],
    subject: Subject,
    sizes: Ints,
    score: Callable[[], Score],
) -> Verdict:
    """Turn a score into a verdict; the score is only computed for a subject without flaw."""
    if subject.flaw:
        return unchecked(model, attribute, parameters, subject.flaw)
    result = score()
    value, fine = np.asarray(result.value, dtype=np.float64), result.fine
    badness = -value if result.at_least else value
    # The worst class is a violating one if there is any, whatever rounding did to its value.
    order = np.lexsort((-badness, fine))
    worst = float(value[order[0]])
    margin = worst - result.bound if result.at_least else result.bound - worst
    violations = int((~fine).sum())
    places = tuple(
        place_of(int(index), int(sizes[index]), int(subject.first[index]))
        for index in order[: min(max(violations, 1), SHOWN)]
    )
    return Verdict(
        model,
        attribute,
        dict(parameters),
        violations == 0,
        worst,
        float(result.bound),
        float(margin),
        places,
        len(value),
        violations,
        result.note,
        result.strict,
        "rows" if getattr(subject, "people", None) is None else "people",
    )
