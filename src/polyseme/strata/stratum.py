"""The strata of an attribute, and groups of people by untouched columns with their values.

Conditions on untouched columns say to which stratum a record belongs; they become lookup tables.

Columns are looked at one after the other. What is known after some of them is a *state*: which conditions can still be
fulfilled. A column's text takes a state to the next one, and texts that no condition can tell apart are one *class*. So
placing records takes one look-up for each column, however many strata there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError, InternalError
from polyseme.kernel.spelling import spelled
from polyseme.privacy.analysis.learner import Population
from polyseme.schema import OTHERWISE, Attribute, Condition, Constraint, Distributions
from polyseme.tables.codes import as_series

__all__ = ["STRATA_LIMIT", "Found", "Groups", "Key", "Placing", "Strata", "Stratum", "by_stratum"]

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
    """How a column changes the states: bit sets of the rules that can still be fulfilled."""
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


@dataclass(frozen=True, eq=False)
class Stratum:
    """Records for which the same values are impossible and the same distributions are expected.

    excluded       codes of the impossible values, ascending
    size           F, the number of values of the whole domain
    mechanism      over the values that are left, in the order of the domain
    condition      the one that the distributions were given for
    distributions  over the values that are left
    """

    excluded: tuple[int, ...]
    size: int
    mechanism: Mechanism
    condition: Condition = OTHERWISE
    distributions: Distributions = field(default_factory=Distributions)

    @classmethod
    def of(cls, attribute: Attribute, key: Key, mechanism: Mechanism) -> Stratum:
        """That of an attribute, with the attribute's distributions given the values that are left."""
        size = len(key.excluded) + mechanism.size
        allowed = np.delete(np.arange(size), list(key.excluded))
        expected = attribute.expected(key.condition).among(allowed)
        if attribute.promises.learner is not None:
            # Every candidate has 1/l for an attacker whose prior follows the inclusion probabilities, and for no other.
            expected = expected.made_for(mechanism.design.blind_inclusion() / mechanism.l)
        return cls(key.excluded, size, mechanism, key.condition, expected)

    @property
    def key(self) -> Key:
        """What identifies it among those of the attribute."""
        return Key(self.condition, self.excluded)

    @property
    def prior(self) -> Floats | None:
        """Over the values that are left; uniform when None."""
        return self.distributions.prior

    @property
    def reference(self) -> Floats | None:
        """Over the values that are left; any distribution when None."""
        return self.distributions.reference

    @cached_property
    def allowed(self) -> Ints:
        """The codes in the domain of the values that are left."""
        return np.delete(np.arange(self.size), list(self.excluded))

    @cached_property
    def forbids(self) -> Bools:
        """Whether each value of the domain is impossible: (F,)."""
        forbidden = np.zeros(self.size, dtype=bool)
        forbidden[list(self.excluded)] = True
        return forbidden

    def narrow(self, codes: Ints) -> Ints:
        """Codes of the domain as codes of the stratum's mechanism."""
        if not self.excluded:
            return codes
        if self.forbids[codes].any():
            raise InternalError("a value that is impossible for its record reached a mechanism")
        return np.searchsorted(self.allowed, codes)

    def widen(self, codes: Ints) -> Ints:
        """Codes of the stratum's mechanism as codes of the domain."""
        return self.allowed[codes] if self.excluded else codes


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of one attribute.

    The first is that of records to which no constraint or condition applies.
    """

    constraints: tuple[Constraint, ...]
    members: tuple[Stratum, ...]

    @classmethod
    def alone(cls, mechanism: Mechanism, distributions: Distributions | None = None) -> Strata:
        """One mechanism for all records."""
        known = Distributions() if distributions is None else distributions
        return cls((), (Stratum((), mechanism.size, mechanism, OTHERWISE, known),))

    @property
    def size(self) -> int:
        """F, the number of values of the whole domain."""
        return self.members[0].size

    def weights(self, sets: Ints, places: Ints) -> tuple[Floats, Floats]:
        """`P(R | v)` up to a factor of the set: for members (n, l), for other values (n,).

        Each set has its own mechanism.

        sets  in codes of the domain
        """
        inside, outside = np.empty(sets.shape), np.empty(len(sets))
        for number, rows in by_stratum(places):
            member = self.members[number]
            inside[rows], outside[rows] = member.mechanism.weights(member.narrow(sets[rows]))
        return inside, outside

    @property
    def columns(self) -> tuple[str, ...]:
        """The untouched attributes that decide."""
        return self.placing.columns

    @cached_property
    def placing(self) -> Placing:
        """How records find their stratum."""
        return Placing.of(self.constraints, [member.condition for member in self.members])

    @cached_property
    def _members(self) -> Ints:
        """The number of the member with each key; -1 for those that have none."""
        number = {member.key: index for index, member in enumerate(self.members)}
        return np.array([number.get(key, -1) for key in self.placing.keys], dtype=np.int64)

    @cached_property
    def numbers(self) -> Ints:
        """Which member the records of each state belong to that is left after the last column.

        -1 for none.
        """
        return self._members[self.placing.places]

    def places(self, columns: Mapping[str, pa.Array | pl.Series], rows: int) -> Ints:
        """Which member each record belongs to: (rows,)."""
        return self.places_of(self.find(columns, rows))

    def find(self, columns: Mapping[str, pa.Array | pl.Series], rows: int) -> Found:
        """What the conditions are to the records."""
        return self.placing.find({name: _series(columns[name]) for name in self.columns}, rows)

    def places_of(self, found: Found) -> Ints:
        """Which member each record belongs to, from what the conditions are to it: (rows,)."""
        alone = len(self.numbers) == 1
        places = np.broadcast_to(self.numbers[0], len(found.states)) if alone else self.numbers[found.states]
        if len(places) and places.min() < 0:
            raise InternalError("a record belongs to a stratum that has no mechanism")
        return places

    def impossible(self, codes: Ints, places: Ints) -> Ints:
        """Which records have a true value (negative ones are missing) that is impossible for them."""
        if not any(member.excluded for member in self.members):
            return np.zeros(0, dtype=np.int64)
        found = [
            rows[(codes[rows] >= 0) & self.members[number].forbids[codes[rows]]]
            for number, rows in by_stratum(places)
            if self.members[number].excluded
        ]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))

    def sample(self, places: Ints, draw: Callable[[Stratum, Ints], Ints]) -> Ints:
        """Sets in codes of the domain, stratum by stratum.

        `draw` gives those of some rows in codes of the stratum.
        """
        if len(self.members) == 1:
            return draw(self.members[0], np.arange(len(places)))
        sets = np.empty((len(places), self.members[0].mechanism.l), dtype=np.int64)
        for number, rows in by_stratum(places):
            member = self.members[number]
            sets[rows] = member.widen(draw(member, rows))
        return sets


def by_stratum(places: Ints) -> list[tuple[int, Ints]]:
    """Each number that occurs with its rows, both ascending.

    >>> by_stratum(np.array([2, 0, 2]))
    [(0, array([1])), (2, array([0, 2]))]
    """
    # Short numbers are sorted by counting.
    order = np.argsort(places.astype(np.int16), kind="stable")
    numbers, starts = np.unique(places[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(order, starts[1:]))) if len(places) else []


def _series(column: pa.Array | pl.Series) -> pl.Series:
    return column if isinstance(column, pl.Series) else as_series(column)


@dataclass(frozen=True, eq=False)
class Groups:
    """The distribution of the values of an attribute among people, as far as it is known.

    counts  how many people, or which share of them, have each value: (G, F)
    cells   what the untouched columns are in each group, as texts; no column where everybody is one group
    placed  the stratum of each group, where that is known otherwise than from the cells: (G,)
    own     where counts are those of records at hand: for each number of records that a person has in a group with one
            value, the records of such persons, (G, F); empty where the counts come from elsewhere
    """

    counts: Floats
    cells: pl.DataFrame = field(default_factory=pl.DataFrame)
    placed: Ints | None = None
    own: Mapping[int, Floats] = field(default_factory=dict)

    @classmethod
    def everyone(cls, counts: Floats) -> Groups:
        """One group."""
        return cls(np.asarray(counts, dtype=np.float64)[None, :])

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that tell groups apart."""
        return tuple(self.cells.columns)

    @property
    def some(self) -> Bools:
        """Which groups are not empty: (G,)."""
        return np.asarray(self.counts.sum(axis=1) > 0.0)

    @property
    def population(self) -> Population:
        """Shares of the groups that are not empty, and of the values in each."""
        return Population.counted(self.counts)

    def believed(self, counts: Floats) -> Groups:
        """The same groups, with other counts that are no records: what is believed of them."""
        return replace(self, counts=counts, own={})

    def places(self, strata: Strata) -> Ints | None:
        """The stratum of each group that is not empty; None where the columns do not decide it."""
        if self.placed is not None:
            return self.placed[self.some]
        rows = int(self.some.sum())
        if len(strata.members) == 1:
            return np.zeros(rows, dtype=np.int64)
        if not set(strata.columns) <= set(self.by):
            return None
        cells = self.cells.filter(pl.Series(self.some))
        return strata.places({name: cells[name] for name in strata.columns}, rows)

    def names(self) -> Sequence[str]:
        """Each group that is not empty, in words."""
        if not self.by:
            return [""] * int(self.some.sum())
        cells = self.cells.filter(pl.Series(self.some))
        return [", ".join(f"{name} = {_shown(text)}" for name, text in row.items()) for row in cells.to_dicts()]


def _shown(text: object) -> str:
    return "(missing)" if text is None else str(text)
