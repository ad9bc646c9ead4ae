"""A table in parts, each of which Mondrian can cut by itself: for tables that no machine holds.

    division = divided(sample, parts)           # cuts of a sample: boxes with about equally many records
    division.parts_of(leaves)                   # the part of any record
    settled(division, parts, goal)              # parts that do not reach the goal joined, by exact counts
    cut_part(part, goal of the part, totals)    # wherever the records of the part are: see `grafting`

A sample decides only where the first cuts are. Every part reaches the goal as one class, counted exactly, and is then
cut as a whole table would be, so that every class does. What is lost against cutting the whole table is that the first
cuts are near to the middle, and not the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from polyseme.arrays import Ints
from polyseme.errors import ImpossibleError
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Microdata
from polyseme.methods.mondrian.cutting import Parts
from polyseme.methods.mondrian.judging import Judge
from polyseme.methods.mondrian.partitioning import Search, axes_of
from polyseme.methods.mondrian.tree import Cuts, CutTree

__all__ = ["SAMPLE", "Division", "divided", "settled"]

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
    """At least about so many parts, at most twice as many, each with about equally many records of the sample.

    halved  whether the children of a node may be divided among two parts. Otherwise each is a part of its own, and a
            node with many children, or with a small one, cannot be cut; but fewer classes of two parts look alike
    """
    least = max(1, sample.records // (2 * max(parts, 1)))
    # Nothing is asked of parts but their size: what they must reach is counted in all records.
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
