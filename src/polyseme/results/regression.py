"""The coefficients of a regression on a release, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import QuestionError
from polyseme.kernel.plugins import require
from polyseme.results.base import Result, plain_value
from polyseme.results.table import Population

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from rich.console import RenderableType

__all__ = ["Regression"]

_NUMBERS = ("estimate", "stderr", "low", "high", "p", "worth")
TARGETS: Mapping[Population, str] = {
    "super": "the population that the records were drawn from",
    "finite": "the people in the table",
}


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Result):
    """One row for each term of a regression by corrected scores.

    worth    the number of open records that would be as precise
    records  how many published records were used
    target   what the intervals are about
    """

    formula: str
    family: str
    terms: tuple[str, ...]
    estimate: Floats
    stderr: Floats
    low: Floats
    high: Floats
    p: Floats
    worth: Floats
    covariance: Floats
    records: int
    level: float = 0.95
    population: Population = "super"
    where: str | None = None
    weight: str | None = None
    notes: tuple[str, ...] = ()
    predictor: Callable[[Any, float], Mapping[str, Any]] | None = field(default=None, compare=False)

    @property
    def target(self) -> str:
        """What the intervals are about, in words."""
        return TARGETS[self.population]

    @property
    def table(self) -> pl.DataFrame:
        """The same as `to_polars()`."""
        return self.to_polars()

    def _columns(self) -> dict[str, Any]:
        return {"term": list(self.terms), **{name: getattr(self, name) for name in _NUMBERS}}

    def to_polars(self) -> pl.DataFrame:
        """One row a term: term, estimate, stderr, low, high, p, worth."""
        import polars as pl

        return pl.DataFrame(self._columns())

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame. Needs `polyseme[pandas]`."""
        require("pandas", "a pandas frame")
        import pandas as pd

        return pd.DataFrame(self._columns())

    def _rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary for each term."""
        yield from self.to_polars().iter_rows(named=True)

    def predict(self, values: Any, level: float | None = None) -> pl.DataFrame:
        """The expected outcome of records, with intervals for it.

        values  a table or a mapping with the columns of the formula, protected ones as plain values
        """
        import polars as pl

        if self.predictor is None:
            raise QuestionError("a stored regression has no design to predict with", "run the regression again")
        return pl.DataFrame(self.predictor(values, self.level if level is None else level))

    def plot(self) -> Any:
        """The coefficients with their intervals. Needs `polyseme[charts]`."""
        require("charts", "drawing a regression")
        from polyseme.results.drawing.table_charts import coefficients

        rows = [row for row in self._rows() if row["term"] != "Intercept"] or list(self._rows())
        return coefficients(rows, self.formula, self.level)

    def to_dict(self) -> dict[str, Any]:
        """The document of `regress --json`."""
        return {
            "formula": self.formula,
            "family": self.family,
            "where": self.where,
            "population": self.population,
            "target": self.target,
            "level": self.level,
            "records": self.records,
            "weight": self.weight,
            "terms": [{name: plain_value(value) for name, value in row.items()} for row in self._rows()],
            "covariance": self.covariance.tolist(),
            "notes": list(self.notes),
        }

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        rows = document["terms"]
        numbers = {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)
            for name in _NUMBERS
        }
        return cls(
            formula=document["formula"],
            family=document["family"],
            terms=tuple(row["term"] for row in rows),
            **numbers,  # type: ignore[arg-type]
            covariance=np.array(document["covariance"], dtype=np.float64),
            records=document["records"],
            level=document["level"],
            population=document["population"],
            where=document["where"],
            weight=document["weight"],
            notes=tuple(document["notes"]),
        )

    @property
    def _headline(self) -> str:
        filtered = f" where {self.where}" if self.where else ""
        weighted = f" weighted by {self.weight}" if self.weight else ""
        return (
            f"Regression ({self.family}): {self.formula}{filtered}\n{self.records:,} records{weighted}; "
            f"{self.level:.0%} intervals about {self.target}; robust standard errors"
        )

    def __rich__(self) -> RenderableType:
        from polyseme.results.views.terminal import regression_view

        return regression_view(self._headline, self._columns(), self.notes)

    def __repr__(self) -> str:
        return f"{self._headline}\n{self.to_polars()}" + "".join(f"\nnote: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        from html import escape

        head = escape(self._headline).replace("\n", "<br>")
        notes = "".join(f"<p><em>{escape(note)}</em></p>" for note in self.notes)
        return f"<p><strong>{head}</strong></p>{self.to_polars()._repr_html_()}{notes}"
