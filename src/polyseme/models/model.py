"""What a model is, what was asked of one, and what is publicly known beside a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from polyseme.arrays import Bools
from polyseme.distances.base import Distance
from polyseme.models.base import Merging, Score, Verdict
from polyseme.parameters import Parameter
from polyseme.spelling import Label
from polyseme.tables.classes import Counts, PublishedSets
from polyseme.tables.coding.labels import MissingAs
from polyseme.tables.population import Meaning

__all__ = ["Background", "Model", "Spec"]


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
    merging: Callable[[str, Background, dict[str, Any]], Merging] = lambda attribute, background, asked: "neither"
    relaxed: Callable[[Counts, Background, dict[str, Any]], Bools] | None = None
    relative: bool = False


@dataclass(frozen=True)
class Spec:
    """A model that was asked for."""

    model: Model
    parameters: dict[str, Any]
    attribute: str | None = None
