"""A goal: the models that every class of a table must fulfill, and the task of a method.

    goal = Goal.of([{"k-anonymity": {"k": 5}}, {"closeness": {"t": 0.2}}], data, background)
    goal.fine(*goal.counted(classes, number))           # from the class of each record
    goal.fine(sizes, counts)                            # from counts that are known already

Classes are given as `sizes` and, for each attribute in `goal.sensitive`, as `Counts`. What becomes of classes that are
merged says which way a search can prune:

    absorbing   fine with anything is fine
    additive    fine with fine is fine (absorbing goals are additive too)

Where it is known whose rows they are (`Microdata.people`), sizes and counts are of different people. A class is then
fine if it is so counted by people and counted by rows: rows are all that a reader of the release can count. People may
have rows in several classes, so that a model of shares is neither absorbing nor additive.

Models that compare classes with the whole table (`goal.relative`: closeness, beta-likeness, delta-disclosure) take
`total` of the counts for it. A verifier sees only what is published, so the whole table is then *what is not
suppressed*: `goal.kept` says which classes can be published together. It sets aside the classes that violate, compares
the rest with the rest, and goes on until nothing violates. Without suppression both readings are the same.

A method that looks at the whole table gets a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, nearest
from polyseme.kernel.randomness import SystemStream
from polyseme.kernel.work import Cancellation, current_cancellation
from polyseme.methods.bucketization import Grouping, Places
from polyseme.methods.microdata import Microdata, Recoding, Sensitive
from polyseme.models import Background, k_anonymity, read_spec, semantic_rules
from polyseme.models.base import Merging, Score, Spec
from polyseme.models.semantic_rules import OUTCOMES, Rule
from polyseme.schema import Attribute
from polyseme.tables.equivalence_classes import Counts, counted_people, people_in

__all__ = [
    "DealingMethod",
    "Demand",
    "Generalizing",
    "Goal",
    "GroupingMethod",
    "Task",
    "grouped_attribute",
    "require_goal",
    "tally",
]

Specs: TypeAlias = Iterable[Spec | Mapping[str, Mapping[str, Any]]]

_DENSE = 8
"""Cells for each record up to which a whole table of classes and values is quicker than sorting."""


@dataclass(frozen=True, eq=False)
class Demand:
    """One model for one attribute.

    attribute  the name of its counts; empty for a model of sizes
    merging    what becomes of classes that are merged
    rule       the one rule that it is about, for semantic rules
    """

    spec: Spec
    attribute: str
    background: Background = field(repr=False)
    merging: Merging
    rule: Rule | None = None

    @property
    def name(self) -> str:
        """The model, and what it is about."""
        about = f" of {self.attribute}" if self.spec.model.about else ""
        return f"{self.spec.model.name}{about}"

    def score(self, sizes: Ints, counts: Mapping[str, Counts], population: Ints | None = None) -> Score:
        """The model's number for each class, and whether it is fine."""
        model, parameters = self.spec.model, self.spec.parameters
        if model.name == "k-anonymity":
            return k_anonymity.score(sizes, parameters["k"])
        if model.name == "k-map":
            return k_anonymity.score_k_map(sizes if population is None else population, parameters["k"])
        if model.name == "semantic-rules":
            return semantic_rules.score(_by_rows(counts[self.attribute]))
        assert model.score is not None  # noqa: S101 - seen to by `Goal.of`
        held = counts[self.attribute]
        found = model.score(self._domain(held), self.background, parameters)
        if held.rows is None:
            return found
        return replace(found, fine=found.fine & model.score(self._domain(held.rows), self.background, parameters).fine)

    def promising(self, counts: Mapping[str, Counts], fine: Bools, suppressing: bool) -> Bools:
        """Which classes meet a condition of all fine classes that merging preserves."""
        model = self.spec.model
        if self.merging == "absorbing" or (self.merging == "additive" and not suppressing) or fine.all():
            return fine
        if model.name == "semantic-rules":
            return semantic_rules.relaxed(_by_rows(counts[self.attribute]))
        if model.relaxed is None:
            return np.ones(len(fine), dtype=bool)
        return model.relaxed(self._domain(counts[self.attribute]), self.background, self.spec.parameters)

    def _domain(self, counts: Counts) -> Counts:
        """The declared domain, or the values that occur: some may be suppressed everywhere."""
        if self.attribute in self.background.domains or counts.total.all():
            return counts
        occurring = counts.total > 0
        code = np.cumsum(occurring) - 1
        labels = tuple(label for label, there in zip(counts.labels, occurring) if there)
        return replace(counts, value=code[counts.value], total=counts.total[occurring], labels=labels)


def _by_rows(counts: Counts) -> Counts:
    """The same with rows counted."""
    return counts if counts.rows is None else counts.rows


@dataclass(frozen=True, eq=False)
class Goal:
    """What every class must fulfill.

    demands    one or several models, each for one attribute
    sensitive  the attributes whose counts are needed, by name; one for each `never-all` rule is among them
    weights    how many records each row of the table stands for; None where each is a record
    people     whose each row is; None where records are counted
    """

    demands: tuple[Demand, ...]
    sensitive: Mapping[str, Sensitive] = field(repr=False)
    weights: Ints | None = field(default=None, repr=False)
    people: Ints | None = field(default=None, repr=False)

    @classmethod
    def of(cls, specs: Specs, data: Microdata, background: Background | None = None) -> Goal:
        """The goal of policy entries for a table; by default a model is for every sensitive one."""
        background = background or Background()
        problems: list[Problem] = []
        demands: list[Demand] = []
        needed: dict[str, Sensitive] = {}
        for number, given in enumerate(specs):
            where = f"models[{number}]"
            try:
                spec = given if isinstance(given, Spec) else read_spec(given, where)
                for demand, sensitive in _demands(spec, data, background, f"{where}.{spec.model.name}"):
                    demands.append(demand)
                    needed |= {} if sensitive is None else {demand.attribute: sensitive}
            except InvalidInput as error:
                problems += error.problems
        if problems:
            raise PolicyError(problems)
        return cls(tuple(demands), needed, data.counts, data.people)

    @property
    def absorbing(self) -> bool:
        """Whether a fine class stays fine whatever is merged with it."""
        return all(demand.merging == "absorbing" for demand in self.demands)

    @property
    def additive(self) -> bool:
        """Whether fine classes stay fine when they are merged."""
        return all(demand.merging != "neither" for demand in self.demands)

    @property
    def relative(self) -> bool:
        """Whether classes are compared with the whole table."""
        return any(demand.spec.model.relative for demand in self.demands)

    @property
    def mapped(self) -> bool:
        """Whether classes are compared with a population."""
        return any(demand.spec.model.name == "k-map" for demand in self.demands)

    @property
    def unmapped(self) -> Goal:
        """The same without k-map, which classes that reach it keep when they are merged."""
        return replace(self, demands=tuple(item for item in self.demands if item.spec.model.name != "k-map"))

    def fine(self, sizes: Ints, counts: Mapping[str, Counts], population: Ints | None = None) -> Bools:
        """Whether each class fulfills all models."""
        fine = np.ones(len(sizes), dtype=bool)
        for demand in self.demands if len(sizes) else ():
            fine &= demand.score(sizes, counts, population).fine
        return fine

    def judged(
        self, sizes: Ints, counts: Mapping[str, Counts], population: Ints | None = None, suppressing: bool = False
    ) -> tuple[Bools, Bools]:
        """Whether each class is fine, and whether it is promising.

        If more records than may be suppressed are in classes that are not promising, this partition is not admissible,
        and neither is any finer one. `suppressing` says whether any may be.
        """
        fine, promising = np.ones((2, len(sizes)), dtype=bool)
        for demand in self.demands if len(sizes) else ():
            here = demand.score(sizes, counts, population).fine
            fine &= here
            promising &= demand.promising(counts, here, suppressing)
        return fine, promising

    def kept(
        self,
        sizes: Ints,
        counts: Mapping[str, Counts],
        population: Ints | None = None,
        fine: Bools | None = None,
    ) -> Bools:
        """Which classes can be published together when the others are suppressed.

        `fine` if that is known already.
        """
        kept = self.fine(sizes, counts, population) if fine is None else fine.copy()
        while self.relative and kept.any() and not kept.all():
            rest = {name: held.among(kept) for name, held in counts.items()}
            still = self.fine(sizes[kept], rest, None if population is None else population[kept])
            if still.all():
                break
            kept[kept] = still
        return kept

    def among(self, rows: Ints) -> Goal:
        """The same goal for some of the rows."""
        sensitive = {name: replace(item, codes=item.codes[rows]) for name, item in self.sensitive.items()}
        people = None if self.people is None else self.people[rows]
        return Goal(self.demands, sensitive, self._weights(rows), people)

    def totals(self) -> dict[str, Counts]:
        """All records as one class, for each attribute."""
        rows = len(next(iter(self.sensitive.values())).codes) if self.sensitive else 0
        return self.counted(np.zeros(rows, dtype=np.int64), 1)[1] if self.sensitive else {}

    def counted(self, classes: Ints, number: int, rows: Ints | None = None) -> tuple[Ints, dict[str, Counts]]:
        """Sizes and counts, from the class of each (given) row, numbered from 0 without gaps."""
        weights = self._weights(rows)
        sizes = np.bincount(classes, weights, number).astype(np.int64)
        people = self.people if rows is None or self.people is None else self.people[rows]
        members = sizes if people is None else people_in(classes, people, number)
        counts = {}
        for name, item in self.sensitive.items():
            codes = item.codes if rows is None else item.codes[rows]
            held = tally(item, classes, codes, number, sizes, weights)
            counts[name] = held if people is None else counted_people(held, classes, codes, people, members)
        return members, counts

    def _weights(self, rows: Ints | None) -> Ints | None:
        return self.weights if rows is None or self.weights is None else self.weights[rows]


def tally(of: Sensitive, classes: Ints, codes: Ints, number: int, sizes: Ints, weights: Ints | None = None) -> Counts:
    """Counts of one attribute from classes and codes of records, or of `weights` records each."""
    size = len(of.labels)
    keys = classes * size + codes
    if number * size <= _DENSE * len(keys):
        table = np.bincount(keys, weights, number * size)
        keys = np.flatnonzero(table)
        count = table[keys].astype(np.int64)
    elif weights is None:
        keys, count = np.unique(keys, return_counts=True)
    else:
        keys, group = np.unique(keys, return_inverse=True)
        count = np.bincount(group, weights, len(keys)).astype(np.int64)
    owner, value = np.divmod(keys, max(size, 1))
    starts = np.searchsorted(owner, np.arange(number + 1)).astype(np.int64)
    total = np.bincount(value, count, size).astype(np.int64)
    return Counts(of.name, sizes, np.zeros(number, dtype=np.int64), starts, value, count, total, of.labels)


def _demands(
    spec: Spec, data: Microdata, background: Background, where: str
) -> Iterator[tuple[Demand, Sensitive | None]]:
    """What one entry asks for, with the attribute that it has to count."""
    if spec.model.name == "semantic-rules":
        yield from _rules(spec, data, background, where)
    elif not spec.model.about:
        if spec.model.name == "k-map" and data.population is None:
            hint = "reference: FILE, or --population FILE (population=)"
            raise PolicyError(Problem(where, "no reference table was given", hint))
        yield Demand(spec, "", background, "absorbing"), None
    else:
        yield from _about(spec, data, background, where)


def _about(
    spec: Spec, data: Microdata, background: Background, where: str
) -> Iterator[tuple[Demand, Sensitive | None]]:
    names = (spec.attribute,) if spec.attribute else tuple(data.sensitive)
    problems = [problem for name in names for problem in _obstacles(spec, name, data, background, where)]
    if not names:
        problems.append(Problem(where, "no sensitive attribute was named", "attribute: NAME"))
    if problems:
        raise PolicyError(problems)
    for name in names:
        sensitive = data.sensitive[name]
        merging = spec.model.merging(name, background, spec.parameters)
        if data.people is not None and merging == "additive":
            merging = "neither"
        demand = Demand(spec, name, background, merging)
        if data.records:
            # Whatever else the model needs and does not find, it says here.
            one, size = np.zeros_like(sensitive.codes), np.array([data.records])
            whole = tally(sensitive, one, sensitive.codes, 1, size, data.counts)
            demand.score(whole.sizes, {name: whole})
        yield demand, sensitive


def _obstacles(spec: Spec, name: str, data: Microdata, background: Background, where: str) -> Iterator[Problem]:
    if name not in data.sensitive:
        yield Problem(f"{where}.attribute", f"'{name}' is not a sensitive attribute", "give it the role sensitive")
    elif name in data.names:
        yield Problem(f"{where}.attribute", f"'{name}' is a quasi-identifier too, so its classes are others")
    elif spec.model.score is None:
        yield Problem(where, "this model can be checked, but has no score by which to search")
    elif spec.model.semantic:
        distance = background.distances.get(name)
        if distance is None:
            yield Problem(where, f"no semantic distance was given for '{name}'", "distance: ...")
        elif distance.size != len(data.sensitive[name].labels):
            yield Problem(where, f"the distance and the domain of '{name}' differ in size")


def _rules(
    spec: Spec, data: Microdata, background: Background, where: str
) -> Iterator[tuple[Demand, Sensitive | None]]:
    problems = [
        problem
        for number, rule in enumerate(spec.parameters["rules"])
        for problem in _rule_obstacles(rule, data, f"{where}.rules[{number}]")
    ]
    if problems:
        raise PolicyError(problems)
    for number, rule in enumerate(spec.parameters["rules"]):
        columns = {name: _column(data.sensitive[name]) for name in rule.attributes}
        name = f"{where}.rules[{number}]: {rule.name}"
        codes = semantic_rules.outcomes(pl.DataFrame(columns), rule)
        yield Demand(spec, name, background, semantic_rules.merging(codes), rule), Sensitive(name, codes, OUTCOMES)


def _column(of: Sensitive) -> pl.Series:
    return pl.Series(of.name, of.labels, strict=False).gather(of.codes)


def _rule_obstacles(rule: Rule, data: Microdata, where: str) -> Iterator[Problem]:
    if rule.form != "never-all":
        yield Problem(
            where, "a rule about single records cannot be met by forming classes", "correct the table, and verify"
        )
    for name in rule.attributes:
        if name in data.names:
            yield Problem(where, f"'{name}' is a quasi-identifier, which changes as classes are formed")
        elif name not in data.sensitive:
            yield Problem(where, f"'{name}' is not a sensitive attribute", "give it the role sensitive")


@dataclass(frozen=True, eq=False)
class Task:
    """A table, what its classes must reach, and how.

    sensitive   the attributes that classes or groups protect, with their domains and distances
    parameters  of the method, defaults filled in
    stream      random numbers for what is published and must not tell of the order of records
    """

    data: Microdata
    goal: Goal
    sensitive: Mapping[str, Attribute]
    parameters: Mapping[str, Any]
    stream: SystemStream
    cancellation: Cancellation = field(default_factory=current_cancellation)

    def require_goal(self, method: str) -> None:
        require_goal(self.goal, method)


def require_goal(goal: Goal, method: str) -> None:
    """Refuse a policy without a model that classes could be formed for."""
    if not goal.demands:
        what = f"{method} forms classes that reach the policy's models, and it lists none for them"
        raise PolicyError(Problem("$.models", what, "models: [{k-anonymity: {k: 5}}]"))


class GroupingMethod(Protocol):
    """A method that decides over the whole table which records share a class or a group."""

    @property
    def name(self) -> str:
        """The policy's and the manifest's word for it."""

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        """What it promises by itself, beside the policy's models, as a policy writes them."""

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        """Whether it works on counts of equal records, or looks at each record by itself."""

    def group(self, task: Task) -> Recoding | Grouping:
        """Classes with generalized quasi-identifiers, or groups that share their sensitive values."""


@runtime_checkable
class DealingMethod(GroupingMethod, Protocol):
    """A method whose groups follow from how many records have each value.

    Only who is in which is drawn.
    """

    def places(self, parameters: Mapping[str, Any], attribute: Attribute, counts: Ints) -> Places:
        """The places of groups, from the records of each value of the grouped attribute."""


class Generalizing:
    """What all methods that form classes have in common."""

    def models(
        self, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]
    ) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        """None by itself: classes are formed for the policy's models."""
        return ()


def grouped_attribute(method: str, parameters: Mapping[str, Any], sensitive: Mapping[str, Attribute]) -> Attribute:
    """The attribute that is published by group: the named one, or the only sensitive one."""
    where = f"$.method.{method}.attribute"
    named = parameters.get("attribute")
    if named is not None and named not in sensitive:
        what = f"'{named}' is no sensitive attribute without decoys of its own"
        raise PolicyError(Problem(where, what, nearest(named, sensitive)))
    if named is None and len(sensitive) != 1:
        what = "several attributes are sensitive" if sensitive else "no attribute is sensitive and without decoys"
        raise PolicyError(Problem(where, what, f"name one: attribute: {next(iter(sensitive), 'disease')}"))
    return sensitive[named] if named is not None else next(iter(sensitive.values()))
