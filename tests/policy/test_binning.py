"""Bins made from the data: published, and yet no person's own number is among them."""

from __future__ import annotations

import datetime
import math
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.policy.domains import FEWEST, equal_width_edges, quantile_edges
from polyseme.policy.resolution import resolve
from polyseme.schema import Bins
from polyseme.tables.codes import encode
from polyseme.tables.io.columnar import FrameSource

METHODS = {"quantile": quantile_edges, "equal-width": equal_width_edges}


def rules(method: str, count: int = 10, promise: str = "diversity: {l: 1}", more: str = "") -> ps.Policy:
    bins = f"bins: {{count: {count}, method: {method}}}"
    return ps.Policy.loads(f"attributes: {{n: {{role: sensitive, {bins}, {more}protect: {{{promise}}}}}}}")


def held(values: np.ndarray[Any, Any], edges: tuple[float, ...]) -> list[int]:
    return [int(np.count_nonzero((values >= low) & (values < high))) for low, high in pairwise(edges)]


def tables() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(13)
    return {
        "salaries": rng.lognormal(10, 1.3, 2_000).round(2),
        "below zero": -rng.lognormal(2, 1, 400),
        "ages": rng.integers(0, 100, 700).astype(float),
        "one far away": np.append(rng.uniform(0, 100, 500), 987_654.321),
        "heavy ties": np.repeat([0.0, 1.0, 2.0, 17.5], [900, 3, 80, 17]),
        "a million and a little": 1e6 + rng.normal(size=300),
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", tables())
def test_no_edge_tells_of_one_person(method: str, name: str) -> None:
    values = tables()[name]
    release = ps.anonymize(pl.DataFrame({"n": values}), rules(method), warn=lambda text: None)
    domain = release.manifest["n"].domain
    assert isinstance(domain.cut, Bins)
    edges = domain.cut.edges
    assert (edges[0], edges[-1]) == (-math.inf, math.inf)
    assert {values.min(), values.max()}.isdisjoint(edges)
    assert min(held(values, edges)) >= FEWEST
    text = release.manifest.to_json()
    assert not any(f"{extreme:.12g}" in text for extreme in (values.min(), values.max()) if extreme % 1)


@pytest.mark.parametrize("method", METHODS)
def test_edges_have_few_digits_where_values_have_many(method: str) -> None:
    values = tables()["salaries"]
    for edge in METHODS[method](values, 10)[1:-1]:
        assert edge not in values
        assert len(f"{edge:.12g}".strip("0")) <= 3


@given(
    st.lists(
        st.one_of(st.integers(-20, 20).map(float), st.floats(allow_nan=False, allow_infinity=False)),
        max_size=120,
    ),
    st.integers(1, 30),
    st.sampled_from(sorted(METHODS)),
)
@settings(max_examples=300, deadline=None)
def test_every_value_falls_into_a_bin_that_is_not_too_small(values: list[float], count: int, method: str) -> None:
    column = np.array(values)
    edges = METHODS[method](column, count)
    assert all(low < high for low, high in pairwise(edges))
    assert 1 <= len(edges) - 1 <= count
    found = held(column, edges)
    assert sum(found) == len(column)
    assert len(found) == 1 or min(found) >= FEWEST


def test_quantile_bins_hold_about_equally_many() -> None:
    values = tables()["salaries"]
    found = held(values, quantile_edges(values, 10))
    assert len(found) == 10
    assert 150 <= min(found) <= max(found) <= 250


def test_equal_width_bins_are_equally_wide() -> None:
    edges = equal_width_edges(np.linspace(-7.0, 13.0, 400), 10)
    assert edges[1:-1] == (-5.0, -2.5, 0.0, 2.5, 5.0, 7.5, 10.0, 12.5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_too_few_records_for_bins_are_refused(method: str, count: int) -> None:
    frame = pl.DataFrame({"n": [float(number) for number in range(count)]})
    with pytest.raises(ps.PolicyError, match="too few different numbers in the table for two bins of at least 5"):
        ps.anonymize(frame, rules(method, promise="diversity: {l: 2}"))
    with pytest.raises(ps.PolicyError, match="too few different numbers"):
        ps.anonymize(pl.DataFrame({"n": [7] * 100}), rules(method, promise="ldp: {epsilon: 1}"))


def test_fewer_bins_than_asked_for_are_pointed_out() -> None:
    heard: list[str] = []
    frame = pl.DataFrame({"n": [1, 2, 3] * 20})
    ps.anonymize(frame, rules("quantile", 4, "diversity: {l: 2}"), warn=heard.append)
    assert any("3 bins, not 4" in text and "at least 5 records" in text for text in heard)
    assert any("taken from the table, and published" in text for text in heard)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "column",
    [
        pl.Series([*range(-50, 50), None]),
        pl.Series([*(number / 7 for number in range(100)), float("nan"), None]),
        pl.Series([*map(float, range(100)), math.inf, -math.inf]),
        pl.Series([*(str(number) for number in range(100)), None]),
        pl.Series([2**62 + number * 2**40 for number in range(100)]),
    ],
)
def test_every_value_of_the_table_has_its_bin(column: pl.Series, method: str) -> None:
    frame = column.alias("n").to_frame()
    domain = resolve(rules(method, more="missing: drop, "), FrameSource(frame.to_arrow())).schema["n"].domain
    assert domain is not None
    assert domain.size > 3
    coded = encode(column.fill_nan(None) if column.dtype.is_float() else column, domain)
    assert coded.unseen == 0
    assert np.bincount(coded.codes[coded.codes >= 0]).min() >= FEWEST


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([datetime.date(2020, 1, 1) + datetime.timedelta(days=step) for step in range(60)]),
        pl.Series(["2020-01-01"] * 60),
        pl.Series(["NaN"] * 60),
    ],
)
def test_dates_and_words_are_not_cut_as_numbers(column: pl.Series) -> None:
    with pytest.raises(ps.PolicyError, match="60 values cannot be read as numbers") as caught:
        ps.anonymize(column.alias("n").to_frame(), rules("quantile", promise="diversity: {l: 2}"))
    assert "periods" in str(caught.value)


def test_two_open_bins_have_no_distance_in_units() -> None:
    frame = pl.DataFrame({"n": [float(number) for number in range(12)]})
    with pytest.raises(ps.PolicyError, match="2 bins with open ends have no position") as caught:
        ps.anonymize(frame, rules("quantile", 2, "semantic-diversity: {l: 2, d: 3}"))
    assert "line: rank" in str(caught.value)
