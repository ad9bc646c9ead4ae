"""Some records before and after: for the eyes of the owner, since they show the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Preview", "PreviewedRecord"]


@dataclass(frozen=True)
class PreviewedRecord:
    """One record.

    before  its values in the table
    after   what would be published; None where the record would be left out
    """

    before: Mapping[str, Any] = field(repr=False)
    after: Mapping[str, Any] | None = field(repr=False)


@dataclass(frozen=True)
class Preview:
    """Records of a table, and what would be published of them.

    columns  those of the table, and then those that are new
    total    records of the table
    """

    columns: tuple[str, ...]
    records: tuple[PreviewedRecord, ...]
    total: int

    def __rich__(self) -> RenderableType:
        from polyseme.results.views.preview import preview_view

        return preview_view(self)

    def _repr_html_(self) -> str:
        from polyseme.results.views.preview import preview_tables

        return preview_tables(self)
