"""The admissible node of least loss: exact, and at any moment with a bound on the rest.

A set of *candidates* shrinks until it is empty:

- a node that rules out what is below it takes all of that away;
- an admissible node takes away everything with a larger loss;
- where the loss follows from the classes, any node takes away what is above it once its loss is not below the best one.

The node that is looked at, candidate or not, is the one that can be expected to take away most. Ties: least loss, then
fewest records suppressed, then the lowest level of the first quasi-identifier, of the second, and so on. Losses that
differ by less than one part in 10^12 are equal: they were summed in another order.

A rough model of how many records violate at each node says where to look next. The logarithm of their number is fitted
by ridge regression on what each quasi-identifier still says at its level (the entropy of its groups). The fit only
decides which node is looked at, never what is found there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.work import Cancellation, stage
from polyseme.methods.full_domain.nodes import (
    Check,
    Checker,
    Lattice,
    Levels,
    Node,
    Singles,
    box,
    counts_above,
    counts_below,
    outer_sum,
)
from polyseme.methods.microdata import Microdata

__all__ = ["Found", "Guide", "Progress", "Search"]

_RIDGE = 0.05
_LEAST_SPREAD = 0.25
"""The least standard error of a predicted logarithm: a judgment, so that no node is taken for certain."""


@dataclass(eq=False)
class Guide:
    """What was seen so far, and what it lets expect.

    information  for each axis, the share of it left at each of its places, 1 at the first
    rows         the nodes seen, one a row, and behind them the logarithms of the records that violated there
    seen         how many of the rows are filled
    """

    information: tuple[Floats, ...]
    rows: Floats = field(repr=False)
    seen: int = 0

    @classmethod
    def of(cls, data: Microdata, lattice: Lattice) -> Guide:
        information = []
        for ladder, axis, leaves in zip(data.ladders, lattice.axes, data.codes.T, strict=True):
            frequency = np.bincount(leaves, data.counts, ladder.leaves)
            bits = np.array(
                [_entropy(np.bincount(ladder.groups[level], frequency).astype(np.float64)) for level in axis]
            )
            information.append(bits / bits[0] if len(bits) and bits[0] > 0 else np.linspace(1.0, 0.0, len(axis)))
        return cls(tuple(information), np.empty((64, len(information) + 2)))

    def learn(self, node: Node, violating: int) -> None:
        if self.seen == len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        places = (part[place] for part, place in zip(self.information, node, strict=True))
        self.rows[self.seen] = 1.0, *places, np.log1p(violating)
        self.seen += 1

    def violating(self, within: Sequence[slice], limit: int) -> Singles:
        """How likely it is that more than `limit` records violate, at each node of a box."""
        rows, seen = self.rows[: self.seen, :-1], self.rows[: self.seen, -1]
        # Nothing is known of an attribute that was never moved: it is taken to matter like the others.
        prior = np.concatenate(
            ([seen.min(initial=0.0)], np.full(len(self.information), np.ptp(seen) / max(len(self.information), 1)))
        )
        gram = rows.T @ rows + _RIDGE * np.eye(rows.shape[1])
        fitted = prior + np.linalg.solve(gram, rows.T @ (seen - rows @ prior))
        errors = seen - rows @ fitted
        spread = max(_LEAST_SPREAD, float(np.sqrt((errors @ errors + 1.0) / (len(seen) + 1.0))))
        # The logistic curve that is closest to the normal one.
        scale = -1.7 / spread
        parts = [
            scale * weight * part[side] for weight, part, side in zip(fitted[1:], self.information, within, strict=True)
        ]
        shift = np.float32(scale * (fitted[0] - np.log1p(limit + 0.5)))
        odds = outer_sum([part.astype(np.float32) for part in parts]) + shift
        np.minimum(odds, np.float32(50.0), out=odds)
        np.exp(odds, out=odds)
        odds += np.float32(1.0)
        return np.asarray(np.reciprocal(odds, out=odds))


def _entropy(frequency: Floats | Ints) -> float:
    share = frequency[frequency > 0] / max(float(frequency.sum()), 1.0)
    return float(-(share * np.log2(share)).sum())


_BINS = 4096
"""Classes of losses when it is only a matter of what to look at next."""
_CHOOSE = 8_000
"""For every so many nodes to choose from, one more is chosen at a time."""
_TIGHT = 0.8
"""The box around the candidates is looked for again when fewer than this part of them are left."""
_SAME = 1e-12
"""Losses that differ by a smaller part are one loss."""


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    checks      nodes looked at
    candidates  nodes that may still be the best
    loss        of the best node so far; None without any
    gap         how much smaller the least loss can be at the most; None without any admissible node
    """

    checks: int
    candidates: int
    loss: float | None = None
    gap: float | None = None


@dataclass(frozen=True)
class Found:
    """The best node found: its levels, loss and suppressed records, and the remaining gap."""

    levels: tuple[int, ...]
    loss: float
    suppressed: int
    gap: float
    checks: int


@dataclass(frozen=True)
class _Best:
    node: Node
    loss: float
    suppressed: int


class Search:
    """One search; `run` may be called once.

    known  nodes that were looked at before, by their levels
    """

    def __init__(self, checker: Checker, lattice: Lattice, known: Mapping[Levels, Check] | None = None) -> None:
        self.checker, self.lattice, self._known = checker, lattice, known or {}
        self.checks: dict[Node, Check] = {}
        self.looked = len(self._known)
        self.best: _Best | None = None
        self._candidates: Bools = np.ones(lattice.shape, dtype=bool)
        self._possible: Bools | None = None if lattice.whole else np.ones(lattice.shape, dtype=bool)
        self._seen: Bools = np.zeros(lattice.shape, dtype=bool)
        self._within, self._held = (slice(0, None),) * len(lattice.shape), self._candidates.size
        self._suppressing = Guide.of(checker.data, lattice)
        # Where every model can be pruned by, what violates is what has no hope.
        self._hoping = self._suppressing if checker.prunes else Guide.of(checker.data, lattice)
        self._rank: Ints | None = None
        if checker.loss.separable:
            costs = checker.loss.of_levels(checker.data)
            self._loss = outer_sum([cost[axis] for cost, axis in zip(costs, lattice.axes, strict=True)])
            self._least = self._loss if lattice.whole else lattice.lowest(costs)
            self._rank = _ranked(self._loss)
            self._bins = self._rank * _BINS // (int(self._rank.max()) + 1)
        else:
            # Below anything that will be found: no node is cleared by one that was not looked at.
            self._loss = np.full(lattice.shape, -1.0)
            self._least = self._loss if lattice.whole else self._loss.copy()
        for node in map(lattice.node, self._known):
            if node is not None:
                self._look(node)

    def run(
        self,
        time_limit: float | None = None,
        cancellation: Cancellation | None = None,
        progress: Callable[[Progress], None] | None = None,
        most_checks: int | None = None,
    ) -> Found | None:
        """The best node, or None where no node is admissible.

        After `time_limit` seconds, or when `most_checks` nodes were looked at beside those known before, or when the
        cancellation is settled, it is the best one so far, as soon as there is any.
        """
        started, most = time.monotonic(), self.looked + (math.inf if most_checks is None else most_checks)
        # The top is the cheapest to look at; where nothing can be done it mostly says so.
        nodes, whole = self._next() if self.checks else [self.lattice.top], self._candidates.size
        with stage("levels", "Searching levels", whole) as levels:
            levels.reach(whole - self.state().candidates)
            while nodes:
                for node in nodes:
                    if cancellation is not None:
                        cancellation.check()
                    self._look(node)
                    late = time_limit is not None and time.monotonic() - started >= time_limit
                    late = late or (cancellation is not None and cancellation.settled)
                    if (late or self.looked >= most) and self.best is not None:
                        nodes = []
                        break
                state = self.state()
                levels.reach(whole - state.candidates, state.gap)
                if progress is not None:
                    progress(state)
                nodes = nodes and self._next()
        if self.best is None:
            return None
        best, gap = self.best, self.gap
        return Found(self.lattice.levels(best.node), best.loss, best.suppressed, gap, self.looked)

    def state(self) -> Progress:
        loss = None if self.best is None else self.best.loss
        gap = None if self.best is None else self.gap
        return Progress(self.looked, int(np.count_nonzero(self._candidates)), loss, gap)

    @property
    def gap(self) -> float:
        """How much smaller than the best so far the loss of some other node can be."""
        if self.best is None:
            return math.inf
        left = self._candidates if self._possible is None else self._candidates | self._possible
        least = max(0.0, float(np.min(self._least, initial=self.best.loss, where=left)))
        return max(0.0, self.best.loss - least)

    # -- looking ---------------------------------------------------------------------------------------------------

    def _look(self, node: Node) -> None:
        levels = self.lattice.levels(node)
        if levels not in self._known:
            self.looked += 1
        check = self.checks[node] = self._known.get(levels) or self.checker.check(levels)
        self._suppressing.learn(node, check.suppressed)
        if self._hoping is not self._suppressing:
            self._hoping.learn(node, check.hopeless)
        self._candidates[node], self._seen[node] = False, True
        if self.checker.rules_out(check):
            below = tuple(slice(place + 1) for place in node)
            self._candidates[below] = False
            if self._possible is not None:
                self._possible[below] = False
        if self._rank is None:
            self._learn_loss(node, check.loss)
        better = self._better(node, check) if self.checker.admits(check) else None
        if better is not None:
            self.best = better
            self._clear(better)
        elif self._rank is None and self.best is not None and check.loss >= self.best.loss:
            self._candidates[tuple(slice(place, None) for place in node)] = False

    def _learn_loss(self, node: Node, loss: float) -> None:
        """Nothing above a node has a smaller loss."""
        above = tuple(slice(place, None) for place in node)
        np.maximum(self._loss[above], loss, out=self._loss[above])
        if self._least is not self._loss:
            covering = self.lattice.covering(node)
            np.maximum(self._least[covering], loss, out=self._least[covering])

    def _better(self, node: Node, check: Check) -> _Best | None:
        """The node, if it is better than the best so far."""
        loss = check.loss if self._rank is None else float(self._loss[node])
        found, best = _Best(node, loss, check.suppressed), self.best
        return found if best is None or self._key(found) < self._key(best) else None

    def _key(self, best: _Best) -> tuple[float, int, Node]:
        return (best.loss if self._rank is None else float(self._rank[best.node])), best.suppressed, best.node

    def _clear(self, best: _Best) -> None:
        """Take away what cannot be better than the best."""
        if self._rank is None:
            # Nodes above one with the same loss have the same classes, and lose the tie.
            self._candidates &= self._loss < best.loss
            return
        rank = self._rank[best.node]
        self._candidates &= self._rank <= rank
        if best.suppressed == 0:
            later = np.flatnonzero(self._candidates & (self._rank == rank))
            place = np.ravel_multi_index(best.node, self.lattice.shape) if best.node else 0
            self._candidates.reshape(-1)[later[later > place]] = False

    # -- choosing --------------------------------------------------------------------------------------------------

    def _next(self) -> list[Node]:
        """The nodes expected to remove most candidates; none when no candidate is left.

        In a large lattice several at once, none of which lies above another: to choose takes longer than to look.
        """
        if not self._candidates.any():
            return []
        within = self._box()
        gain = self._gain(within)
        nodes: list[Node] = []
        for _ in range(1 + gain.size // _CHOOSE):
            place = int(np.argmax(gain))
            at = tuple(int(step) for step in np.unravel_index(place, gain.shape)) if gain.ndim else ()
            if nodes and gain[at] <= 0.0:
                break
            nodes.append(tuple(step + side.start for step, side in zip(at, within)))
            gain[tuple(slice(step + 1) for step in at)] = -1.0
            gain[tuple(slice(step, None) for step in at)] = -1.0
        return nodes

    def _gain(self, within: tuple[slice, ...]) -> Singles:
        """How many candidates each node of a box can be expected to take away."""
        candidates = self._candidates[within]
        limit = self.checker.limit
        hopeless = self._hoping.violating(within, limit)
        violating = hopeless if self._hoping is self._suppressing else self._suppressing.violating(within, limit)
        gain = hopeless * counts_below(candidates) + (np.float32(1.0) - violating) * self._cleared(within, candidates)
        # A candidate goes in any case, so that every step takes away something.
        gain[candidates] += 1.0
        gain[self._seen[within]] = -1.0
        return gain

    def _box(self) -> tuple[slice, ...]:
        """A box with all candidates; nodes outside are less informative than the nearest inside."""
        left = int(np.count_nonzero(self._candidates))
        if left < _TIGHT * self._held:
            self._within, self._held = box(self._candidates), left
        return self._within

    def _cleared(self, within: tuple[slice, ...], candidates: Bools) -> Singles:
        """How many candidates each node would remove if admissible; approximate, by loss classes."""
        if self._rank is None:
            return counts_above(candidates)
        bins = self._bins[within]
        held = np.bincount(bins[candidates], minlength=_BINS)
        above = np.cumsum(held[::-1])[::-1].astype(np.float32)
        if self.best is not None:
            above[self._bins[self.best.node] + 1 :] = 0.0
        return np.asarray(above[bins])


def _ranked(losses: Floats) -> Ints:
    """The place of each loss among the different ones."""
    flat = losses.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    new = np.diff(ordered) > _SAME * np.abs(ordered[1:])
    ranks = np.empty(len(flat), dtype=np.int64)
    ranks[order] = np.concatenate(([0], np.cumsum(new)))
    return ranks.reshape(losses.shape)
