from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.kernel.errors import ReleaseError
from polyseme.schema import Domain
from polyseme.tables.groups import Target, group_codes, group_sets
from polyseme.tables.io.source import CountedRows

LETTERS = Domain(tuple("abcde"))
MANY = Domain(tuple(range(3_000)))


def batches(table: pa.Table, size: int) -> list[CountedRows]:
    return [(batch, None) for batch in table.to_batches(max_chunksize=size)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x", "y", None]),
            st.sets(st.sampled_from("abcde"), min_size=2, max_size=2),
            st.sets(st.integers(0, 2_999), min_size=6, max_size=6),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 50),
)
def test_groups_are_the_counts_of_distinct_rows(rows, size: int) -> None:
    table = pa.table(
        {
            "by": pa.array([row[0] for row in rows], pa.string()),
            "few": [sorted(row[1]) for row in rows],
            "many": [sorted(row[2]) for row in rows],
        }
    )
    targets = [Target("few", LETTERS, 2), Target("many", MANY, 6)]
    grouped = group_sets(batches(table, size), targets, ["by"])
    found = {
        (grouped.cells["by"][int(cell)], tuple(few), tuple(many)): count
        for cell, few, many, count in zip(
            grouped.cell, grouped.sets[0].tolist(), grouped.sets[1].tolist(), grouped.counts.tolist()
        )
    }
    expected = Counter(
        (by, tuple(sorted(LETTERS.codes[label] for label in few)), tuple(sorted(many))) for by, few, many in rows
    )
    assert found == expected


def test_nothing_to_count() -> None:
    table = pa.table({"few": pa.array([], pa.list_(pa.string()))})
    grouped = group_sets(batches(table, 5), [Target("few", LETTERS, 2)], [])
    assert grouped.counts.sum() == 0
    assert grouped.sets[0].shape == (0, 2)


def test_codes_of_true_values() -> None:
    frame = pl.DataFrame({"sex": ["f", "m", "f"], "a": [0, 1, 0], "b": [2, 2, 2]})
    grouped = group_codes([frame[:1], frame[1:]], {"a": 2, "b": 3}, ["sex"])
    assert grouped.cells["sex"].to_list() == ["f", "m"]
    assert grouped.counts.tolist() == [2, 1]
    assert np.array_equal(np.hstack(grouped.sets), [[0, 2], [1, 2]])


def test_a_set_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(ReleaseError, match="2 different candidates"):
        group_sets(batches(pa.table({"few": [["a", "b"], ["a"]]}), 5), [Target("few", LETTERS, 2)], [])


def test_a_repeated_candidate_is_refused() -> None:
    table = pa.table({"few": pa.array([["a", "b"], ["c", "c"]], pa.list_(pa.string()))})
    with pytest.raises(ReleaseError, match="different"):
        group_sets(batches(table, 5), [Target("few", LETTERS, 2)], [])
