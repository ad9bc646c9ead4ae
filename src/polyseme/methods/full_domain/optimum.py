"""The verb: the levels of least loss, and the table that they make."""

from __future__ import annotations

import math
from collections.abc import Callable

from polyseme.errors import PolicyError, Problem
from polyseme.kernel.work import Cancellation
from polyseme.methods.full_domain.checking import Checker
from polyseme.methods.full_domain.lattice import Lattice
from polyseme.methods.full_domain.local import MOST_CHECKS, recoded_locally
from polyseme.methods.full_domain.obstacle import impossible
from polyseme.methods.full_domain.search import Found, Progress, Search
from polyseme.methods.goal import Goal
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Microdata, Recoding

__all__ = ["MOST_NODES", "full_domain", "optimum"]

MOST_NODES = 1_000_000
"""Larger lattices are thinned out, and the result has a gap."""


def optimum(
    data: Microdata,
    goal: Goal,
    *,
    loss: Loss | None = None,
    suppression: float = 0.0,
    time_limit: float | None = None,
    cancellation: Cancellation | None = None,
    progress: Callable[[Progress], None] | None = None,
    most_nodes: int = MOST_NODES,
) -> Found:
    """The levels of least loss at which at most a share `suppression` of the records cannot be shown.

    Where people are counted, of the people: so many may lose a record.

    Raises `ImpossibleError` where there are none. After `time_limit` seconds the best levels so far are returned as
    soon as there are any, with the gap that is left.
    """
    checker = Checker(data, goal, loss or Loss(), _limit(suppression, data.units))
    lattice = Lattice.of(data.ladders, most_nodes)
    found = Search(checker, lattice).run(time_limit, cancellation, progress)
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
    cancellation: Cancellation | None = None,
    progress: Callable[[Progress], None] | None = None,
    most_nodes: int = MOST_NODES,
) -> Recoding:
    """The table at the levels of least loss; with `local_recoding`, what it suppresses is generalized by itself.

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
        cancellation=cancellation,
        progress=progress,
        most_nodes=most_nodes,
    )
    hidden = Checker(data, goal, loss, 0).suppressed(found.levels)
    made = Recoding.of_levels(data, found.levels, hidden, found.loss, found.gap)
    if not local_recoding or not hidden.any():
        return made
    lattice = Lattice.of(data.ladders, most_nodes)
    return recoded_locally(
        data, goal, loss, made, lattice, lambda search: search.run(time_limit, cancellation, None, MOST_CHECKS)
    )


def _limit(suppression: float, records: int) -> int:
    if not 0.0 <= suppression <= 1.0:
        raise PolicyError(Problem("suppression", "expected a share of the records, from 0 to 1", "suppression: 0.04"))
    return math.floor(suppression * records + 1e-9)
