"""What is written down on the way: which rule was effective on which class, what could be done and what was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite

from polyseme.methods.rules.asked import CHANGE
from polyseme.methods.rules.state import State
from polyseme.results.explanation import Explained, Explanation

__all__ = ["Book"]


@dataclass(eq=False)
class Book:
    """One entry for each class, rule and action. A class is known by its first record, which stays in it."""

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
        """Nothing was done class by class, all were generalized; values that were changed before stay changed."""
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
