"""Why a method did what it did, class by class, and some records before and after.

Both are for the data holder, never for publication: they show the original, and classes as they were before anything
was done about them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from polyseme.kernel.delimited import written_rows
from polyseme.results.base import Result

__all__ = ["Explained", "Explanation", "Preview", "PreviewedRecord"]

if TYPE_CHECKING:
    from rich.console import RenderableType


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
        from polyseme.results.views.record_views import preview_view

        return preview_view(self)

    def _repr_html_(self) -> str:
        from polyseme.results.views.record_views import preview_tables

        return preview_tables(self)


if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType


HEAD = ("records", "rule", "action", "applied", "cost")


@dataclass(frozen=True)
class Explained:
    """One rule that was effective on one class, and one action that was considered.

    cells    what the class showed of each quasi-identifier before the action
    records  of the class
    rule     its name
    action   in the policy's words
    applied  whether it was taken
    cost     in records: what losing as many records would cost; None where the action was not possible
    """

    cells: tuple[str | None, ...]
    records: int
    rule: str
    action: str
    applied: bool
    cost: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result):
    """Class, rule, action, applied: one row for each.

    names  of the quasi-identifiers
    """

    names: tuple[str, ...]
    rows: tuple[Explained, ...]

    @property
    def applied(self) -> Mapping[tuple[str, str], int]:
        """How many classes had each rule and action."""
        return Counter((row.rule, row.action) for row in self.rows if row.applied)

    def to_dict(self) -> dict[str, Any]:
        return {"names": list(self.names), "rows": [{**asdict(row), "cells": list(row.cells)} for row in self.rows]}

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        rows = (Explained(**{**row, "cells": tuple(row["cells"])}) for row in document["rows"])
        return cls(tuple(document["names"]), tuple(rows))

    def to_polars(self) -> pl.DataFrame:
        """One row for each class, rule and action."""
        import polars as pl

        columns = {name: [row.cells[place] for row in self.rows] for place, name in enumerate(self.names)}
        known = {name: [getattr(row, name) for row in self.rows] for name in HEAD}
        # A quasi-identifier may be called like one of ours, which then comes first.
        taken = {**columns, **{name if name not in columns else f"{name} ": value for name, value in known.items()}}
        types = dict.fromkeys(columns, pl.String)
        return pl.DataFrame(taken, schema_overrides=types)

    def to_csv(self) -> str:
        """The text of a file: a header and the rows."""
        return written_rows([(*self.names, *HEAD), *self._texts()], ",")

    def _texts(self) -> Iterator[tuple[str, ...]]:
        for row in self.rows:
            cells = ("" if cell is None else cell for cell in row.cells)
            cost = "" if row.cost is None else f"{row.cost:.4g}"
            yield (*cells, f"{row.records:,}", row.rule, row.action, "yes" if row.applied else "no", cost)

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        from polyseme.results.views.terminal import titled_view

        if not self.rows:
            return Text("No rule was effective on any class.")
        head = (*((name, False) for name in self.names), *((name, name in ("records", "cost")) for name in HEAD))
        return titled_view("What was done, and why (for the owner, not for publication)", head, list(self._texts()))

    def __repr__(self) -> str:
        return f"<Explanation: {len(self.rows):,} rows, {sum(row.applied for row in self.rows):,} of them applied>"

    def _repr_html_(self) -> str:
        from polyseme.results.views.html import titled_table

        head = (*((name, False) for name in self.names), *((name, name in ("records", "cost")) for name in HEAD))
        return titled_table("What was done, and why", head, list(self._texts()))
