"""What callers may hand in: a path or the thing itself, a name or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from polyseme.kernel.documents import is_document
from polyseme.kernel.errors import PolicyError, Problem, QuestionError, ReleaseError, TableError
from polyseme.policy import AttributePolicy, Policy
from polyseme.policy.foreign import open_for
from polyseme.policy.resolution import match_columns
from polyseme.release import AsIs, Release
from polyseme.tables.codes import as_series
from polyseme.tables.derived import with_joined
from polyseme.tables.io.dialects import Respelled
from polyseme.tables.io.readers import open_written
from polyseme.tables.io.source import Source, TableOptions
from polyseme.tables.profile import Profile

__all__ = [
    "compared_with",
    "names_given",
    "original_given",
    "policy_given",
    "profile_given",
    "release_given",
    "require_table",
    "source_given",
    "table_given",
    "with_population",
]


def policy_given(policy: Policy | Mapping[str, Any] | str | Path) -> Policy:
    """A policy, or the name of its file, or what YAML gives, or the YAML text itself."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        return Policy.from_dict(policy)
    if isinstance(policy, str) and _is_text(policy):
        return Policy.loads(policy)
    if isinstance(policy, str | Path):
        return Policy.load(policy)
    raise PolicyError(
        f"expected a policy, not {type(policy).__name__}", "the name of its file, a Policy, a mapping or YAML text"
    )


def _is_text(policy: str) -> bool:
    """Whether this is the text of a policy and not a path: a path has one line and no key."""
    return "\n" in policy.strip() or (": " in policy and not is_document(Path(policy)))


def table_given(data: Any, **written: Unpack[TableOptions]) -> Source:
    """A table, or the name of its file."""
    require_table(data)
    return open_written(data, **written)


def require_table(data: Any) -> None:
    """Raise for what is no table; a policy or release in its place is named in the message."""
    if isinstance(data, Policy):
        raise TableError("expected a table, not a policy", "the table comes first: anonymize(data, policy)")
    if isinstance(data, Release):
        raise TableError("expected a table, not a release", "give the original table")
    if isinstance(data, str | Path):
        _refuse_others(Path(data))
    elif type(data).__module__.startswith("pandas") and not hasattr(data, "columns"):
        raise TableError(f"cannot read a table from {type(data).__name__}", "give a frame: series.to_frame()")


def _refuse_others(path: Path) -> None:
    if (path / "manifest.json").is_file():
        raise TableError(f"{path}: a release, not a table", "give the file of a table")
    if is_document(path) and path.is_file():
        raise TableError(
            f"{path}: by its name this is a policy or a document, not a table",
            "the policy comes before the data: polyseme anonymize POLICY DATA",
        )


def source_given(data: Any, policy: Policy) -> Source:
    require_table(data)
    return open_for(data, policy)


def profile_given(data: Any, policy: Policy) -> Profile:
    """A table that is read once, with the columns of the policy held; a profile stays as it is."""
    source = source_given(data, policy)
    known = source if isinstance(source, Profile) else Profile(source)
    known.hold([item.name for item in match_columns(policy, source).attributes if _looked_at(item, policy)])
    return known


def _looked_at(item: AttributePolicy, policy: Policy) -> bool:
    """Whether a policy uses a column: its values are published, or identify people or groups."""
    shared = {other.shared_by for other in policy.attributes}
    return item.role.is_published or item.name == policy.record_key or item.name in shared


def with_population(policy: Policy, population: Any) -> Policy:
    """A policy with a population in the place of the one that it names."""
    if population is None:
        return policy
    if not any(model.name == "k-map" for model in policy.models):
        what = "no model of the policy counts people of a population"
        raise QuestionError(Problem("population", what, "models: [{k-map: {k: 5}}]"))
    require_table(population)
    return replace(policy, population=population)


def original_given(original: Any, release: Release, **written: Unpack[TableOptions]) -> Source | None:
    """The original of a release, with the combinations that it publishes."""
    if original is None:
        return None
    return compared_with(original, release, **written)


def compared_with(original: Any, release: Release, **written: Unpack[TableOptions]) -> Source:
    """The same for an original that must be there."""
    source = table_given(original, **written)
    if isinstance(source, Respelled):
        source = source.without([name for name in source.schema.names if _shows_as_written(release, name, source)])
    return with_joined(source, release.manifest.schema.attributes, release.manifest.missing_values)


def _shows_as_written(release: Release, name: str, original: Respelled) -> bool:
    """Whether a release wrote a column as text: its numbers and dates are those of the original."""
    column = next((column for column in release.manifest.columns if column.name == name), None)
    if column is None or (name not in original.numbers and name not in original.dates):
        return False
    if isinstance(column, AsIs):
        pieces = (as_series(batch.column(0)) for batch, _ in release.source.counted([name]))
        return any(original.changes(name, piece) for piece in pieces if piece.dtype == pl.String)
    domain = column.attribute.domain
    labels = [] if domain is None or domain.cut is not None else [v for v in domain.values if isinstance(v, str)]
    return original.changes(name, pl.Series(labels, dtype=pl.String))


def release_given(release: Release | str | Path | Any) -> Release:
    if isinstance(release, Release):
        return release
    if isinstance(release, str | Path):
        return Release.open(release)
    raise ReleaseError(f"expected a release, not {type(release).__name__}", "the name of its folder, or a Release")


def names_given(names: Any) -> tuple[str, ...]:
    """The names of attributes; one may stand alone, and None stands for none."""
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    several: tuple[Any, ...] = tuple(names) if isinstance(names, Iterable) else (names,)
    wrong = [name for name in several if not isinstance(name, str)]
    if wrong:
        raise QuestionError(f"expected names of attributes, not {type(wrong[0]).__name__}", 'such as ["age", "sex"]')
    return several
