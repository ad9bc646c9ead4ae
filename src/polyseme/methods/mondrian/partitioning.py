"""The search: classes of a depth are cut together, along their widest axes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from polyseme.arrays import Bools, Ints
from polyseme.cancellation import Cancellation
from polyseme.errors import ImpossibleError, PolicyError, Problem, nearest
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Microdata, Recoding
from polyseme.methods.mondrian.axes import Axis, Ordered, axis_of
from polyseme.methods.mondrian.cutting import Parts, halves, nearest_to_half, pooled, sort_within
from polyseme.methods.mondrian.judging import Judge
from polyseme.progress import stage
from polyseme.randomness import SystemStream

__all__ = ["Mode", "mondrian"]

Mode: TypeAlias = Literal["strict", "relaxed"]


def mondrian(
    data: Microdata,
    goal: Goal,
    stream: SystemStream,
    mode: Mode = "strict",
    ordered: Mapping[str, bool] | None = None,
    cancellation: Cancellation | None = None,
) -> Recoding:
    """Classes as small as cuts can make them, each of which fulfils the goal. No record is suppressed.

    stream   by which equal values are separated in the relaxed mode, so that the order of the table says nothing;
             seeded for experiments only
    ordered  for some quasi-identifiers, whether they are cut along the order of their leaves; the others are if their
             leaves are ascending numbers, and along their hierarchy otherwise

    Refuses a goal that the whole table as one class does not meet.
    """
    known = ordered or {}
    _check(data, goal, mode, known)
    axes = [
        axis_of(ladder, np.ascontiguousarray(data.codes[:, place]), known.get(ladder.name))
        for place, ladder in enumerate(data.ladders)
    ]
    if not data.records:
        return _recoding(data, axes, Parts.classes([]))
    records = stream.permutation(data.records) if mode == "relaxed" else np.arange(data.records)
    judge = Judge.of(goal, data.records)
    open_, search = _whole(judge, records), _Search(axes, judge, mode)
    found: list[Parts] = []
    with stage("Cutting classes", data.records) as told:
        while len(open_.starts):
            if cancellation is not None:
                cancellation.check()
            final, open_ = search.deepened(open_)
            found += final
            told.reach(data.records - len(open_.records))
    return _recoding(data, axes, Parts.classes(found))


def _check(data: Microdata, goal: Goal, mode: str, ordered: Mapping[str, bool]) -> None:
    problems = []
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
    problems += [
        Problem(demand.name, "Mondrian does not count a reference table", "use method: full-domain")
        for demand in goal.demands
        if demand.spec.model.name == "k-map"
    ]
    if problems:
        raise PolicyError(problems)


def _whole(judge: Judge, records: Ints) -> Parts:
    """The table as one class, if that meets the goal."""
    whole = Parts(records, np.array([0]), np.array([0]))
    failing = judge.failing(whole)
    if failing:
        additive = judge.goal.additive
        raise ImpossibleError(
            f"the whole table as one class, of {len(records):,} records, does not meet {', '.join(failing)}",
            "then no partition does: ask for less" if additive else "Mondrian starts there: try method: buckets",
        )
    return whole


@dataclass(frozen=True, eq=False)
class _Search:
    """Along which axes classes are cut, what their parts must meet, and how equal values are treated."""

    axes: Sequence[Axis]
    judge: Judge
    mode: Mode

    def deepened(self, open_: Parts) -> tuple[list[Parts], Parts]:
        """Classes that are final, and the parts of the others, which are the classes of the next depth."""
        large = open_.sizes >= 2 * self.judge.least
        final, open_ = [open_.of(~large)], open_.of(large)
        pieces: list[Parts] = []
        if len(open_.starts) and self.axes:
            extents = [axis.extents(open_.records, open_.starts) for axis in self.axes]
            widths = np.column_stack([axis.widths(extent) for axis, extent in zip(self.axes, extents)])
            ranking = np.argsort(-widths, axis=1, kind="stable")
            waiting = np.ones(len(widths), dtype=bool)
            for along in ranking.T:
                tried = waiting & (widths[np.arange(len(widths)), along] > 0)
                if not tried.any():
                    break
                piece, cut = self._tried(open_.of(tried), along[tried], [extent[tried] for extent in extents])
                pieces += piece
                waiting[np.flatnonzero(tried)[cut]] = False
            open_ = open_.of(waiting)
        return [*final, open_], Parts.classes(pieces)

    def _tried(self, classes: Parts, along: Ints, extents: Sequence[Ints]) -> tuple[list[Parts], Bools]:
        """Parts of the classes that could be cut, and which these are."""
        parts = self._cut(classes, along, extents)
        cut = self.judge.all_of(parts)
        pieces = [parts.of(cut)]
        if self.mode == "relaxed":
            nodes = ~cut & np.array([not isinstance(axis, Ordered) for axis in self.axes])[along]
            if nodes.any():
                piece, pooled_ = self._pooled(parts.of(nodes))
                pieces.append(piece)
                cut[np.flatnonzero(nodes)[pooled_]] = True
        return pieces, cut

    def _cut(self, classes: Parts, along: Ints, extents: Sequence[Ints]) -> Parts:
        """All parts that a cut of each class along its axis would have."""
        owner, records = classes.numbers(), classes.records
        values = np.empty(len(records), dtype=np.int64)
        for place in np.unique(along):
            here = np.flatnonzero((along == place)[owner]) if (along != place).any() else slice(None)
            values[here] = self.axes[place].values(records[here], owner[here], extents[place])
        places = sort_within(owner, values)
        records, values = records[places], values[places]
        changes = np.diff(values, prepend=-1) != 0
        ordered = np.array([isinstance(axis, Ordered) for axis in self.axes])[along]
        begins = changes & ~ordered[owner]
        begins[classes.starts] = True
        middle = (
            halves(owner, classes.starts) if self.mode == "relaxed" else nearest_to_half(owner, classes.starts, changes)
        )
        begins[middle[ordered]] = True
        return Parts.beginning(records, begins, owner)

    def _pooled(self, parts: Parts) -> tuple[Parts, Bools]:
        """Parts that violate stay together under the node; where that is not enough, with the smallest other."""
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


def _recoding(data: Microdata, axes: Sequence[Axis], classes: Parts) -> Recoding:
    """What is shown; classes that look alike are one."""
    cells, shown = [], np.zeros((len(classes.starts), len(axes)), dtype=np.int64)
    for place, axis in enumerate(axes):
        extents = axis.extents(classes.records, classes.starts) if data.records else np.zeros((0, 2), dtype=np.int64)
        shown[:, place], found = axis.cells(extents)
        cells.append(found)
    shown, number = np.unique(shown, axis=0, return_inverse=True)
    of_record = np.empty(data.records, dtype=np.int64)
    of_record[classes.records] = number.reshape(-1)[classes.numbers()]
    return Recoding(of_record, shown, tuple(cells))
