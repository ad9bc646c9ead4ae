"""What callers may hand in: a path or the thing itself, a name or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polyseme.errors import PolicyError, QuestionError, ReleaseError, TableError
from polyseme.files.documents import is_document
from polyseme.policy import Policy
from polyseme.release import Release
from polyseme.tables.io.source import Source, open_table
from polyseme.tables.joined import with_joined

__all__ = ["names_given", "original_given", "policy_given", "release_given", "source_given", "table_given"]


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
    """Whether this is a policy and not the name of one: a name has one line, and no key with a value."""
    return "\n" in policy.strip() or (": " in policy and not is_document(Path(policy)))


def table_given(data: Any, separator: str | None = None, encoding: str = "utf-8") -> Source:
    """A table, or the name of its file; a policy or a release that is handed in as one is called what it is."""
    if isinstance(data, Policy):
        raise TableError("expected a table, not a policy", "the table comes first: anonymize(data, policy)")
    if isinstance(data, Release):
        raise TableError("expected a table, not a release", "give the original table")
    if isinstance(data, str | Path):
        _refuse_others(Path(data))
    elif type(data).__module__.startswith("pandas") and not hasattr(data, "columns"):
        raise TableError(f"cannot read a table from {type(data).__name__}", "give a frame: series.to_frame()")
    return open_table(data, separator, encoding)


def _refuse_others(path: Path) -> None:
    if (path / "manifest.json").is_file():
        raise TableError(f"{path}: a release, not a table", "give the file of a table")
    if is_document(path) and path.is_file():
        raise TableError(
            f"{path}: by its name this is a policy or a document, not a table",
            "the policy comes before the data: polyseme anonymize POLICY DATA",
        )


def source_given(data: Any, policy: Policy) -> Source:
    return table_given(data, policy.table.separator, policy.table.encoding)


def original_given(original: Any, release: Release, separator: str | None, encoding: str) -> Source | None:
    """The original of a release, with the combinations that it publishes."""
    if original is None:
        return None
    published = release.manifest.schema.attributes
    return with_joined(table_given(original, separator, encoding), published, release.manifest.missing_values)


def release_given(release: Release | str | Path | Any) -> Release:
    if isinstance(release, Release):
        return release
    if isinstance(release, str | Path):
        return Release.open(release)
    raise ReleaseError(f"expected a release, not {type(release).__name__}", "the name of its folder, or a Release")


def names_given(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of attributes; one may stand alone, and None stands for none."""
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    several = tuple(names) if isinstance(names, Iterable) else (names,)
    wrong = [name for name in several if not isinstance(name, str)]
    if wrong:
        raise QuestionError(f"expected names of attributes, not {type(wrong[0]).__name__}", 'such as ["age", "sex"]')
    return several
