"""Charts of estimated tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, Protocol

import altair as alt

from polyseme.errors import Problem, QuestionError

__all__ = ["chart"]

_LIMIT = 5_000
"""Most cells that are drawn: beyond that neither a reader nor a browser can follow."""


class Table(Protocol):
    """What a chart needs to know of an estimated table."""

    @property
    def of(self) -> Sequence[str]: ...

    @property
    def by(self) -> Mapping[str, Any]: ...

    @property
    def labels(self) -> Sequence[Sequence[Any]]: ...

    @property
    def weight(self) -> str | None: ...

    def rows(self) -> Iterable[dict[str, Any]]: ...


def chart(estimate: Table, kind: Literal["auto", "bars", "heat"] = "auto") -> Any:
    """Bars with intervals for one attribute, a heat map for two; small multiples for groups and further attributes."""
    if not estimate.of:
        raise QuestionError(Problem("plot", "this table has no protected attribute to draw", "keep one in `of`"))
    heat = kind == "heat" or (kind == "auto" and len(estimate.of) >= 2)
    axes = list(estimate.of[: 2 if heat and len(estimate.of) > 1 else 1])
    facets = [*estimate.by, *estimate.of[len(axes) :]]
    rows = list(islice(estimate.rows(), _LIMIT))
    for row in rows:
        row["group"] = ", ".join(f"{name}: {row[name]}" for name in facets)
    picture = _heat(estimate, axes) if len(axes) == 2 else _bars(estimate, axes[0])
    data = alt.InlineData(values=[{key: _text(value) for key, value in row.items()} for row in rows])
    if facets:
        return picture.properties(width=180, height=120).facet(
            facet=alt.Facet("group:N", title=None), columns=3, data=data
        )
    return picture.properties(data=data, width=420, height=260)


def _text(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, int | float | str | bool) or value is None else str(value)


def _unit(estimate: Table) -> str:
    """What the numbers of a table are."""
    return "records" if estimate.weight is None else f"sum of {estimate.weight}"


def _bars(estimate: Table, name: str) -> Any:
    order = [_text(label) for label in estimate.labels[0]]
    across = alt.X(field=name, type="nominal", sort=order, title=name)
    tips = [alt.Tooltip(field=key) for key in (name, "estimate", "stderr", "low", "high")]
    base = alt.Chart().encode(x=across, tooltip=tips)
    bars = base.mark_bar(color="#4c78a8").encode(y=alt.Y("estimate:Q", title=_unit(estimate)))
    whiskers = base.mark_rule(color="#222").encode(y="low:Q", y2="high:Q")
    return bars + whiskers


def _heat(estimate: Table, names: list[str]) -> Any:
    first, second = ([_text(label) for label in axis] for axis in estimate.labels[:2])
    return (
        alt.Chart()
        .mark_rect()
        .encode(
            x=alt.X(field=names[0], type="nominal", sort=first, title=names[0]),
            y=alt.Y(field=names[1], type="nominal", sort=second, title=names[1]),
            color=alt.Color("estimate:Q", title=_unit(estimate)),
            tooltip=[alt.Tooltip(field=key) for key in (*names, "estimate", "low", "high")],
        )
    )
