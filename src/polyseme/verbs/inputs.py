"""What callers may hand in: a path or the thing itself, a name or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from polyseme.policy import Policy
from polyseme.policy.opening import open_for
from polyseme.release import AsIs, Release
from polyseme.tables.coding.codes import as_series
from polyseme.tables.io.opening import open_written
from polyseme.tables.io.options import TableOptions
from polyseme.tables.io.respelled import Respelled
from polyseme.tables.io.source import Source
from polyseme.tables.joined import with_joined

__all__ = ["compared_with", "names_given", "original_given", "policy_given", "release_given", "source_given"]


def policy_given(policy: Policy | str | Path) -> Policy:
    return policy if isinstance(policy, Policy) else Policy.load(policy)


def source_given(data: Any, policy: Policy) -> Source:
    return open_for(data, policy)


def original_given(original: Any, release: Release, **written: Unpack[TableOptions]) -> Source | None:
    """The original of a release, with the combinations that it publishes."""
    if original is None:
        return None
    return compared_with(original, release, **written)


def compared_with(original: Any, release: Release, **written: Unpack[TableOptions]) -> Source:
    """The same for an original that must be there."""
    source = open_written(original, **written)
    if isinstance(source, Respelled):
        source = source.without([name for name in source.schema.names if _shows_as_written(release, name, source)])
    return with_joined(source, release.manifest.schema.attributes, release.manifest.missing_values)


def _shows_as_written(release: Release, name: str, original: Respelled) -> bool:
    """Whether a release was made of a column as text: it then has numbers and dates as the original writes them."""
    column = next((column for column in release.manifest.columns if column.name == name), None)
    if column is None or (name not in original.numbers and name not in original.dates):
        return False
    if isinstance(column, AsIs):
        pieces = (as_series(batch.column(0)) for batch in release.source.batches([name]))
        return any(original.changes(name, piece) for piece in pieces if piece.dtype == pl.String)
    domain = column.attribute.domain
    labels = [] if domain is None or domain.cut is not None else [v for v in domain.values if isinstance(v, str)]
    return original.changes(name, pl.Series(labels, dtype=pl.String))


def release_given(release: Release | str | Path | Any) -> Release:
    return release if isinstance(release, Release) else Release.open(release)


def names_given(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
