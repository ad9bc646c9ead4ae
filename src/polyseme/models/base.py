"""What a privacy model is and answers: a verdict on classes or published sets.

A model compares one number for each equivalence class (or each published set) with a bound. How it is compared:

- counts are compared as integers, and products of counts by cross multiplication;
- a ratio of counts is rounded once to the nearest double before it meets a decimal bound, so 3 of 10 is not above 0.3;
- entropies, logarithms and sums of many ratios are compared with the tolerance `TOLERANCE`, in favor of the table.

A model fails closed: what cannot be checked does not hold, and the note says why.

A model has a specification, and public background knowledge beside the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.parameters import Parameter
from polyseme.kernel.spelling import Label
from polyseme.semantics.distances.base import Distance
from polyseme.tables.equivalence_classes import Counts, PublishedSets
from polyseme.tables.labels import MissingAs
from polyseme.tables.people import Meaning

__all__ = [
    "SHOWN",
    "SLACK",
    "TOLERANCE",
    "Background",
    "Merging",
    "Model",
    "Place",
    "Score",
    "Spec",
    "Verdict",
    "judge",
    "place_of",
    "unchecked",
]

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
    """A class or a published set: its number, how many records it holds, one row of it (from 0).

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
    parameters     as requested
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


@dataclass(frozen=True, eq=False)
class Background:
    """What is publicly known beside the table; each mapping by attribute.

    domains      values in order of their codes
    distances    semantic distance between codes
    hierarchies  paths of labels, leaf first and root last, one for each value
    reference    a table of the population, for k-map
    meanings     what the labels of generalized columns stand for, by column and label
    missing      whether a missing sensitive value is declared to be a category; for all attributes, or for each
    wildcard     whether a missing quasi-identifier matches anything
    """

    domains: Mapping[str, Sequence[Label]] = field(default_factory=dict)
    distances: Mapping[str, Distance] = field(default_factory=dict)
    hierarchies: Mapping[str, Sequence[Sequence[Label]]] = field(default_factory=dict)
    reference: pl.DataFrame | None = None
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    missing: MissingAs | Mapping[str, MissingAs] = "refuse"
    wildcard: bool = False


@dataclass(frozen=True)
class Model:
    """A model's name, parameters and how it is checked.

    about    whether it looks at a sensitive attribute
    semantic whether it needs a distance
    check    on the classes of a table: (counts, background, parameters)
    on_sets  on published sets, where the model says something about them

    What a search for classes needs to know; a plugin may leave it out, and can then only be checked:

    score     the number that `check` judges: (counts, background, parameters)
    merging   what becomes of classes that are merged, while the whole table stays the same: (attribute, background,
              parameters); with "additive" and "neither", `relaxed` may help
    relaxed   which classes meet a condition that the model implies, and that a class keeps whatever is merged with it
    relative  whether classes are compared with the whole table
    """

    name: str
    parameters: tuple[Parameter, ...]
    about: bool = True
    semantic: bool = False
    check: Callable[[Counts, Background, dict[str, Any]], Verdict] | None = None
    on_sets: Callable[[PublishedSets, Background, dict[str, Any]], Verdict] | None = None
    score: Callable[[Counts, Background, dict[str, Any]], Score] | None = None
    merging: Callable[[str, Background, dict[str, Any]], Merging] = lambda attribute, background, parameters: "neither"
    relaxed: Callable[[Counts, Background, dict[str, Any]], Bools] | None = None
    relative: bool = False


@dataclass(frozen=True)
class Spec:
    """A model with its parameters, as requested."""

    model: Model
    parameters: dict[str, Any]
    attribute: str | None = None
