"""A table in parts that Mondrian cuts one by one: for tables that no machine holds.

    division = divided(sample, parts)           # cuts of a sample: boxes with about equally many records
    division.parts_of(leaves)                   # the part of any record
    settled(division, parts, goal)              # parts that do not reach the goal joined, by exact counts
    cut_part(part, goal of the part, totals)    # wherever the records of the part are

A sample decides only where the first cuts are. Every part reaches the goal as one class, counted exactly, and is then
cut as a whole table would be, so that every class does. What is lost against cutting the whole table is that the first
cuts are near to the middle, and not the nearest.

Parts that were cut where their records are become one tree, as if one machine had cut them all.

    branch = cut_part(part, goal of the part, totals)   # on whatever machine; it holds no record
    made = grafted(division, branches, ladders)         # on one: a rule for any record of the table

A branch is the cuts of one part and how far each of its classes reaches. It depends on the records of the part and on
nothing else: computed again, it is the same. What classes show, and under which labels, is decided when all of them are
known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import ImpossibleError, InternalError
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Cells, Ladder, Microdata
from polyseme.methods.mondrian.cuts import Judge, Parts
from polyseme.methods.mondrian.partition import Cuts, CutTree, Search, axes_of, small
from polyseme.tables.equivalence_classes import Counts

__all__ = ["SAMPLE", "Branch", "Division", "Grafted", "cut_part", "divided", "grafted", "settled"]

SAMPLE = 100_000
"""Records of a sample that cut a table into some hundred parts evenly: a part of 1 in 200 has 500 of them."""


@dataclass(frozen=True, eq=False)
class Division:
    """Which part any record belongs to. It can be pickled.

    tree   of the first cuts; what its nodes show is not known yet
    joint  the part of each node: the node itself, or one above it where that was joined with others
    """

    tree: CutTree = field(repr=False)
    joint: Ints = field(repr=False)

    @property
    def numbers(self) -> Ints:
        """The parts, by their numbers."""
        return np.unique(self.joint[self.tree.ends])

    def parts_of(self, leaves: Ints) -> Ints:
        """The part of each record."""
        return self.joint[self.tree.nodes(leaves)]

    def trunk(self) -> tuple[Cuts, Ints]:
        """The cuts down to the parts and no further, and the number that each node has among these."""
        kept = self.joint == np.arange(len(self.joint))
        number = np.cumsum(kept) - 1
        return self.tree.cuts.among(kept[1:], number), number

    def joined(self, nodes: Ints) -> Division:
        """The same with each of these nodes as one part."""
        joint, parents = self.joint.copy(), self.tree.parents
        joint[nodes] = nodes
        into = np.zeros(len(joint), dtype=bool)
        into[nodes] = True
        # Nodes have larger numbers than those above them.
        for node in range(1, len(joint)):
            above = parents[node]
            if into[above]:
                into[node], joint[node] = True, joint[above]
        return replace(self, joint=joint)


def divided(sample: Microdata, parts: int, ordered: Mapping[str, bool] | None = None, halved: bool = True) -> Division:
    """About so many parts, at most twice as many, with equally many records of the sample.

    halved  whether the children of a node may be divided among two parts. Otherwise each is a part of its own, and a
            node with many children, or with a small one, cannot be cut; but fewer classes of two parts look alike
    """
    least = max(1, sample.records // (2 * max(parts, 1)))
    # Parts only need a size: what they must reach is counted in all records.
    judge = Judge(Goal((), {}, sample.counts), least, {})
    search = Search(axes_of(sample, ordered or {}), judge, "strict", halved=halved)
    whole = Parts(np.arange(sample.rows), np.array([0]), np.array([0]))
    _, nodes = search.run(whole)
    tree = search.tree.grown(sample.ladders, nodes, np.zeros((len(nodes), 0), dtype=np.int64))
    return Division(tree, np.arange(len(tree.axis)))


def settled(division: Division, parts: Ints, goal: Goal) -> Division:
    """Parts that reach the goal: one that does not is joined with all that it was cut from.

    parts  the part of each row of counts of all records, and their sensitive values in `goal`
    """
    nodes = parts.copy()
    while True:
        found, owner = np.unique(nodes, return_inverse=True)
        sizes, counts = goal.counted(owner, len(found))
        failing = found[~goal.fine(sizes, counts)]
        if not len(failing):
            return division
        if 0 in failing:
            names = [demand.name for demand in goal.demands if not demand.score(sizes, counts).fine.all()]
            hint = "then no partition does: ask for less" if goal.additive else "Mondrian starts there: ask for less"
            what = f"the whole table as one class, of {sizes.sum():,} records, does not meet {', '.join(names)}"
            raise ImpossibleError(what, hint)
        division = division.joined(np.unique(division.tree.parents[failing]))
        nodes = division.joint[nodes]


@dataclass(frozen=True, eq=False)
class Branch:
    """One part after it was cut, in some bytes for each class.

    records  how many the part has
    cuts     how it was cut, as a tree of its own
    ends     the nodes that were not cut: the classes
    extents  how far each of these reaches along each axis: (classes, q, 2)
    """

    records: int
    cuts: Cuts = field(repr=False)
    ends: Ints = field(repr=False)
    extents: Ints = field(repr=False)


@dataclass(frozen=True, eq=False)
class Grafted:
    """A whole table that was cut in parts.

    tree     what any record shows
    cells    for each quasi-identifier, its cells
    ends     nodes that were not cut
    classes  how many classes a reader sees; nodes that look alike are one
    """

    tree: CutTree = field(repr=False)
    cells: tuple[Cells, ...] = field(repr=False)
    ends: int
    classes: int


def cut_part(
    part: Microdata, goal: Goal, totals: Mapping[str, Counts], ordered: Mapping[str, bool] | None = None
) -> Branch:
    """Cut one part of a table, as Mondrian in its strict mode does.

    goal     for the records of the part
    totals   the whole table as one class for each sensitive attribute, with which classes may be compared
    ordered  as for `mondrian`

    Refuses a part that does not meet the goal as one class. What was found is checked once more by the rule that comes
    of it: the classes are those that its tree finds, and each of them meets the goal.
    """
    judge = Judge.of(goal, part.units, totals)
    search = Search(axes_of(part, ordered or {}), judge, "strict")
    classes, nodes = search.run(search.whole(np.arange(part.rows)))
    extents = np.stack(search.extents(classes), axis=1)
    cuts = search.tree.cuts
    tree = CutTree.of(part.ladders, cuts, nodes, np.zeros((len(nodes), 0), dtype=np.int64))
    found, owner = np.unique(tree.nodes(part.codes), return_inverse=True)
    if not np.array_equal(found, np.sort(nodes)) or not judge.fine(owner.reshape(-1), len(found)).all():
        raise InternalError("mondrian did not reach what it was asked to in a part of the table")
    return Branch(part.records, cuts.small(), small(nodes), small(extents))


def grafted(
    division: Division,
    branches: Mapping[int, Branch],
    ladders: tuple[Ladder, ...],
    ordered: Mapping[str, bool] | None = None,
) -> Grafted:
    """One tree of the first cuts and those of all parts.

    There is a branch for each part, by its number.
    """
    trunk, number = division.trunk()
    pieces, count = [trunk], len(trunk) + 1
    ends: list[Ints] = []
    for part, branch in branches.items():
        # The root of a branch is the node at which its part was left.
        numbers = np.append(number[part], np.arange(count, count + len(branch.cuts)))
        pieces.append(branch.cuts.among(np.ones(len(branch.cuts), dtype=np.bool_), numbers))
        ends.append(numbers[branch.ends])
        count += len(branch.cuts)
    extents = np.concatenate([branch.extents for branch in branches.values()], dtype=np.int64)
    axes = axes_of(Microdata(ladders, np.zeros((0, len(ladders)), dtype=np.int64)), ordered or {})
    made = [axis.cells(extents[:, place]) for place, axis in enumerate(axes)]
    shown = np.column_stack([cell.reshape(-1) for cell, _ in made])
    tree = CutTree.of(ladders, Cuts.joined(pieces), np.concatenate(ends), shown)
    return Grafted(tree, tuple(cells for _, cells in made), len(shown), pl.from_numpy(shown).n_unique())
