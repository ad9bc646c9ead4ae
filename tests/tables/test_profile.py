"""A profile gives back the table that it read, reads it once, and makes `plan`, `init` and `risk` read it once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.tables import profile
from polyseme.tables.io.columnar import ParquetSource
from polyseme.tables.io.source import Source
from polyseme.tables.profile import Profile

ROWS, BATCH = 400, 150
MARK = "Mark Value"


class Scanned(Source):
    """A table that writes down which columns it was read for, and how many batches of them were taken."""

    def __init__(self, frame: pl.DataFrame, batch: int = BATCH) -> None:
        self.table, self.batch, self.name, self.typed = frame.to_arrow(), batch, "people", True
        self.scans: list[tuple[tuple[str, ...], list[int]]] = []

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        taken: list[int] = []
        self.scans.append((tuple(columns), taken))
        for batch in self.table.select(columns).combine_chunks().to_batches(max_chunksize=self.batch):
            taken.append(batch.num_rows)
            yield batch

    @property
    def passes(self) -> int:
        """How often it was read whole."""
        return sum(sum(taken) == self.table.num_rows for _, taken in self.scans)


def people() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m"], ROWS)
    return pl.DataFrame(
        {
            "id": np.arange(ROWS) // 2,
            "house": np.arange(ROWS) // 4,
            "weight": rng.choice([1.0, 2.0], ROWS),
            "age": rng.integers(18, 80, ROWS),
            "sex": sex,
            "zip": rng.choice(["10115", "10117", "20095", "20097"], ROWS),
            "ill": np.where(sex == "f", rng.choice(list("abcdef"), ROWS), rng.choice(list("bcdef"), ROWS)),
            "job": rng.choice(list("uvwxyz"), ROWS),
        }
    )


KEPT = "id: {role: identifier}, house: {role: identifier}, weight: {role: insensitive}"
SHOWN = f"{KEPT}, age: {{role: quasi-identifier}}, sex: {{role: quasi-identifier}}, zip: {{role: insensitive}}"
CLASSES = (
    f"{KEPT}, age: {{role: quasi-identifier, hierarchy: {{intervals: [10, 20, 40]}}}}, "
    "sex: {role: quasi-identifier, hierarchy: suppress}, zip: {role: quasi-identifier, hierarchy: {prefix: 5}}"
)
SETS = "protect: {diversity: {l: 2}}"
MODELS = "models: [{k-anonymity: {k: 5}}, {distinct-diversity: {l: 2, attribute: ill}}]"
DECOYS = f"attributes: {{{SHOWN}, ill: {{role: sensitive, {SETS}}}, job: {{role: insensitive}}}}"
GROUPED = f"attributes: {{{CLASSES}, ill: {{role: sensitive}}, job: {{role: insensitive}}}}"
POLICIES = {
    "decoys": DECOYS,
    "decoys of people": f"record-key: id\n{DECOYS}",
    "shared": DECOYS.replace("job: {role: insensitive", f"job: {{role: sensitive, shared-by: house, {SETS}"),
    "strata": (
        f"attributes: {{{SHOWN}, ill: {{role: sensitive, domain: [a, b, c, d, e, f], reference: data, {SETS}}}, "
        f"job: {{role: insensitive}}}}\nimpossible: [{{when: {{sex: m}}, attribute: ill, values: [a]}}]"
    ),
    "joint": (
        f"attributes: {{{SHOWN}, ill: {{role: sensitive, domain: [a, b, c, d, e, f]}}, "
        "job: {role: sensitive, domain: [u, v, w, x, y, z]}}\n"
        "joint: [{name: both, attributes: [ill, job], protect: {semantic-diversity: {l: 2, d: 1}}}]"
    ),
    "full-domain and decoys": (
        f"attributes: {{{CLASSES}, ill: {{role: sensitive}}, job: {{role: sensitive, {SETS}}}}}\n{MODELS}\n"
        "method: {decoys: {}, full-domain: {suppression: 0.05}}"
    ),
    "full-domain of people": f"record-key: id\n{GROUPED}\n{MODELS}\nmethod: {{full-domain: {{suppression: 0.05}}}}",
    "mondrian with weights": (
        f"{GROUPED}\n{MODELS}\nmethod: {{mondrian: {{}}}}".replace(
            "weight: {role: insensitive}", "weight: {role: weight}"
        )
    ),
    "anatomy": f"{GROUPED}\nmethod: {{anatomy: {{l: 3, attribute: ill}}}}",
    "buckets": (
        GROUPED.replace(
            "ill: {role: sensitive}", "ill: {role: sensitive, distance: {line: rank}, domain: [a, b, c, d, e, f]}"
        )
        + "\nmethod: {buckets: {l: 2, d: 1, attribute: ill}}"
    ),
    "rules": (
        f"{GROUPED}\nmodels: [{{k-anonymity: {{k: 3}}}}, "
        "{semantic-rules: {rules: [{never-all: {ill: [a, b]}}]}}]\n"
        "method: {rules: {start: {full-domain: {suppression: 0.05}}, actions: [merge, generalize, suppress-records]}}"
    ),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_plan_reads_the_table_at_most_twice(kind: str, same_keys_again: Any) -> None:
    table, everything = Scanned(people()), Scanned(people())
    same_keys_again()
    made = ps.plan(POLICIES[kind], data=table)
    assert table.passes == 1
    assert len(table.scans) <= 2
    # A table of which nothing may be held is planned alike, and read each time.
    same_keys_again()
    assert ps.plan(POLICIES[kind], data=Profile(everything, most=0)).to_dict() == made.to_dict()
    assert everything.passes > 2


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("decoys", {"l: 2": "l: 3"}),
        ("joint", {"d: 1": "d: 2"}),
        ("full-domain and decoys", {"k: 5": "k: 8", "l: 2": "l: 3"}),
        ("mondrian with weights", {"k: 5": "k: 20"}),
        ("anatomy", {"l: 3": "l: 2"}),
    ],
)
def test_a_policy_whose_numbers_changed_is_planned_without_reading_again(kind: str, changed: dict[str, str]) -> None:
    table = Scanned(people())
    known, text = Profile(table), POLICIES[kind]
    ps.plan(text, data=known)
    read = len(table.scans)
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    made = ps.plan(text, data=known)
    assert len(table.scans) == read
    assert made.to_dict().keys() == ps.plan(text, data=people()).to_dict().keys()


def test_plan_leaves_out_values_that_are_impossible_for_their_record() -> None:
    strange = people().with_columns(ill=pl.when(pl.int_range(ROWS) < 5).then(pl.lit("a")).otherwise("ill"))
    assert strange.filter(sex="m", ill="a").height
    text = POLICIES["strata"].replace("job: {role: insensitive}", f"job: {{role: sensitive, {SETS}}}")
    assert ps.plan(text, data=strange)["ill"].feasible


def test_a_draft_and_the_risk_of_a_table_read_it_once() -> None:
    table = Scanned(people())
    ps.init(table)
    assert table.passes == len(table.scans) == 1
    table = Scanned(people())
    ps.risk(table)
    assert table.passes == len(table.scans) == 1


CELLS = {
    "text": st.sampled_from(["", "a", "b", "ä" * 40, None]),
    "number": st.one_of(st.none(), st.integers(-5, 5)),
    "real": st.sampled_from([0.0, -0.0, float("nan"), 1.5, None]),
    "day": st.sampled_from([date(2020, 1, 1), None]),
    "kind": st.sampled_from(["x", "y", None]),
    "list": st.sampled_from([["a"], [], None]),
}
KINDS = {
    "text": pa.string(),
    "number": pa.int64(),
    "real": pa.float64(),
    "day": pa.date32(),
    "kind": pa.dictionary(pa.int32(), pa.string()),
    "list": pa.list_(pa.string()),
}


@settings(max_examples=40)
@given(st.data(), st.integers(0, 30), st.integers(1, 20), st.sampled_from([1, 200, 1 << 30]))
def test_a_profile_gives_back_the_table(data: st.DataObject, rows: int, batch: int, most: int) -> None:
    columns = {
        name: pa.array(data.draw(st.lists(cell, min_size=rows, max_size=rows)), type=KINDS[name])
        for name, cell in CELLS.items()
    }
    table = Scanned(pl.DataFrame(), batch)
    table.table = pa.table(columns)
    known = Profile(table, most)
    for _ in range(3):
        names = data.draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, unique=True))
        there = [batch.select(names) for batch in table.table.select(names).to_batches(max_chunksize=batch)]
        assert [_bits(batch) for batch in known.batches(names)] == [_bits(batch) for batch in there]
        first = known.head(names)
        assert (first is None) is (not there)
        assert first is None or _bits(first) == _bits(there[0])
    assert known.count() == known.rows == rows
    if most == 1 << 30:
        read = [name for names, _ in table.scans for name in names]
        assert len(read) == len(set(read))


def _bits(batch: pa.RecordBatch) -> Any:
    """What a batch holds, to the sign of zero."""
    return batch.schema, repr(batch.to_pydict())


def test_a_profile_says_nothing_of_the_values() -> None:
    known = Profile(Scanned(people().with_columns(job=pl.lit(MARK))))
    known.hold(["job", "sex"])
    assert MARK not in repr(known)
    assert "2 of 8 columns" in repr(known)


@pytest.mark.parametrize("name", ["tree.csv", "tree.yaml"])
def test_a_tree_file_is_opened_once_as_long_as_it_stays_as_it_is(tmp_path: Path, name: str) -> None:
    trees = {
        "tree.csv": ("a;x;*\nb;x;*\nc;y;*\nd;y;*\ne;z;*\nf;z;*\n", "a;x;*\nb;x;*\nc;y;*\nd;y;*\ne;y;*\nf;y;*\ng;y;*\n"),
        "tree.yaml": ("{x: [a, b], y: [c, d], z: [e, f]}", "{x: [a, b], y: [c, d, e, f, g]}"),
    }
    sets = f"distance: {{tree: {name}}}, protect: {{semantic-diversity: {{l: 2, d: 2}}}}"
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"attributes: {{{SHOWN}, ill: {{role: sensitive, {sets}}}, job: {{role: identifier}}}}")
    (tmp_path / name).write_text(trees[name][0])
    opened: list[str] = []
    watching = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open" and str(arguments[0]).endswith(name):
            opened.append(name)

    sys.addaudithook(hook)
    try:
        for _ in range(2):
            made = ps.plan(policy, data=people())
        assert len(opened) == 1
        assert made["ill"].attribute.domain.size == 6
        (tmp_path / name).write_text(trees[name][1])
        assert ps.plan(policy, data=people())["ill"].attribute.domain.size == 7
    finally:
        watching = False


COMPARED = ["text", "number", "real", "day"]


@settings(max_examples=40)
@given(st.data(), st.integers(0, 60), st.integers(1, 20), st.sampled_from([1, 8, 1 << 18]), st.sampled_from([0, 3, 19]))
def test_distinct_rows_have_the_counts_and_first_rows_of_a_dictionary(
    data: st.DataObject, rows: int, batch: int, looked_at: int, dense: int
) -> None:
    columns = {
        name: pa.array(data.draw(st.lists(CELLS[name], min_size=rows, max_size=rows)), type=KINDS[name])
        for name in COMPARED
    }
    table = Scanned(pl.DataFrame(), batch)
    table.table = pa.table(columns)
    requested = data.draw(st.lists(st.sampled_from(COMPARED), min_size=1, unique=True))
    expected: dict[str, list[int]] = {}
    for place, row in enumerate(table.table.select(requested).to_pylist()):
        expected.setdefault(repr(row), []).append(place)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_LOOKED_AT": looked_at, "_DENSE_BITS": dense, "_WORD_BITS": 8, "BATCH_ROWS": 4}.items():
            patch.setattr(profile, name, value)
        parts = list(Profile(table, 0).distinct(requested))
    found: dict[str, list[int]] = {}
    total: dict[str, int] = {}
    for part in parts:
        assert part.rows.schema == table.table.select(requested).schema
        counts = np.ones(part.rows.num_rows, dtype=int) if part.counts is None else part.counts
        for row, first, number in zip(part.rows.to_pylist(), part.first.tolist(), counts.tolist(), strict=True):
            found.setdefault(repr(row), []).append(first)
            total[repr(row)] = total.get(repr(row), 0) + number
    assert total == {row: len(places) for row, places in expected.items()}
    assert {row: min(first) for row, first in found.items()} == {row: places[0] for row, places in expected.items()}
    everything = [first for part in parts for first in part.first.tolist()]
    assert everything == sorted(set(everything))
    assert looked_at < 1 << 18 or len(everything) == len(expected)


@pytest.mark.parametrize("texts", [["a", "b", None], [f"{number:05}" for number in range(70_000)]])
def test_distinct_rows_of_a_parquet_file(tmp_path: Path, texts: list[str | None]) -> None:
    rng = np.random.default_rng(2)
    text = pa.array([texts[place] for place in rng.integers(0, len(texts), 80_000).tolist()])
    number = pa.array(rng.integers(0, 3, 80_000).astype(np.int8))
    for kind in (pa.string(), pa.large_string()):
        table = pa.table({"text": text.cast(kind), "number": number})
        pa.parquet.write_table(table, tmp_path / "table.parquet", row_group_size=50_000)
        (found,) = Profile(ParquetSource(tmp_path / "table.parquet"), 0).distinct(["text", "number"])
        assert found.rows.schema.types == table.schema.types
        expected = pl.DataFrame(table).group_by(pl.all(), maintain_order=True).len()
        assert pl.DataFrame(pa.Table.from_batches([found.rows])).equals(expected.drop("len"))
        assert found.counts is not None
        assert found.counts.tolist() == expected["len"].to_list()


MODEL = "models: [{k-anonymity: {k: 3}}, {distinct-diversity: {l: 2}}, {closeness: {t: 0.4}}]"


@settings(max_examples=12, deadline=None)
@given(st.data(), st.integers(1, 40), st.integers(1, 9))
def test_a_table_is_judged_alike_counted_and_row_by_row(data: st.DataObject, rows: int, batch: int) -> None:
    def drawn(values: str) -> list[str | None]:
        cells = st.sampled_from([None if value == "-" else value for value in values])
        return data.draw(st.lists(cells, min_size=rows, max_size=rows))

    frame = pl.DataFrame(
        {"zip": drawn("ab*"), "sex": drawn("fm*-"), "ill": drawn("xyz-")},
        schema_overrides={"zip": pl.String, "sex": pl.String, "ill": pl.String},
    )
    frame = frame.with_columns(noise=pl.int_range(pl.len()))
    policy = ps.Policy.loads(
        "attributes: {zip: {role: quasi-identifier}, sex: {role: quasi-identifier}, noise: {role: insensitive}, "
        f"ill: {{role: sensitive, missing: {data.draw(st.sampled_from(['category', 'refuse']))}}}}}\n{MODEL}"
    )
    counted, plain = Scanned(frame, batch), frame
    found, expected = ps.verify(counted, policy), ps.verify(plain, policy)
    assert found.to_dict() == expected.to_dict()
    assert [problem.seen.values for problem in found.offending if problem.seen is not None] == [
        problem.seen.values for problem in expected.offending if problem.seen is not None
    ]
    assert all("noise" not in names for names, _ in counted.scans)
    classes: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(frame.select("zip", "sex").rows()):
        classes.setdefault(row, []).append(place)
    kept = {row: places for row, places in classes.items() if set(row) != {"*"}} or classes
    assert found.verdicts[0].worst == min(map(len, kept.values()))
    firsts = {places[0]: len(places) for places in kept.values()}
    assert all(firsts[place.row] == place.size for place in found.verdicts[0].worst_classes)
    measured = ps.risk(counted, ["zip", "sex"], ["ill"]).to_dict()
    assert measured == ps.risk(frame, ["zip", "sex"], ["ill"]).to_dict()
