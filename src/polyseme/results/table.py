"""An estimated table as it is written and read, its exports, and small results from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.plugins import require
from polyseme.results.base import Result, plain_value, read_values, spelled, write_values

__all__ = ["Population", "Summary", "Table", "Target"]

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Summary:
    """Numbers with intervals, one row each.

    `columns` say what each row is about, `notes` what the reader must know.
    """

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


if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from rich.console import RenderableType


Target: TypeAlias = Literal["published", "table"]
"""Which records are counted: those that are published, or all of the table, also those that are left out."""

Population: TypeAlias = Literal["finite", "super"]
"""Whose numbers are estimated: those of the people in the table, or of the population they were drawn from."""


_NUMBERS = ("estimate", "stderr", "low", "high")


@dataclass(frozen=True, eq=False, repr=False)
class Table(Result):
    """Estimated numbers of records for every combination of true values, within cells of untouched attributes.

    of, labels       the protected attributes and the labels along each axis
    by               the untouched attributes, column by column: the cells of the first axis
    values           (cells, F_1, ..., F_q); stderr, low and high have the same shape
    estimator        the name of the estimator, gap its certificate, notes what the reader must know
    records          how many records the table has, in all
    weight           the column of survey weights that the numbers are sums of; None where records are counted
    target           whether the numbers are about the published records, or about all records of the table
    left_out         records of the table that are not published
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
    weight: str | None = None
    target: Target = "published"
    left_out: int = 0

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
        for name in _NUMBERS:
            columns[name] = self._numbers(name)
        return columns

    def to_polars(self) -> pl.DataFrame:
        """One row for each cell: the untouched attributes, the protected ones, estimate, stderr, low, high."""
        import polars as pl

        return pl.DataFrame(self._table(), strict=False)

    def to_arrow(self) -> Any:
        """The same as a pyarrow table."""
        return self.to_polars().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame. Needs `polyseme[pandas]`."""
        require("pandas", "a pandas frame")
        import pandas as pd

        return pd.DataFrame(self._table())

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary for each cell."""
        table = self._table()
        names = list(table)
        for row in zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in table.values())):
            yield dict(zip(names, row))

    def to_dict(self) -> dict[str, Any]:
        """The document of `estimate --json`.

        A missing number is null, and so is an infinite one: see `nonfinite`.
        """
        document = {
            "estimator": self.estimator,
            "records": self.records,
            "of": list(self.of),
            "by": list(self.by),
            "level": self.level,
            "population": self.population,
            "target": self.target,
            "left_out": self.left_out,
            "gap": self.gap,
            "notes": list(self.notes),
            "cells": [{name: plain_value(value) for name, value in row.items()} for row in self.rows()],
            "axes": {name: write_values(values) for name, values in (*self.by.items(), *zip(self.of, self.labels))},
            "totals": self.totals.tolist(),
        }
        if self.weight is not None:
            document["weight"] = self.weight
        endless = {name: found for name in _NUMBERS if (found := _endless(self._numbers(name)))}
        return {**document, "nonfinite": endless} if endless else document

    def _numbers(self, name: str) -> Floats:
        """One of the columns `estimate`, `stderr`, `low` and `high`, cell by cell."""
        values: Floats = self.values if name == "estimate" else getattr(self, name)
        return values.ravel()

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        axes = {name: read_values(values) for name, values in document["axes"].items()}
        of, by, totals = tuple(document["of"]), tuple(document["by"]), np.array(document["totals"], dtype=np.float64)
        shape = (len(totals), *(len(axes[name]) for name in of))
        numbers = {name: _read_numbers(name, document).reshape(shape) for name in _NUMBERS}
        return cls(
            of=of,
            labels=tuple(axes[name] for name in of),
            by={name: axes[name] for name in by},
            values=numbers["estimate"],
            stderr=numbers["stderr"],
            low=numbers["low"],
            high=numbers["high"],
            estimator=document["estimator"],
            records=document["records"],
            totals=totals,
            gap=document["gap"],
            notes=tuple(document["notes"]),
            level=document["level"],
            population=document["population"],
            weight=document.get("weight"),
            target=document.get("target", "published"),
            left_out=document.get("left_out", 0),
        )

    def plot(self, kind: Literal["auto", "bars", "heat"] = "auto") -> Any:
        """Bars with intervals; a heat map for two attributes; small multiples by group.

        Needs `polyseme[charts]`.
        """
        require("charts", "drawing an estimate")
        from polyseme.results.drawing.table_charts import chart

        return chart(self, kind)

    def __rich__(self) -> RenderableType:
        from polyseme.results.views.terminal import estimate_view

        return estimate_view(self)

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"{self._headline()}\n{self.to_polars()}" + "".join(f"\nnote: {note}" for note in self.notes)

    def _headline(self) -> str:
        words = f"{' x '.join(self.of)}" + (f" by {', '.join(self.by)}" if self.by else "")
        known = not np.isnan(self.low).all()
        intervals = f"{self.level:.0%} intervals" if known else "no intervals"
        weighted = f" weighted by {self.weight}" if self.weight is not None else ""
        return f"Estimate of {words}: {self.counted}{weighted}, {self.estimator}, {intervals}"

    @property
    def counted(self) -> str:
        """The records that the numbers are about, in words."""
        if self.target == "table" or not self.left_out:
            return f"{self.records:,} records" + (f", {self.left_out:,} of them left out" if self.left_out else "")
        return f"{self.records:,} published records ({self.left_out:,} more are left out)"

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<p><em>{escape(note)}</em></p>" for note in self.notes)
        return f"<p><strong>{escape(self._headline())}</strong></p>{self.to_polars()._repr_html_()}{notes}"


def _endless(numbers: Floats) -> dict[str, str]:
    """Where a column is infinite; a cell without a number is null, and is not named."""
    return {str(place): spelled(float(numbers[place])) or "" for place in np.flatnonzero(np.isinf(numbers))}


def _read_numbers(name: str, document: Mapping[str, Any]) -> Floats:
    numbers = np.array([np.nan if cell[name] is None else cell[name] for cell in document["cells"]], dtype=np.float64)
    for place, spelling in document.get("nonfinite", {}).get(name, {}).items():
        numbers[int(place)] = float(spelling)
    return numbers
