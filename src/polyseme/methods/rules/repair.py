"""From classes with effective rules to classes with none, by the cheapest allowed actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, Problem
from polyseme.methods import grouping_named
from polyseme.methods.bucketization import Grouping
from polyseme.methods.goal import Goal, Task
from polyseme.methods.microdata import Microdata, Recoding, Sensitive
from polyseme.methods.rules.actions import (
    Blanks,
    blanked,
    changed,
    fewest_values,
    keeps,
    merged,
    options_of,
    silent_attributes,
)
from polyseme.methods.rules.pairs import Matching, Options, class_losses, match
from polyseme.methods.rules.state import CHANGE, Book, RuleOptions, State
from polyseme.models.semantic_rules import Rule

__all__ = ["anonymized", "effective_rules"]

_WHERE = "$.method.rules"
_GENERALIZE = "generalize"


def effective_rules(goal: Goal, data: Microdata, recoding: Recoding) -> State:
    """Extraction: which rules of a goal are effective on which classes.

    See `tallies.effective` and `vulnerable`.
    """
    return State(data, _rules(goal), recoding, data.sensitive)


def anonymized(task: Task, options: RuleOptions) -> Recoding:
    """Start, change values where allowed, then the cheaper of local actions and generalizing."""
    work = _Work(task, options, _others(task.goal), _rules(task.goal))
    if not work.rules:
        hint = "models: [{semantic-rules: {rules: [{never-all: {...}}]}}]"
        raise PolicyError(Problem("$.models", "the method rules needs semantic rules, and there are none", hint))
    start = State(task.data, work.rules, work.started(), task.data.sensitive)
    work.require_others(start)
    book = Book(task.data.names)
    state, others = work.changed(start, book)
    if not len(state.vulnerable):
        return work.finished(state, book)
    if _GENERALIZE in options.actions:
        book.found(state, _GENERALIZE)
    local, failure = work.locally(state, others, book)
    whole = work.generalized(state, others) if _GENERALIZE in options.actions else None
    if whole is None:
        if local is None:
            raise ImpossibleError(failure)
        return work.finished(local, book)
    price = work.cost(whole) - work.cost(state)
    if local is None or work.cost(whole) < work.cost(local):
        return work.finished(whole, book.generalized(_GENERALIZE, price))
    return work.finished(local, book.priced(_GENERALIZE, price))


def _others(goal: Goal) -> Goal:
    """What the rules are not about, which the start has to reach and every action has to keep."""
    demands = tuple(demand for demand in goal.demands if demand.rule is None)
    names = {demand.attribute for demand in demands}
    kept = {name: item for name, item in goal.sensitive.items() if name in names}
    return replace(goal, demands=demands, sensitive=kept)


def _rules(goal: Goal) -> tuple[Rule, ...]:
    return tuple(demand.rule for demand in goal.demands if demand.rule is not None)


@dataclass(frozen=True, eq=False)
class _Work:
    """The task taken apart."""

    task: Task
    options: RuleOptions
    others: Goal
    rules: tuple[Rule, ...]

    def started(self) -> Recoding:
        """The classes to start from."""
        data = self.task.data
        if self.options.start is None:
            none = np.zeros(data.records, dtype=np.bool_)
            return Recoding.of_levels(data, [0] * len(data.ladders), none, None, None)
        name, parameters = self.options.start
        return self._grouped(name, parameters, self.task.data, self.others)

    def _grouped(self, name: str, parameters: Mapping[str, Any], data: Microdata, goal: Goal) -> Recoding:
        found = grouping_named(name).group(replace(self.task, data=data, goal=goal, parameters=parameters))
        if isinstance(found, Grouping):
            raise TypeError(f"{name} makes groups, not classes")
        return found

    def require_others(self, state: State) -> None:
        """The start has to reach the models that are not rules: the actions only keep them."""
        if _fine(self.others, state.recoding, self.task.data):
            return
        names = ", ".join(dict.fromkeys(demand.name for demand in self.others.demands))
        hint = "start: {full-domain: {suppression: 0.04}} reaches them first"
        raise ImpossibleError(Problem(f"{_WHERE}.start", f"the classes to start from do not reach {names}", hint))

    def cost(self, state: State) -> float:
        """What is lost altogether, in records."""
        recoding = state.recoding
        lost = float(recoding.sizes @ class_losses(self.task.data, recoding))
        blank = sum(int((item.codes < 0).sum()) for item in state.sensitive.values())
        return lost + float(recoding.suppressed.sum()) + self.values(blank)

    def values(self, number: int) -> float:
        """What so many sensitive values cost: a record that loses all of them costs 1."""
        return number / max(len(self.task.data.sensitive), 1)

    # -- changing values -------------------------------------------------------------------------------------------

    def changed(self, state: State, book: Book) -> tuple[State, Goal]:
        change = self.options.change
        if change is None:
            return state, self.others
        after, helped = changed(state, change, self.task.sensitive)
        others = self._recounted(after.sensitive[change.attribute])
        if not _fine(others, after.recoding, self.task.data):
            # Not worth a search: a data holder who asks for false values can ask for others.
            what = f"changing values of '{change.attribute}' breaks models that the classes reached before"
            raise ImpossibleError(Problem(f"{_WHERE}.{CHANGE}", what, "leave it out, or add another number"))
        for index in helped.tolist():
            cost = self.values(int(state.recoding.sizes[index]))
            book.note(state, index, CHANGE, cost, applied=True, about=change.attribute)
        return after, others

    def _recounted(self, item: Sensitive) -> Goal:
        """The other models with an attribute whose values are others now."""
        backgrounds = [demand.background for demand in self.others.demands]
        data = replace(self.task.data, sensitive={**self.task.data.sensitive, item.name: item})
        if not backgrounds:
            return self.others
        known = backgrounds[0]
        if item.name in known.domains:
            known = replace(known, domains={**known.domains, item.name: item.labels})
        specs = list({id(demand.spec): demand.spec for demand in self.others.demands}.values())
        return Goal.of(specs, data, known)

    # -- the whole table -------------------------------------------------------------------------------------------

    def generalized(self, state: State, others: Goal) -> State | None:
        """The best levels with the rules among the models; None where there are none."""
        data = replace(self.task.data, sensitive=state.sensitive)
        ruled = [demand for demand in self.task.goal.demands if demand.rule is not None]
        specs = list({id(demand.spec): demand.spec for demand in ruled}.values())
        rules = Goal.of(specs, data, ruled[0].background)
        goal = replace(
            rules, demands=(*others.demands, *rules.demands), sensitive={**others.sensitive, **rules.sensitive}
        )
        try:
            return replace(state, recoding=self._grouped("full-domain", self.options.searched, data, goal))
        except ImpossibleError:
            return None

    # -- class by class --------------------------------------------------------------------------------------------

    def locally(self, state: State, others: Goal, book: Book) -> tuple[State | None, list[Problem]]:
        """Rounds of merging; what then has no partner loses values or records.

        None, and why, where that is not so.
        """
        while True:
            self.task.cancellation.check()
            vulnerable = state.vulnerable
            alternatives = [self._alternative(state, others, index) for index in vulnerable.tolist()]
            options, found = self._matched(state, others, vulnerable, alternatives)
            self._note(state, options, alternatives, book)
            pairs = [(int(one), int(other)) for one, other in options.pairs[found.pairs]]
            if not pairs:
                return self._without_partner(state, others, vulnerable, alternatives, book)
            after = replace(state, recoding=merged(self.task.data, state.recoding, pairs))
            book.merged(state, after)
            state = after
            if not len(state.vulnerable):
                return state, []

    def _alternative(self, state: State, others: Goal, index: int) -> _Alternative:
        blanks = None
        if "suppress-values" in self.options.actions:
            blanks = fewest_values(state, index, silent_attributes(state, others))
        records = float(state.recoding.sizes[index]) if "suppress-records" in self.options.actions else np.inf
        values = np.inf if blanks is None else self.values(sum(int(lost.sum()) for lost in blanks.values()))
        return _Alternative(index, records, values, blanks)

    def _matched(
        self, state: State, others: Goal, vulnerable: Ints, alternatives: Sequence[_Alternative]
    ) -> tuple[Options, Matching]:
        """The cheapest pairs; a pair that breaks a model is barred, and the choice made again."""
        otherwise: Floats = np.array([item.cost for item in alternatives], dtype=np.float64)
        barred: list[tuple[int, int]] = []
        while True:
            options = options_of(state, vulnerable, otherwise, barred)
            if "merge" not in self.options.actions:
                options = replace(options, pairs=options.pairs[:0], costs=options.costs[:0])
            found = match(options)
            pairs = [(int(one), int(other)) for one, other in options.pairs[found.pairs]]
            bad = [pair for pair in pairs if not keeps(others, state.recoding, pair)]
            if not bad:
                return options, found
            barred += bad

    def _note(self, state: State, options: Options, alternatives: Sequence[_Alternative], book: Book) -> None:
        merging = np.full(len(state.recoding.shown), np.inf)
        for side in (0, 1):
            np.minimum.at(merging, options.pairs[:, side], options.costs)
        for item in alternatives:
            costs = {
                "merge": float(merging[item.index]),
                "suppress-values": item.values,
                "suppress-records": item.records,
            }
            for action, cost in costs.items():
                if action in self.options.actions:
                    book.note(state, item.index, action, cost)

    def _without_partner(
        self, state: State, others: Goal, vulnerable: Ints, alternatives: Sequence[_Alternative], book: Book
    ) -> tuple[State | None, list[Problem]]:
        stuck = [item.index for item in alternatives if not np.isfinite(item.cost)]
        if stuck:
            return None, [self._problem(state, index) for index in stuck[:5]]
        lost: list[int] = []
        after = state
        for item in alternatives:
            if item.blanks is not None and item.values <= item.records:
                after = blanked(after, item.index, item.blanks)
                book.applied(state, item.index, "suppress-values")
            else:
                lost.append(item.index)
                book.applied(state, item.index, "suppress-records")
        after = after.without(np.array(lost, dtype=np.int64))
        problems = self._broken(after, others, vulnerable, state)
        return (None, problems) if problems else (after, [])

    def _broken(self, after: State, others: Goal, vulnerable: Ints, before: State) -> list[Problem]:
        """Why a repair failed although every class had an action: no records left or a broken model."""
        if not len(after.recoding.shown):
            return [self._problem(before, int(index), "every record would be left out") for index in vulnerable[:5]]
        if not _fine(others, after.recoding, self.task.data):
            names = ", ".join(dict.fromkeys(demand.name for demand in others.demands))
            what = f"what is left without the suppressed records no longer reaches {names}"
            return [Problem(f"{_WHERE}.actions", what, "allow merge, or start with other settings")]
        return []

    def _problem(self, state: State, index: int, why: str = "") -> Problem:
        rule, size = state.effective_on(index)[0], int(state.recoding.sizes[index])
        what = f"effective on a class of {size:,} records, and no allowed action changes that"
        tallies = state.tallies
        place = state.rules.index(rule)
        if not tallies.otherwise[place].any():
            hint = "no published record says otherwise, so no class can: drop or narrow the rule"
        else:
            missing = [action for action in ("merge", "suppress-records") if action not in self.options.actions]
            hint = f"allow {missing[-1]}" if missing else "drop or narrow the rule"
        return Problem(f"rule '{rule.name}'", f"{what}; {why}" if why else what, hint)

    def finished(self, state: State, book: Book) -> Recoding:
        """The recoding with everything that is reported of it."""
        replaced = {name: item for name, item in state.sensitive.items() if item is not self.task.data.sensitive[name]}
        return replace(
            state.recoding,
            loss=self.cost(state),
            gap=None,
            replaced=replaced,
            actions=book.counts,
            explanation=book.explanation,
            # Merged and suppressed are classes; what started as levels does not follow from leaves any more.
            showing=None,
        )


@dataclass(frozen=True, eq=False)
class _Alternative:
    """What can be done about a class without another one, and what it costs."""

    index: int
    records: float
    values: float
    blanks: Blanks | None = field(default=None, repr=False)

    @property
    def cost(self) -> float:
        return min(self.records, self.values)


def _fine(goal: Goal, recoding: Recoding, data: Microdata) -> bool:
    """Whether all classes reach a goal; what is suppressed is not part of the table."""
    rows = np.flatnonzero(~recoding.suppressed)
    if not len(rows):
        return True
    people = recoding.people(data) if goal.mapped else None
    return bool(goal.fine(*goal.counted(recoding.classes[rows], len(recoding.shown), rows), people).all())
