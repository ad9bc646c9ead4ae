"""The lattice of levels, tables at its nodes, and the check of one node.

The lattice has one axis a quasi-identifier and one node a choice of levels. Sets of nodes are arrays of booleans in the
shape of the lattice, what lies below or above a node is a slice of them. A lattice of more nodes than can be kept is
*thinned*: some levels between the first and the last are left out.

A row of a node's table stands for all records with the same groups and the same sensitive values, and of the same
person where people are counted. Going up only merges rows, so a node's table follows from that of any node below it.
Tables that are clearly smaller than what they were made from are kept. A row has the leaves of one of its records,
those of neighboring quasi-identifiers as one number: what they are at any levels is then looked up at once.

The check of a node says whether it is admissible, how many records it costs, and whether it rules out all that is below
it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.methods.goal import Goal, tally
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Groups, Ladder, Microdata, Sensitive, grouped, packed
from polyseme.tables.equivalence_classes import Counts, counted_people

__all__ = [
    "Check",
    "Checker",
    "Lattice",
    "Levels",
    "Node",
    "Partition",
    "Rollup",
    "Singles",
    "box",
    "counts_above",
    "counts_below",
    "outer_sum",
]

_WORTH = 0.8
"""A table is kept if it has fewer rows than this part of what it was made from."""
_CELLS = 24_000_000
"""The most cells of all tables that are kept, 8 bytes each at the most; the largest go first."""
_TOGETHER = 1 << 12
"""The most combinations of leaves that are one number."""
_MAPS = 4_096
"""The most levels of bundles whose groups are kept, at most 8 kB each where several ladders are one number."""
_DENSE = 4
"""Keys are counted in a table if not more are possible than so many times the rows."""


@dataclass(frozen=True, eq=False)
class Partition:
    """The classes of a node as counts.

    population  of each class, for k-map
    members     where people are counted, the class and the person of each who is in it, each pair once: (2, m)
    records     of each class; None where `sizes` says so
    """

    sizes: Ints
    counts: dict[str, Counts]
    population: Ints | None = None
    members: Ints | None = None
    records: Ints | None = None

    @property
    def rows(self) -> Ints:
        """Records of each class."""
        return self.sizes if self.records is None else self.records

    def units(self, classes: Bools) -> int:
        """The people in some classes where these are counted, and their records otherwise."""
        if self.members is None:
            return int(self.sizes[classes].sum())
        return len(np.unique(self.members[1][classes[self.members[0]]]))


@dataclass(eq=False)
class _Table:
    """Different rows at some levels.

    levels   of each ladder
    codes    for each bundle of ladders, the leaves of one record of each row
    secret   the combination of sensitive values of each row, and its person where people are counted
    weights  how many records each row stands for, and how many people of the population if there is one
    """

    levels: tuple[int, ...]
    codes: tuple[Ints, ...] = field(repr=False)
    secret: Ints = field(repr=False)
    weights: tuple[Ints, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        return len(self.secret)

    @property
    def cells(self) -> int:
        return self.rows * (len(self.codes) + 1 + len(self.weights))


@dataclass(eq=False)
class _Merged:
    """A table that is made from another one when it is needed: most tables never are.

    heads  one row of the other for each row of this one
    """

    levels: tuple[int, ...]
    source: _Table = field(repr=False)
    heads: Ints = field(repr=False)
    weights: tuple[Ints, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        return len(self.heads)

    @property
    def cells(self) -> int:
        return self.rows * (len(self.levels) + 1 + len(self.weights))


class Rollup:
    """The partitions of the nodes of one table."""

    def __init__(self, data: Microdata, goal: Goal) -> None:
        self._ladders = data.ladders
        self._sensitive = goal.sensitive
        self._bundles = _bundled([ladder.leaves for ladder in data.ladders])
        self._maps: dict[tuple[int, tuple[int, ...]], Ints] = {}
        secrets = [(item.codes, len(item.labels)) for item in goal.sensitive.values()]
        self._counts_people = data.people is not None
        if data.people is not None:
            secrets.append((data.people, int(data.people.max(initial=0)) + 1))
        secret, self._values = _combinations(secrets, data.rows)
        self._span = len(self._values[0]) if self._values else 1
        self._plain = not secrets and not goal.mapped
        self._kept: list[_Table | _Merged] = [self._base(data, secret, goal.mapped)]
        self._cells = 0
        self._levels, self._rows = self._indexed()

    def partition(self, levels: Sequence[int]) -> Partition:
        """The classes of a node."""
        source = self._source(levels)
        columns = [self._column(source, number, levels) for number in range(len(self._bundles))]
        if self._plain:
            keys, space = packed(columns, source.rows)
            if space <= _DENSE * source.rows:
                return self._counted(source, levels, keys, space)
        groups = self._grouped(columns, source.secret, source.weights)
        if len(groups.row) < _WORTH * source.rows:
            self._keep(source, levels, groups)
        return self._partition(groups)

    def _counted(self, source: _Table, levels: Sequence[int], keys: Ints, space: int) -> Partition:
        """The classes where nothing but records is counted."""
        counts = np.bincount(keys, source.weights[0], space)
        found = np.flatnonzero(counts > 0)
        sizes = counts[found].astype(np.int64)
        if len(found) < _WORTH * source.rows:
            row = np.empty(space, dtype=np.int64)
            row[keys] = np.arange(source.rows)
            self._keep(source, levels, Groups(found, (sizes,), row[found]))
        return Partition(sizes, {})

    def _base(self, data: Microdata, secret: Ints, mapped: bool) -> _Table:
        """The different rows of the table itself, and of the population if requested."""
        codes, weights = data.codes, [data.each]
        if mapped and data.population is not None:
            people = len(data.population)
            codes, secret = np.concatenate([codes, data.population]), np.append(secret, np.zeros(people, np.int64))
            none, all_people = np.zeros(data.rows, dtype=np.int64), np.ones(people, dtype=np.int64)
            weights = [np.append(data.each, 0 * all_people), np.append(none, all_people)]
        columns = []
        for places in self._bundles:
            leaves, size = packed([(codes[:, place], self._ladders[place].leaves) for place in places], len(codes))
            columns.append((leaves.astype(np.min_scalar_type(size)), size))
        groups = self._grouped(columns, secret, weights)
        bottom = (0,) * len(self._ladders)
        return _Table(bottom, tuple(column[groups.row] for column, _ in columns), secret[groups.row], groups.sums)

    def _grouped(self, columns: Sequence[tuple[Ints, int]], secret: Ints, weights: Sequence[Ints]) -> Groups:
        """Rows by class, and by sensitive values within a class."""
        return grouped(*packed([*columns, (secret, self._span)], len(secret)), weights)

    def _source(self, levels: Sequence[int]) -> _Table:
        """The smallest table that the table at these levels follows from."""
        below = (self._levels <= np.asarray(levels, dtype=np.int64)).all(axis=1)
        return self._made(int(np.argmin(np.where(below, self._rows, np.iinfo(np.int64).max))))

    def _made(self, place: int) -> _Table:
        """A table that is kept, with its codes."""
        kept = self._kept[place]
        if isinstance(kept, _Table):
            return kept
        source, heads = kept.source, kept.heads
        codes = tuple(leaves[heads] for leaves in source.codes)
        made = self._kept[place] = _Table(kept.levels, codes, source.secret[heads], kept.weights)
        return made

    def _column(self, source: _Table, number: int, levels: Sequence[int]) -> tuple[Ints, int]:
        """The groups of each row in a bundle at some levels, as one number, and how many there are."""
        places = self._bundles[number]
        at = tuple(levels[place] for place in places)
        size = math.prod(self._ladders[place].size(level) for place, level in zip(places, at, strict=True))
        leaves = source.codes[number]
        return (leaves if size == 1 else self._map(number, at)[leaves]), size

    def _map(self, number: int, levels: tuple[int, ...]) -> Ints:
        """The groups at some levels for all leaves of a bundle."""
        if (number, levels) not in self._maps:
            if len(self._maps) >= _MAPS:
                self._maps.clear()
            found: Ints = np.zeros((), dtype=np.int64)
            size = 1
            for place, level in zip(self._bundles[number], levels, strict=True):
                ladder = self._ladders[place]
                found = np.add.outer(found * ladder.size(level), ladder.groups[level])
                size *= ladder.size(level)
            self._maps[number, levels] = found.reshape(-1).astype(np.min_scalar_type(size))
        return self._maps[number, levels]

    def _keep(self, source: _Table, levels: Sequence[int], groups: Groups) -> None:
        table = _Merged(tuple(levels), source, groups.row, groups.sums)
        self._kept.append(table)
        self._cells += table.cells
        self._levels = np.vstack([self._levels, np.array([levels], dtype=np.int64)])
        self._rows = np.append(self._rows, table.rows)
        if self._cells > _CELLS:
            self._forget()

    def _forget(self) -> None:
        """Let the largest tables go, but for the first, which everything can be made from."""
        base, *others = self._kept
        others.sort(key=lambda table: table.rows)
        held = np.cumsum([table.cells for table in others])
        stay = int(np.searchsorted(held, _CELLS * _WORTH, side="right"))
        self._kept, self._cells = [base, *others[:stay]], int(held[stay - 1]) if stay else 0
        self._levels, self._rows = self._indexed()
        for place in range(1, len(self._kept)):
            self._made(place)  # so that it does not keep what it was to be made from

    def _indexed(self) -> tuple[Ints, Ints]:
        """The levels and the numbers of rows of the tables that are kept."""
        levels = np.array([table.levels for table in self._kept], dtype=np.int64)
        return levels.reshape(len(self._kept), len(self._ladders)), np.array([table.rows for table in self._kept])

    def _partition(self, groups: Groups) -> Partition:
        """Groups are sorted by class, then by the combination of sensitive values."""
        owner = groups.keys // self._span if self._span > 1 else groups.keys
        fresh = np.ones(len(owner), dtype=bool)
        fresh[1:] = owner[1:] != owner[:-1]
        heads = np.flatnonzero(fresh)
        weights = [np.add.reduceat(weight, heads) if len(heads) else heads for weight in groups.sums]
        if len(weights) > 1 or self._counts_people:
            return self._mapped(groups, fresh, weights)
        counts = {
            name: self._counts(item, place, groups, fresh, heads, weights[0]) for place, (name, item) in self._named
        }
        return Partition(weights[0], counts)

    @property
    def _named(self) -> list[tuple[int, tuple[str, Sensitive]]]:
        return list(enumerate(self._sensitive.items()))

    def _counts(self, item: Sensitive, place: int, groups: Groups, fresh: Bools, heads: Ints, sizes: Ints) -> Counts:
        value = self._values[place][groups.keys % self._span]
        if len(self._sensitive) > 1:
            return tally(item, np.cumsum(fresh) - 1, value, len(sizes), sizes, groups.sums[0])
        starts = np.append(heads, len(value))
        total = np.bincount(value, groups.sums[0], len(item.labels)).astype(np.int64)
        return Counts(item.name, sizes, np.zeros_like(sizes), starts, value, groups.sums[0], total, item.labels)

    def _mapped(self, groups: Groups, fresh: Bools, weights: Sequence[Ints]) -> Partition:
        """The classes with a population, which may be in others, or with people counted."""
        there = weights[0] > 0
        number, entries = np.cumsum(there) - 1, groups.sums[0] > 0
        owner = number[(np.cumsum(fresh) - 1)[entries]]
        sizes, combination = weights[0][there], (groups.keys % self._span)[entries]
        population = weights[1][there] if len(weights) > 1 else None
        values = {name: self._values[place][combination] for place, (name, _) in self._named}
        counts = {
            name: tally(item, owner, values[name], len(sizes), sizes, groups.sums[0][entries])
            for name, item in self._sensitive.items()
        }
        if not self._counts_people:
            return Partition(sizes, counts, population)
        person = self._values[-1][combination]
        span = int(person.max(initial=0)) + 1
        members = np.stack(np.divmod(np.unique(owner * span + person), span))
        people = np.bincount(members[0], minlength=len(sizes)).astype(np.int64)
        counts = {name: counted_people(held, owner, values[name], person, people) for name, held in counts.items()}
        return Partition(people, counts, population, members, sizes)


def _bundled(leaves: Sequence[int]) -> list[tuple[int, ...]]:
    """Neighboring ladders in as few bundles as have few enough combinations of leaves.

    >>> _bundled([16, 16, 16, 16, 16, 100_000, 3])
    [(0, 1, 2), (3, 4), (5,), (6,)]
    """
    bundles: list[tuple[int, ...]] = []
    space = _TOGETHER + 1
    for place, size in enumerate(leaves):
        space *= max(size, 1)
        if space > _TOGETHER:
            bundles.append(())
            space = max(size, 1)
        bundles[-1] += (place,)
    return bundles


def _combinations(columns: Sequence[tuple[Ints, int]], rows: int) -> tuple[Ints, tuple[Ints, ...]]:
    """The combination of codes of each row, and the code of each column in each combination."""
    if not columns:
        return np.zeros(rows, dtype=np.int64), ()
    keys, space = packed(columns, rows)
    groups = grouped(keys, space, [])
    secret = np.searchsorted(groups.keys, keys).astype(np.int64)
    return secret, tuple(codes[groups.row] for codes, _ in columns)


@dataclass(frozen=True)
class Check:
    """What was found at a node.

    suppressed  records in classes that cannot be published, or the people who have one there
    hopeless    the same in classes that no finer partition can save: more of them than may be suppressed rule out
                everything below
    loss        of a loss that follows from classes; 0 for a separable one
    """

    suppressed: int
    hopeless: int
    loss: float


class Checker:
    """Checks nodes of one table for one goal.

    limit   how many records may be suppressed; where people are counted, how many of them may lose a record
    totals  a table that these records are part of, as one class for each attribute; without them, the table is what is
            not suppressed
    """

    def __init__(
        self, data: Microdata, goal: Goal, loss: Loss, limit: int, totals: Mapping[str, Counts] | None = None
    ) -> None:
        self.data, self.goal, self.loss, self.limit, self.totals = data, goal, loss, limit, totals

    @cached_property
    def _rollup(self) -> Rollup:
        return Rollup(self.data, self.goal)

    @property
    def prunes(self) -> bool:
        """Whether every node that is not admissible rules out what is below it."""
        return self.goal.absorbing or (self.goal.additive and not self.limit)

    def check(self, levels: Sequence[int]) -> Check:
        part = self.partition(levels)
        fine, promising = self.goal.judged(part.sizes, part.counts, part.population, suppressing=self.limit > 0)
        hopeless = part.units(~promising)
        if hopeless <= self.limit:
            fine = self._kept(part, fine)
        loss = 0.0 if self.loss.separable else self.loss.of_sizes(part.rows)
        return Check(part.units(~fine), hopeless, loss)

    def partition(self, levels: Sequence[int]) -> Partition:
        """The classes of a node, as the goal is to see them."""
        part = self._rollup.partition(levels)
        if self.totals is None:
            return part
        counts = {name: held.compared(self.totals[name]) for name, held in part.counts.items()}
        return replace(part, counts=counts)

    def admits(self, check: Check) -> bool:
        """Whether a node may be published: something must be left."""
        return check.suppressed <= self.limit and (check.suppressed < self.data.units or not self.data.units)

    def rules_out(self, check: Check) -> bool:
        """Whether nothing below the node may be published either."""
        return check.hopeless > self.limit or 0 < self.data.units == check.hopeless

    def suppressed(self, levels: Sequence[int]) -> Bools:
        """Which rows are in classes of a node that cannot be published."""
        codes, rows = self.data.codes, self.data.rows
        if self.goal.mapped and self.data.population is not None:
            codes = np.concatenate([codes, self.data.population])
        keys = packed(self.data.at(levels, codes), len(codes))[0]
        found, classes = np.unique(keys[:rows], return_inverse=True)
        sizes, counts = self.goal.counted(classes, len(found))
        if self.totals is not None:
            counts = {name: held.compared(self.totals[name]) for name, held in counts.items()}
        people = keys[rows:]
        population = np.bincount(np.searchsorted(found, people[np.isin(people, found)]), minlength=len(found))
        part = Partition(sizes, counts, population if self.goal.mapped else None)
        return np.asarray(~self._kept(part, self.goal.fine(sizes, counts, part.population))[classes])

    def _kept(self, part: Partition, fine: Bools) -> Bools:
        if self.totals is not None:
            return fine
        return self.goal.kept(part.sizes, part.counts, part.population, fine)


Node: TypeAlias = tuple[int, ...]
"""A place on each axis."""
Levels: TypeAlias = tuple[int, ...]
"""A level of each ladder."""
Singles: TypeAlias = NDArray[np.float32]
_Real = TypeVar("_Real", np.float32, np.float64)

_BUNDLE = 64
"""About how many nodes the axes have that are summed in one product."""


Bounds: TypeAlias = Sequence[tuple[int, int]]
"""For each ladder the lowest and the highest level that is allowed."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The nodes that are looked at.

    axes   for each ladder the levels that are looked at, the last among them
    whole  whether no level is left out
    lows   the lowest level of each ladder that is allowed
    """

    axes: tuple[Ints, ...]
    whole: bool = True
    lows: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, ladders: Sequence[Ladder], most: int, through: Sequence[int] | None = None, bounds: Bounds | None = None
    ) -> Lattice:
        """All nodes, or at most so many, then with the node `through` and its neighbors if given.

        bounds  the lowest and the highest level of each ladder; all levels when None
        """
        bounds = bounds or [(0, ladder.height) for ladder in ladders]
        lows = tuple(low for low, _ in bounds)
        full = [high - low + 1 for low, high in bounds]
        lengths, shortest = list(full), 2 if through is None else 1
        while math.prod(lengths) > most and max(lengths) > shortest:
            longest = int(np.argmax(lengths))
            lengths[longest] -= 1
        near = [None if through is None else through[place] - low for place, low in enumerate(lows)]
        axes = [
            low + _axis(count, length, level)
            for low, count, length, level in zip(lows, full, lengths, near, strict=True)
        ]
        return cls(tuple(axes), [len(axis) for axis in axes] == full, lows)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.axes))

    @property
    def _lows(self) -> tuple[int, ...]:
        return self.lows or (0,) * len(self.axes)

    @property
    def top(self) -> Node:
        return tuple(length - 1 for length in self.shape)

    def levels(self, node: Node) -> tuple[int, ...]:
        return tuple(int(axis[place]) for axis, place in zip(self.axes, node, strict=True))

    def covering(self, node: Node) -> tuple[slice, ...]:
        """The nodes whose cell lies above a node as a whole.

        The cell of a node holds the levels left out just below it, so that every choice of levels is in one cell. On an
        axis without gaps that is everything from the node on, above a gap everything beyond it.
        """
        return tuple(
            slice(place if axis[place] == (axis[place - 1] + 1 if place else low) else place + 1, None)
            for axis, place, low in zip(self.axes, node, self._lows, strict=True)
        )

    def node(self, levels: Sequence[int]) -> Node | None:
        """The node of some levels; None where it was left out."""
        found = tuple(int(np.searchsorted(axis, level)) for axis, level in zip(self.axes, levels, strict=True))
        return found if self.levels(found) == tuple(levels) else None

    def lowest(self, costs: Sequence[Floats]) -> Floats:
        """The least sum of costs in the cell of each node, for costs that rise with each level."""
        first = [np.append(low, axis[:-1] + 1) for axis, low in zip(self.axes, self._lows, strict=True)]
        return outer_sum([cost[levels] for cost, levels in zip(costs, first, strict=True)])


def _axis(count: int, length: int, near: int | None) -> Ints:
    """So many of the levels: spread evenly, or those next to a level, with the last one."""
    if near is None:
        return np.unique(np.linspace(0, count - 1, length).round().astype(np.int64))
    last = count - 1
    order = sorted({*range(count)} - {near, last}, key=lambda level: (abs(level - near), level))
    return np.array(sorted([*{near, last}, *order][: max(length, len({near, last}))]), dtype=np.int64)


def outer_sum(parts: Sequence[NDArray[_Real]]) -> NDArray[_Real]:
    """The sum of one number of each part, for all choices: one axis a part.

    >>> outer_sum([np.array([0.0, 1.0]), np.array([5.0, 7.0, 8.0])])
    array([[5., 7., 8.],
           [6., 8., 9.]])
    """
    total = np.zeros((), dtype=parts[0].dtype if parts else np.float64)
    for part in parts:
        total = np.asarray(np.add.outer(total, part))
    return total


def counts_below(nodes: Bools) -> Singles:
    """How many of the nodes lie below each node, itself included.

    Neighboring axes are taken together, and summed by a product with the matrix that says what is below what: axes are
    so short that going along them one by one takes longer.
    """
    counts = nodes.astype(np.float32)
    after = nodes.size
    for lengths in _bundles(nodes.shape):
        below = _below(lengths)
        after //= len(below)
        parts = counts.reshape(-1, len(below), after)
        counts = parts[:, :, 0] @ below.T if after == 1 else np.matmul(below, parts)
    return counts.reshape(nodes.shape)


def counts_above(nodes: Bools) -> Singles:
    """How many of the nodes lie above each node, itself included."""
    turn = (slice(None, None, -1),) * nodes.ndim
    return counts_below(nodes[turn])[turn]


def _bundles(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Neighboring axes in as few parts as are quick to sum, about equally large."""
    size = math.prod(shape)
    parts = max(1, math.ceil(math.log(max(size, 2)) / math.log(_BUNDLE)))
    bundles: list[tuple[int, ...]] = []
    for length in shape:
        if bundles and math.prod(bundles[-1]) < size ** (1.0 / parts) - 0.5:
            bundles[-1] += (length,)
        else:
            bundles.append((length,))
    return bundles


@lru_cache(maxsize=4096)
def _below(lengths: tuple[int, ...]) -> Singles:
    """1 where the second node is below the first."""
    product = np.ones((1, 1), dtype=np.float32)
    for length in lengths:
        product = np.kron(product, np.tri(length, dtype=np.float32))
    return product


def box(nodes: Bools) -> tuple[slice, ...]:
    """The smallest box that holds all of the nodes, of which there is at least one."""
    sides = []
    for axis in range(nodes.ndim):
        line = np.flatnonzero(nodes.any(axis=tuple(other for other in range(nodes.ndim) if other != axis)))
        sides.append(slice(int(line[0]), int(line[-1]) + 1))
    return tuple(sides)
