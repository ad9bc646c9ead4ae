"""The table between two actions: classes, values, effective rules; the request, and the log.

A `never-all` rule is *effective* on a class when some members meet its condition and no member says otherwise.

A policy says where to start and which actions may be taken. The log says which rule was effective on which class, what
could be done and what was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.parameters import validated
from polyseme.methods import METHODS
from polyseme.methods.microdata import BLANK, SUPPRESSED, Microdata, Recoding, Sensitive
from polyseme.models import semantic_rules
from polyseme.models.semantic_rules import Rule
from polyseme.results.explanation import Explained, Explanation

__all__ = ["ACTIONS", "CHANGE", "STARTS", "Book", "Change", "RuleOptions", "State", "Tallies", "values_of"]

ACTIONS = ("merge", "generalize", "suppress-values", "suppress-records")
"""What may be done about a class on which a rule is effective, unless the policy allows less."""
CHANGE = "change-values"
STARTS = ("full-domain", "mondrian")
"""Methods that make the classes to start from."""
_WHERE = "$.method.rules"


@dataclass(frozen=True)
class Change:
    """Falsifying: a constant is added to the values of a sensitive attribute."""

    attribute: str
    by: float


@dataclass(frozen=True)
class RuleOptions:
    """The method's parameters, checked.

    start     the method that makes the classes, with its parameters; None for the table as it is
    actions   what may be done
    change    whether, and by how much, values may be changed
    searched  how full-domain search generalizes, where that is one of the actions
    """

    start: tuple[str, Mapping[str, Any]] | None = None
    actions: tuple[str, ...] = ACTIONS
    change: Change | None = None
    searched: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> RuleOptions:
        """From the policy's words; every problem at once."""
        problems: list[Problem] = []
        start = _start(parameters.get("start"), problems)
        actions = parameters.get("actions")
        problems += _action_problems(actions)
        change = _change(parameters.get(CHANGE), problems)
        if problems:
            raise PolicyError(problems)
        searched = start[1] if start is not None and start[0] == "full-domain" else _defaults("full-domain")
        return cls(start, ACTIONS if actions is None else tuple(dict.fromkeys(actions)), change, searched)


def _defaults(name: str) -> Mapping[str, Any]:
    return validated("", METHODS[name].parameters, {})


def _start(given: Any, problems: list[Problem]) -> tuple[str, Mapping[str, Any]] | None:
    if given is None:
        return None
    where = f"{_WHERE}.start"
    if len(given) != 1 or next(iter(given)) not in STARTS:
        hint = f"start: {{{STARTS[0]}: {{}}}}, or leave it out for a table that has its classes already"
        problems.append(Problem(where, f"expected one of {', '.join(STARTS)}", hint))
        return None
    ((name, parameters),) = given.items()
    if not isinstance(parameters, Mapping | None):
        problems.append(Problem(f"{where}.{name}", "expected a mapping"))
        return None
    try:
        return name, validated(f"{where}.{name}", METHODS[name].parameters, parameters or {})
    except PolicyError as error:
        problems += error.problems
        return None


def _action_problems(actions: Any) -> Iterator[Problem]:
    where = f"{_WHERE}.actions"
    if actions is None:
        return
    for number, action in enumerate(actions):
        if action == CHANGE:
            hint = f"{CHANGE}: {{attribute: salary, by: 10}}, beside actions"
            yield Problem(f"{where}[{number}]", "it needs an attribute and a number", hint)
        elif action not in ACTIONS:
            yield Problem(f"{where}[{number}]", "unknown action", nearest(str(action), ACTIONS))


def _change(given: Any, problems: list[Problem]) -> Change | None:
    if given is None:
        return None
    where = f"{_WHERE}.{CHANGE}"
    by, attribute = given.get("by"), given.get("attribute")
    fits = isinstance(by, int | float) and not isinstance(by, bool) and abs(by) < 1e300 and by != 0
    if set(given) != {"attribute", "by"} or not isinstance(attribute, str) or not fits:
        hint = f"{CHANGE}: {{attribute: salary, by: 10}}"
        problems.append(Problem(where, "expected an attribute and a number other than 0", hint))
        return None
    return Change(attribute, by)


@dataclass(frozen=True, eq=False)
class Tallies:
    """How many members of each class meet each rule, and how many do not: (rules, classes)."""

    otherwise: Ints
    met: Ints

    @cached_property
    def effective(self) -> Bools:
        """Whether each rule is effective on each class."""
        return np.asarray((self.met > 0) & (self.otherwise == 0))

    def fitting(self, one: int) -> Bools:
        """Whether no rule is effective on each class when class `one` is merged with it."""
        met = self.met + self.met[:, one : one + 1]
        otherwise = self.otherwise + self.otherwise[:, one : one + 1]
        return np.asarray(~np.any((met > 0) & (otherwise == 0), axis=0))


@dataclass(frozen=True, eq=False)
class State:
    """Classes and sensitive values, and the rules about them.

    sensitive  by name; the code is `BLANK` where a value was taken away
    """

    data: Microdata
    rules: tuple[Rule, ...]
    recoding: Recoding
    sensitive: Mapping[str, Sensitive] = field(repr=False)

    @cached_property
    def tallies(self) -> Tallies:
        """What the members of the classes say."""
        number = len(self.recoding.shown)
        shown = ~self.recoding.suppressed
        counts = np.zeros((2, len(self.rules), number), dtype=np.int64)
        for place, rule in enumerate(self.rules):
            outcomes = semantic_rules.outcomes(self.frame(rule.attributes), rule)
            for outcome in (0, 1):
                found = self.recoding.classes[shown & (outcomes == outcome)]
                counts[outcome, place] = np.bincount(found, minlength=number)
        return Tallies(counts[0], counts[1])

    @cached_property
    def vulnerable(self) -> Ints:
        """The classes on which some rule is effective."""
        return np.flatnonzero(self.tallies.effective.any(axis=0))

    def effective_on(self, index: int) -> list[Rule]:
        """The rules that are effective on a class."""
        return [self.rules[place] for place in np.flatnonzero(self.tallies.effective[:, index])]

    def frame(self, names: Iterable[str], rows: Ints | None = None) -> pl.DataFrame:
        """The values of some attributes as they are shown."""
        return pl.DataFrame({name: values_of(self.sensitive[name], rows) for name in names})

    def members(self, index: int) -> Ints:
        """The records of a class."""
        order, starts = self._order
        return order[starts[index] : starts[index + 1]]

    def first(self, index: int) -> int:
        """The first record of a class, by which it is known when classes are renumbered."""
        return int(self.members(index)[0])

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """The records class by class, and where each class begins; suppressed ones come before all."""
        order = np.argsort(self.recoding.classes, kind="stable")
        numbers = np.arange(len(self.recoding.shown) + 1)
        return order, np.searchsorted(self.recoding.classes[order], numbers)

    def labels_of(self, index: int) -> tuple[str | None, ...]:
        """What a class shows of each quasi-identifier."""
        shown = self.recoding.shown[index]
        return tuple(cells.labels[code] for cells, code in zip(self.recoding.cells, shown.tolist(), strict=True))

    def without(self, classes: Ints) -> State:
        """Nothing is shown of the records of some classes."""
        kept = np.ones(len(self.recoding.shown), dtype=np.bool_)
        kept[classes] = False
        number = np.append(np.where(kept, np.cumsum(kept) - 1, SUPPRESSED), SUPPRESSED)
        recoding = replace(self.recoding, classes=number[self.recoding.classes], shown=self.recoding.shown[kept])
        return replace(self, recoding=recoding)


def values_of(item: Sensitive, rows: Ints | None = None) -> pl.Series:
    """The values of all records, or of the given ones, as they are shown."""
    codes = item.codes if rows is None else item.codes[rows]
    places = pl.Series(np.where(codes == BLANK, 0, codes)).set(pl.Series(codes == BLANK), None)
    return pl.Series(item.name, item.labels, strict=False).gather(places)


@dataclass(eq=False)
class Book:
    """One entry for each class, rule and action.

    A class is known by its first record, which stays in it.
    """

    names: tuple[str, ...]
    entries: dict[tuple[int, str, str], Explained] = field(default_factory=dict, repr=False)

    def found(self, state: State, action: str) -> None:
        """Every rule that is effective on some class, with an action that concerns all of them."""
        for index in state.vulnerable.tolist():
            self.note(state, index, action, inf)

    def note(
        self, state: State, index: int, action: str, cost: float, applied: bool = False, about: str | None = None
    ) -> None:
        """An action that could be taken; for the rules about one attribute only where that is given."""
        key, labels = state.first(index), state.labels_of(index)
        size = int(state.recoding.sizes[index])
        for rule in state.effective_on(index):
            if about is None or about in rule.attributes:
                known = self.entries.get((key, rule.name, action))
                if known is None or not known.applied:
                    price = cost if isfinite(cost) else None
                    self.entries[key, rule.name, action] = Explained(labels, size, rule.name, action, applied, price)

    def applied(self, state: State, index: int, action: str) -> None:
        """An action that was taken."""
        key = state.first(index)
        for rule in state.effective_on(index):
            entry = self.entries[key, rule.name, action]
            self.entries[key, rule.name, action] = replace(entry, applied=True)

    def merged(self, before: State, after: State) -> None:
        """Some classes were merged, with one that was chosen or one that then showed the same."""
        left = set(after.vulnerable.tolist())
        for index in before.vulnerable.tolist():
            if int(after.recoding.classes[before.first(index)]) not in left:
                self.applied(before, index, "merge")

    def generalized(self, action: str, cost: float) -> Book:
        """Nothing was done class by class, all were generalized.

        Values that were changed before stay changed.
        """
        return Book(
            self.names,
            {
                key: replace(entry, applied=True, cost=cost)
                if key[2] == action
                else replace(entry, applied=entry.applied and key[2] == CHANGE)
                for key, entry in self.entries.items()
            },
        )

    def priced(self, action: str, cost: float) -> Book:
        """An action that concerned all of them was not taken, for this cost."""
        entries = self.entries.items()
        return Book(self.names, {key: replace(e, cost=cost) if key[2] == action else e for key, e in entries})

    @property
    def explanation(self) -> Explanation:
        """In the order of classes, rules and actions as they came up."""
        entries = sorted(self.entries.items(), key=lambda entry: entry[0][:2])
        return Explanation(self.names, tuple(row for _, row in entries))

    @property
    def counts(self) -> Mapping[str, int]:
        """To how many classes each action was applied."""
        return dict(Counter(action for _, action in {(k, a) for (k, _, a), row in self.entries.items() if row.applied}))
