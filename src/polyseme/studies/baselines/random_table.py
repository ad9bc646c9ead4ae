"""Random: a cross-tabulation made without looking at the data, the floor of every comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.arrays import Floats

__all__ = ["random_table"]


def random_table(records: int, shape: Sequence[int], generator: np.random.Generator) -> Floats:
    """Records thrown into cells at random.

    >>> float(random_table(100, (2, 3), np.random.default_rng(0)).sum())
    100.0
    """
    cells = int(np.prod(shape))
    thrown = generator.multinomial(records, np.full(cells, 1.0 / cells))
    return thrown.reshape(tuple(shape)).astype(np.float64)
