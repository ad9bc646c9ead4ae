"""Parts of a table that were cut where their records are become one tree, as if one machine had cut them all.

    branch = cut_part(part, goal of the part, totals)   # on whatever machine; it holds no record
    made = grafted(division, branches, ladders)         # on one: a rule for any record of the table

A branch is the cuts of one part and how far each of its classes reaches. It depends on the records of the part and on
nothing else: who computes it again comes to the same. What classes show, and under which labels, is decided when all of
them are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from polyseme.arrays import Ints
from polyseme.errors import InternalError
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Cells, Ladder, Microdata
from polyseme.methods.mondrian.division import Division
from polyseme.methods.mondrian.judging import Judge
from polyseme.methods.mondrian.partitioning import Search, axes_of
from polyseme.methods.mondrian.tree import Cuts, CutTree, small
from polyseme.tables.classes import Counts

__all__ = ["Branch", "Grafted", "cut_part", "grafted"]


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
    """One tree of the first cuts and those of all parts; there is a branch for each part, by its number."""
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
