"""Random inputs of tests: examples, which hypothesis draws and shrinks, and replications, which a verdict counts.

A law that holds for every table or policy is tested with examples: `@given(generators())`. A share, such as how often
an interval holds the truth, is estimated from replications: `for seed in replications(60)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st
from scipy.special import gammaincinv

__all__ = ["Generator", "generators", "replications", "seeds"]

T = TypeVar("T")
STEPS = 1 << 20
"""Into so many equal steps the unit interval is divided: sums and differences of such numbers are exact."""
QUANTILES = 1_000


def replications(first: int, end: int | None = None) -> range:
    """Seeds of simulations that are counted together: no example of a law, and nothing that could be shrunk."""
    return range(first) if end is None else range(first, end)


seeds = st.integers(0, 2**32 - 1)
"""For tables too large to be drawn cell by cell: their sizes and kinds are drawn beside, and shrink."""


class Generator:
    """The methods of a numpy generator that tests use, with numbers that hypothesis chooses and shrinks."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def _many(self, one: Callable[[], Any], size: int | tuple[int, ...] | None) -> Any:
        if size is None:
            return one()
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
        return np.array([one() for _ in range(math.prod(shape))]).reshape(shape)

    def integers(self, low: int, high: int | None = None, size: int | tuple[int, ...] | None = None) -> Any:
        first, end = (0, low) if high is None else (low, high)
        strategy = st.integers(int(first), int(end) - 1)
        found = self._many(lambda: self._draw(strategy), size)
        return found if size is None else found.astype(np.int64)

    def random(self, size: int | tuple[int, ...] | None = None) -> Any:
        """Numbers in [0, 1), the simplest of them 0."""
        strategy = st.integers(0, STEPS - 1)
        return self._many(lambda: self._draw(strategy) / STEPS, size)

    def uniform(self, low: float, high: float, size: int | tuple[int, ...] | None = None) -> Any:
        return low + (high - low) * self.random(size)

    def choice(
        self,
        options: int | Sequence[T],
        size: int | None = None,
        replace: bool = True,
        p: Sequence[float] | None = None,
    ) -> Any:
        known = list(range(options)) if isinstance(options, int | np.integer) else list(options)
        if p is not None:
            ends = np.cumsum(p)[:-1]
            return self._many(lambda: known[int(np.searchsorted(ends, self.random(), side="right"))], size)
        if not replace:
            return np.array(self._draw(st.permutations(known))[:size])
        strategy = st.sampled_from(known)
        return self._many(lambda: self._draw(strategy), size)

    def permutation(self, values: int | Sequence[T]) -> np.ndarray:
        known = list(range(values)) if isinstance(values, int | np.integer) else list(values)
        return np.array(self._draw(st.permutations(known)))

    def dirichlet(self, alpha: Sequence[float]) -> np.ndarray:
        """Gamma variates by their quantiles; the simplest example has the same quantile everywhere."""
        quantiles = (self.integers(0, QUANTILES, len(alpha)) + 0.5) / QUANTILES
        weights = gammaincinv(np.asarray(alpha, dtype=float), quantiles)
        return weights / weights.sum()


@st.composite
def generators(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Generator:
    """A generator of one example."""
    return Generator(draw)
