"""Algorithm 1 of the journal paper, with its exact channel.

The true value, then `l - 1` decoys one after the other, each uniform over the values that are compatible with all
members so far and from which the set can still be completed (section 5.4; on a line with the exact greedy packing).

    K(R | v) = sum over the orders in which R without v can be drawn of the product of 1 / degree(partial set)

where `degree` is the number of candidates. The sum runs over subsets of R, not over orders: with `W(R) = 1` and
`W(S) = sum over c in R - S of W(S + c) / degree(S)` it is `K(R | v) = W({v})`, for all members at once.

`SimplePrinted` has the check of section 5.4 as it is printed. Equations 5 to 10 count on a circle: with the gaps `g`
between neighbors of a partial set, the last to the first included, so that they add up to F,

    A_max(R) = sum of floor(g / d - 1) >= l - |R|,   that is   sum of floor(g / d) >= l

A decoy for which this fails is rejected, also where the line still has room. Every partial set that passes can be
completed: put a value d after the left end of a gap of 2d or more, and the sum stays. From `l d > F` on no first decoy
passes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from polyseme.designs.base import SET_LIMIT, Design, heaviest_outside
from polyseme.designs.distribution import compatibility, compatible_sets, count_sets, list_sets
from polyseme.designs.feasibility import largest_l
from polyseme.designs.ring import Ring, ring_of
from polyseme.designs.samplers import CHUNK
from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import MATRIX_LIMIT, Circle, Clusters, Graph, Line, Structure

__all__ = [
    "Extensions",
    "ListedExtensions",
    "PrintedExtensions",
    "RingExtensions",
    "Sequential",
    "Simple",
    "SimplePrinted",
    "extensions_of",
    "rank_spacing",
]

_TABLE_CELLS = 1 << 25
"""Most subsets of all sets together that are listed."""


class Extensions(Protocol):
    """The candidates of a partial set: compatible with all members, and `l` can be reached."""

    def degree(self, members: Ints) -> Ints:
        """How many candidates each partial set (n, k) has: (n,)."""
        ...

    def extend(self, members: Ints, uniforms: Floats) -> Ints:
        """Each partial set (n, k) with one uniformly chosen candidate: (n, k + 1), rows ascending."""
        ...


def extensions_of(structure: Structure, l: int) -> Extensions:
    """The candidates on any structure; a graph must have few enough sets to list."""
    return ListedExtensions(structure, l) if isinstance(structure, Graph) else RingExtensions(ring_of(structure), l)


class RingExtensions:
    """Candidates as intervals of places: no list and no mask, whatever the size of the domain."""

    def __init__(self, ring: Ring, l: int) -> None:
        self.ring, self.l = ring, l
        self.place = ring.places(np.arange(len(ring.order)))
        self.straight = bool(np.array_equal(ring.order, np.arange(len(ring.order))))

    def intervals(self, members: Ints) -> tuple[Ints, Ints]:
        """Where the candidates of each partial set stand: closed intervals of unrolled places."""
        places = self.place[members]
        if not self.straight:
            places.sort(axis=1)
        return self.ring.candidates(self.ring.anchor(places), self.l - members.shape[1])

    def degree(self, members: Ints) -> Ints:
        lower, upper = self.intervals(members)
        degree: Ints = np.maximum(upper - lower + 1, 0).sum(axis=1)
        return degree

    def extend(self, members: Ints, uniforms: Floats) -> Ints:
        lower, upper = self.intervals(members)
        total = np.maximum(upper - lower + 1, 0).cumsum(axis=1)
        rank = (uniforms * total[:, -1]).astype(np.int64)
        interval = (total <= rank[:, None]).sum(axis=1)
        rows = np.arange(len(members))
        # Counting back from the end of the interval needs no case for the first one.
        place = upper[rows, interval] + 1 - (total[rows, interval] - rank)
        joined = np.concatenate([members, self.ring.order[place % self.ring.size][:, None]], axis=1)
        joined.sort(axis=1)
        return joined


class ListedExtensions:
    """Candidates on a graph: every subset of a valid set, level by level, with its children.

    A partial set is known by its number in its level: found from the number of the set without its last member, which
    is a partial set too, so that keys stay small whatever the domain.
    """

    def __init__(self, structure: Structure, l: int) -> None:
        sets = list_sets(structure, l)
        if len(sets) << l > _TABLE_CELLS:
            raise ImpossibleError(
                f"{len(sets):,} sets of {l} values have too many subsets to list", "a smaller l or a larger d has fewer"
            )
        self.l, self.base = l, structure.size
        self.keys: list[Ints] = []
        self.children: list[tuple[Ints, Ints]] = []
        for size in range(1, l + 1):
            level = _subsets(sets, size)
            self.keys.append(self._number(level[:, :-1])[0] * self.base + level[:, -1])
            if size > 1:
                self.children.append(self._family(level))

    def _number(self, members: Ints) -> tuple[Ints, Bools]:
        """The number of each partial set in its level, and whether it is there at all."""
        number, known = np.zeros(len(members), dtype=np.int64), np.ones(len(members), dtype=bool)
        for column, keys in zip(members.T, self.keys, strict=False):
            key = number * self.base + column
            number = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
            known &= keys[number] == key if len(keys) else False
        return number, known

    def _family(self, bigger: Ints) -> tuple[Ints, Ints]:
        """For partial sets one smaller: where their children start, and the member each child adds."""
        size = bigger.shape[1]
        parent = np.concatenate([self._number(np.delete(bigger, column, axis=1))[0] for column in range(size)])
        added = bigger.T.ravel()
        order = np.lexsort((added, parent))
        starts = np.searchsorted(parent[order], np.arange(len(self.keys[size - 2]) + 1))
        return starts.astype(np.int64), added[order]

    def degree(self, members: Ints) -> Ints:
        number, known = self._number(members)
        starts, _ = self.children[members.shape[1] - 1]
        if len(starts) == 1:
            return np.zeros(len(members), dtype=np.int64)
        return np.where(known, starts[number + 1] - starts[number], 0)

    def extend(self, members: Ints, uniforms: Floats) -> Ints:
        number, _ = self._number(members)
        starts, added = self.children[members.shape[1] - 1]
        rank = (uniforms * (starts[number + 1] - starts[number])).astype(np.int64)
        joined = np.concatenate([members, added[starts[number] + rank][:, None]], axis=1)
        joined.sort(axis=1)
        return joined


def rank_spacing(structure: Structure) -> tuple[Ints, int] | None:
    """The order and d of a structure of equally spaced values; None for any other."""
    if isinstance(structure, Graph):
        return None
    if isinstance(structure, Circle):
        return (structure.order, structure.spacing) if structure.spacing is not None else None
    if isinstance(structure, Clusters):
        alone = structure.count == structure.size
        return (np.argsort(structure.labels).astype(np.int64), 1) if alone else None
    return _line_spacing(structure)


def _line_spacing(line: Line) -> tuple[Ints, int] | None:
    d = int(line.ahead[0]) if line.size else 1
    even = np.array_equal(line.ahead, np.minimum(np.arange(line.size) + d, line.size))
    return (line.order, d) if even else None


class PrintedExtensions:
    """Candidates compatible on the line that pass the check of Equations 5 to 10 on the circle."""

    def __init__(self, order: Ints, d: int, l: int) -> None:
        self.order, self.d, self.l, self.size = order, d, l, len(order)
        self.rank = np.empty(self.size, dtype=np.int64)
        self.rank[order] = np.arange(self.size)

    def _room(self, members: Ints) -> tuple[Ints, Ints]:
        """Ranks of the members, ascending, and the sum of floor(g / d) over gaps: (n, k), (n,)."""
        ranks = np.sort(self.rank[members], axis=1)
        return ranks, (np.diff(ranks, axis=1, append=ranks[:, :1] + self.size) // self.d).sum(axis=1)

    def passes(self, members: Ints) -> Bools:
        """Whether each partial set (n, k) passes the check; a true value alone is not checked."""
        passes: Bools = (self._room(members)[1] >= self.l) | (members.shape[1] == 1)
        return passes

    def allowed(self, members: Ints) -> Bools:
        """Which ranks may join each partial set (n, k): (n, F)."""
        ranks, room = self._room(members)
        near, before, after = np.full((3, len(members), self.size), self.size)
        for rank in ranks.T[:, :, None]:
            apart = np.arange(self.size) - rank
            np.minimum(near, np.abs(apart), out=near)
            np.minimum(before, np.where(apart < 0, apart + self.size, apart), out=before)
            np.minimum(after, np.where(apart > 0, self.size - apart, -apart), out=after)
        left = room[:, None] - (before + after) // self.d + before // self.d + after // self.d
        allowed: Bools = (near >= self.d) & (left >= self.l)
        return allowed

    def degree(self, members: Ints) -> Ints:
        degree: Ints = self.allowed(members).sum(axis=1)
        return degree

    def extend(self, members: Ints, uniforms: Floats) -> Ints:
        # Many records share a partial set: what may join is found once for each.
        different, which = _distinct(members, self.size)
        allowed = self.allowed(different)
        degree = allowed.sum(axis=1)
        joining = np.nonzero(allowed)[1][
            (degree.cumsum() - degree)[which] + (uniforms * degree[which]).astype(np.int64)
        ]
        joined = np.concatenate([members, self.order[joining][:, None]], axis=1)
        joined.sort(axis=1)
        return joined


def _distinct(members: Ints, size: int) -> tuple[Ints, Ints]:
    """The different rows of members below `size`, and which of them each row is."""
    which = np.zeros(len(members), dtype=np.int64)
    first = which[:1]
    for column in members.T:
        _, first, which = np.unique(which * size + column, return_index=True, return_inverse=True)
    return members[first], which


def _subsets(sets: Ints, size: int) -> Ints:
    """The distinct subsets of this size of all sets, in lexicographic order."""
    pieces = [sets[:, list(columns)] for columns in combinations(range(sets.shape[1]), size)]
    return np.unique(np.concatenate(pieces), axis=0)


SEQUENTIAL_LIMIT = 12
"""Most candidates of a sequential design: its likelihoods go through all 2^12 subsets of a set. Chosen by judgment."""

_CELLS = 1 << 24
"""Most subsets that are looked at together: 128 MB of numbers, chosen by judgment."""


class Sequential(Design):
    """Sets drawn member by member from the true value on; blind sets start from a uniform value."""

    def __init__(self, structure: Structure, l: int) -> None:
        if l > SEQUENTIAL_LIMIT:
            raise ImpossibleError(
                f"sets of {l:,} candidates are too large for the {self.name} design (limit {SEQUENTIAL_LIMIT})",
                "its likelihoods go through all subsets of a set; the balanced design has no such limit",
            )
        self.structure, self.l, self.draws = structure, l, max(l - 1, 1)
        self._chunk = min(CHUNK, _CELLS >> l)

    def sample_blind(self, uniforms: Floats) -> Ints:
        return self.sample((uniforms[0] * self.size).astype(np.int64), uniforms[1:])

    def count(self) -> int:
        return count_sets(self.structure, self.l)

    def sets(self) -> Ints:
        return list_sets(self.structure, self.l)

    @abstractmethod
    def _likelihood(self, sets: Ints) -> Floats:
        """`K` for each member of valid sets."""

    def likelihood(self, sets: Ints) -> Floats:
        out = np.zeros(sets.shape, dtype=np.float64)
        valid = np.flatnonzero(compatible_sets(self.structure, sets))
        for start in range(0, len(valid), self._chunk):
            rows = valid[start : start + self._chunk]
            out[rows] = self._likelihood(sets[rows])
        return out

    def blind_likelihood(self, sets: Ints) -> Floats:
        blind: Floats = self.likelihood(sets).sum(axis=1) / self.size
        return blind

    @cached_property
    def _given(self) -> Floats:
        """`P(u in R | v)` for all pairs."""
        if self.size > MATRIX_LIMIT:
            raise ImpossibleError(
                f"inclusion probabilities of the {self.name} design are refused for {self.size:,} values "
                f"(limit {MATRIX_LIMIT:,})",
                "the balanced design has them for any size; likelihoods of given sets need none",
            )
        return self._inclusion_matrix()

    def _inclusion_matrix(self) -> Floats:
        """The same, by going through every set."""
        sets = self.sets()
        return _together(sets, self.likelihood(sets), self.size)

    def conditional_inclusion(self, codes: Ints) -> Floats:
        return self._given[codes]

    def blind_inclusion(self) -> Floats:
        inclusion: Floats = self._given.mean(axis=0)
        return inclusion

    def worst_posterior(self, prior: Floats, p: float) -> float:
        """Exact, by going through every set; nan when there are more than `SET_LIMIT` of them."""
        if self.count() > SET_LIMIT:
            return float("nan")
        sets = self.sets()
        likelihood = self.likelihood(sets)
        blind = (1.0 - p) * likelihood.sum(axis=1) / self.size
        inside = prior[sets] * (p * likelihood + blind[:, None])
        total = (p * prior[sets] * likelihood).sum(axis=1) + blind
        outside = blind * heaviest_outside(prior, sets)
        possible = total > 0
        return float((np.maximum(inside.max(axis=1), outside)[possible] / total[possible]).max())


def _together(sets: Ints, likelihood: Floats, size: int) -> Floats:
    """For each pair (v, u) the total likelihood, given v, of the sets that hold both."""
    joint = np.zeros(size**2)
    for true in range(sets.shape[1]):
        for other in range(sets.shape[1]):
            joint += np.bincount(sets[:, true] * size + sets[:, other], likelihood[:, true], size**2)
    return joint.reshape(size, size)


class Simple(Sequential):
    """Algorithm 1 with the feasibility check.

    >>> from polyseme.semantics.distances import LineDistance
    >>> design = Simple(LineDistance.ranks(14).structure(6), 2)
    >>> round(design.worst_posterior(np.full(14, 1 / 14), 1.0), 3)
    0.727
    """

    name = "simple"
    _rows = CHUNK
    """Records that are drawn together."""

    def __init__(self, structure: Structure, l: int, labels: Sequence[object] | None = None) -> None:
        super().__init__(structure, l)
        self._extensions = self._candidates(structure, l)
        if l > 1:
            stuck = np.flatnonzero(self._extensions.degree(np.arange(self.size)[:, None]) == 0)
            if stuck.size:
                name = stuck[0] if labels is None else labels[stuck[0]]
                raise ImpossibleError(
                    f"{len(stuck)} of {self.size:,} values are in no set of {l} compatible values, the first is {name}",
                    f"the largest l for which every value has decoys is {largest_l(structure)}; or choose a smaller d",
                )

    def _candidates(self, structure: Structure, l: int) -> Extensions:
        return extensions_of(structure, l)

    def _drawable(self, members: Ints) -> Bools:
        """Whether each partial set of compatible values (n, k) can come up in drawing."""
        return np.ones(len(members), dtype=bool)

    def sample(self, codes: Ints, uniforms: Floats) -> Ints:
        sets = np.empty((len(codes), self.l), dtype=np.int64)
        for start in range(0, len(codes), self._rows):
            chunk = slice(start, start + self._rows)
            members = np.asarray(codes[chunk], dtype=np.int64)[:, None]
            for step in range(self.l - 1):
                members = self._extensions.extend(members, uniforms[step, chunk])
            sets[chunk] = members
        return sets

    def _likelihood(self, sets: Ints) -> Floats:
        """`K` for each member; for partial sets, the probability of having drawn exactly these."""
        width = sets.shape[1]
        full = (1 << width) - 1
        ways: dict[int, Floats] = {full: self._drawable(sets).astype(np.float64)}
        for mask in range(full - 1, 0, -1):
            columns = [column for column in range(width) if mask >> column & 1]
            degree = self._extensions.degree(sets[:, columns])
            ways[mask] = sum((ways[mask | 1 << c] for c in range(width) if not mask >> c & 1), np.zeros(len(sets)))
            # Nothing is drawn from a partial set that is never reached.
            ways[mask] *= (self._drawable(sets[:, columns]) & (degree > 0)) / np.maximum(degree, 1)
        return np.stack([ways[1 << column] for column in range(width)], axis=1)

    def _inclusion_matrix(self) -> Floats:
        """The inclusion matrix from all sets without their last decoy: there are far fewer.

        The last decoy is uniform over a few intervals.
        """
        if not isinstance(self._extensions, RingExtensions) or self.l == 1:
            return super()._inclusion_matrix()
        size, ring = self.size, self._extensions.ring
        partial = list_sets(self.structure, self.l - 1)
        partial = partial[self._extensions.degree(partial) > 0]
        joint = np.zeros((size, size))
        # changes[v, k]: by how much the probability of a last decoy at place k differs from that at place k - 1
        width = 2 * ring.size + 1
        changes = np.zeros(size * width)
        for start in range(0, len(partial), self._chunk):
            sets = partial[start : start + self._chunk]
            likelihood = self._likelihood(sets)
            joint += _together(sets, likelihood, size)
            lower, upper = self._extensions.intervals(sets)
            open_ = upper >= lower
            rate = likelihood / np.maximum(upper - lower + 1, 0).sum(axis=1)[:, None]
            for column in range(sets.shape[1]):
                row = np.broadcast_to(sets[:, column, None] * width, lower.shape)[open_]
                weight = np.broadcast_to(rate[:, column, None], lower.shape)[open_]
                changes += np.bincount(row + lower[open_], weight, size * width)
                changes -= np.bincount(row + upper[open_] + 1, weight, size * width)
        unrolled = changes.reshape(size, width).cumsum(axis=1)
        last = unrolled[:, : ring.size] + unrolled[:, ring.size : 2 * ring.size]
        joint += np.maximum(last, 0.0)[:, self._extensions.place] * compatibility(self.structure)
        return joint

    def parameters(self) -> Mapping[str, Any]:
        return {}


class SimplePrinted(Simple):
    """Algorithm 1 with Equations 5 to 10 as printed, for equally spaced values in a row.

    Some sets of values that are d apart are never drawn: they have likelihood zero.

    >>> from polyseme.semantics.distances import LineDistance
    >>> design = SimplePrinted(LineDistance.ranks(14).structure(6), 2)
    >>> round(design.worst_posterior(np.full(14, 1 / 14), 1.0), 3)
    0.625
    """

    name = "simple-printed"

    def _candidates(self, structure: Structure, l: int) -> Extensions:
        ranks = None if isinstance(structure, Circle) else rank_spacing(structure)
        if ranks is None:
            raise ImpossibleError(
                "the printed check counts equally spaced values in a row (journal paper, Equations 5 to 10)",
                "use `distance: {line: rank}`, or leave `check` out: the exact check serves every distance",
            )
        order, d = ranks
        if l > 1 and l * d > structure.size:
            raise ImpossibleError(
                f"the printed check rejects every decoy: l d = {l * d} is above the {structure.size:,} values",
                f"at d = {d} it works up to l = {structure.size // d}, at l = {l} up to d = {structure.size // l}; or "
                "leave `check` out",
            )
        self._rows = max(1, min(CHUNK, _CELLS // (structure.size * l)))
        self._printed = PrintedExtensions(order, d, l)
        return self._printed

    def _drawable(self, members: Ints) -> Bools:
        return self._printed.passes(members)
