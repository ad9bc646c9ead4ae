"""`anonymize --preview`: some records before and after, without a release.

A grouping method forms the classes of the whole table, and all of its values are checked; sets are drawn for the
records that are shown, and for no others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.engines.local import published_records
from polyseme.engines.run import Run
from polyseme.kernel.arrays import Ints, arrow
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.randomness import SystemStream
from polyseme.kernel.work import Cancellation, current_cancellation, verb
from polyseme.policy import AttributePolicy, Policy
from polyseme.publishing.inputs import policy_given, source_given
from polyseme.publishing.publication import Drawing, prepare, treated_here
from polyseme.results.explanation import Preview, PreviewedRecord
from polyseme.schema import Role
from polyseme.tables.codes import as_series
from polyseme.tables.derived import NumberedSource
from polyseme.tables.io.source import Monitored, Source
from polyseme.verbs.prior import with_earlier_releases

__all__ = ["preview"]


@verb(read=1, levels=2, classes=2, mechanisms=1, draw=4)
def preview(
    data: Any,
    policy: Policy | str | Path,
    records: int = 10,
    *,
    seed: int | None = None,
    key_file: str | Path | None = None,
    records_per_person: float | None = None,
    allow_changed_strata: bool = False,
    cancellation: Cancellation | None = None,
) -> Preview:
    """Some random records of a table before and after; it shows values of the original.

    The other arguments are those of `anonymize`. A release that is made afterwards draws other candidates.
    """
    if not (isinstance(records, Integral) and records > 0):
        raise QuestionError(Problem("preview", "expected a whole number above 0"))
    rules, cancellation = with_earlier_releases(policy_given(policy)), current_cancellation()
    table: Source = Monitored(source_given(data, rules), cancellation)
    numbered = NumberedSource(table)
    rules = replace(rules, attributes=(*rules.attributes, AttributePolicy(numbered.column, Role.INSENSITIVE)))
    drawing = Drawing("set", seed, key_file, records_per_person, allow_changed_strata)
    made = prepare(rules, numbered, drawing, partial(treated_here, seed=seed, cancellation=cancellation))
    total = numbered.count()
    rows = SystemStream().permutation(total)[: int(records)].tolist()
    after = _published(Run(made.job, made.source, cancellation=cancellation), numbered.column, rows)
    before = dict(_rows(numbered.batches(), numbered.column, rows))
    new = [item.name for item in made.job.columns if item.name not in numbered.schema.names]
    return Preview(
        (*table.schema.names, *new), tuple(PreviewedRecord(before[row], after.get(row)) for row in rows), total
    )


def _published(run: Run, column: str, rows: list[int]) -> dict[int, Mapping[str, Any]]:
    """What becomes of these rows, by number."""
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        tables = published_records(run, Path(folder), lambda batch: _places(batch, column, rows))
        return dict(_records((batch for table in tables for batch in table.to_batches()), column))


def _rows(batches: Iterable[pa.RecordBatch], column: str, rows: list[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return _records((batch.take(arrow(_places(batch, column, rows))) for batch in batches), column)


def _places(batch: pa.RecordBatch, column: str, rows: list[int]) -> Ints:
    """Where rows of these numbers stand in a batch."""
    wanted = pc.is_in(batch.column(column), value_set=arrow(rows, pa.int64()))
    return np.flatnonzero(wanted.to_numpy(zero_copy_only=False))


def _records(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The records of some batches by their number."""
    for batch in batches:
        frame = pl.DataFrame({name: as_series(batch.column(name)) for name in batch.schema.names})
        for record in frame.iter_rows(named=True):
            yield record.pop(column), record
