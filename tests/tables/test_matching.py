"""Records recognized by their columns."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.tables import distinct as matching
from polyseme.tables.distinct import class_sizes, fingerprints, matched, some_rows

cells = st.sampled_from([None, "", "a", "b", "null"])
tables = st.lists(st.tuples(cells, cells), max_size=12)


def prints(rows):
    schema = {"x": pl.String, "y": pl.String}
    return fingerprints(pl.DataFrame(rows, schema=schema, orient="row"))


@given(tables, tables)
def test_people_are_matched_where_they_stand_once_on_both_sides(left, right):
    rows, others = matched(prints(left), prints(right))
    alone = {row for row, count in Counter(left).items() if count == 1 and right.count(row) == 1}
    expected = [(place, right.index(row)) for place, row in enumerate(left) if row in alone]
    assert list(zip(rows.tolist(), others.tolist())) == expected


@pytest.mark.parametrize("part", [1, 7, 1000])
def test_matching_in_parts(monkeypatch, part):
    rng = np.random.default_rng(part)
    left, right = (rng.integers(0, 300, 400).astype(np.uint64) for _ in range(2))
    whole = matched(left, right)
    monkeypatch.setattr(matching, "_PART", part)
    for one, other in zip(whole, matched(left, right)):
        np.testing.assert_array_equal(one, other)
    assert len(whole[0]) > 20


@given(tables)
def test_classes_are_rows_with_the_same_values(rows):
    assert sorted(class_sizes(prints(rows)).tolist()) == sorted(Counter(rows).values())


def test_columns_are_not_run_together():
    assert len(set(prints([("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ("c", "ab")]).tolist())) == 5


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.data())
def test_some_rows_of_many_batches(lengths, data):
    values = np.arange(sum(lengths))
    bounds = np.cumsum([0, *lengths])
    batches = [pa.record_batch({"v": values[a:b]}) for a, b in itertools.pairwise(bounds)]
    wanted = np.array(sorted(data.draw(st.sets(st.sampled_from(values.tolist())))) if len(values) else [], dtype=int)
    found = [value for batch in some_rows(batches, wanted) for value in batch.column(0).to_pylist()]
    assert found == wanted.tolist()
