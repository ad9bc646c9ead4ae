"""What no truthful mechanism can undercut: the floor of a learner's success.

Over all channels whose sets hold the true value (p = 1), the least success of an attacker who knows the distribution is

    V* = min sum_R m_R  subject to  sum over R with v of m_R >= pi_v, m >= 0
       = max sum_v pi_v y_v  subject to  sum over v in R of y_v <= 1, y >= 0

The second line is a way of betting that need not know the mechanism: from a set R name its member v with probability
`y_v`. It is right with probability `sum_v pi_v y_v`, whatever the mechanism does, because the true value is in R. So
every `y` proves a floor, and the best one proves the floor:

- everybody: `y = 1/l` throughout
- a crowd, values that are mutually closer than d: a set holds at most one of them, so `y = 1` on the crowd
- on a line, m > l windows of mutually close values that cover it: a set has l members, at most one in each window, so
  what they count twice is at most m - l, and `y = (times covered - 1) / (m - l)`

Over clusters the first two are all there is, on a line all three (`docs/learner.md` has the proofs); elsewhere a
linear program over the listed sets finds the best bets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.designs.distribution import count_sets, list_sets
from polyseme.designs.feasibility import LISTED_LIMIT, Clique, heaviest_clique, membership, program
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.work import check_cancelled
from polyseme.semantics.distances.base import Circle, Clusters, Line, Structure

__all__ = ["Floor", "floor"]

_ROUNDING = 1e-12
"""Masses that differ by less are equal."""
_ROUNDS = 200
"""Most coverings that are tried; every one of them proves a floor, so stopping early is safe."""


@dataclass(frozen=True, eq=False)
class Floor:
    """The least success of a learner under any truthful mechanism, and the bets that prove it.

    value   V*
    bets    `y_v`: the probability of naming v from a set that holds it, (F,)
    exact   whether some mechanism attains it; otherwise it is a lower bound
    """

    value: float
    bets: Floats
    exact: bool = True

    @property
    def clique(self) -> Clique | None:
        """The values that are bet on and what share of the people has them.

        None where it is everybody (1/l).
        """
        codes = np.flatnonzero(self.bets > _ROUNDING).astype(np.int64)
        if np.ptp(self.bets) <= _ROUNDING:
            return None
        return Clique(codes, float(self.value / self.bets.max()))

    def why(self, labels: Sequence[object] | None = None) -> str:
        """The reason in words."""
        clique = self.clique
        if clique is None:
            many = round(1.0 / float(self.bets.max()))
            return "a set has 1 candidate" if many == 1 else f"a set has {many} candidates"
        at_most = round(1.0 / float(self.bets.max()))
        if len(clique.codes) == 1:
            return f"{clique.mass:.1%} of the people have the value {clique.name(labels)}"
        several = "only one" if at_most == 1 else f"at most {at_most}"
        return f"a set holds {several} of the values {clique.name(labels)}, which {clique.mass:.1%} of the people have"


def floor(structure: Structure, l: int, shares: Floats) -> Floor:
    """The floor of a learner's success over truthful mechanisms with sets of `l` values.

    Raises `ImpossibleError` where some value that occurs is in no valid set. Exact but on circles and graphs with more
    than `LISTED_LIMIT` sets, where it is what everybody and the heaviest crowd prove.

    >>> from polyseme.semantics.distances import LineDistance
    >>> found = floor(LineDistance.ranks(4).structure(2), 2, np.array([0.1, 0.5, 0.3, 0.1]))
    >>> round(found.value, 6), found.why()
    (0.8, 'a set holds only one of the values 1, 2, which 80.0% of the people have')
    """
    if isinstance(structure, Line):
        return _on_line(structure, l, shares)
    if isinstance(structure, Clusters):
        if structure.count < l:
            raise _no_sets()
        return _simple(structure, l, shares)
    if (isinstance(structure, Circle) and l == 1) or _few(structure, l):
        return _listed(list_sets(structure, l), shares)
    found = _simple(structure, l, shares)
    return Floor(found.value, found.bets, exact=False)


def _few(structure: Structure, l: int) -> bool:
    try:
        return count_sets(structure, l) <= LISTED_LIMIT
    except ImpossibleError:
        return False


def _simple(structure: Structure, l: int, shares: Floats) -> Floor:
    """What everybody or the heaviest crowd proves."""
    clique = heaviest_clique(structure, shares)
    if clique.mass * l <= 1.0 + _ROUNDING:
        return Floor(1.0 / l, np.full(structure.size, 1.0 / l))
    bets = np.zeros(structure.size)
    bets[clique.codes] = 1.0
    return Floor(clique.mass, bets)


def _on_line(line: Line, l: int, shares: Floats) -> Floor:
    """Newton's method over coverings: each one found proves a higher floor, until none does."""
    found = _simple(line, l, shares)
    for _ in range(_ROUNDS):
        check_cancelled()
        covered = _covering(line, shares[line.order] / found.value)
        windows, times = len(covered), np.zeros(line.size + 1)
        np.add.at(times, covered, 1.0)
        np.add.at(times, line.ahead[covered], -1.0)
        twice = np.cumsum(times)[:-1] - 1.0
        mass = float(shares[line.order] @ twice)
        if windows < l or (windows == l and mass > _ROUNDING):
            raise _no_sets()
        if mass <= (windows - l) * found.value * (1.0 + _ROUNDING):
            return found
        bets = np.empty(line.size)
        bets[line.order] = twice / (windows - l)
        found = Floor(mass / (windows - l), bets)
    return found


def _covering(line: Line, needed: Floats) -> Ints:
    """First places of windows that cover the line with the best lower bound (by place).

    The most that inclusion probabilities add up to, with `rho >= needed` and at most one in every window, is the length
    of a shortest path from the first place to the end: a window costs one, and going back over values gives back what
    they need.
    """
    size, ahead = line.size, line.ahead.tolist()
    sums = np.append(0.0, np.cumsum(needed))
    # length[k]: the shortest way to start a window at k; reach[k]: the same when it has been taken, from its end
    length, reach, previous = np.zeros(size), np.empty(size), np.full(size, -1, dtype=np.int64)
    # A window before k meets k when it ends there or later.
    first = np.searchsorted(line.ahead, np.arange(size), side="left")
    for k in range(size):
        if k:
            start = int(first[k])
            best = start + int(reach[start:k].argmin())
            length[k], previous[k] = reach[best] + sums[k], best
        reach[k] = length[k] + 1.0 - sums[ahead[k]]
    last = int(np.searchsorted(line.ahead, size, side="left"))
    place = last + int(length[last:].argmin())
    chosen = []
    while place >= 0:
        chosen.append(place)
        place = int(previous[place])
    return np.array(chosen[::-1], dtype=np.int64)


def _listed(sets: Ints, shares: Floats) -> Floor:
    member = membership(sets, len(shares))
    if len(np.unique(sets)) < len(shares):
        raise _no_sets()
    bets = program(-shares, A_ub=member.T, b_ub=np.ones(len(sets)))
    return Floor(float(shares @ bets), bets)


def _no_sets() -> ImpossibleError:
    return ImpossibleError("some values are in no valid set", "choose a smaller l or d")
