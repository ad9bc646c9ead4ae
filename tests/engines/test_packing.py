"""The codes of a set in as few numbers as hold them; no Spark is needed to pack, or to see that nothing is lost."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from polyseme.engines.spark.columns import Packing
from polyseme.kernel.arrays import Ints

SIZES = [1, 2, 3, 14, 2**15, 2**15 + 1, 2**31 - 1]


def unpacked(columns: list[pa.Array], size: int, candidates: int) -> Ints:
    """As a reader does it who knows only that codes stand beside each other, the first ones lowest."""
    bits = max(len(f"{size - 1:b}"), 1)
    together = 63 // bits
    numbers = [column.to_pylist() for column in columns]
    return np.array(
        [
            [
                numbers[place // together][row] >> place % together * bits & (1 << bits) - 1
                for place in range(candidates)
            ]
            for row in range(len(numbers[0]))
        ]
    )


@pytest.mark.parametrize("size", SIZES)
def test_every_code_comes_back(size: int) -> None:
    rng = np.random.default_rng(size)
    for candidates in range(1, 41):
        codes = rng.integers(0, size, (6, candidates))
        codes[0], codes[1] = 0, size - 1
        packing = Packing(size, candidates)
        columns = packing.packed(codes)
        assert len(columns) == packing.columns
        assert all(column.type == packing.type for column in columns)
        assert not any(column.null_count for column in columns)
        assert min(min(column.to_pylist()) for column in columns) >= 0, "the sign stays free"
        assert np.array_equal(unpacked(columns, size, candidates), codes)


@pytest.mark.parametrize(
    ("size", "candidates", "columns", "kind"),
    [
        (1, 31, 1, pa.int32()),
        (2, 32, 1, pa.int64()),
        (2, 64, 2, pa.int64()),
        (14, 7, 1, pa.int32()),
        (14, 8, 1, pa.int64()),
        (14, 16, 2, pa.int64()),
        (2**15, 2, 1, pa.int32()),
        (2**15 + 1, 2, 1, pa.int64()),
        (70_000, 4, 2, pa.int64()),
        (2**31 - 1, 1, 1, pa.int32()),
        (2**31 - 1, 3, 2, pa.int64()),
    ],
)
def test_as_few_numbers_as_hold_them(size: int, candidates: int, columns: int, kind: pa.DataType) -> None:
    packing = Packing(size, candidates)
    assert (packing.columns, packing.type) == (columns, kind)


def test_an_empty_table_is_packed_too() -> None:
    packing = Packing(2**15, 6)
    columns = packing.packed(np.zeros((0, 6), dtype=np.int32))
    assert [(len(column), column.type) for column in columns] == [(0, packing.type)] * packing.columns


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64])
def test_codes_of_any_width_are_packed(kind: type) -> None:
    codes = np.array([[1, 30_000, 7], [0, 2, 29_999]], dtype=kind)
    assert np.array_equal(unpacked(Packing(30_001, 3).packed(codes), 30_001, 3), codes)


def test_packing_needs_no_spark() -> None:
    """These tests run where PySpark is not installed."""
    program = "import sys; sys.modules['pyspark'] = None; import polyseme.engines.spark.engine"
    subprocess.run([sys.executable, "-c", program], check=True)
