"""Tables that somebody else published as candidates, taken as a release.

The papers' data, or a table from another program, comes without a manifest. With a policy that says how it was made
it can be verified, estimated from and attacked like a release of our own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from polyseme.errors import Problem, TableError
from polyseme.planning import make_plan, published_attributes
from polyseme.policy import Policy
from polyseme.policy.resolving import resolve
from polyseme.release import Manifest, PublishedAttribute, Release
from polyseme.schema import Role
from polyseme.tables.source import Source

__all__ = ["adopt_table"]


def adopt_table(source: Source, policy: Policy, form: str) -> Release:
    """A published table as a release in memory; `form` is "set" (list columns) or "long" (a row for each candidate)."""
    resolved = resolve(policy, source)
    items = published_attributes(resolved, make_plan(resolved))
    kept = tuple(item for item in items if item.attribute.role is not Role.IDENTIFIER)
    table = pa.Table.from_batches(list(source.batches([item.name for item in kept])))
    manifest = Manifest(
        attributes=kept,
        records=_records(source, kept, table.num_rows, form),
        rows=table.num_rows,
        form=form,
        seeded=None,
        models=tuple({model.name: dict(model.parameters)} for model in policy.models),
        missing_values=policy.table.missing_values,
        data={"file": "data.parquet", "format": "parquet", "sha256": "0" * 64},
    )
    if form == "set":
        _require_lists(kept, table)
    return Release(manifest, None, table)


def _records(source: Source, items: tuple[PublishedAttribute, ...], rows: int, form: str) -> int:
    if form == "set":
        return rows
    each = int(np.prod([item.mechanism.l for item in items if item.mechanism is not None]))
    if rows % each:
        raise TableError(f"{source.name}: {rows:,} rows are not a whole number of records with {each} candidates each")
    return rows // each


def _require_lists(items: tuple[PublishedAttribute, ...], table: pa.Table) -> None:
    kinds = {item.name: table.schema.field(item.name).type for item in items if item.mechanism is not None}
    flat = [name for name, kind in kinds.items() if not (pa.types.is_list(kind) or pa.types.is_large_list(kind))]
    if flat:
        raise TableError(
            Problem(f"column '{name}'", "expected a list of candidates in each cell", "or is it the long form?")
            for name in flat
        )
