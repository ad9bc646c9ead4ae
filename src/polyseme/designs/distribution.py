"""Designs that are one distribution over valid sets, the same for every person.

    K(R | v) = P(R) [v in R] / rho_v,   B = P

where
    rho_v    probability that v is in the set

Designs of maximum entropy: `P(R)` is proportional to the product of weights over the members of R. With inclusion
`rho_v = l * pi_v` every member of every set has posterior `1/l` under the prior `pi`: such a design is called balanced.

Valid sets can be counted and listed for any structure. Structures over part of a domain are for strata in which some
values are impossible.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from math import comb, inf, log

import numpy as np

from polyseme.designs import ring as spectra
from polyseme.designs.base import LEAST_SHARE, SET_LIMIT, Design
from polyseme.designs.leaders import among_listed
from polyseme.designs.ring import Ring, as_line, ring_of
from polyseme.designs.samplers import Inverse
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure

__all__ = [
    "MaximumEntropy",
    "SetDistribution",
    "compatibility",
    "compatible_sets",
    "count_sets",
    "list_sets",
    "restrict",
]

_EQUAL = 1e-12
"""Scores that differ by a smaller part are one score that was computed in several ways."""

_MATCHES = 1e-7
"""Relative errors up to which a prior is the one a design was fitted to: fits are good to 1e-9. Chosen by judgment."""

_STORED = 1e-6
"""How far inclusion probabilities from a manifest may be from adding up to l: they are written with 15 digits, and a
chain of them loses a few."""


class SetDistribution(Design):
    """One distribution over valid sets, the same for every person."""

    @abstractmethod
    def log_probability(self, sets: Ints) -> Floats:
        """`ln P(R)` for each set: (n,); minus infinity for an invalid one."""

    @abstractmethod
    def inclusion(self) -> Floats:
        """`rho_v`, the probability that v is in the set: (F,). Adds up to l."""

    def likelihood(self, sets: Ints) -> Floats:
        probability = np.exp(self.log_probability(sets))
        return probability[:, None] / self.inclusion()[sets]

    def blind_likelihood(self, sets: Ints) -> Floats:
        return np.exp(self.log_probability(sets))

    def log_given(self, codes: Ints, sets: Ints) -> Floats:
        # In logarithms throughout: a single set of a large domain is too unlikely for a double.
        member = (sets == codes[:, None]).any(axis=1)
        return np.where(member, self.log_probability(sets) - np.log(self.inclusion()[codes]), -np.inf)

    def log_blind(self, sets: Ints) -> Floats:
        return self.log_probability(sets)

    def blind_inclusion(self) -> Floats:
        return self.inclusion()

    def weights(self, sets: Ints, p: float) -> tuple[Floats, Floats]:
        # P(R) does not depend on the true value, so it is left out: no underflow in large domains.
        outside = np.full(len(sets), 1.0 - p)
        return p / self.inclusion()[sets] + (1.0 - p), outside

    def can_draw(self, sets: Ints) -> Bools:
        return np.asarray(self.log_probability(sets) > -np.inf)

    def flaw(self) -> str | None:
        rho = self.inclusion()
        if not (np.all(np.isfinite(rho)) and abs(float(rho.sum()) - self.l) <= _STORED * self.l):
            return f"no distribution over sets of {self.l} candidates has these"
        never = int((rho < LEAST_SHARE).sum())
        return f"{never} of {self.size:,} values are in no set that can be drawn" if never else None

    def least_inclusion(self) -> float | None:
        return float(self.inclusion().min())

    def matches(self, prior: Floats) -> bool:
        return bool(np.allclose(self.inclusion(), self.l * prior, rtol=_MATCHES))

    def matched_trace(self) -> float | None:
        if self.size > spectra.DENSE:
            return None
        rho = self.inclusion()
        return spectra.dense_trace(rho, self.conditional_inclusion(np.arange(self.size)) * rho[:, None])

    def _log_ratio(self, p: float) -> float | None:
        return log(1.0 + p / (float(self.inclusion().min()) * (1.0 - p)))

    def leading(self, score: Floats, least: float = -inf) -> Floats | None:
        if not self.has_at_most(SET_LIMIT):
            return None
        sets = self.sets()
        return among_listed(sets, np.exp(self.log_probability(sets)), score, least)

    def success(self, shares: Floats, belief: Floats, p: float) -> float | None:
        odds = p / self.inclusion() + 1.0 - p
        mode = int(belief.argmax())
        score = belief * odds
        same = belief is shares and np.ptp(score) <= _EQUAL * score.max()
        if same and score.min() >= (1.0 - p) * belief[mode]:
            return float(score.mean())
        leads = self.leading(score, (1.0 - p) * float(belief[mode]))
        if leads is None:
            return None
        # Where no member of the set is likelier than the mode outside it, the mode is guessed.
        blind = 1.0 - float(leads.sum())
        return float(leads @ (shares * odds)) + max(blind, 0.0) * (1.0 - p) * float(shares[mode])


_COUNTED = 1_500
"""Values up to which triples are counted before they are listed: a third of a second."""


def count_sets(structure: Structure, l: int) -> int:
    """How many sets of `l` pairwise compatible values there are, exactly."""
    if isinstance(structure, Graph):
        return len(_cliques(structure, l))
    if isinstance(structure, Circle):
        return _count_circle(structure, l)
    line = as_line(structure)
    if np.array_equal(line.ahead, np.arange(1, line.size + 1)):
        return comb(line.size, l)
    # ways[k]: sets of r members that all stand at place k or later; Python integers, so nothing overflows
    ways = [1] * (line.size + 1)
    for _ in range(l):
        more = [0] * (line.size + 1)
        for place in range(line.size - 1, -1, -1):
            more[place] = more[place + 1] + ways[line.ahead[place]]
        ways = more
    return ways[0]


def _count_circle(circle: Circle, l: int) -> int:
    size = circle.size
    if circle.spacing is not None:
        room = size - l * (circle.spacing - 1)
        return size * comb(room, l) // room if room >= max(l, 1) else 0
    if l == 1:
        return size
    ring = ring_of(circle)
    total = 0
    for first in range(size):
        last = int(ring.behind[first + size])
        ways = [0] * (2 * size + 1)
        for place in range(last, first, -1):
            ways[place] = ways[place + 1] + 1
        for _ in range(l - 2):
            more = [0] * (2 * size + 1)
            for place in range(last, first, -1):
                more[place] = more[place + 1] + ways[min(int(ring.ahead[place]), 2 * size)]
            ways = more
        total += ways[min(int(ring.ahead[first]), 2 * size)]
    # Every set was counted once for each of its members.
    return total // l


def list_sets(structure: Structure, l: int) -> Ints:
    """All valid sets, rows ascending and in lexicographic order; refuses beyond `SET_LIMIT`."""
    if isinstance(structure, Graph):
        return _cliques(structure, l)
    count = count_sets(structure, l)
    if count > SET_LIMIT:
        raise ImpossibleError(
            f"{count:,} valid sets are too many to list (limit {SET_LIMIT:,})",
            "a smaller l or a larger d leaves fewer; sampling and the likelihoods of given sets need no list",
        )
    places = _walk(ring_of(structure), l)
    sets = np.sort(ring_of(structure).order[places], axis=1)
    return sets[np.lexsort(sets.T[::-1])]


def _walk(ring: Ring, l: int) -> Ints:
    """All valid sets as rows of places, by extending every partial set to the right."""
    count = len(ring.order)
    rows = np.arange(count, dtype=np.int64)[:, None]
    # Members stay within one turn, and the last one must be compatible with the first one a turn later.
    last = np.full(count, count - 1) if ring.anchored else np.minimum(ring.behind[np.arange(count) + count], count - 1)
    for _ in range(l - 1):
        start = ring.ahead[rows[:, -1]]
        choices = np.maximum(last[rows[:, 0]] + 1 - start, 0)
        parent = np.repeat(np.arange(len(rows)), choices)
        offset = np.arange(len(parent)) - np.repeat(np.cumsum(choices) - choices, choices)
        rows = np.concatenate([rows[parent], (start[parent] + offset)[:, None]], axis=1)
    return rows


def _cliques(graph: Graph, l: int) -> Ints:
    """All sets of `l` mutually compatible values, extending each partial set with larger values."""
    for members, fewest in _fewest_cliques(graph, l):
        if fewest > SET_LIMIT:
            raise _too_many(f"at least {int(fewest):,} sets of {members} compatible values")
    rows = np.arange(graph.size, dtype=np.int64)[:, None]
    for _ in range(l - 1):
        pieces, total = [], 0
        for start in range(0, len(rows), 4096):
            block = rows[start : start + 4096]
            fits = np.arange(graph.size) > block[:, -1:]
            for column in range(block.shape[1]):
                fits &= graph.compatible[block[:, column]]
            parent, member = np.nonzero(fits)
            total += len(parent)
            if total > SET_LIMIT:
                raise _too_many(f"more than {SET_LIMIT:,} sets of compatible values")
            pieces.append(np.concatenate([block[parent], member[:, None]], axis=1))
        rows = np.concatenate(pieces) if pieces else np.empty((0, rows.shape[1] + 1), dtype=np.int64)
    return rows


def _fewest_cliques(graph: Graph, l: int) -> Iterator[tuple[int, float]]:
    """Of sets of 2, 3, ... l mutually compatible values, how many there are at least.

    Pairs are counted, triples too where that is a quick product of matrices; from there on with n values

        N(r + 1) >= N(r) (r^2 N(r) / N(r - 1) - n) / (r^2 - 1)        (Moon and Moser, 1962)
    """
    before, now = float(graph.size), float(np.count_nonzero(graph.compatible)) / 2.0
    for members in range(2, l + 1):
        yield members, now
        if now <= 0.0:
            return
        more = max(now * (members**2 * now / before - graph.size) / (members**2 - 1.0), 0.0)
        if members == 2 and more <= SET_LIMIT and graph.size <= _COUNTED:
            pairs = graph.compatible.astype(np.float32)
            more = float(np.sum((pairs @ pairs) * pairs, dtype=np.float64)) / 6.0
        before, now = now, more


def _too_many(what: str) -> ImpossibleError:
    hint = "a larger d or a smaller l leaves fewer; a line, a circle or a tree needs no list"
    return ImpossibleError(f"{what}: too many to list (limit {SET_LIMIT:,})", hint)


def compatible_sets(structure: Structure, sets: Ints) -> Bools:
    """Whether each row holds distinct, mutually compatible values."""
    valid = np.ones(len(sets), dtype=bool)
    if isinstance(structure, Graph):
        for first in range(sets.shape[1]):
            for second in range(first):
                valid &= structure.compatible[sets[:, first], sets[:, second]]
        return valid
    ring = ring_of(structure)
    places = np.sort(ring.places(sets), axis=1)
    valid &= np.all(ring.ahead[places[:, :-1]] <= places[:, 1:], axis=1)
    if not ring.anchored:
        valid &= ring.ahead[places[:, -1]] <= places[:, 0] + ring.size
    return valid


def compatibility(structure: Structure) -> Bools:
    """Which pairs of values are compatible, as a matrix: for small domains."""
    if isinstance(structure, Graph):
        return structure.compatible
    ring = ring_of(structure)
    place = ring.places(np.arange(structure.size))
    low, high = np.minimum(place[:, None], place), np.maximum(place[:, None], place)
    together = ring.ahead[low] <= high
    if not ring.anchored:
        together &= ring.ahead[high] <= low + ring.size
    np.fill_diagonal(together, False)
    return together


_KEPT = 1 << 16
"""Members of all sets up to which a design keeps its list of them: half a megabyte."""


class MaximumEntropy(SetDistribution):
    """A distribution over valid sets in the shape of a product of weights."""

    def __init__(self, structure: Structure, l: int, name: str) -> None:
        self.structure, self.l, self.name = structure, l, name

    @abstractmethod
    def lightest(self, cost: Floats) -> Floats:
        """For each value, the least total `cost` of a possible set that holds it."""

    @abstractmethod
    def joint(self, codes: Ints) -> Floats:
        """`Pi[v, u]`, the probability that v and u are both in the set: (len(codes), F)."""

    @cached_property
    def _blind(self) -> Inverse:
        return Inverse(np.append(0.0, np.cumsum(self.inclusion())))

    def sample_blind(self, uniforms: Floats) -> Ints:
        # A value drawn in proportion to its inclusion, then a set that holds it, is a set drawn from P.
        return self.sample(self._blind(uniforms[0] * self._blind.sums[-1]), uniforms[1:])

    def count(self) -> int:
        return count_sets(self.structure, self.l)

    def sets(self) -> Ints:
        return list_sets(self.structure, self.l) if self._some_sets is None else self._some_sets

    @cached_property
    def _some_sets(self) -> Ints | None:
        if self.count() * self.l > _KEPT:
            return None
        found = list_sets(self.structure, self.l)
        found.setflags(write=False)
        return found

    def conditional_inclusion(self, codes: Ints) -> Floats:
        given: Floats = self.joint(codes) / self.inclusion()[codes][:, None]
        given[np.arange(len(codes)), codes] = 1.0
        return given

    def worst_posterior(self, prior: Floats, p: float) -> float:
        """The largest of `(p c_v + (1-p) pi_v) / (p sum_R c + 1-p)` with `c = pi / rho`.

        The lightest set counts.

        A value outside the lightest set of all has `(1-p) pi_v / (p min_R sum c + 1-p)`; one that is in every such set
        has more as a member.
        """
        cost = prior / self.inclusion()
        least = self.lightest(cost)
        total = p * least + 1.0 - p
        # A set of which this prior believes no member is never seen by its owner.
        inside = np.divide(p * cost + (1.0 - p) * prior, total, out=np.zeros_like(total), where=total > 0.0)
        outside = (1.0 - p) * prior.max() / total.min() if p < 1.0 else 0.0
        return float(max(inside.max(), outside))


def restrict(structure: Structure, allowed: Ints) -> tuple[Structure, Ints]:
    """The structure of the allowed values alone, and the code each of its values had.

    Value k of the result is `codes[k]` of the domain, codes ascending. A design over the result never draws a decoy
    that the stratum excludes.

    >>> part, codes = restrict(Line(np.arange(5), np.array([2, 3, 4, 5, 5])), np.array([4, 0, 1]))
    >>> codes, part.ahead
    (array([0, 1, 4]), array([2, 2, 3]))
    """
    codes = np.unique(np.asarray(allowed, dtype=np.int64))
    if isinstance(structure, Graph):
        return Graph(structure.compatible[np.ix_(codes, codes)]), codes
    if isinstance(structure, Clusters):
        return Clusters(np.unique(structure.labels[codes], return_inverse=True)[1].astype(np.int64)), codes
    number = np.full(structure.size, -1, dtype=np.int64)
    number[codes] = np.arange(len(codes))
    kept = np.flatnonzero(number[structure.order] >= 0)
    order = number[structure.order[kept]]
    if isinstance(structure, Line):
        return Line(order, np.searchsorted(kept, structure.ahead[kept]).astype(np.int64)), codes
    if structure.spacing is None:
        return Circle(order, structure.positions[kept], structure.length, structure.threshold), codes
    # Steps instead of positions: whole numbers compare without rounding.
    spacing = structure.spacing if len(codes) == structure.size else None
    steps = kept.astype(np.float64)
    return Circle(order, steps, float(structure.size), float(structure.spacing), spacing), codes
