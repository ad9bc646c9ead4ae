"""The array types that every signature speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "arrow", "multipliable"]

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_FITTING = 3_000_000_000
"""Numbers up to which the product of two fits 64 bits."""


def multipliable(largest: int, *counts: Ints) -> tuple[Ints, ...]:
    """Counts of which any two can be multiplied, as long numbers where 64 bits are too few.

    >>> multipliable(10**10, np.array([10**10]))[0] * 10**10
    array([100000000000000000000], dtype=object)
    """
    return counts if largest <= _FITTING else tuple(count.astype(object) for count in counts)


def arrow(values: NDArray[Any] | Sequence[Any], kind: Any = None) -> Any:
    """An Arrow array of numbers, truth values or texts; of the type `kind`, where given.

    `pa.array` does the same, but imports pandas first where that is installed, to see whether it was handed one of its
    columns: half a second of each run.

    >>> arrow(np.array([True, False])).to_pylist(), arrow(["a", None]).to_pylist()
    ([True, False], ['a', None])
    """
    import polars as pl
    import pyarrow as pa

    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        # Both have the same numbers in memory.
        found = pa.from_numpy_dtype(values.dtype)
        made = pa.Array.from_buffers(found, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
    else:
        made = pl.Series(values).to_arrow()
        kind = pa.string() if kind is None and pa.types.is_large_string(made.type) else kind
    return made if kind is None or made.type == kind else made.cast(kind)
