"""The table between two actions: its classes, its sensitive values, and which rules are effective.

A `never-all` rule is *effective* on a class when some members meet its condition and no member says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from polyseme.arrays import Bools, Ints
from polyseme.methods.microdata import BLANK, SUPPRESSED, Microdata, Recoding, Sensitive
from polyseme.models import semantic_rules
from polyseme.models.semantic_rules import Rule

__all__ = ["State", "Told", "values_of"]


@dataclass(frozen=True, eq=False)
class Told:
    """How many members of each class say otherwise than each rule, and how many meet it: (rules, classes)."""

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
    def told(self) -> Told:
        """What the members of the classes say."""
        number = len(self.recoding.shown)
        shown = ~self.recoding.suppressed
        counts = np.zeros((2, len(self.rules), number), dtype=np.int64)
        for place, rule in enumerate(self.rules):
            outcomes = semantic_rules.outcomes(self.frame(rule.attributes), rule)
            for outcome in (0, 1):
                found = self.recoding.classes[shown & (outcomes == outcome)]
                counts[outcome, place] = np.bincount(found, minlength=number)
        return Told(counts[0], counts[1])

    @cached_property
    def vulnerable(self) -> Ints:
        """The classes on which some rule is effective."""
        return np.flatnonzero(self.told.effective.any(axis=0))

    def effective_on(self, index: int) -> list[Rule]:
        """The rules that are effective on a class."""
        return [self.rules[place] for place in np.flatnonzero(self.told.effective[:, index])]

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
