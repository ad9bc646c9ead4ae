"""What callers may hand in: a path or the thing itself, a name or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from polyseme.policy import Policy
from polyseme.release import Release
from polyseme.tables.io.options import TableOptions
from polyseme.tables.io.source import Source, open_table
from polyseme.tables.joined import with_joined

__all__ = ["names_given", "original_given", "policy_given", "release_given", "source_given"]


def policy_given(policy: Policy | str | Path) -> Policy:
    return policy if isinstance(policy, Policy) else Policy.load(policy)


def source_given(data: Any, policy: Policy) -> Source:
    return open_table(data, **policy.table.options)


def original_given(original: Any, release: Release, **written: Unpack[TableOptions]) -> Source | None:
    """The original of a release, with the combinations that it publishes."""
    if original is None:
        return None
    published = release.manifest.schema.attributes
    return with_joined(open_table(original, **written), published, release.manifest.missing_values)


def release_given(release: Release | str | Path | Any) -> Release:
    return release if isinstance(release, Release) else Release.open(release)


def names_given(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
