"""Similar records, from rows that another program has counted."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme as ps
from polyseme.release import Release
from polyseme.scrutiny.attacks.audit import attack_release, attack_sample
from polyseme.scrutiny.attacks.audit.seen import Memory, counted_classes
from polyseme.tables.distinct import class_sizes
from polyseme.tables.io.columnar import CountedFrame

pytestmark = pytest.mark.filterwarnings("ignore::polyseme.kernel.errors.PolysemeWarning")
POLICY = """
attributes:
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
"""


def counted(release: Release) -> Release:
    """The same release as an engine hands it over that counts elsewhere."""
    rows = release.to_polars().group_by(pl.all()).len("\0count")
    numbers = rows["\0count"].to_numpy().astype(np.int64)
    return Release(release.manifest, reader=CountedFrame(pa.table(rows.drop("\0count")), numbers, "release"))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["*", "30", "40", None]), st.sampled_from("*fm"), st.sampled_from("abcd"))))
def test_classes_of_counted_rows_are_those_of_all_records(rows: list[tuple[str | None, str, str]]) -> None:
    rows = [*rows, ("*", "*", "a"), ("*", "f", "b")]
    people = pl.DataFrame(rows, schema=["age", "sex", "ill"], orient="row", infer_schema_length=None)
    release = ps.anonymize(people, POLICY, seed=1)
    seen = Memory.of(release).seen()
    sizes, suppressed = counted_classes(counted(release))
    assert sorted(sizes) == sorted(class_sizes(seen.quasi))
    assert suppressed == seen.suppressed > 0


def test_no_records_are_alike_where_there_are_no_quasi_identifiers() -> None:
    people = pl.DataFrame({"ill": ["a", "b", "c", "d"] * 5})
    release = ps.anonymize(people, "attributes: {ill: {role: sensitive, protect: {diversity: {l: 2}}}}", seed=1)
    assert counted_classes(counted(release)) == (pytest.approx([]), 0)


def test_strata_and_samples_are_both_told() -> None:
    policy = POLICY + "impossible: [{when: {sex: f}, attribute: ill, values: [d]}]\n"
    people = pl.DataFrame({"age": [30] * 40, "sex": ["f", "m"] * 20, "ill": ["a", "b"] * 20})
    release = ps.anonymize(people, policy, seed=1)
    remarks = {one.knows.partition("; ")[2] for one in attack_sample(counted(release), release)}
    sampled = "a random sample of 40 of 40 records"
    # Adversaries who learn from all records guess at all of them, whatever their stratum.
    assert remarks == {"", f"shown for {sampled}", f"shown for the largest stratum in {sampled}"}
    assert len(attack_sample(counted(release), release)) == len(attack_release(release))
