"""Some records before and after: for the eyes of the owner, since they show the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Preview", "PreviewedRecord"]

_WIDTH = 28
"""Characters of a value that are shown."""


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

    def lines(self) -> list[str]:
        """For a terminal: a block for each record, a line for each column."""
        width = min(max(map(len, self.columns), default=0), _WIDTH)
        lines = [f"{len(self.records)} of {self.total:,} records, drawn at random. Nothing is written."]
        for number, record in enumerate(self.records, 1):
            out = "" if record.after is not None else ": would be left out of the release"
            lines += ["", f"Record {number}{out}"]
            lines += [self._line(name, record, width) for name in self.columns] if record.after is not None else []
        return lines

    def _line(self, name: str, record: PreviewedRecord, width: int) -> str:
        before = _shown(record.before[name]) if name in record.before else "(new)"
        after = _shown(record.after[name]) if record.after is not None and name in record.after else "(not published)"
        return f"  {_cut(name, width):{width}}  {_cut(before, _WIDTH):{_WIDTH}}  {after}"


def _shown(value: Any) -> str:
    if value is None:
        return "(missing)"
    return f"{{{', '.join(map(_shown, value))}}}" if isinstance(value, Sequence) and not _is_text(value) else str(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2]}.."
