"""Records before and after, for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from polyseme.results.views.html import titled_table
from polyseme.results.views.tables import Head
from polyseme.results.views.terminal import titled_view

__all__ = ["preview_tables", "preview_view"]

_HEAD: Head = (("column", False), ("before", False), ("after", False))
_LONGEST = 400
"""Characters of a value that are shown."""


class Record(Protocol):
    """What is known of one record; nothing afterwards where it would be left out."""

    @property
    def before(self) -> Mapping[str, Any]: ...
    @property
    def after(self) -> Mapping[str, Any] | None: ...


class Previewed(Protocol):
    """Records before and after."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def total(self) -> int: ...


def preview_view(preview: Previewed) -> RenderableType:
    """A block for each record, a line for each column."""
    parts: list[RenderableType] = [Text(_headline(preview))]
    for title, rows in _records(preview):
        parts += [Text(), titled_view(title, _HEAD, rows) if rows else Text(title, "bold")]
    return Group(*parts)


def preview_tables(preview: Previewed) -> str:
    """The same for a notebook."""
    return f"<p>{_headline(preview)}</p>" + "".join(
        titled_table(title, _HEAD, rows) for title, rows in _records(preview)
    )


def _headline(preview: Previewed) -> str:
    return f"{len(preview.records)} of {preview.total:,} records, drawn at random. Nothing is written."


def _records(preview: Previewed) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    for number, record in enumerate(preview.records, 1):
        after = record.after
        if after is None:
            yield f"Record {number}: would be left out of the release", []
        else:
            yield f"Record {number}", [_row(name, record.before, after) for name in preview.columns]


def _row(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str, str]:
    return (
        name,
        _shown(before[name]) if name in before else "(new)",
        _shown(after[name]) if name in after else "(not published)",
    )


def _shown(value: Any) -> str:
    if value is None:
        return "(missing)"
    several = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    text = f"{{{', '.join(map(_shown, value))}}}" if several else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
