"""Grouping methods on counts of records that are alike: the same release as from the records themselves."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from draws import seeds
from hypothesis import given, settings

import polyseme as ps
from polyseme.grouping.application import treat
from polyseme.grouping.columns import Treated
from polyseme.grouping.division import treat_counted
from polyseme.kernel.work import Cancellation
from polyseme.methods import grouping_named
from polyseme.methods.microdata import Known
from polyseme.publishing.publication import resolved_for
from polyseme.tables.io.columnar import FrameSource
from polyseme.tables.io.source import Source

ATTRIBUTES = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 20, 60], missing: wildcard}}
  zip: {role: quasi-identifier, hierarchy: {prefix: 3}}
  sex: {role: quasi-identifier}
  ill: {role: sensitive, missing: drop}
  job: {role: sensitive, missing: {category: unknown}}
  weight: {role: insensitive}
table: {missing-values: ['', '?']}
"""
MODELS = (
    "[{k-anonymity: {k: 3}}, {distinct-diversity: {l: 2}}]",
    "[{k-anonymity: {k: 2}}, {closeness: {t: 0.45, attribute: ill}}, {distinct-diversity: {l: 2, attribute: job}}]",
)
METHODS = (
    "{full-domain: {suppression: 0.1}}",
    "{full-domain: {suppression: 0.3, loss: discernibility}}",
    "{full-domain: {suppression: 0.4, local-recoding: true}}",
    "{full-domain: {suppression: 0.4, loss: loss, local-recoding: true}}",
    "mondrian",
)


def people(seed: int, count: int = 400) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    ages = random.integers(20, 60, count).astype(str)
    ages[random.random(count) < 0.05] = "?"
    return pl.DataFrame(
        {
            "name": [f"N{number}" for number in range(count)],
            "age": ages,
            "zip": [f"{code:03d}" for code in np.minimum(*random.integers(10, 60, (2, count)))],
            "sex": random.choice(["f", "m", "?"], count, p=[0.5, 0.45, 0.05]),
            "ill": random.choice(["flu", "cold", "rash", "burn", ""], count, p=[0.3, 0.3, 0.2, 0.15, 0.05]),
            "job": random.choice(["a", "b", "c", "?"], count),
            "weight": random.integers(50, 99, count),
        }
    )


def in_memory(frame: pl.DataFrame) -> FrameSource:
    return FrameSource(frame.to_arrow())


class CountedElsewhere(FrameSource):
    """A table whose rows another program counts and returns in any order; they cannot be read one by one."""

    def counted(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Any]]:
        names = list(columns)
        rows = pl.DataFrame(self.table).select(names).group_by(names).len().sample(fraction=1.0, shuffle=True, seed=3)
        for part in rows.iter_slices(50):
            (batch,) = part.select(names).to_arrow().combine_chunks().to_batches()
            yield batch, part["len"].to_numpy().astype(np.int64)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        raise AssertionError("read row by row")


def policy(method: str, models: str) -> ps.Policy:
    return ps.Policy.loads(f"{ATTRIBUTES}models: {models}\nmethod: {method}\n")


def treated(table: pl.DataFrame, rules: ps.Policy, source: Source | None = None) -> Treated | None:
    source = source or in_memory(table)
    try:
        return treat(rules, resolved_for(rules, in_memory(table)), source, 1, Cancellation())
    except ps.ImpossibleError:
        return None


def rows(source: Source) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(pl.from_arrow(batch)) for batch in source.batches()])


def by_record(monkeypatch: pytest.MonkeyPatch, rules: ps.Policy, table: pl.DataFrame) -> Treated | None:
    """What the method decides when it is shown each record, and its decisions are applied by row number."""
    assert rules.grouping is not None
    with monkeypatch.context() as patch:
        patch.setattr(type(grouping_named(rules.grouping.name)), "counts", lambda self, parameters: False)
        return treated(table, rules)


def same(one: Treated, other: Treated) -> None:
    mine, theirs = one.applied.to_dict(), other.applied.to_dict()
    # Summed in another order.
    assert (mine.pop("loss") or 0.0) == pytest.approx(theirs.pop("loss") or 0.0, rel=1e-12)
    assert mine == theirs
    assert dict(one.columns) == dict(other.columns)
    assert (one.records, one.dropped, one.recoded) == (other.records, other.dropped, other.recoded)
    assert (one.finer, one.models) == (other.finer, other.models)


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_counts_decide_as_records_do(monkeypatch: pytest.MonkeyPatch, method: str, models: str) -> None:
    rules, reached = policy(method, models), 0

    @settings(max_examples=4)
    @given(seeds)
    def check(seed: int) -> None:
        nonlocal reached
        table = people(seed)
        one, two = treated(table, rules), by_record(monkeypatch, rules, table)
        assert (one is None) == (two is None)
        if one is None or two is None:
            return
        reached += 1
        same(one, two)
        assert one.rule is not None
        assert two.rule is None
        assert one.source.schema == two.source.schema
        assert rows(one.source).equals(rows(two.source)), "row by row, in the order of the table"
        assert one.source.rows == two.source.rows == rows(one.source).height
        assert one.source.row_numbers([0, 7]) == two.source.row_numbers([0, 7])

    check()
    assert reached >= 2


@pytest.mark.parametrize("method", METHODS)
def test_a_table_that_is_counted_elsewhere_is_treated_alike(method: str) -> None:
    table, rules = people(1), policy(method, MODELS[0])
    here = treated(table, rules)
    there = treat_counted(rules, resolved_for(rules, in_memory(table)), CountedElsewhere(table.to_arrow()))
    assert here is not None
    same(there, here)
    # Any part of the table, anywhere: what was pickled recodes it as the whole is recoded.
    apply = pickle.loads(pickle.dumps(there.apply))  # noqa: S301
    assert len(pickle.dumps(there.apply)) < 40_000
    parts = [apply(batch) for batch in table.to_arrow().to_batches(max_chunksize=37)]
    assert pl.DataFrame(pl.from_arrow(pa.Table.from_batches(parts))).equals(rows(here.source))


def test_which_rows_are_kept_is_told() -> None:
    table, rules = people(1), policy(METHODS[0], MODELS[1])
    made = treated(table, rules)
    assert made is not None
    assert made.rule is not None
    assert made.applied.withheld
    (batch,) = table.to_arrow().combine_chunks().to_batches()
    kept, published = made.rule.recode(batch)
    assert table.filter(pl.Series(kept))["weight"].equals(pl.Series("weight", published.column("weight").to_pylist()))
    assert (~kept).sum() == made.dropped + made.applied.suppressed > 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ill": pl.lit("ague")}, "400 records have a value of 'ill' that is not in the declared domain"),
        ({"age": pl.lit("old")}, r"1 of 1 values \(400 of 400 records\) have no place in the hierarchy"),
    ],
)
def test_problems_are_counted_in_records(change: dict[str, Any], message: str) -> None:
    text = ATTRIBUTES.replace("{role: sensitive, missing: drop}", "{role: sensitive, domain: [flu, cold, rash, burn]}")
    rules = ps.Policy.loads(f"{text}models: {MODELS[0]}\nmethod: {METHODS[0]}\n")
    table = people(2, 500).filter(pl.col("ill") != "").head(400)
    resolved = resolved_for(rules, in_memory(table))
    broken = table.with_columns(**change)
    with pytest.raises(ps.TableError, match=message) as counted:
        treat_counted(rules, resolved, CountedElsewhere(broken.to_arrow()))
    with pytest.raises(ps.TableError, match=f"{message}.*first in rows 1, 2, 3, 4 and 5|{message}.*in row 1") as read:
        treat_counted(rules, resolved, in_memory(broken))
    assert "in row" not in str(counted.value)
    assert "ague" not in str(read.value)


def test_a_table_that_changes_between_two_readings_is_noticed() -> None:
    made = treated(people(1), policy(METHODS[0], MODELS[0]))
    assert made is not None
    (batch,) = people(1).with_columns(sex=pl.lit("x")).to_arrow().combine_chunks().to_batches()
    with pytest.raises(ps.TableError, match="values that it did not have when it was read first"):
        made.apply(batch)


@pytest.mark.parametrize("method", ["rules", "{mondrian: {mode: relaxed}}"])
def test_what_needs_single_records_says_so(method: str) -> None:
    rules = policy(method, MODELS[0])
    with pytest.raises(ps.ImpossibleError, match="on one machine") as error:
        treat_counted(rules, resolved_for(rules, in_memory(people(1))), in_memory(people(1)))
    assert "--engine local" in str(error.value)


@pytest.mark.parametrize("sizes", [[3, 4, 2], [1 << 40, 1 << 40, 5, 1 << 30], [7], []])
def test_known_combinations_are_found(sizes: list[int]) -> None:
    random = np.random.default_rng(5)
    pool = np.column_stack([random.integers(0, size, 4)[random.integers(0, 4, 60)] for size in sizes] or [np.ones(60)])
    pool = pool[:, : len(sizes)].astype(np.int64)
    known, queried = pool[:20], pool[10:]
    different = sorted({tuple(row) for row in known.tolist()})
    places = {row: place for place, row in enumerate(different)}
    expected = [places.get(tuple(row), -1) for row in queried.tolist()]
    assert Known.of(known, sizes).find(queried).tolist() == expected
    assert Known.of(known[:0], sizes).find(queried).tolist() == [-1] * len(queried)
