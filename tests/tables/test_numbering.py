from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.tables.published import SetNumbers


@pytest.mark.parametrize(("size", "width"), [(1, 1), (5, 1), (5, 2), (7, 3), (6, 6), (9, 5)])
def test_sets_are_numbered_in_lexicographic_order(size: int, width: int) -> None:
    sets = np.array(list(combinations(range(size), width)), dtype=np.int64).reshape(-1, width)
    numbers = SetNumbers(size, width)
    assert numbers.count == len(sets) == comb(size, width)
    np.testing.assert_array_equal(numbers.number(sets), np.arange(len(sets)))
    np.testing.assert_array_equal(numbers.members(np.arange(len(sets))), sets)


@given(st.sets(st.integers(0, 69_999), min_size=3, max_size=3))
def test_large_domains_come_back(members: set[int]) -> None:
    sets = np.array([sorted(members)])
    np.testing.assert_array_equal(LARGE.members(LARGE.number(sets)), sets)


LARGE = SetNumbers(70_000, 3)
