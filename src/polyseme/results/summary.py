"""Small results that follow from an estimated table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.arrays import Floats

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Summary"]


@dataclass(frozen=True)
class Summary:
    """Numbers with intervals, one row each; `columns` say what each row is about, `notes` what the reader must know."""

    columns: Mapping[str, tuple[Any, ...]]
    value: tuple[float, ...]
    stderr: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    notes: tuple[str, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[Any]],
        value: Floats,
        stderr: Floats,
        low: Floats,
        high: Floats,
        *,
        notes: tuple[str, ...] = (),
    ) -> Summary:
        """From arrays."""
        numbers = (tuple(np.asarray(column, dtype=np.float64).tolist()) for column in (value, stderr, low, high))
        return cls({name: tuple(cells) for name, cells in columns.items()}, *numbers, notes=notes)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = [*self.columns, "estimate", "stderr", "low", "high"]
        for row in zip(*self.columns.values(), self.value, self.stderr, self.low, self.high):
            yield dict(zip(names, row))

    def to_polars(self) -> pl.DataFrame:
        """One row each, with estimate, stderr, low, high."""
        import polars as pl

        numbers = {"estimate": self.value, "stderr": self.stderr, "low": self.low, "high": self.high}
        return pl.DataFrame({**self.columns, **numbers}, strict=False)

    def __repr__(self) -> str:
        return str(self.to_polars()) + "".join(f"\nnote: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p><em>{escape(note)}</em></p>" for note in self.notes)
        return f"{self.to_polars()._repr_html_()}{notes}"
