"""Why no node is admissible: the least suppression that would do, and the model in the way."""

from __future__ import annotations

import numpy as np

from polyseme.errors import ImpossibleError, Problem
from polyseme.methods.full_domain.checking import Checker
from polyseme.methods.full_domain.lattice import Lattice, counts_below
from polyseme.methods.goal import Demand
from polyseme.models.base import Score

__all__ = ["impossible", "least_suppression"]

_PATIENCE = 400
"""How many nodes are looked at to find the least suppression."""


def impossible(checker: Checker, lattice: Lattice) -> ImpossibleError:
    """The error that says so."""
    what = f"no levels reach the goal with at most {checker.limit:,} of {_whole(checker)} suppressed"
    return ImpossibleError(Problem("", "; ".join([what, *_in_the_way(checker, lattice)]), _hint(checker, lattice)))


def _hint(checker: Checker, lattice: Lattice) -> str:
    needed, exact = least_suppression(checker, lattice)
    if needed is None:
        return "no suppression would help: ask for less" if exact else "ask for less, or generalize further"
    # Rounded up, so that what is written does.
    share = np.ceil(needed / checker.data.units * 1e4) / 1e4
    least = "" if exact else "less may do, but "
    return f"{least}suppressing {_units(checker, needed)} would do: suppression: {share:g}"


def _whole(checker: Checker) -> str:
    """All that a limit is a share of."""
    if checker.data.people is None:
        return f"{checker.data.records:,} records"
    return f"{checker.data.units:,} people with a record"


def _units(checker: Checker, number: int) -> str:
    return f"{number:,} records" if checker.data.people is None else f"records of {number:,} people"


def _in_the_way(checker: Checker, lattice: Lattice) -> list[str]:
    """The models that the table as one class does not fulfill."""
    part = checker.partition(lattice.levels(lattice.top))
    failing = []
    for demand in checker.goal.demands:
        score = demand.score(part.sizes, part.counts, part.population)
        if not score.fine.all():
            failing.append(_told(demand, float(score.value[0]), score))
    return failing


def _told(demand: Demand, value: float, score: Score) -> str:
    sides = ("below", "above") if score.strict else ("at most", "at least")
    side = sides[score.at_least]
    return f"for all records together, {demand.name} is {value:.6g} and must be {side} {score.bound:g}"


def least_suppression(checker: Checker, lattice: Lattice) -> tuple[int | None, bool]:
    """The fewest records that must be suppressed at some node, None for all; and whether that is certain.

    What has no hope at a node has none below it. The nodes that may still do better are looked at from the top.
    """
    records = checker.data.units
    open_ended = Checker(checker.data, checker.goal, checker.loss, records, checker.totals)
    least, bound = records, np.zeros(lattice.shape, dtype=np.int64)
    seen = np.zeros(lattice.shape, dtype=bool)
    for _ in range(_PATIENCE):
        left = (bound < least) & ~seen
        if not left.any():
            return (least if least < records else None), lattice.whole
        place = int(np.argmax(np.where(left, counts_below(left), -1)))
        node = tuple(int(at) for at in np.unravel_index(place, lattice.shape)) if lattice.shape else ()
        check = open_ended.check(lattice.levels(node))
        seen[node] = True
        least = min(least, check.suppressed)
        below = tuple(slice(at + 1) for at in node)
        bound[below] = np.maximum(bound[below], check.hopeless)
    return (least if least < records else None), False
