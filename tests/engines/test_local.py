from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import polyseme as ps
from polyseme.engines import local

POLICY = """
attributes:
  name: {role: quasi-identifier}
  grade: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 3}}}
  level: {role: sensitive, domain: [1, 2, 3], missing: drop, protect: {diversity: {l: 2}}}
"""


def test_the_long_form_is_expanded_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    class Watched(local.Shuffler):
        def add(self, batch: pa.RecordBatch) -> None:
            sizes.append(batch.num_rows)
            super().add(batch)

    monkeypatch.setattr(local, "Shuffler", Watched)
    monkeypatch.setattr(local, "PIECE", 16)
    people = pl.DataFrame({"name": range(10), "grade": list("abcdabcdab"), "level": [1, 2, 3, None, 1, 2, 3, 1, 2, 3]})
    release = ps.anonymize(people, ps.Policy.loads(POLICY), form="long")
    assert sizes == [16, 16, 16, 6]
    assert (release.manifest.records, release.manifest.rows, release.manifest.dropped) == (9, 54, 1)
    rows = pl.DataFrame(pl.from_arrow(release.table)).cast({"grade": pl.String})
    shown = rows.group_by("name").agg(pl.struct("grade", "level").n_unique(), grades=pl.col("grade").n_unique())
    assert shown["grade"].to_list() == [6] * 9
    assert shown["grades"].to_list() == [3] * 9
    assert rows.join(people, on=["name", "grade", "level"]).height == 9, "the truth is one of the combinations"
