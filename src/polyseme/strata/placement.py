"""To which stratum a record belongs: conditions on untouched columns, as lookup tables.

Columns are looked at one after the other. What is known after some of them is a *state*: which conditions can still be
fulfilled. A column's text takes a state to the next one, and texts that no condition can tell apart are one *class*. So
placing records takes one look-up for each column, however many strata there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.spelling import spelled
from polyseme.schema import OTHERWISE, Condition, Constraint

__all__ = ["STRATA_LIMIT", "Found", "Key", "Placing"]

STRATA_LIMIT = 1_024
"""Most strata of one attribute: each has a mechanism of its own to fit, to publish and to check. With 14 values, 1,024
priors and nothing shared, `plan` takes 14 s, opening the release 3 s, and the manifest has 1.2 MB (measured on two busy
cores); more are a sign that records are described more finely than any public prior is known."""

_TABLE_LIMIT = 1 << 20
"""Most entries of a look-up table (8 MB): far more than the strata that conditions may lead to."""

_FEW = 4
"""Where each text occurs this often on average, it is quicker to read the distinct ones and to look the others up."""


@dataclass(frozen=True)
class Key:
    """What identifies a stratum.

    condition  the one that its distributions were given for
    excluded   codes of the values that are impossible, ascending
    """

    condition: Condition = OTHERWISE
    excluded: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Found:
    """What conditions are to some records.

    states  what is known of each record in the end: (rows,)
    values  column and spelling of each value that a condition mentions and some record has
    """

    states: Ints
    values: frozenset[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class _Step:
    """What a column says.

    classes  of the spellings that some condition mentions, from 1 on; 0 is the class of all others
    table    the next state: (states, classes)
    """

    name: str
    classes: Mapping[str, int]
    table: Ints

    def read(self, series: pl.Series) -> tuple[Ints, set[str]]:
        """The class of each record, and the spellings that occur of those that are mentioned."""
        distinct = series.unique()
        few = len(distinct) * _FEW < len(series)
        texts = spelled(distinct if few else series)
        mentioned, numbers = list(self.classes), list(self.classes.values())
        classes = texts.replace_strict(mentioned, numbers, default=0, return_dtype=pl.Int64)
        values = set(texts.filter(classes > 0).unique().to_list())
        if few:
            classes = series.replace_strict(distinct, classes, return_dtype=pl.Int64)
        return classes.to_numpy(), values


@dataclass(frozen=True, eq=False)
class Placing:
    """The strata that there can be, and which one a record belongs to.

    keys     first that of the records to which nothing applies, then by condition, number of excluded values and code
    places   the key of each state that is left after the last column
    applies  the numbers of the constraints that apply in each of these states
    """

    steps: tuple[_Step, ...]
    keys: tuple[Key, ...]
    places: Ints
    applies: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, constraints: Sequence[Constraint], conditions: Iterable[Condition] = ()) -> Placing:
        """Constraints add up; a record may fulfill at most one of the conditions.

        >>> male, female = Condition({"sex": ("m",)}), Condition({"sex": ("f",)})
        >>> child = Condition({"age": ("0-9",)})
        >>> rules = [Constraint(male, (0, 1)), Constraint(female, (4,)), Constraint(child, (1, 2))]
        >>> [key.excluded for key in Placing.of(rules).keys]
        [(), (4,), (0, 1), (1, 2), (0, 1, 2), (1, 2, 4)]
        >>> [(key.condition == male, key.excluded) for key in Placing.of(rules[:2], [male]).keys]
        [(False, ()), (False, (4,)), (True, (0, 1))]
        """
        named = [condition for condition in dict.fromkeys(conditions) if condition]
        rules = [*(constraint.condition for constraint in constraints), *named]
        states, steps = [(1 << len(rules)) - 1], []
        for name in dict.fromkeys(name for rule in rules for name in rule.when):
            step, states = _step(name, rules, states)
            steps.append(step)
        found = [_key(state, constraints, named) for state in states]
        number = {condition: index for index, condition in enumerate([OTHERWISE, *named])}
        keys = sorted(set(found), key=lambda key: (number[key.condition], len(key.excluded), key.excluded))
        if len(keys) > STRATA_LIMIT:
            raise _too_many()
        place = {key: index for index, key in enumerate(keys)}
        numbers = range(len(constraints))
        applies = tuple(frozenset(number for number in numbers if state >> number & 1) for state in states)
        return cls(tuple(steps), tuple(keys), np.array([place[key] for key in found]), applies)

    @property
    def columns(self) -> tuple[str, ...]:
        """The untouched attributes that decide."""
        return tuple(step.name for step in self.steps)

    def find(self, columns: Mapping[str, pl.Series], rows: int) -> Found:
        """What the conditions are to so many records, however their values are spelled."""
        # One zero that is seen so often: where no column decides, there is nothing to store.
        states, values = np.broadcast_to(np.int64(0), rows), set[tuple[str, str]]()
        for step in self.steps:
            classes, texts = step.read(columns[step.name])
            states = step.table[states, classes]
            values.update((step.name, text) for text in texts)
        return Found(states, frozenset(values))

    def of_records(self, columns: Mapping[str, pl.Series], rows: int) -> Ints:
        """The number of each record's key: (rows,)."""
        return self.places[self.find(columns, rows).states]

    def applying(self, states: Ints) -> frozenset[int]:
        """The numbers of the constraints that apply to some record in one of the states."""
        return frozenset[int]().union(*(self.applies[state] for state in np.flatnonzero(np.bincount(states)).tolist()))


def _step(name: str, rules: Sequence[Condition], states: Sequence[int]) -> tuple[_Step, list[int]]:
    """What a column makes of the states, which are numbers with a bit for each rule that can still be fulfilled."""
    silent, asking = 0, dict[str, int]()
    for index, rule in enumerate(rules):
        if name not in rule.when:
            silent |= 1 << index
        for text in rule.when.get(name, ()):
            asking[text] = asking.get(text, 0) | 1 << index
    # A text that no rule mentions leaves only those that do not ask for this attribute.
    patterns = dict.fromkeys([silent, *(silent | rule for rule in asking.values())])
    if len(states) * len(patterns) > _TABLE_LIMIT:
        raise _too_many()
    number: dict[int, int] = {}
    table = [[number.setdefault(state & pattern, len(number)) for pattern in patterns] for state in states]
    place = {pattern: index for index, pattern in enumerate(patterns)}
    classes = {text: place[silent | rule] for text, rule in asking.items()}
    return _Step(name, classes, np.array(table, dtype=np.int64)), list(number)


def _key(state: int, constraints: Sequence[Constraint], conditions: Sequence[Condition]) -> Key:
    excluded = {code for index, rule in enumerate(constraints) if state >> index & 1 for code in rule.excluded}
    fulfilled = state >> len(constraints)
    if fulfilled & (fulfilled - 1):
        raise ImpossibleError("one record can meet two of the conditions", "they must be mutually exclusive")
    condition = conditions[fulfilled.bit_length() - 1] if fulfilled else OTHERWISE
    return Key(condition, tuple(sorted(excluded)))


def _too_many() -> ImpossibleError:
    return ImpossibleError(
        f"more than {STRATA_LIMIT:,} combinations of conditions can occur",
        "each of them needs its own mechanism: declare fewer or coarser ones",
    )
