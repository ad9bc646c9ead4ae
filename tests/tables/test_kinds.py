"""Few kinds of many values, and kinds of records by their sets."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.kernel.errors import QuestionError, ReleaseError
from polyseme.schema import Domain
from polyseme.tables import groups as kinds_module
from polyseme.tables.groups import CandidateKinds, Target, kinds_of


def kinds(column, most: int, batches: int = 1) -> list[int]:
    """The kind of each value of a column that comes in batches."""
    array = column if isinstance(column, pa.Array) else pl.Series(column, strict=False).to_arrow()
    table = pa.RecordBatch.from_arrays([array], names=["c"])
    step = max(-(-len(array) // batches), 1)
    found = kinds_of([(table.slice(start, step), None) for start in range(0, len(array), step)], ["c"], most)["c"]
    assert found.columns == ("c",)
    return found.places({"c": array}, len(array)).tolist()


@pytest.mark.parametrize("batches", [1, 3])
def test_few_values_are_kinds_of_their_own(batches):
    assert kinds(["b", "a", "b", None, "b", "a"], 5, batches) == [0, 1, 0, 2, 0, 1]
    assert kinds([3, 1, 3, 2], 5, batches) == [2, 0, 2, 1]


def test_of_many_words_the_most_frequent_stay():
    words = ["x"] * 5 + ["y"] * 4 + ["z"] * 3 + ["u", "v", "w"]
    assert kinds(words, 3) == [0] * 5 + [1] * 4 + [2] * 6


def test_many_numbers_are_cut_into_stretches_of_equally_many_records():
    rng = np.random.default_rng(0)
    numbers = np.round(rng.lognormal(size=6000), 4)
    found = np.array(kinds(numbers, 6, batches=4))
    assert np.abs(np.bincount(found) - 1000).max() < 20
    assert all(numbers[found == kind].max() < numbers[found == kind + 1].min() for kind in range(5))


def test_one_value_that_most_records_have_is_one_kind():
    found = np.array(kinds([0] * 900 + list(range(1, 101)), 4))
    assert set(found[:900].tolist()) == {0}
    assert found.max() == len(set(found.tolist())) - 1


def test_days_are_ordered_and_truth_values_are_not_numbers():
    days = [date(2020, 1, 1) + timedelta(days=number) for number in range(40)]
    assert kinds(days, 4) == [number // 10 for number in range(40)]
    assert sorted(set(kinds([True, False, True, None], 4))) == [0, 1, 2]


def test_numbers_and_days_written_as_text_are_ordered():
    assert kinds([str(number) for number in range(40)], 4) == [number // 10 for number in range(40)]
    days = [str(date(2020, 1, 1) + timedelta(days=number)) for number in range(40)]
    assert kinds([*days, None], 50)[:40] == kinds(days, 50) == list(range(40))
    assert kinds(days, 4) == [number // 10 for number in range(40)]
    assert kinds(["9", "10", "x", "10"], 2) == [1, 0, 1, 0]  # too many are no numbers


def test_what_is_no_number_is_a_kind_of_its_own():
    found = kinds([float("nan"), None, float("inf"), -float("inf"), *range(96)], 4)
    assert found[0] == found[1] == 3
    assert set(found[4:]) == {0, 1, 2}
    assert (found[2], found[3]) == (2, 0)
    assert kinds([None, None], 4) == [0, 0]
    text = kinds(["n/a", None, *(str(number) for number in range(98))], 5)
    assert text[0] == text[1] == 4
    assert text[2:] == sorted(text[2:])
    assert set(text[2:]) == {0, 1, 2, 3}


def test_kinds_do_not_depend_on_the_order_of_rows_and_equal_numbers_are_one_kind():
    texts = [f"{number}{end}" for number in range(40) for end in ("", ".0", ".00")] * 5
    first = dict(zip(texts, kinds(texts, 12)))

    @settings(max_examples=5)
    @given(st.permutations(texts))
    def numbers_in_another_order(turned):
        assert dict(zip(turned, kinds(turned, 12, batches=3))) == first

    numbers_in_another_order()
    assert all(first[f"{number}"] == first[f"{number}.0"] == first[f"{number}.00"] for number in range(40))
    words = ["ties", "are", "broken", "by", "name", "always"]
    named = dict(zip(words, kinds(words, 3)))

    @settings(max_examples=20)
    @given(st.permutations(words))
    def words_in_another_order(turned):
        assert dict(zip(turned, kinds(turned, 3))) == named

    words_in_another_order()


def test_lists_and_categories_have_kinds():
    assert kinds([[1], [2], [1]], 4) == [0, 1, 0]
    assert kinds(pl.Series(["q", "p", "q"], dtype=pl.Categorical).to_arrow(), 4) == [0, 1, 0]


def test_no_records_have_no_kinds():
    assert kinds(pa.array([], pa.string()), 4) == []


def test_a_column_that_tells_persons_apart_is_refused(monkeypatch):
    monkeypatch.setattr(kinds_module, "MOST_VALUES", 50)
    with pytest.raises(QuestionError, match=r"'c' has more than 50 values: it identifies people") as caught:
        kinds([f"secret {number}" for number in range(60)], 4)
    assert "secret" not in str(caught.value)


def test_the_kind_of_a_set_is_its_most_published_candidate():
    target = Target("c", Domain(("p", "q", "r", "s")), 2)
    found = CandidateKinds.of(target, np.array([5.0, 9.0, 7.0, 1.0]), 24)
    sets = pa.array([["p", "q"], ["p", "r"], ["p", "s"], ["s", "r"]])
    assert found.columns == ("c",)
    assert found.places({"c": sets}, 4).tolist() == [0, 1, 2, 1]
    few = CandidateKinds.of(target, np.array([5.0, 9.0, 7.0, 1.0]), 2)
    assert few.places({"c": sets}, 4).tolist() == [0, 1, 1, 1]
    with pytest.raises(ReleaseError, match="2 different candidates"):
        found.places({"c": pa.array([["p", "p"]])}, 1)
