"""`adopt`: a table of candidates that another program published, taken as a release.

The papers' data, or a table from another program, comes without a manifest. With a policy that says how it was made
it can be verified, estimated from and attacked like a release of our own.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import pyarrow as pa

from polyseme.kernel.errors import Problem, TableError
from polyseme.kernel.work import verb
from polyseme.policy import Policy
from polyseme.publishing.inputs import policy_given, source_given
from polyseme.publishing.publication import prepare
from polyseme.release import Column, Manifest, Release, Sets
from polyseme.release.writer import in_memory
from polyseme.tables.io.source import Source
from polyseme.verbs.prior import with_earlier_releases

__all__ = ["adopt"]


@verb()
def adopt(data: Any, policy: Policy | str | Path, form: str = "set") -> Release:
    """Another program's published table of candidates as a release; the policy describes it.

    form  "set" (list columns of candidates) or "long" (a row for each candidate)
    """
    rules = with_earlier_releases(policy_given(policy))
    return _adopt(source_given(data, rules), rules, form)


def _adopt(source: Source, policy: Policy, form: str) -> Release:
    """A published table as a release; `form` is "set" (list columns) or "long" (candidate rows)."""
    columns = prepare(policy, source, published=True).columns
    table = pa.Table.from_batches(list(source.batches([item.name for item in columns])))
    manifest = Manifest(
        columns=columns,
        records=_records(source, columns, table.num_rows, form),
        rows=table.num_rows,
        form=form,
        method=policy.method.name,
        seeded=None,
        models=tuple({model.name: dict(model.parameters)} for model in policy.models),
        missing_values=policy.table.missing_values,
        about=policy.about,
    )
    if form == "set":
        _require_lists(columns, table)
    return in_memory(manifest, table)


def _records(source: Source, columns: tuple[Column, ...], rows: int, form: str) -> int:
    if form == "set":
        return rows
    each = prod(item.l for item in columns if isinstance(item, Sets))
    if rows % each:
        raise TableError(f"{source.name}: {rows:,} rows are not a whole number of records with {each} candidates each")
    return rows // each


def _require_lists(columns: tuple[Column, ...], table: pa.Table) -> None:
    kinds = {item.name: table.schema.field(item.name).type for item in columns if isinstance(item, Sets)}
    flat = [name for name, kind in kinds.items() if not (pa.types.is_list(kind) or pa.types.is_large_list(kind))]
    if flat:
        raise TableError(
            Problem(f"column '{name}'", "expected a list of candidates in each cell", "or is it the long form?")
            for name in flat
        )
