"""An estimated table as it is written and read: its numbers, and the ways out of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.base import Population

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Table"]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Estimated numbers of records for every combination of true values, within cells of untouched attributes.

    of, labels       the protected attributes and the labels along each axis
    by               the untouched attributes, column by column: the cells of the first axis
    values           (cells, F_1, .., F_q); stderr, low and high have the same shape
    estimator        the name of the estimator, gap its certificate, notes what the reader must know
    records          how many records the table has, in all
    """

    of: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]
    by: Mapping[str, tuple[Any, ...]]
    values: Floats
    stderr: Floats
    low: Floats
    high: Floats
    estimator: str
    records: int
    totals: Floats
    gap: float | None = None
    notes: tuple[str, ...] = ()
    level: float = 0.95
    population: Population = "finite"

    def _columns(self, flat: Ints) -> dict[str, list[Any]]:
        places = np.unravel_index(flat, self.values.shape)
        columns: dict[str, list[Any]] = {}
        for name, cells in self.by.items():
            columns[name] = [cells[place] for place in places[0]]
        for axis, name in enumerate(self.of, start=1):
            columns[name] = [self.labels[axis - 1][place] for place in places[axis]]
        return columns

    def _table(self) -> dict[str, Any]:
        columns: dict[str, Any] = dict(self._columns(np.arange(self.values.size)))
        for name in ("estimate", "stderr", "low", "high"):
            columns[name] = (self.values if name == "estimate" else getattr(self, name)).ravel()
        return columns

    def to_polars(self) -> pl.DataFrame:
        """One row for each cell: the untouched attributes, the protected ones, estimate, stderr, low, high."""
        import polars as pl

        return pl.DataFrame(self._table(), strict=False)

    def to_arrow(self) -> Any:
        """The same as a pyarrow table."""
        return self.to_polars().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self._table())

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary for each cell."""
        table = self._table()
        names = list(table)
        for row in zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in table.values())):
            yield dict(zip(names, row))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; a missing number is None."""
        cells = [{name: _plain(value) for name, value in row.items()} for row in self.rows()]
        return {
            "estimator": self.estimator,
            "records": self.records,
            "of": list(self.of),
            "by": list(self.by),
            "level": self.level,
            "population": self.population,
            "gap": self.gap,
            "notes": list(self.notes),
            "cells": cells,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote, read back: every cell and note. Sums of cells have no intervals any more."""
        of, by, cells = tuple(document["of"]), tuple(document["by"]), document["cells"]
        groups = list(dict.fromkeys(tuple(cell[name] for name in by) for cell in cells)) or [()]
        labels = tuple(tuple(dict.fromkeys(cell[name] for cell in cells)) for name in of)
        shape = (len(groups), *(len(axis) for axis in labels))
        columns = {
            name: np.array([np.nan if cell[name] is None else cell[name] for cell in cells], dtype=float).reshape(shape)
            for name in ("estimate", "stderr", "low", "high")
        }
        return cls(
            of=of,
            labels=labels,
            by={name: tuple(group[place] for group in groups) for place, name in enumerate(by)},
            values=columns["estimate"],
            stderr=columns["stderr"],
            low=columns["low"],
            high=columns["high"],
            estimator=document["estimator"],
            records=document["records"],
            totals=columns["estimate"].reshape(len(groups), -1).sum(axis=1),
            gap=document["gap"],
            notes=tuple(document["notes"]),
            level=document["level"],
            population=document["population"],
        )

    def plot(self, kind: Literal["auto", "bars", "heat"] = "auto") -> Any:
        """Bars with intervals; a heat map for two attributes; small multiples by group."""
        from polyseme.estimators.charts import chart

        return chart(self, kind)

    def __repr__(self) -> str:
        return f"{self._headline()}\n{self.to_polars()}" + "".join(f"\nnote: {note}" for note in self.notes)

    def _headline(self) -> str:
        words = f"{' x '.join(self.of)}" + (f" by {', '.join(self.by)}" if self.by else "")
        return f"Estimate of {words}: {self.records:,} records, {self.estimator}, {self.level:.0%} intervals"

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<p><em>{escape(note)}</em></p>" for note in self.notes)
        return f"<p><strong>{escape(self._headline())}</strong></p>{self.to_polars()._repr_html_()}{notes}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
