"""A distribution of values by other columns, as a file that a policy can name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from polyseme.kernel.arrays import Floats
from polyseme.kernel.delimited import written_rows
from polyseme.results.base import Result

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType

__all__ = ["Prior"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior(Result):
    """How many people have each value of an attribute, for each combination of other columns.

    of, by        the attribute, and the columns
    groups        the combinations, each a text for each column
    values        the values of the attribute
    numbers       of people, (groups, values), all above 0
    source        "release" or "table"
    epsilon       of differential privacy, for a table; None where its own distribution is published
    remarks       where the numbers come from, for people
    """

    of: str
    by: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    values: tuple[str, ...]
    numbers: Floats
    source: str
    epsilon: float | None = None
    remarks: tuple[str, ...] = ()

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The texts of `by`, the value and a number, as a policy's file has them."""
        for group, numbers in zip(self.groups, self.numbers, strict=True):
            for value, number in zip(self.values, numbers, strict=True):
                yield (*group, value, f"{number:.6g}")

    def to_csv(self) -> str:
        """The text of a file for `prior: {by: [...], file: ...}`: remarks, a header and the rows."""
        remarks = "".join(f"# {remark}\n" for remark in self.remarks)
        return remarks + written_rows([(*self.by, self.of, "people"), *self.rows()], ",")

    def to_polars(self) -> pl.DataFrame:
        """One row for each combination and value."""
        import polars as pl

        frame = pl.DataFrame(list(self.rows()), schema=[*self.by, self.of, "people"], orient="row")
        return frame.with_columns(pl.col("people").cast(pl.Float64))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "numbers": self.numbers.tolist(), "groups": [list(group) for group in self.groups]}

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            document["of"],
            tuple(document["by"]),
            tuple(tuple(group) for group in document["groups"]),
            tuple(document["values"]),
            np.array(document["numbers"], dtype=np.float64),
            document["source"],
            document["epsilon"],
            tuple(document["remarks"]),
        )

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        groups = f" by {', '.join(self.by)}" if self.by else ""
        return Text("\n".join([f"Prior of {self.of}{groups}: {len(self.groups):,} groups", *self.remarks]))

    def __repr__(self) -> str:
        return f"<Prior of {self.of} by {', '.join(self.by) or 'nothing'}: {len(self.groups):,} groups>"

    def _repr_html_(self) -> str:
        return self.to_polars()._repr_html_()
