"""Lowering the worst posterior over the inclusion probabilities within reach.

With `c = pi / rho` the posterior of a member v of R is `c_v / c(R)`, where `c(R)` adds up `c` over R. Its logarithm is
smooth in `rho`, so the largest of them is lowered by a sequence of linear programs: take each value with its lightest
sets, replace the logarithms by their tangents, and trust these as long as no `rho_v` changes by more than some factor.
A step that does not lower the worst posterior is taken back and tried again with the sets that spoilt it; after a few
such tries less is trusted.

The problem is not convex, so what is found is a local optimum; `floor_posterior` tells how far it is from the best at
most.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array, hstack, vstack

from polyseme.arrays import Floats, Ints
from polyseme.designs.reach import Reach
from polyseme.errors import ImpossibleError
from polyseme.kernel.work import check_cancelled

__all__ = ["lower_risk"]

_WORK = 3_000
"""Rounds times values, or times twentieths of the listed sets: what is large gets fewer rounds."""
_ROUNDS = (6, 30)
"""Fewest and most rounds. This and the other numbers here were chosen by judgment; `tests/designs/test_least_risk.py`
holds how near to the floor they come."""
_TRUST = 2.0
"""By what factor, less one, an inclusion probability may change in the first step."""
_DISTRUST = 1e-2
"""Where steps end: inclusion probabilities would change by less than a hundredth."""
_TRIES = 4
"""How often a step is tried with more sets before less is trusted."""
_GAIN = 1e-3
"""A step that lowers the worst posterior by a smaller part than this is a small one."""
_MARGIN = 4.0
"""Sets whose log posterior is this many trust radii below the worst one are left out of a program."""


def lower_risk(reach: Reach, prior: Floats, rho: Floats, floor: float) -> Floats:
    """Inclusion probabilities from `rho` on downhill, until no step helps or the `floor` is reached."""
    trust, failed, worst = _TRUST, 0, reach.worst_posterior(prior, rho)
    members, sets = _lightest(reach, prior, rho)
    size = max(len(prior), reach.expand.shape[1] // 20)
    for _ in range(int(np.clip(_WORK // size, *_ROUNDS))):
        check_cancelled()
        if trust < _DISTRUST or worst <= floor * (1.0 + _GAIN):
            break
        moved = _step(reach, prior, rho, (members, sets), trust)
        new = worst if moved is None else reach.worst_posterior(prior, moved)
        if moved is not None and new < worst:
            trust = trust / 2.0 if new > worst * (1.0 - _GAIN) else min(2.0 * trust, 1.0)
            rho, worst, failed = moved, new, 0
            members, sets = _lightest(reach, prior, rho)
            continue
        failed += 1
        if moved is None or failed == _TRIES:
            trust, failed = trust / 2.0, 0
        if moved is not None:
            more, spoilers = _lightest(reach, prior, moved)
            members, sets = np.append(members, more), np.concatenate([sets, spoilers])
    return rho


def _lightest(reach: Reach, prior: Floats, rho: Floats) -> tuple[Ints, Ints]:
    return np.arange(len(prior)), reach.lightest_sets(prior / rho)


def _step(reach: Reach, prior: Floats, rho: Floats, pairs: tuple[Ints, Ints], trust: float) -> Floats | None:
    """The best point that the tangents see within the trusted region; None when the program fails."""
    members, sets = pairs
    cost = prior / rho
    total = cost[sets].sum(axis=1)
    value = np.log(cost[members] / total)
    near = value >= value.max() - _MARGIN * trust
    members, sets, total, value = members[near], sets[near], total[near], value[near]
    count, l = sets.shape
    # d ln(c_v / c(R)) / d rho_u = (share of u in c(R) - [u = v]) / rho_u
    slopes = cost[sets] / (total[:, None] * rho[sets])
    rows = np.append(np.repeat(np.arange(count), l), np.arange(count))
    entries = (np.append(slopes.ravel(), -1.0 / rho[members]), (rows, np.append(sets.ravel(), members)))
    tangents = csr_array(entries, shape=(count, len(rho)))
    unknowns = reach.expand.shape[1]
    limits = np.concatenate([tangents @ rho - value, rho * (1.0 + trust), -rho / (1.0 + trust)])
    try:
        found = reach.solve(np.append(np.zeros(unknowns), 1.0), _rows(reach, tangents), limits)
    except ImpossibleError:
        return None
    moved: Floats = np.maximum(np.asarray(reach.expand @ found[:unknowns]), rho / (1.0 + 2.0 * trust))
    moved *= reach.l / moved.sum()
    return moved


def _rows(reach: Reach, tangents: csr_array) -> csr_array | Floats:
    """The tangents are at most the last unknown, and inclusion probabilities stay within the trusted region."""
    count, size = tangents.shape
    full = reach.full
    if full is not None:
        last = np.append(-np.ones(count), np.zeros(2 * size))[:, None]
        written: Floats = np.hstack([np.vstack([tangents @ full, full, -full]), last])
        return written
    below = hstack([tangents @ reach.expand, coo_array(-np.ones((count, 1)))])
    bounded = hstack([vstack([reach.expand, -reach.expand]), coo_array((2 * size, 1))])
    stacked: csr_array = vstack([below, bounded], format="csr")
    return stacked
