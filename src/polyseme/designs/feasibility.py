"""Is there a design with these inclusion probabilities, and if not, what prevents it?

On a line (and over clusters, which are a line) the answer is exact: inclusion probabilities `rho` that add up to `l`
can be had if and only if no window of mutually incompatible values holds more than one, `rho(W) <= 1`.

Proof. Necessary, as a set holds at most one value of W. Sufficient: list the windows `[k, ahead[k])` and the whole line
as rows of a 0/1 matrix; in each row the ones are consecutive, so the matrix is totally unimodular and the polytope
`{rho >= 0, rho(W) <= 1, rho(all) = l}` has integral corners. These are exactly the valid sets, so every point of the
polytope is a mixture of them.

With `rho = l * pi` the condition reads: no crowd of values that are mutually too close holds more than `1/l` of the
prior. A window that holds exactly `1/l` is *tight*: every possible set then has one member in it.

On a circle or a graph the windows are only necessary; there a linear program over the listed sets decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.designs.distribution import count_sets, list_sets
from polyseme.designs.ring import as_line, ring_of
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "LISTED_LIMIT",
    "Clique",
    "best_l",
    "few_sets",
    "heaviest_clique",
    "largest_l",
    "least_posterior",
    "least_uneven",
    "membership",
    "possible_sets",
    "program",
    "tight_windows",
]

LISTED_LIMIT = 50_000
"""Largest number of sets over which a linear program is solved: chosen by judgment."""

_SLACK = 1e-11
"""By how much a mass may exceed one: sums of 70,000 rounded shares are good to about 1e-11."""
_SEEDS = 200
"""Values from which a heavy crowd of a graph is grown: chosen by judgment, it only serves a message and a bound."""
_EVEN = 1e-12
"""Shares that differ by less are the same share, rounded."""


@dataclass(frozen=True, eq=False)
class Clique:
    """Values that are mutually too close to share a set, and their share of the prior."""

    codes: Ints
    mass: float

    def name(self, labels: Sequence[object] | None = None) -> str:
        """The values in words, the middle ones left out when there are many."""
        names = [str(code if labels is None else labels[code]) for code in self.codes.tolist()]
        shown = names if len(names) <= 8 else [*names[:4], "...", *names[-2:]]
        return ", ".join(shown)


def window_masses(structure: Line | Clusters, prior: Floats) -> Floats:
    """The prior of each window `[k, ahead[k])`, by place."""
    line = as_line(structure)
    sums = np.append(0.0, np.cumsum(prior[line.order]))
    masses: Floats = sums[line.ahead] - sums[:-1]
    return masses


def tight_windows(line: Line, rho: Floats) -> Ints:
    """First places of the windows that hold exactly one: of these every set has a member."""
    return np.flatnonzero(np.abs(window_masses(line, rho) - 1.0) <= _SLACK).astype(np.int64)


def heaviest_clique(structure: Structure, prior: Floats) -> Clique:
    """The values that are most in the way: on a line, a circle or clusters the heaviest window.

    On a graph the heaviest crowd is hard to find in general; a greedy one is given.
    """
    if isinstance(structure, Graph):
        return _greedy_clique(structure, prior)
    ring = ring_of(structure)
    count = len(ring.order)
    mass = np.append(prior[ring.order], np.zeros(ring.extra))
    sums = np.append(0.0, np.cumsum(np.concatenate([mass, mass])))
    windows = sums[ring.ahead[:count]] - sums[:count]
    start = int(windows.argmax())
    places = np.arange(start, ring.ahead[start]) % ring.size
    return Clique(ring.order[places[places < count]], float(windows[start]))


def _greedy_clique(graph: Graph, prior: Floats) -> Clique:
    best = Clique(np.empty(0, dtype=np.int64), 0.0)
    burden = prior + ~graph.compatible @ prior
    for seed in np.argsort(-burden, kind="stable")[:_SEEDS].tolist():
        clique, close = [seed], ~graph.compatible[seed]
        close[seed] = False
        while close.any():
            following = int(np.argmax(np.where(close, prior, -1.0)))
            clique.append(following)
            close &= ~graph.compatible[following]
            close[following] = False
        mass = float(prior[clique].sum())
        if mass > best.mass:
            best = Clique(np.sort(np.array(clique, dtype=np.int64)), mass)
    return best


def largest_l(structure: Structure) -> int:
    """The largest l for which every value is in some valid set: how far the simple design goes."""
    if not isinstance(structure, Graph):
        return int(ring_of(structure).capacities().min(initial=structure.size))
    l = 1
    while l < structure.size:
        sets = list_sets(structure, l + 1)
        if len(np.unique(sets)) < structure.size:
            break
        l += 1
    return l


def best_l(structure: Structure, prior: Floats | None = None) -> int:
    """The largest l for which a balanced design exists under this prior (uniform by default).

    Exact on lines and clusters, on evenly spaced circles, and wherever the sets are few enough to list; otherwise the
    upper bound that the heaviest crowd gives.
    """
    prior = np.full(structure.size, 1.0 / structure.size) if prior is None else prior
    top = int((1.0 + _SLACK) / heaviest_clique(structure, prior).mass)
    if isinstance(structure, (Line, Clusters)):
        return max(top, 1)
    if isinstance(structure, Circle) and structure.spacing is not None and np.ptp(prior) <= _EVEN:
        return max(structure.size // structure.spacing, 1)
    for l in range(top, 1, -1):
        try:
            if count_sets(structure, l) > LISTED_LIMIT:
                return l
            if possible_sets(list_sets(structure, l), l * prior).size:
                return l
        except ImpossibleError:
            return l
    return 1


def possible_sets(sets: Ints, target: Floats) -> Ints:
    """Numbers of the sets that some distribution with inclusion `target` draws.

    Empty when there is none.

    One linear program: with `A` the membership of values in sets, maximize `sum t` subject to
    `A (t + e) = s * target`, `0 <= t <= 1`, `e, s >= 0`. As `s` is free, every set that can have any probability at all
    reaches `t = 1`.
    """
    from scipy.sparse import coo_array, hstack

    count = len(sets)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    member = membership(sets, len(target))
    columns = hstack([member, member, coo_array(-target[:, None])], format="csr")
    cost = np.concatenate([-np.ones(count), np.zeros(count + 1)])
    bounds = [(0.0, 1.0)] * count + [(0.0, None)] * (count + 1)
    solution = program(cost, A_eq=columns, b_eq=np.zeros(len(target)), bounds=bounds)
    return np.flatnonzero(solution[:count] > 0.5).astype(np.int64)


def membership(sets: Ints, size: int) -> csr_array:
    """Which value is in which set, as ones: (F, sets)."""
    from scipy.sparse import csr_array

    count, l = sets.shape
    return csr_array((np.ones(count * l), (sets.ravel(), np.repeat(np.arange(count), l))), shape=(size, count))


def few_sets(structure: Structure, l: int) -> Ints:
    """The valid sets, where they are few enough for a linear program."""
    sets = list_sets(structure, l)
    if len(sets) > LISTED_LIMIT:
        raise ImpossibleError(
            f"{len(sets):,} sets are too many for the least-risk design here (limit {LISTED_LIMIT:,})",
            "a smaller l or a larger d leaves fewer",
        )
    return sets


def least_uneven(structure: Structure, l: int, prior: Floats) -> Floats:
    """Inclusion probabilities within reach whose ratios to the prior are as even as can be.

    Minimize `s` subject to `pi_v <= y_v <= s pi_v` where `rho = y / k` is within reach for some scale `k`; then no
    posterior exceeds `s / (s + l - 1)`.
    """
    from scipy.sparse import coo_array, hstack, vstack

    if isinstance(structure, Line):
        return _least_uneven_line(structure, l, prior)
    sets = few_sets(structure, l)
    member = membership(sets, structure.size)
    count = len(sets)
    # Unknowns: weights of the sets, then s.
    above = hstack([-member, coo_array((structure.size, 1))])
    below = hstack([member, coo_array(-prior[:, None])])
    cost = np.append(np.zeros(count), 1.0)
    limits = np.concatenate([-prior, np.zeros(structure.size)])
    solution = program(cost, A_ub=vstack([above, below], format="csr"), b_ub=limits)
    rho: Floats = np.asarray(member @ solution[:count])
    rho *= l / rho.sum()
    return rho


def _least_uneven_line(line: Line, l: int, prior: Floats) -> Floats:
    from scipy.sparse import csr_array, vstack

    size = line.size
    pi = prior[line.order]
    # Unknowns: the sums c_0 ... c_F of y along the line, then the scale k, then s.
    places, rows = np.arange(size), np.arange(size)
    ones, width = np.ones(size), size + 3
    clique = _rows([(line.ahead, ones), (places, -ones), (np.full(size, size + 1), -ones)], rows, width)
    below = _rows([(places + 1, ones), (places, -ones), (np.full(size, size + 2), -pi)], rows, width)
    above = _rows([(places + 1, -ones), (places, ones)], rows, width)
    total = csr_array(([1.0, -float(l)], ([0, 0], [size, size + 1])), shape=(1, width))
    solution = program(
        np.append(np.zeros(size + 2), 1.0),
        A_ub=vstack([clique, below, above], format="csr"),
        b_ub=np.concatenate([np.zeros(2 * size), -pi]),
        A_eq=total,
        b_eq=[0.0],
        bounds=[(0.0, 0.0), *[(0.0, None)] * (size + 2)],
    )
    steps = np.diff(solution[: size + 1])
    rho = np.empty(size)
    rho[line.order] = steps * (l / steps.sum())
    return rho


def _rows(entries: list[tuple[Ints, Floats]], rows: Ints, width: int) -> csr_array:
    from scipy.sparse import csr_array

    columns = np.concatenate([column for column, _ in entries])
    values = np.concatenate([value for _, value in entries])
    return csr_array((values, (np.tile(rows, len(entries)), columns)), shape=(len(rows), width))


def program(cost: Floats, **conditions: Any) -> Floats:
    """The solution of a linear program."""
    from scipy.optimize import linprog

    solution = linprog(cost, method="highs", **conditions).x
    if solution is None:
        raise ImpossibleError("some values are in no valid set", "choose a smaller l or d")
    found: Floats = solution
    return found


def least_posterior(structure: Structure, prior: Floats) -> float:
    """The lower bound on the worst posterior of any mechanism over valid sets.

    It is the mass of the heaviest group of values that are too close to share a set.

    Of a crowd a set holds at most one value, so an attacker who always bets on that one is right with the crowd's mass
    on average, and at least as often for some set.
    """
    return heaviest_clique(structure, prior).mass
