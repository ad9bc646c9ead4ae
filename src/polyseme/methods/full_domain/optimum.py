"""Full-domain generalization for a policy: the levels of least loss, and their table.

Where no node is admissible, it finds the least suppression that would do, and the model in the way.

Local recoding generalizes further what would be suppressed, by itself, again and again.

Every round looks for the levels of least loss at which at least half of the records that are left can be shown; then
for those at which any can. It looks at a limited number of nodes: nothing is proved of a table that is recoded locally.
A round counts only if all that is then published fulfills the goal, compared with itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, Problem, nearest
from polyseme.kernel.work import Cancellation
from polyseme.methods.full_domain.dive import Dive
from polyseme.methods.full_domain.nodes import Bounds, Checker, Lattice, counts_below
from polyseme.methods.full_domain.search import Found, Progress, Search
from polyseme.methods.goal import Demand, Generalizing, Goal, GroupingMethod, Task
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import SUPPRESSED, Cells, Microdata, Recoding, Round, Rounds, packed
from polyseme.models.base import Score

__all__ = [
    "METHOD",
    "MOST_CHECKS",
    "MOST_NODES",
    "PROOF_CHECKS",
    "FullDomain",
    "full_domain",
    "impossible",
    "least_suppression",
    "optimum",
    "recoded_locally",
]

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
    if lattice.levels(lattice.top) != tuple(ladder.height for ladder in checker.data.ladders):
        return ["the levels that the policy allows are too fine"]
    part = checker.partition(lattice.levels(lattice.top))
    failing = []
    for demand in checker.goal.demands:
        score = demand.score(part.sizes, part.counts, part.population)
        if not score.fine.all():
            failing.append(_shortfall(demand, float(score.value[0]), score))
    return failing


def _shortfall(demand: Demand, value: float, score: Score) -> str:
    sides = ("below", "above") if score.strict else ("at most", "at least")
    side = sides[score.at_least]
    return f"for all records together, {demand.name} is {value:.6g} and must be {side} {score.bound:g}"


def least_suppression(checker: Checker, lattice: Lattice) -> tuple[int | None, bool]:
    """The fewest records to suppress at any node (None: all), and whether that is certain.

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


Finder: TypeAlias = Callable[[Search], Found | None]

MOST_CHECKS = 200
"""Nodes looked at in each round; eight times as many save less than one part in a hundred of the loss on Adult."""


def recoded_locally(
    data: Microdata, goal: Goal, loss: Loss, first: Recoding, lattice: Lattice, find: Finder
) -> Recoding:
    """A recoding that shows some of the records that `first` suppresses at higher levels."""
    rounds = [(first.levels, np.flatnonzero(~first.suppressed))]
    left = np.flatnonzero(first.suppressed)
    made = first
    while len(left):
        found = _round(data, goal, loss, left, lattice, find)
        if found is None:
            break
        levels, suppressed = found
        rounds.append((levels, left[~suppressed]))
        tried = _together(data, rounds)
        if not _fulfils(goal, tried):
            break
        made, left = tried, left[suppressed]
    if made is first:
        return first
    return replace(made, loss=loss.of_recoding(data, made))


def _round(
    data: Microdata, goal: Goal, loss: Loss, left: Ints, lattice: Lattice, find: Finder
) -> tuple[tuple[int, ...], Bools] | None:
    """The levels for some of the rows that are left, and which of these stay suppressed."""
    part = data.among(left)
    top = tuple(ladder.height for ladder in data.ladders)
    for limit in dict.fromkeys((part.units // 2, part.units - 1)):
        checker = Checker(part, goal.among(left), loss, limit, goal.totals())
        found = find(Search(checker, lattice))
        # Records that are shown as nothing are suppressed.
        if found is not None and found.levels != top:
            return found.levels, checker.suppressed(found.levels)
    return None


def _together(data: Microdata, rounds: Sequence[tuple[tuple[int, ...], Ints]]) -> Recoding:
    """All rounds as one recoding; each has its own classes and cells."""
    classes = np.full(data.rows, SUPPRESSED, dtype=np.int64)
    shown: list[Ints] = []
    steps: list[Round] = []
    cells = [Cells((), ()) for _ in data.ladders]
    number, hidden = 0, np.ones(data.rows, dtype=bool)
    for levels, rows in rounds:
        part = Recoding.of_levels(data, levels, ~_among(rows, data.rows), None, None)
        classes[rows] = part.classes[rows] + number
        number += len(part.shown)
        offsets = [len(column.labels) for column in cells]
        shown.append(part.shown + np.array(offsets, dtype=np.int64))
        cells = [_joined(before, after) for before, after in zip(cells, part.cells, strict=True)]
        hidden[rows] = False
        steps.append(data.round(levels, hidden, offsets))
    return Recoding(classes, np.concatenate(shown), tuple(cells), counts=data.counts, showing=Rounds(tuple(steps)))


def _among(rows: Ints, count: int) -> Bools:
    found = np.zeros(count, dtype=bool)
    found[rows] = True
    return found


def _joined(before: Cells, after: Cells) -> Cells:
    return Cells((*before.labels, *after.labels), (*before.leaves, *after.leaves))


def _fulfils(goal: Goal, made: Recoding) -> bool:
    """Whether everything that is shown meets the goal; records that look the same are one class."""
    # Each round has seen to k-map.
    goal = goal.unmapped
    rows = np.flatnonzero(~made.suppressed)
    columns = [
        (
            np.unique([str(label) for label in cells.labels], return_inverse=True)[1][made.shown[:, place]],
            len(cells.labels),
        )
        for place, cells in enumerate(made.cells)
    ]
    keys = packed(columns, len(made.shown))[0]
    found, looks = np.unique(keys, return_inverse=True)
    sizes, counts = goal.counted(looks[made.classes[rows]], len(found), rows)
    return bool(goal.fine(sizes, counts).all())


MOST_NODES = 1_000_000
"""Larger lattices are thinned out, and the result has a gap."""
PROOF_CHECKS = 20_000
"""Nodes that are looked at after the dive unless a limit is given: a count, so that every machine finds the same. Eight
independent quasi-identifiers of five levels, 390,625 nodes, may need more: one such table has a gap of 11% left."""


def optimum(
    data: Microdata,
    goal: Goal,
    *,
    loss: Loss | None = None,
    suppression: float = 0.0,
    time_limit: float | None = None,
    checks: int | None = None,
    cancellation: Cancellation | None = None,
    progress: Callable[[Progress], None] | None = None,
    most_nodes: int = MOST_NODES,
    bounds: Bounds | None = None,
) -> Found:
    """The levels of least loss that suppress at most a share `suppression` of the records.

    Where people are counted, of the people: so many may lose a record.

    Raises `ImpossibleError` where there are none. A greedy dive gives a first answer. After `time_limit` seconds from
    then on, or when `checks` more nodes were looked at, the best levels so far are returned as soon as there are any,
    with the gap that is left. Without either, the limit is `PROOF_CHECKS`. `cancellation.settle()` ends it likewise.

    bounds  the lowest and the highest level of each quasi-identifier that is allowed; all levels when None
    """
    checker = Checker(data, goal, loss or Loss(), _limit(suppression, data.units))
    cancellation = cancellation or Cancellation()
    dive = Dive(checker, cancellation, progress, bounds)
    with cancellation.searching():
        best = dive.best()
        lattice = Lattice.of(data.ladders, most_nodes, best, bounds)
        most = PROOF_CHECKS if checks is None and time_limit is None else checks
        found = Search(checker, lattice, dive.checks).run(time_limit, cancellation, progress, most)
    if found is None:
        raise impossible(checker, lattice)
    return found


def full_domain(
    data: Microdata,
    goal: Goal,
    *,
    loss: Loss | None = None,
    suppression: float = 0.0,
    local_recoding: bool = False,
    time_limit: float | None = None,
    checks: int | None = None,
    cancellation: Cancellation | None = None,
    progress: Callable[[Progress], None] | None = None,
    most_nodes: int = MOST_NODES,
    bounds: Bounds | None = None,
) -> Recoding:
    """The table at the levels of least loss.

    With `local_recoding`, what it suppresses is generalized by itself.

    The loss of a table that is recoded locally is that of its records, suppressed ones charged with everything, and has
    no gap: nothing is proved of it.
    """
    loss = loss or Loss()
    found = optimum(
        data,
        goal,
        loss=loss,
        suppression=suppression,
        time_limit=time_limit,
        checks=checks,
        cancellation=cancellation,
        progress=progress,
        most_nodes=most_nodes,
        bounds=bounds,
    )
    hidden = Checker(data, goal, loss, 0).suppressed(found.levels)
    made = Recoding.of_levels(data, found.levels, hidden, found.loss, found.gap)
    if not local_recoding or not hidden.any():
        return made
    lattice = Lattice.of(data.ladders, most_nodes, bounds=bounds)
    return recoded_locally(
        data, goal, loss, made, lattice, lambda search: search.run(time_limit, cancellation, None, MOST_CHECKS)
    )


def _limit(suppression: float, records: int) -> int:
    if not 0.0 <= suppression <= 1.0:
        raise PolicyError(Problem("suppression", "expected a share of the records, from 0 to 1", "suppression: 0.04"))
    return math.floor(suppression * records + 1e-9)


class FullDomain(Generalizing):
    """One level for each quasi-identifier, of least loss."""

    name: ClassVar[str] = "full-domain"

    def counts(self, parameters: Mapping[str, Any]) -> bool:
        return True

    def group(self, task: Task) -> Recoding:
        task.require_goal(self.name)
        parameters = task.parameters
        return full_domain(
            task.data,
            task.goal,
            loss=Loss(parameters["loss"], self._weights(parameters["weights"], task)),
            suppression=float(parameters["suppression"]),
            local_recoding=parameters["local-recoding"],
            time_limit=parameters["time-limit"],
            checks=parameters["checks"],
            cancellation=task.cancellation,
            bounds=self._bounds(parameters.get("levels"), task),
        )

    def _bounds(self, given: Mapping[str, Any] | None, task: Task) -> Bounds | None:
        """The levels that each quasi-identifier may have; every problem at once."""
        if not given:
            return None
        where, problems = f"$.method.{self.name}.levels", list[Problem]()
        heights = {ladder.name: ladder.height for ladder in task.data.ladders}
        bounds = {name: (0, height) for name, height in heights.items()}
        for name, asked in given.items():
            place = f"{where}.{name}"
            if name not in heights:
                problems.append(Problem(place, "no such quasi-identifier", nearest(name, heights)))
                continue
            ends = asked if isinstance(asked, list) else [asked, asked]
            example = f"levels: {{{name}: 0}}, or {{{name}: [0, {heights[name]}]}}"
            if len(ends) != 2 or not all(isinstance(end, int) and not isinstance(end, bool) for end in ends):
                problems.append(Problem(place, "expected a level, or the lowest and the highest one", example))
            elif ends[0] > ends[1]:
                problems.append(Problem(place, "an empty range: the lowest level is above the highest", example))
            elif ends[0] < 0 or ends[1] > heights[name]:
                what = f"the levels of this column go from 0, as it is, to {heights[name]}, the coarsest"
                problems.append(Problem(place, what, example))
            else:
                bounds[name] = (ends[0], ends[1])
        if problems:
            raise PolicyError(problems)
        return [bounds[name] for name in heights]

    def _weights(self, given: Mapping[str, Any] | None, task: Task) -> dict[str, float]:
        """How much each quasi-identifier counts; every problem at once."""
        where = f"$.method.{self.name}.weights"
        problems = [
            Problem(f"{where}.{name}", "expected a number of at least 0")
            for name, weight in (given or {}).items()
            if isinstance(weight, bool) or not isinstance(weight, int | float)
        ]
        problems += [
            Problem(f"{where}.{name}", "no such quasi-identifier")
            for name in given or {}
            if name not in task.data.names
        ]
        if problems:
            raise PolicyError(problems)
        return {name: float(weight) for name, weight in (given or {}).items()}


METHOD: GroupingMethod = FullDomain()
