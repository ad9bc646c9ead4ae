"""A good answer at once: greedy descents in the lattice of levels, before any search.

The first descent starts at the top and always takes the step that lowers the loss most and is still admissible. In a
large lattice the result is improved: one quasi-identifier is raised and the others descend again, until nothing helps.
Every node that was looked at is handed to the search, so nothing is looked at twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from polyseme.kernel.work import Cancellation
from polyseme.methods.full_domain.nodes import Bounds, Check, Checker, Levels
from polyseme.methods.full_domain.search import Progress

__all__ = ["Dive"]

Rule: TypeAlias = Callable[[Levels, Sequence[Levels]], Levels]

_LARGE = 20_000
"""Lattices of more nodes are worth improving the first answer in; smaller ones are searched whole in a moment."""
_PATIENCE = 60
"""Nodes looked at for each quasi-identifier, at the most, before the search begins."""
_WORK = 200_000_000
"""The same as rows that are grouped, so that tables of many different rows do not wait for it."""


class Dive:
    """Nodes looked at on the way down, and the best of them."""

    def __init__(
        self,
        checker: Checker,
        cancellation: Cancellation | None = None,
        progress: Callable[[Progress], None] | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.checker, self.checks = checker, dict[Levels, Check]()
        self._cancellation, self._progress = cancellation, progress
        self._least = math.inf
        bounds = bounds or [(0, ladder.height) for ladder in checker.data.ladders]
        self._lows, self._top = (tuple(bound[side] for bound in bounds) for side in (0, 1))
        self._costs = checker.loss.of_levels(checker.data) if checker.loss.separable else None

    def best(self) -> Levels | None:
        """The best levels that were found; None where the top is not admissible."""
        if not self._admits(self._top):
            return None
        best = min(self._descents(self._top), key=self._key)
        return self._improved(best) if self._nodes > _LARGE else best

    @property
    def _nodes(self) -> int:
        return math.prod(high - low + 1 for low, high in zip(self._lows, self._top, strict=True))

    @property
    def _settled(self) -> bool:
        """Whether the best so far is enough."""
        return self._cancellation is not None and self._cancellation.settled

    def _descents(self, levels: Levels, held: Iterable[int] = ()) -> Iterator[Levels]:
        for rule in (self._steepest, self._thriftiest):
            yield self._descend(levels, held, rule)

    def _descend(self, levels: Levels, fixed: Iterable[int], rule: Rule) -> Levels:
        """Down from admissible levels, step by step; fixed quasi-identifiers stay where they are."""
        held = set(fixed) | {place for place, level in enumerate(levels) if level == self._lows[place]}
        while not self._settled:
            below = [(place, _moved(levels, place, -1)) for place in range(len(levels)) if place not in held]
            fine = [child for _, child in below if self._admits(child)]
            held |= {place for place, child in below if self.checker.rules_out(self.checks[child])}
            if not fine:
                return levels
            levels = rule(levels, fine)
            held |= {place for place, level in enumerate(levels) if level == self._lows[place]}
        return levels

    def _steepest(self, levels: Levels, below: Sequence[Levels]) -> Levels:
        return min(below, key=self._key)

    def _thriftiest(self, levels: Levels, below: Sequence[Levels]) -> Levels:
        """The step that costs the fewest suppressed records for what it saves."""
        loss, suppressed, _ = self._key(levels)

        def price(child: Levels) -> tuple[float, float, Levels]:
            there = self._key(child)
            return (there[1] - suppressed + 1) / max(loss - there[0], 1e-300), there[0], child

        return min(below, key=price)

    def _improved(self, best: Levels) -> Levels:
        """No one quasi-identifier can be raised such that others descend to a smaller loss."""
        patience = min(_PATIENCE * len(best), _WORK // max(self.checker.data.rows, 1))
        better: Levels | None = best
        while better is not None and len(self.checks) < patience and not self._settled:
            best = better
            found = (levels for levels in self._neighbors(best) if len(self.checks) < patience)
            better = min(found, key=self._key, default=None)
            if better is not None and self._key(better) >= self._key(best):
                better = None
        return best

    def _neighbors(self, levels: Levels) -> Iterator[Levels]:
        for place, level in enumerate(levels):
            for step in (1, 2):
                raised = _moved(levels, place, step)
                if level + step <= self._top[place] and self._admits(raised):
                    yield from self._descents(raised, (place,))

    def _admits(self, levels: Levels) -> bool:
        if levels not in self.checks:
            self._look(levels)
        return self.checker.admits(self.checks[levels])

    def _look(self, levels: Levels) -> None:
        if self._cancellation is not None:
            self._cancellation.check()
        self.checks[levels] = check = self.checker.check(levels)
        if self.checker.admits(check):
            self._least = min(self._least, self._key(levels)[0])
        if self._progress is not None:
            # No loss is below 0.
            loss = self._least if self._least < math.inf else None
            self._progress(Progress(len(self.checks), self._nodes, loss, loss))

    def _key(self, levels: Levels) -> tuple[float, int, Levels]:
        check = self.checks[levels]
        loss = check.loss
        if self._costs is not None:
            loss = sum(float(cost[level]) for cost, level in zip(self._costs, levels, strict=True))
        # Losses that differ by less were summed in another order.
        return float(f"{loss:.12g}"), check.suppressed, levels


def _moved(levels: Levels, place: int, step: int) -> Levels:
    return (*levels[:place], levels[place] + step, *levels[place + 1 :])
