"""Equivalence classes and published sets as counts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.kernel.errors import TableError
from polyseme.tables.equivalence_classes import (
    Counts,
    PublishedSets,
    class_of_rows,
    classes_of,
    match_counts,
    published_sets,
)

cells = st.sampled_from([None, "*", "1", "2"])
tables = st.lists(st.tuples(cells, cells, st.integers(0, 2)), min_size=1, max_size=15)


def frame_of(rows):
    return pl.DataFrame(
        {"a": [r[0] for r in rows], "b": [r[1] for r in rows], "s": [r[2] for r in rows]},
        schema={"a": pl.String, "b": pl.String, "s": pl.Int64},
    )


def kept(rows):
    rest = [r for r in rows if r[:2] != ("*", "*")]
    return rest or rows


@settings(max_examples=200, deadline=None)
@given(tables)
def test_missing_is_a_value_and_stars_are_set_aside(rows):
    classes = classes_of(frame_of(rows), ["a", "b"], ["s"])
    rest = kept(rows)
    expected = {}
    for a, b, s in rest:
        expected.setdefault((a, b), []).append(s)
    assert sorted(classes.sizes) == sorted(len(g) for g in expected.values())
    assert classes.suppressed == len(rows) - len(rest)
    assert sorted(classes.attributes["s"].distinct) == sorted(len(set(g)) for g in expected.values())
    for index, row in enumerate(classes.first):
        assert len(expected[rows[row][:2]]) == classes.sizes[index]


@settings(max_examples=200, deadline=None)
@given(tables)
def test_wildcards_match_anything(rows):
    classes = classes_of(frame_of(rows), ["a", "b"], ["s"], domains={"s": [0, 1, 2]}, wildcard=True)
    counts = classes.attributes["s"]

    def wild(cell):
        return None if cell == "*" else cell

    def match(r, q):
        return all(wild(x) is None or wild(y) is None or x == y for x, y in zip(r[:2], q[:2]))

    rest = kept(rows)
    for index, first in enumerate(classes.first):
        group = [r[2] for r in rest if match(r, rows[first])]
        assert classes.sizes[index] == len(group)
        part = slice(counts.starts[index], counts.starts[index + 1])
        assert dict(zip(counts.value[part].tolist(), counts.count[part].tolist())) == {
            v: group.count(v) for v in set(group)
        }
    assert counts.records == len(rest)


def test_no_quasi_identifiers_is_one_class():
    classes = classes_of(frame_of([("1", "2", 0), ("2", None, 1)]), [], ["s"])
    assert classes.sizes.tolist() == [2]
    assert classes.attributes["s"].distinct.tolist() == [2]


def test_a_table_generalized_to_the_top_is_one_class():
    classes = classes_of(frame_of([("*", "*", 0)] * 3), ["a", "b"])
    assert (classes.sizes.tolist(), classes.suppressed) == ([3], 0)


def test_domains_meet_columns_of_another_type():
    for column, domain in [
        (["1", "3"], [1, 2, 3]),
        ([1, 3], ["1", "2", "3"]),
        ([1.0, 3.0], [1, 2, 3]),
        ([True, False], [False, True]),
        (pl.Series(["x", "z"], dtype=pl.Categorical), ["x", "y", "z"]),
    ]:
        counts = classes_of(pl.DataFrame({"s": column}), [], ["s"], domains={"s": domain}).attributes["s"]
        assert not counts.flaw
        assert counts.domain_size == len(domain)
    counts = classes_of(pl.DataFrame({"s": ["1", "x"]}), [], ["s"], domains={"s": [1, 2]}).attributes["s"]
    assert "outside the declared domain" in counts.flaw


def test_from_codes_agrees_with_a_table():
    rng = np.random.default_rng(1)
    q, s = rng.integers(0, 5, 200), rng.integers(0, 4, 200)
    one = Counts.from_codes(q, s, 4)
    two = classes_of(pl.DataFrame({"q": q, "s": s}), ["q"], ["s"], domains={"s": [0, 1, 2, 3]}).attributes["s"]
    for name in ("sizes", "starts", "value", "count", "total"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert np.array_equal(class_of_rows(pl.DataFrame({"q": q}), ["q"]), q)


def test_match_counts_take_stars_of_the_release_for_anything():
    release = pl.DataFrame({"a": ["1", "*", "3"], "b": ["x", "x", "y"]})
    reference = pl.DataFrame({"a": [1, 1, 2, 3], "b": ["x", "x", "x", "z"]})
    found = dict(zip(release.sort("a", "b")["a"], match_counts(release, reference, ["a", "b"])))
    assert found == {"1": 2, "*": 3, "3": 0}


def test_match_counts_of_another_type():
    release = pl.DataFrame({"a": [1, 2]})
    reference = pl.DataFrame({"a": ["1", "1", "x", None]})
    assert match_counts(release, reference, ["a"]).tolist() == [2, 0]


def test_missing_columns_are_named_with_a_hint():
    with pytest.raises(TableError, match="did you mean 'zip'"):
        classes_of(pl.DataFrame({"zip": [1]}), ["zipp"])


labels = st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", "c", "?", None]), max_size=4))


@settings(max_examples=200, deadline=None)
@given(st.lists(labels, min_size=1, max_size=12))
def test_published_sets_of_any_shape(lists):
    frame = pl.DataFrame({"s": lists}, schema={"s": pl.List(pl.String)})
    sets = published_sets(frame, "s", ["a", "b", "c"])
    codes = {"a": 0, "b": 1, "c": 2, "?": -1, None: -1}
    expected = {}
    for row in lists:
        key = tuple(sorted({codes[v] for v in row or []}))
        expected[key] = expected.get(key, 0) + 1
    found = {tuple(sets.value[sets.starts[i] : sets.starts[i + 1]].tolist()): int(n) for i, n in enumerate(sets.counts)}
    assert found == expected
    for i, row in enumerate(sets.first):
        assert len({codes[v] for v in lists[row] or []} - {-1}) == sets.distinct[i]


def test_published_sets_of_codes():
    frame = pl.DataFrame({"s": [[0, 2], [2, 0], [1, 5]]})
    sets = published_sets(frame, "s", 3)
    assert sets.distinct.tolist() == [1, 2]
    direct = PublishedSets.from_codes(np.array([[0, 2], [2, 0], [1, 5]]), 3)
    assert np.array_equal(direct.value, sets.value)
    counted = PublishedSets.from_codes(np.array([[1, 2], [0, 2], [2, 1]]), 3, counts=np.array([5, 7, 2]))
    assert counted.counts.tolist() == [7, 7]
    assert counted.first.tolist() == [-1, -1], "no row is known of records that were only counted"
    with pytest.raises(TableError, match="lists"):
        published_sets(pl.DataFrame({"s": [1]}), "s", 3)


@pytest.mark.parametrize("values", [4, 4000])
def test_counts_of_narrow_and_wide_domains(values):
    """Few values are counted in a whole table of classes and values, many by sorting what occurs."""
    rng = np.random.default_rng(values)
    group, value = rng.integers(0, 30, 2000), rng.integers(0, values, 2000)
    domain = [f"v{code:04}" for code in range(values)]
    frame = pl.DataFrame({"q": group, "s": [domain[code] for code in value]})
    counts = classes_of(frame, ["q"], ["s"], domains={"s": domain}).attributes["s"]
    expected = np.zeros((30, values), dtype=int)
    np.add.at(expected, (group, value), 1)
    found = np.zeros_like(expected)
    found[counts.owner, counts.value] = counts.count
    np.testing.assert_array_equal(found, expected)
    assert len(counts.value) == (expected > 0).sum()
