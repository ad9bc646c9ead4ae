"""The sharp design: the promise of the balanced design at the least expected error.

Among all distributions over valid sets with inclusion probabilities `rho = l * pi` every member of every set has
posterior 1/l under the prior `pi`; the one of maximum entropy is the smoothest of them, not the one that estimates
best. The sharp design minimizes the expected squared error of the shares. Its probabilities follow no formula, so they
are listed, one for each valid set.

With `Pi[v, u]` the probability that v and u are both in the set and `D = diag(rho)`, the summed squared error of the
estimated shares at the truth `pi = rho / l` is `(tr D Pi^-1 D - 1) / N` at p = 1, and at every p it grows with the same
trace (`polyseme.privacy.analysis.summary`). `Pi` is linear in the probabilities, so this is a convex problem:

    minimize  phi(P) = tr D Pi(P)^-1 D      subject to  sum over R with v of P(R) = rho_v,  P >= 0

Its gradient is `-g_R = -1_R' G 1_R` with `G = Pi^-1 D^2 Pi^-1`. It is solved by a primal-dual interior-point method.
The Hessian has the rank of the number of pairs that can share a set, not that of the number of sets.

Certificate. For multipliers y let `z_R = -g_R - sum over v in R of y_v`. If z >= 0, then by convexity every feasible Q
has `phi(Q) >= phi(P) - g.(Q - P) = phi(P) + z.(Q - P) >= phi(P) - z.P`, so `z.P` bounds how far P is from the optimum.
(Where some z is negative, y is lowered evenly until none is.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.designs.balanced import balanced, proper_prior
from polyseme.designs.distribution import MaximumEntropy, count_sets, list_sets
from polyseme.designs.maximum_entropy import EnumeratedDesign, ListedFamily
from polyseme.designs.ring import document, whole
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.work import check_cancelled
from polyseme.semantics.distances.base import Structure

__all__ = ["SHARP_LIMIT", "VALUES_LIMIT", "SharpDesign", "Sharpened", "sharp", "sharpen"]

GAP = 1e-6
"""Where the method stops: the share of the error by which the optimum can be lower at most."""
_ROUNDS = 60
"""Most steps. Each aims at a tenth of the gap, so far fewer are usual; chosen by judgment."""
_CENTRING = 0.1
"""How much of the gap is aimed at: the usual choice of such methods."""
_BACK = 0.98
"""How much of the way to the boundary a step may go."""
_SINGULAR = 1e10
"""Scaled condition number beyond which values cannot be distinguished."""


@dataclass(frozen=True, eq=False)
class Sharpened:
    """A distribution over the listed sets.

    error  `phi - 1`: N times the expected summed squared error of the shares
    gap    by how much the least error there is can be lower, at most
    """

    probability: Floats
    error: float
    gap: float


class _Pairs:
    """Joint inclusion in coordinates: one per pair of values in some set, also (v, v)."""

    def __init__(self, sets: Ints, size: int) -> None:
        from scipy.sparse import csr_array

        first, second = np.triu_indices(sets.shape[1])
        numbers = sets[:, first] * size + sets[:, second]
        kinds, which = np.unique(numbers, return_inverse=True)
        rows, columns = which.ravel(), np.repeat(np.arange(len(sets)), numbers.shape[1])
        self.size, self.low, self.high = size, kinds // size, kinds % size
        self.member = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(kinds), len(sets)))
        self.single: Ints = np.flatnonzero(self.low == self.high)
        self.values = self.member[self.single]
        # A pair occurs twice in a symmetric matrix, a value with itself once.
        self.half = np.where(self.low == self.high, 0.5, 1.0)

    def matrix(self, coordinates: Floats) -> Floats:
        joint: Floats = np.zeros((self.size, self.size))
        joint[self.low, self.high] = joint[self.high, self.low] = coordinates
        return joint

    def curvature(self, inverse: Floats, slope: Floats) -> Floats:
        """The Hessian of `phi` in these coordinates, from `Pi^-1` and `G`."""
        i, j = self.low, self.high
        first = inverse[np.ix_(j, i)] * slope[np.ix_(i, j)] + inverse[np.ix_(i, i)] * slope[np.ix_(j, j)]
        first += inverse[np.ix_(j, j)] * slope[np.ix_(i, i)] + inverse[np.ix_(i, j)] * slope[np.ix_(j, i)]
        hessian: Floats = (first + first.T) * np.outer(self.half, self.half)
        return hessian


@dataclass(frozen=True, eq=False)
class _State:
    """Where the method is: probabilities, `Pi^-1`, `G`, `phi` and the slopes `g`."""

    probability: Floats
    inverse: Floats
    slope: Floats
    value: float
    gains: Floats


def sharpen(sets: Ints, rho: Floats, start: Floats) -> Sharpened | None:
    """From a `start` with inclusion `rho` that draws every set.

    None where `Pi` is singular and no design estimates.
    """
    pairs = _Pairs(sets, len(rho))
    state = _state(pairs, rho, start)
    if state is None:
        return None
    multipliers = np.full(len(pairs.single), -1.05 * float(state.gains.max()) / sets.shape[1])
    slack = -state.gains - pairs.values.T @ multipliers
    best = Sharpened(start, state.value - 1.0, np.inf)
    for _ in range(_ROUNDS):
        check_cancelled()
        gap = _certified(pairs, state, multipliers)
        if gap < best.gap:
            best = Sharpened(state.probability, state.value - 1.0, gap)
        if gap <= GAP * best.error or gap > 1e3 * best.gap:
            break
        moved = _step(pairs, rho, state, multipliers, slack)
        if moved is None:
            break
        state, multipliers, slack = moved
    return _settled(pairs, rho, best)


def _state(pairs: _Pairs, rho: Floats, probability: Floats) -> _State | None:
    joint = pairs.matrix(pairs.member @ probability)
    root = np.sqrt(rho)
    if np.linalg.cond(joint / np.outer(root, root)) > _SINGULAR:
        return None
    inverse: Floats = np.asarray(np.linalg.inv(joint), dtype=np.float64)
    slope: Floats = (inverse * rho**2) @ inverse
    gains = pairs.member.T @ (2.0 * pairs.half * slope[pairs.low, pairs.high])
    return _State(probability, inverse, slope, float(rho**2 @ np.diag(inverse)), np.asarray(gains))


def _certified(pairs: _Pairs, state: _State, multipliers: Floats) -> float:
    exact = -state.gains - pairs.values.T @ multipliers
    return float(exact @ state.probability) - min(float(exact.min()), 0.0) * float(state.probability.sum())


def _step(
    pairs: _Pairs, rho: Floats, state: _State, multipliers: Floats, slack: Floats
) -> tuple[_State, Floats, Floats] | None:
    """One Newton step toward the point of the central path with a tenth of the gap."""
    chance = state.probability
    aim = _CENTRING * float(slack @ chance) / len(chance)
    scale = chance / slack
    # (Hessian + slack / P)^-1 by Woodbury's identity: only a matrix of pairs is solved.
    inner = (pairs.member * scale[None, :] @ pairs.member.T).toarray()
    curvature = pairs.curvature(state.inverse, state.slope)
    middle = np.linalg.solve(np.eye(len(inner)) + curvature @ inner, curvature)

    def solve(right: Floats) -> Floats:
        scaled = scale * right
        solution: Floats = scaled - scale * (pairs.member.T @ (middle @ (pairs.member @ scaled)))
        return solution

    reduced = (inner - inner @ middle @ inner)[np.ix_(pairs.single, pairs.single)]
    plain = solve(state.gains + pairs.values.T @ multipliers + aim / chance)
    missing = rho[pairs.low[pairs.single]] - pairs.values @ (chance + plain)
    turn = np.linalg.solve(reduced, missing)
    move = plain + solve(pairs.values.T @ turn)
    slack_move = aim / chance - slack - slack / chance * move
    if not (np.all(np.isfinite(move)) and np.all(np.isfinite(turn))):
        return None
    moved = _state(pairs, rho, chance + _length(chance, move) * move)
    if moved is None:
        return None
    length = _length(slack, slack_move)
    return moved, multipliers + length * turn, slack + length * slack_move


def _length(point: Floats, move: Floats) -> float:
    """The longest step, at most one, that stays inside."""
    return float(min(1.0, _BACK / max(float(np.max(-move / point)), 1e-300)))


def _settled(pairs: _Pairs, rho: Floats, found: Sharpened) -> Sharpened:
    """The same with inclusion probabilities that are exact to rounding."""
    target, chance = rho[pairs.low[pairs.single]], found.probability
    for _ in range(3):
        joint = pairs.matrix(pairs.member @ chance)[np.ix_(pairs.low[pairs.single], pairs.low[pairs.single])]
        chance = chance * (1.0 + pairs.values.T @ np.linalg.solve(joint, target - pairs.values @ chance))
    state = _state(pairs, rho, np.maximum(chance, 0.0))
    if state is None:
        return found
    return Sharpened(state.probability, state.value - 1.0, found.gap)


SHARP_LIMIT = 50_000
"""Most valid sets whose probabilities are listed: a manifest of about a megabyte."""
VALUES_LIMIT = 50
"""Most values: the problem is solved over their pairs, which takes some seconds here and soon minutes beyond."""

_NEVER = 1e-13
"""Sets that are drawn more rarely than this are not drawn at all; inclusion changes by less than its tolerance."""


class GivenFamily(ListedFamily):
    """A distribution over listed sets by their probabilities."""

    def __init__(self, sets: Ints, probability: Floats, size: int) -> None:
        self.sets, self.size = sets, size
        self.probability = probability
        self.log_partition = 0.0


class SharpDesign(EnumeratedDesign):
    """A design by the probability of each valid set.

    probabilities  of all valid sets in lexicographic order
    gap            how much lower the least expected error can be, as a share of this one's; None when it was read
    """

    def __init__(
        self, structure: Structure, l: int, probabilities: Floats, name: str = "sharp", gap: float | None = None
    ) -> None:
        MaximumEntropy.__init__(self, structure, l, name)
        self.gap = gap
        self._probabilities = probabilities
        self._all = list_sets(structure, l)
        drawn = probabilities > 0.0
        self.possible = self._all[drawn]
        self.family = GivenFamily(self.possible, probabilities[drawn] / probabilities.sum(), structure.size)

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        sets, chance = self.possible.tolist(), self.family.probability
        return document("table", self.l, p, size=self.size, sets=sets, weights=whole(np.log(chance)))

    def parameters(self) -> Mapping[str, Any]:
        return {"probabilities": self._probabilities.tolist()}


def sharp(
    structure: Structure, l: int, prior: Floats | None = None, labels: Sequence[object] | None = None
) -> SharpDesign:
    """The design with inclusion `l * prior` and the least expected error.

    Refuses where sets are too many to list.
    """
    _check_size(structure, l)
    even = balanced(structure, l, prior, labels)
    sets = even.sets()
    start = np.exp(even.log_probability(sets))
    possible = start > 0.0
    found = sharpen(sets[possible], l * proper_prior(prior, structure.size), start[possible])
    if found is None:
        # Nothing can be estimated whatever the design; the smoothest will do.
        return SharpDesign(structure, l, start / start.sum(), gap=None)
    probabilities = np.zeros(len(sets))
    probabilities[possible] = np.where(found.probability > _NEVER, found.probability, 0.0)
    return SharpDesign(structure, l, probabilities, gap=found.gap / found.error if found.error > 0.0 else 0.0)


def _check_size(structure: Structure, l: int) -> None:
    hint = "use `mechanism: balanced`, which keeps the same promise and needs no list"
    if structure.size > VALUES_LIMIT:
        what = f"the sharp design is made for at most {VALUES_LIMIT} values, not for {structure.size:,}"
        raise ImpossibleError(what, hint)
    count = count_sets(structure, l)
    if count > SHARP_LIMIT:
        what = f"the sharp design lists every valid set: {count:,} are too many (limit {SHARP_LIMIT:,})"
        raise ImpossibleError(what, hint)
