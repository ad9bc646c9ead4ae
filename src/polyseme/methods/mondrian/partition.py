"""Mondrian for a policy: classes of a depth are cut together, along their widest axes first.

The tree of cuts says which class any record belongs to, from its leaves alone.

A node is cut along one axis, by leaves (an order) or by the groups of a level (a hierarchy). Its children follow each
other in the order of the value with which each begins; a record goes to the last that does not begin after its own.
"""

from __future__ import annotations

import itertools
import pickle
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, Problem, nearest
from polyseme.kernel.randomness import SystemStream
from polyseme.kernel.work import Cancellation, stage
from polyseme.methods.goal import Generalizing, Goal, GroupingMethod, Task
from polyseme.methods.microdata import Ladder, Microdata, Recoding
from polyseme.methods.mondrian.cuts import (
    Axis,
    Judge,
    Ordered,
    Parts,
    axis_of,
    halves,
    nearest_to_half,
    pooled,
    sort_within,
)
from polyseme.tables.people import people_in_cells

__all__ = ["BY_LEAVES", "METHOD", "CutTree", "Cuts", "Growing", "Mode", "Mondrian", "Search", "axes_of", "mondrian"]

BY_LEAVES = -1
"""The level of a cut of an order."""
_UNCUT = -1


@dataclass(frozen=True, eq=False)
class Cuts:
    """How each node but the root was cut, in the order of numbers; parents come first.

    parents  the node that was cut
    axis     along which quasi-identifier
    level    by the groups of which level; `BY_LEAVES` for an order
    values   with which each begins
    """

    parents: Ints = field(repr=False)
    axis: Ints = field(repr=False)
    level: Ints = field(repr=False)
    values: Ints = field(repr=False)

    @classmethod
    def joined(cls, pieces: Iterable[Cuts]) -> Cuts:
        """The nodes of several pieces one after the other."""
        nothing = np.zeros(0, dtype=np.int64)
        found = [(nothing,) * 4, *((piece.parents, piece.axis, piece.level, piece.values) for piece in pieces)]
        return cls(*(np.concatenate(part, dtype=np.int64) for part in zip(*found, strict=True)))

    def __len__(self) -> int:
        return len(self.parents)

    def among(self, kept: Bools, number: Ints) -> Cuts:
        """Some of the nodes; `number` is the new one of each old one, the root first."""
        return Cuts(number[self.parents[kept]], self.axis[kept], self.level[kept], self.values[kept])

    def small(self) -> Cuts:
        """The same in numbers as small as will do."""
        return Cuts(*map(small, (self.parents, self.axis, self.level, self.values)))


def small(numbers: Ints) -> Ints:
    """The same numbers in as few bytes as will do."""
    least, most = (int(at(numbers, initial=0)) for at in (np.min, np.max))
    return numbers.astype(np.result_type(np.min_scalar_type(least), np.min_scalar_type(most)))


@dataclass(frozen=True, eq=False)
class CutTree:
    """Nodes are numbered from 0, the root.

    groups    for each quasi-identifier, the group of each leaf at each level: (levels, leaves)
    axis      along which each node is cut; -1 for one that is not: (nodes,)
    level     by the groups of which level; `BY_LEAVES` for an order: (nodes,)
    first     the first child of a node that is cut, as a place in `children`; of others, the row in `shown`: (nodes,)
    children  the nodes but for the root, by parent and the value with which they begin
    keys      parent and value as one number, ascending
    shown     the cells of the nodes that are not cut: (ends, q)

    Some millions of classes go with every task to the workers. So numbers are as small as will do, and only what the
    others follow from is pickled: 15 bytes for each of half a million classes of five quasi-identifiers.
    """

    groups: tuple[Ints, ...] = field(repr=False)
    axis: Ints = field(repr=False)
    level: Ints = field(repr=False)
    first: Ints = field(repr=False)
    children: Ints = field(repr=False)
    keys: Ints = field(repr=False)
    shown: Ints = field(repr=False)

    @classmethod
    def of(cls, ladders: tuple[Ladder, ...], cuts: Cuts, nodes: Ints, shown: Ints) -> CutTree:
        """From all cuts, and the cells of the nodes that were not cut, in the order of `nodes`."""
        return cls._of(tuple(np.stack(ladder.groups) for ladder in ladders), cuts, nodes, shown)

    @classmethod
    def _of(cls, groups: tuple[Ints, ...], cuts: Cuts, nodes: Ints, shown: Ints) -> CutTree:
        parents = cuts.parents.astype(np.int64)
        order = np.lexsort((cuts.values, parents))
        axis, level = np.full((2, len(cuts) + 1), _UNCUT)
        axis[parents], level[parents] = cuts.axis, cuts.level
        first = np.searchsorted(parents[order], np.arange(len(axis)))
        first[nodes] = np.arange(len(nodes))
        keys = parents[order] * _span(groups) + cuts.values[order]
        return cls(groups, small(axis), small(level), small(first), small(order + 1), keys, shown.astype(np.int32))

    def __reduce__(self) -> tuple[Any, ...]:
        ends = self.ends
        parts = (self.groups, self.cuts.small(), small(ends), small(self.shown[self.first[ends]]))
        return _unpacked, (zlib.compress(pickle.dumps(parts), level=1),)

    def nodes(self, leaves: Ints) -> Ints:
        """The node that is not cut to which each record belongs."""
        found = np.zeros(len(leaves), dtype=np.int64)
        going = np.flatnonzero(self.axis[found] != _UNCUT)
        while len(going):
            at = found[going]
            keys = at * self._span + self._values(leaves, going, at)
            # What comes before all children goes to the first; nothing does that was there when the tree grew.
            place = np.maximum(np.searchsorted(self.keys, keys, side="right") - 1, self.first[at])
            found[going] = self.children[place]
            going = going[self.axis[found[going]] != _UNCUT]
        return found

    @property
    def ends(self) -> Ints:
        """The nodes that are not cut."""
        return np.flatnonzero(self.axis == _UNCUT)

    @property
    def parents(self) -> Ints:
        """The node from which each was cut; the root's is the root."""
        found = np.zeros(len(self.axis), dtype=np.int64)
        found[self.children] = self.keys // self._span
        return found

    @property
    def cuts(self) -> Cuts:
        """How each node but the root came to be."""
        parents, values = np.zeros((2, len(self.axis)), dtype=np.int64)
        parents[self.children], values[self.children] = np.divmod(self.keys, self._span)
        parents, values = parents[1:], values[1:]
        return Cuts(parents, self.axis[parents].astype(np.int64), self.level[parents].astype(np.int64), values)

    def cells(self, leaves: Ints) -> Ints:
        """What each record shows."""
        return self.shown[self.first[self.nodes(leaves)]]

    @property
    def _span(self) -> int:
        return _span(self.groups)

    def _values(self, leaves: Ints, rows: Ints, nodes: Ints) -> Ints:
        """What records are cut by at their nodes."""
        values = np.empty(len(rows), dtype=np.int64)
        axis, level = self.axis[nodes], self.level[nodes]
        for place, groups in enumerate(self.groups):
            here = np.flatnonzero(axis == place)
            codes, by = leaves[rows[here], place], level[here]
            values[here] = np.where(by == BY_LEAVES, codes, groups[by, codes])
        return values


class Growing:
    """A tree while it grows: children are added to nodes that are there."""

    def __init__(self) -> None:
        self._count = 1
        self._pieces: list[Cuts] = []

    def add(self, parents: Ints, axis: Ints, level: Ints, values: Ints) -> Ints:
        """New nodes: the parent of each, how that is cut, and the value with which each begins."""
        self._pieces.append(Cuts(parents, axis, level, values))
        self._count += len(parents)
        return np.arange(self._count - len(parents), self._count)

    @property
    def cuts(self) -> Cuts:
        """All of them so far."""
        return Cuts.joined(self._pieces)

    def grown(self, ladders: tuple[Ladder, ...], nodes: Ints, shown: Ints) -> CutTree:
        """The tree, from the cells of the nodes that were not cut."""
        return CutTree.of(ladders, self.cuts, nodes, shown)


def _unpacked(packed: bytes) -> CutTree:
    return CutTree._of(*pickle.loads(zlib.decompress(packed)))  # noqa: S301 - inside of what is being unpickled


def _span(groups: tuple[Ints, ...]) -> int:
    """More than any value by which records are cut."""
    return 1 + max((part.shape[1] for part in groups), default=0)


Mode: TypeAlias = Literal["strict", "relaxed"]


def mondrian(
    data: Microdata,
    goal: Goal,
    stream: SystemStream,
    mode: Mode = "strict",
    ordered: Mapping[str, bool] | None = None,
    cancellation: Cancellation | None = None,
) -> Recoding:
    """Classes as small as cuts can make them, each of which fulfills the goal.

    No record is suppressed.

    stream   by which equal values are separated in the relaxed mode, so that the order of the table says nothing;
             seeded for experiments only
    ordered  for some quasi-identifiers, whether they are cut along the order of their leaves; the others are if their
             leaves are ascending numbers, and along their hierarchy otherwise

    Refuses a goal that the whole table as one class does not meet.
    """
    known = ordered or {}
    _check(data, goal, mode, known)
    axes = axes_of(data, known)
    if not data.records:
        return _recoding(data, axes, Parts.classes([]))
    rows = stream.permutation(data.rows) if mode == "relaxed" else np.arange(data.rows)
    judge = Judge.of(goal, data.units)
    if goal.mapped and data.population is not None:
        judge = replace(judge, fitting=partial(_fitting, axes, *np.unique(data.population, axis=0, return_counts=True)))
    search = Search(axes, judge, mode)
    classes, nodes = search.run(search.whole(rows), cancellation)
    made = _recoding(data, axes, classes)
    return made if mode == "relaxed" else _ruled(made, data, classes, nodes, search.tree)


def axes_of(data: Microdata, ordered: Mapping[str, bool]) -> list[Axis]:
    """The axes along which a table is cut."""
    return [
        axis_of(ladder, np.ascontiguousarray(data.codes[:, place]), ordered.get(ladder.name))
        for place, ladder in enumerate(data.ladders)
    ]


def _check(data: Microdata, goal: Goal, mode: str, ordered: Mapping[str, bool]) -> None:
    problems = []
    if mode == "relaxed" and data.counts is not None:
        raise ValueError("records that share a row cannot be separated by lot")
    if mode not in get_args(Mode):
        problems.append(Problem("mode", f"unknown mode '{mode}'", nearest(str(mode), get_args(Mode))))
    elif mode == "relaxed" and not goal.additive:
        what = "equal values in different classes look like one class, in which this goal may fail"
        problems.append(Problem("mode", what, "use mode: strict"))
    problems += [
        Problem(f"ordered.{name}", "not a quasi-identifier", nearest(name, data.names))
        for name in ordered
        if name not in data.names
    ]
    if problems:
        raise PolicyError(problems)


@dataclass(frozen=True, eq=False)
class _Open:
    """Classes, and the node of the tree that each is."""

    parts: Parts
    nodes: Ints

    def of(self, classes: Bools) -> _Open:
        return _Open(self.parts.of(classes), self.nodes[classes])


@dataclass(frozen=True, eq=False)
class Search:
    """Along which axes classes are cut, what parts must meet, how equal values are treated.

    tree    the cuts so far; in the relaxed mode they separate equal values, and none is kept
    halved  whether the children of a node are put into two halves, in their order, in place of a part for each
    """

    axes: Sequence[Axis]
    judge: Judge
    mode: Mode
    tree: Growing = field(default_factory=Growing)
    halved: bool = False

    def whole(self, rows: Ints) -> Parts:
        """The table as one class, if that meets the goal."""
        whole = Parts(rows, np.array([0]), np.array([0]))
        failing = self.judge.failing(whole)
        if failing:
            additive, size = self.judge.goal.additive, self.judge.sizes(whole)[0]
            units = "records" if self.judge.goal.people is None else "people"
            raise ImpossibleError(
                f"the whole table as one class, of {size:,} {units}, does not meet {', '.join(failing)}",
                "then no partition does: ask for less" if additive else "Mondrian starts there: try method: buckets",
            )
        return whole

    def extents(self, classes: Parts) -> list[Ints]:
        """How far each class reaches along each axis."""
        return [axis.extents(classes.records, classes.starts) for axis in self.axes]

    def run(self, whole: Parts, cancellation: Cancellation | None = None) -> tuple[Parts, Ints]:
        """Classes that are cut no further, and the node of the tree that each is."""
        open_, found = _Open(whole, np.array([0])), list[_Open]()
        records = int(self.judge.records(whole).sum())
        with stage("classes", "Cutting classes", records) as progress:
            while len(open_.nodes):
                if cancellation is not None:
                    cancellation.check()
                final, open_ = self.deepened(open_)
                found += final
                progress.reach(records - int(self.judge.records(open_.parts).sum()))
        return Parts.classes([part.parts for part in found]), np.concatenate([part.nodes for part in found])

    def deepened(self, open_: _Open) -> tuple[list[_Open], _Open]:
        """Final classes, and the parts of the others, which are the classes of the next depth."""
        # A person with two rows may be in both parts.
        large = self.judge.records(open_.parts) >= 2 * self.judge.least
        final, open_ = [open_.of(~large)], open_.of(large)
        pieces: list[Parts] = []
        nodes: list[Ints] = [np.zeros(0, dtype=np.int64)]
        classes = open_.parts
        if len(classes.starts) and self.axes:
            extents = self.extents(classes)
            widths = np.column_stack([axis.widths(extent) for axis, extent in zip(self.axes, extents)])
            ranking = np.argsort(-widths, axis=1, kind="stable")
            waiting = np.ones(len(widths), dtype=bool)
            # Equal values are separated only in classes that nothing else cuts: parts that share a value are wider.
            for by_lot, along in itertools.product((False, True)[: 1 + (self.mode == "relaxed")], ranking.T):
                tried = waiting & (widths[np.arange(len(widths)), along] > 0)
                if not tried.any():
                    continue
                within = [extent[tried] for extent in extents]
                piece, cut = self._tried(classes.of(tried), along[tried], within, by_lot)
                pieces += piece
                done = np.flatnonzero(tried)[cut]
                nodes += [self._noted(parts, open_.nodes[done], along[done], extents, done) for parts in piece]
                waiting[done] = False
            open_ = open_.of(waiting)
        return [*final, open_], _Open(Parts.classes(pieces), np.concatenate(nodes))

    def _noted(self, parts: Parts, parents: Ints, along: Ints, extents: Sequence[Ints], classes: Ints) -> Ints:
        """New nodes for the parts of some classes."""
        if self.mode == "relaxed":
            return np.zeros(len(parts.starts), dtype=np.int64)
        # The parts of a class are in the order of their values, and so are the records of each.
        first, owner = parts.records[parts.starts], classes[parts.owner]
        axis = along[parts.owner]
        level, values = np.full(len(first), BY_LEAVES), np.empty(len(first), dtype=np.int64)
        for place in np.unique(axis):
            here = np.flatnonzero(axis == place)
            values[here] = self.axes[place].values(first[here], owner[here], extents[place])
            if not isinstance(self.axes[place], Ordered):
                level[here] = extents[place][owner[here], 0] - 1
        return self.tree.add(parents[parts.owner], axis, level, values)

    def _tried(self, classes: Parts, along: Ints, extents: Sequence[Ints], by_lot: bool) -> tuple[list[Parts], Bools]:
        """Parts of the classes that could be cut, and which these are.

        by_lot  whether equal values of an order are separated, and children that violate pooled
        """
        parts = self._cut(classes, along, extents, by_lot)
        cut = self.judge.all_of(parts)
        pieces = [parts.of(cut)]
        if by_lot:
            nodes = ~cut & np.array([not isinstance(axis, Ordered) for axis in self.axes])[along]
            if nodes.any():
                piece, pooled_ = self._pooled(parts.of(nodes))
                pieces.append(piece)
                cut[np.flatnonzero(nodes)[pooled_]] = True
        return pieces, cut

    def _cut(self, classes: Parts, along: Ints, extents: Sequence[Ints], by_lot: bool) -> Parts:
        """All parts that a cut of each class along its axis would have."""
        owner, records = classes.numbers(), classes.records
        values = np.empty(len(records), dtype=np.int64)
        for place in np.unique(along):
            here = np.flatnonzero((along == place)[owner]) if (along != place).any() else slice(None)
            values[here] = self.axes[place].values(records[here], owner[here], extents[place])
        places = sort_within(owner, values)
        records, values = records[places], values[places]
        changes = np.diff(values, prepend=-1) != 0
        ordered = np.array([self.halved or isinstance(axis, Ordered) for axis in self.axes])[along]
        begins = changes & ~ordered[owner]
        begins[classes.starts] = True
        if by_lot:
            middle = halves(owner, classes.starts)
        else:
            weights = self.judge.goal.weights
            each = None if weights is None else weights[records]
            middle = nearest_to_half(owner, classes.starts, changes, each)
        begins[middle[ordered]] = True
        return Parts.beginning(records, begins, owner)

    def _pooled(self, parts: Parts) -> tuple[Parts, Bools]:
        """Violating parts pooled under their node; if still violating, with the smallest other part."""
        fine = self.judge.each(parts)
        smallest = np.minimum.reduceat(np.where(fine, parts.sizes, np.iinfo(np.int64).max), parts.firsts)
        candidates = np.flatnonzero(fine & (parts.sizes == smallest[parts.owner]))
        first = candidates[np.flatnonzero(np.diff(parts.owner[candidates], prepend=-1))]
        also = ~fine
        also[first] = True
        pieces, cut = [], np.zeros(len(parts.firsts), dtype=bool)
        for pool in (~fine, also):
            made = pooled(parts, pool)
            good = self.judge.all_of(made) & (np.bincount(made.owner) > 1) & ~cut
            # One child alone would be shown as itself, and has been tried already.
            good &= np.bincount(parts.owner, weights=pool) > 1
            pieces.append(made.of(good))
            cut |= good
        return Parts.classes(pieces), cut


def _fitting(axes: Sequence[Axis], population: Ints, people: Ints, parts: Parts) -> Ints:
    """How many people fit each part; `people` has those of each row of the population."""
    shown, leaves = np.zeros((len(parts.starts), len(axes)), dtype=np.int64), []
    for place, axis in enumerate(axes):
        shown[:, place], cells = axis.cells(axis.extents(parts.records, parts.starts))
        leaves.append(cells.leaves)
    return people_in_cells(shown, leaves, population, people)


def _recoding(data: Microdata, axes: Sequence[Axis], classes: Parts) -> Recoding:
    """What is shown; classes that look alike are one."""
    cells, shown = [], np.zeros((len(classes.starts), len(axes)), dtype=np.int64)
    for place, axis in enumerate(axes):
        extents = axis.extents(classes.records, classes.starts) if data.records else np.zeros((0, 2), dtype=np.int64)
        shown[:, place], found = axis.cells(extents)
        cells.append(found)
    shown, number = np.unique(shown, axis=0, return_inverse=True)
    of_row = np.empty(data.rows, dtype=np.int64)
    of_row[classes.records] = number.reshape(-1)[classes.numbers()]
    return Recoding(of_row, shown, tuple(cells), counts=data.counts)


def _ruled(made: Recoding, data: Microdata, classes: Parts, nodes: Ints, tree: Growing) -> Recoding:
    """The partition as a rule for any record: the tree of cuts, and what each leaf shows."""
    ends = made.shown[made.classes[classes.records[classes.starts]]]
    return replace(made, showing=tree.grown(data.ladders, nodes, ends))


class Mondrian(Generalizing):
    """Classes that are cut as long as the goal allows."""

    name: ClassVar[str] = "mondrian"

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        # The relaxed mode separates records that are alike by lot.
        return bool(parameters["mode"] == "strict")

    def group(self, task: Task) -> Recoding:
        task.require_goal(self.name)
        return mondrian(task.data, task.goal, task.stream, mode=task.parameters["mode"], cancellation=task.cancellation)


METHOD: GroupingMethod = Mondrian()
