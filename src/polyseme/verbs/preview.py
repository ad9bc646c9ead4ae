"""`anonymize --preview`: some records before and after, without a release.

The whole table is anonymized as it would be for a release, in a folder that vanishes, and what becomes of some records
is kept: with a grouping method nothing less is enough.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.arrays import arrow
from polyseme.engines.local import published_tables
from polyseme.engines.run import Run
from polyseme.errors import Problem, QuestionError
from polyseme.kernel.work import Cancellation, current_cancellation, verb
from polyseme.policy import AttributePolicy, Policy
from polyseme.randomness import SystemStream
from polyseme.results.preview import Preview, PreviewedRecord
from polyseme.schema import Role
from polyseme.tables.coding.codes import as_series
from polyseme.tables.io.source import Source, Watched
from polyseme.tables.joined import with_joined
from polyseme.tables.numbered import NumberedSource
from polyseme.verbs.anonymize import make_job, resolved_for
from polyseme.verbs.inputs import policy_given, source_given
from polyseme.verbs.recoding import treat

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
    """Some records of a table, drawn at random, before and after; it shows values of the original.

    The other arguments are those of `anonymize`. A release that is made afterwards draws other candidates.
    """
    if not (isinstance(records, Integral) and records > 0):
        raise QuestionError(Problem("preview", "expected a whole number above 0"))
    policy, cancellation = policy_given(policy), current_cancellation()
    table: Source = Watched(source_given(data, policy), cancellation)
    numbered = NumberedSource(table)
    policy = replace(policy, attributes=(*policy.attributes, AttributePolicy(numbered.column, Role.INSENSITIVE)))
    resolved = resolved_for(policy, numbered)
    treated = None if policy.grouping is None else treat(policy, resolved, numbered, seed, cancellation)
    job, _ = make_job(
        numbered, policy, "set", seed, key_file, records_per_person, allow_changed_strata, resolved, treated
    )
    source = numbered if treated is None else treated.source
    source = with_joined(source, (item.attribute for item in job.columns), policy.table.missing_values)
    total = numbered.count()
    rows = SystemStream().permutation(total)[: int(records)].tolist()
    after = _published(Run(job, source, cancellation=cancellation), numbered.column, rows)
    before = dict(_rows(numbered.batches(), numbered.column, rows))
    new = [item.name for item in job.columns if item.name not in numbered.schema.names]
    return Preview(
        (*table.schema.names, *new), tuple(PreviewedRecord(before[row], after.get(row)) for row in rows), total
    )


def _published(run: Run, column: str, rows: list[int]) -> dict[int, Mapping[str, Any]]:
    """What becomes of these rows, by number."""
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        tables = published_tables(run, Path(folder))
        return dict(_rows((batch for table in tables for batch in table.to_batches()), column, rows))


def _rows(batches: Iterator[pa.RecordBatch], column: str, rows: list[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    wanted = arrow(rows, pa.int64())
    for batch in batches:
        found = batch.filter(pc.is_in(batch.column(column), value_set=wanted))
        frame = pl.DataFrame({name: as_series(found.column(name)) for name in found.schema.names})
        for record in frame.iter_rows(named=True):
            yield record.pop(column), record
