"""Laws of every grouping method, through the public interface, on random tables."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

import polyseme as ps

ATTRIBUTES = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [2, 4, 8]}}
  sex: {role: quasi-identifier}
  town: {role: quasi-identifier, hierarchy: {tree: {all: {north: [a, b], south: [c, d]}}}}
  ill: {role: sensitive, distance: {tree: {all: {lung: [flu, cold], skin: [rash, burn]}}}}
"""
GOALS = (
    "[{distinct-diversity: {l: 2}}]",
    "[{k-anonymity: {k: 3}}, {entropy-diversity: {l: 1.5}}]",
    "[{k-anonymity: {k: 2}}, {closeness: {t: 0.5, ground: hierarchical}}]",
    "[{semantic-diversity: {l: 2, d: 2, reading: exists}}]",
    "[{recursive-diversity: {c: 2, l: 2}}, {beta-likeness: {beta: 2}}]",
)
CLASSES = (
    "full-domain",
    "{full-domain: {suppression: 0.2, loss: discernibility}}",
    "{full-domain: {suppression: 0.3, local-recoding: true}}",
    "mondrian",
    "{mondrian: {mode: relaxed}}",
)
GROUPS = (
    "{anatomy: {l: 2}}",
    "{buckets: {l: 2, e: 1}}",
    "{buckets: {l: 2, d: 2}}",
    "{buckets: {l: 2, e: 1, algorithm: mbf}}",
)
KEYS = ["age", "sex", "town"]

ROW = st.tuples(
    st.integers(0, 9), st.sampled_from("fm"), st.sampled_from("abcd"), st.sampled_from(["flu", "cold", "rash", "burn"])
)
TABLES = st.lists(ROW, min_size=1, max_size=40).map(
    lambda rows: pl.DataFrame(rows, schema=["age", "sex", "town", "ill"], orient="row")
)


def published(table: pl.DataFrame, text: str, seed: int) -> ps.Release | None:
    """A release; None where the goal cannot be reached, which is said and not guessed at."""
    try:
        return ps.anonymize(table, ps.Policy.loads(text), seed=seed, warn=lambda _: None)
    except ps.ImpossibleError:
        return None


def rows(release: ps.Release) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(pl.from_arrow(part)) for part in release.batches(release.manifest.names)])


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("method", CLASSES)
@given(table=TABLES, seed=st.integers(0, 5))
@settings(max_examples=6)
def test_classes_hold_what_was_asked_for(method: str, goal: str, table: pl.DataFrame, seed: int) -> None:
    release = published(table, f"{ATTRIBUTES}models: {goal}\nmethod: {method}\n", seed)
    if release is None:
        # Everything in one class is the last resort of every method: it must fail, too.
        text = f"{ATTRIBUTES}models: {goal}\n"
        assert not ps.verify(table.with_columns(pl.lit("*").alias(key) for key in KEYS), ps.Policy.loads(text)).holds
        return
    assert ps.verify(release).holds
    applied = release.manifest.applied
    assert applied is not None
    shown = rows(release)
    assert shown.height == table.height - (applied.suppressed if applied.withheld else 0)
    # Sensitive values are those of the records: none is changed, and those of suppressed records may be left out.
    there, true = shown["ill"].value_counts(), table["ill"].value_counts()
    assert there.join(true, on="ill").filter(pl.col("count") > pl.col("count_right")).height == 0
    counted = shown.filter(~pl.all_horizontal(pl.col(key) == "*" for key in KEYS)).group_by(KEYS).len().height
    assert applied.classes == counted or applied.suppressed == 0


@pytest.mark.parametrize("method", GROUPS)
@given(table=TABLES, seed=st.integers(0, 5))
@settings(max_examples=8)
def test_groups_hold_what_was_asked_for(method: str, table: pl.DataFrame, seed: int) -> None:
    release = published(table, f"{ATTRIBUTES}method: {method}\n", seed)
    if release is None:
        return
    found: dict[str, Any] = {verdict.model: verdict for verdict in ps.verify(release).verdicts}
    assert all(verdict.holds for verdict in found.values())
    shown = rows(release)
    assert shown.height == table.height - release.manifest.applied.suppressed  # type: ignore[union-attr]
    # Quasi-identifiers are as they were, however rows are ordered.
    missing = table.select(KEYS).group_by(KEYS).len().join(shown.group_by(KEYS).len(), on=KEYS, how="right")
    assert missing.filter(pl.col("len") < pl.col("len_right")).height == 0
