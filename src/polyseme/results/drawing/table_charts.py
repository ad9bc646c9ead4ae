"""An estimated table as a chart, drawn as a report draws it.

one attribute              bars with intervals, in numbers of records
with up to twelve groups   a chart for each, in percent of the group's records and on one scale
with more groups           one heat map of these shares
two attributes             a heat map, in numbers of records; one for each group
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import altair as alt
import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.spelling import written
from polyseme.results.drawing.bars import LOOK, AnyChart, distribution_chart, heatmap, squares, titled
from polyseme.results.drawing.distribution import TOP, Distribution, highest_share, shown_values
from polyseme.results.views.formats import count, percent

__all__ = ["chart", "coefficients"]

_PANELS = 12
"""Up to so many groups get a chart each; more become one heat map."""
_GROUPS = 60
"""The most groups that are drawn."""
_WIDTH, _PANEL = 640, 300
"""How wide a chart is by itself, and beside others."""


class Table(Protocol):
    """What a chart needs to know of an estimated table."""

    @property
    def of(self) -> Sequence[str]: ...
    @property
    def by(self) -> Mapping[str, Sequence[Any]]: ...
    @property
    def labels(self) -> Sequence[Sequence[Any]]: ...
    @property
    def values(self) -> Floats: ...
    @property
    def low(self) -> Floats: ...
    @property
    def high(self) -> Floats: ...
    @property
    def totals(self) -> Floats: ...
    @property
    def records(self) -> int: ...
    @property
    def estimator(self) -> str: ...
    @property
    def level(self) -> float: ...
    @property
    def weight(self) -> str | None: ...


def chart(estimate: Table, kind: Literal["auto", "bars", "heat"] = "auto") -> AnyChart:
    """Bars with intervals for one attribute, a heat map for two, parts for groups and more."""
    if not estimate.of:
        raise QuestionError(Problem("plot", "this table has no protected attribute to draw", "keep one in `of`"))
    if len(estimate.of) >= 2 and kind != "bars":
        return _two(estimate)
    parts = list(_parts(estimate, 1))
    if len(parts) == 1 and parts[0].group is None:
        return _one(estimate, parts[0])
    return _many(estimate, parts) if kind == "heat" or len(parts) > _PANELS else _panels(estimate, parts)


def _parts(estimate: Table, axes: int) -> Iterator[Distribution]:
    """The first attribute for each combination of groups and attributes beyond the first `axes`."""
    inner = estimate.labels[axes:]
    for cell in range(estimate.values.shape[0]):
        said = [f"{name} = {_text(values[cell])}" for name, values in estimate.by.items()]
        for place in np.ndindex(*(len(labels) for labels in inner)):
            also = [f"{n} = {_text(x[i])}" for n, x, i in zip(estimate.of[axes:], inner, place, strict=True)]
            index = (cell, slice(None), *place)
            yield Distribution(
                estimate.of[0],
                [_text(label) for label in estimate.labels[0]],
                None,
                estimate.values[index],
                estimate.low[index],
                estimate.high[index],
                ordered=True,
                group=", ".join([*said, *also]) or None,
                level=estimate.level,
                unit=_unit(estimate),
                records=float(estimate.values[index].sum() if also else estimate.totals[cell]),
            )


def _unit(estimate: Table) -> str:
    """What the numbers of a table count."""
    return "records" if estimate.weight is None else f"weighted by {estimate.weight}"


def _number(estimate: Table) -> str:
    """The same at length."""
    return "number of records" if estimate.weight is None else f"sum of {estimate.weight}"


def _share(estimate: Table, whole: str) -> str:
    return f"share of {whole}" if estimate.weight is None else f"share of {whole}, weighted by {estimate.weight}"


def _in_shares(estimate: Table) -> bool:
    """Whether the table was divided by the records of its groups already."""
    return bool((estimate.totals <= 1.0).all()) and estimate.records > 1


def _one(estimate: Table, part: Distribution) -> AnyChart:
    shown, shares = shown_values(part), _in_shares(estimate)
    drawn = distribution_chart(part, _WIDTH, shown=shown, shares=shares, legend=False)
    under = [_intervals(part), *_left_out(len(shown), part.size, "values")]
    what = f"{_share(estimate, 'the records')}, in percent" if shares else _number(estimate)
    return drawn.properties(title=titled(f"{part.attribute}: estimated {what}", _about(estimate, under)))


def _panels(estimate: Table, parts: Sequence[Distribution]) -> AnyChart:
    shown = shown_values(max(parts, key=lambda part: part.total))
    ceiling = max(highest_share(part) for part in parts)
    drawn = [
        distribution_chart(part, _PANEL, shown=shown, shares=True, ceiling=ceiling, legend=False).properties(
            title=str(part.group) if _in_shares(estimate) else f"{part.group}: {count(part.total)} {_unit(estimate)}"
        )
        for part in parts
    ]
    for panel in drawn:
        panel.config = alt.Undefined
    under = [_intervals(parts[0]), *_left_out(len(shown), parts[0].size, "values")]
    what = _share(estimate, "the records of each group")
    title = titled(f"{parts[0].attribute}: estimated {what}, in percent", _about(estimate, under))
    return alt.ConcatChart(concat=drawn, columns=2, spacing=30, title=title, config=LOOK)


def _many(estimate: Table, parts: Sequence[Distribution]) -> AnyChart:
    kept = parts[:_GROUPS]
    shown = shown_values(kept[0])
    under = [*_left_out(len(kept), len(parts), "groups", "first"), *_left_out(len(shown), kept[0].size, "values")]
    what = _share(estimate, "the records of each group")
    title = titled(f"{kept[0].attribute}: estimated {what}", _about(estimate, under))
    return heatmap(kept, _WIDTH).properties(title=title)


@dataclass(frozen=True, eq=False)
class _Square:
    """Two attributes of one group: which values are shown of each, and the numbers of all."""

    group: str
    estimate: Floats
    low: Floats
    high: Floats


def _two(estimate: Table) -> AnyChart:
    """The first attribute across, the second downwards."""
    groups = list(_square_groups(estimate))
    kept = groups[:_PANELS]
    margins = np.sum([group.estimate for group in groups], axis=0)
    across, down = _largest(margins.sum(axis=1), TOP), _largest(margins.sum(axis=0), _GROUPS)
    width = _WIDTH if len(kept) == 1 else _PANEL
    drawn = [_square(estimate, group, across, down, width) for group in kept]
    under = [
        *_left_out(len(across), len(estimate.labels[0]), f"values of {estimate.of[0]}"),
        *_left_out(len(down), len(estimate.labels[1]), f"values of {estimate.of[1]}"),
        *_left_out(len(kept), len(groups), "groups", "first"),
    ]
    names = " and ".join(estimate.of[:2])
    what = _share(estimate, "the records of each group") if _in_shares(estimate) else _number(estimate)
    title = titled(f"{names}: estimated {what}", _about(estimate, under))
    if len(drawn) == 1 and not kept[0].group:
        return drawn[0].properties(title=title)
    for panel, group in zip(drawn, kept, strict=True):
        panel.config, panel.title = alt.Undefined, group.group
    return alt.ConcatChart(concat=drawn, columns=2, spacing=30, title=title, config=LOOK)


def _square_groups(estimate: Table) -> Iterator[_Square]:
    inner = estimate.labels[2:]
    for cell in range(estimate.values.shape[0]):
        said = [f"{name} = {_text(values[cell])}" for name, values in estimate.by.items()]
        for place in np.ndindex(*(len(labels) for labels in inner)):
            also = [f"{n} = {_text(x[i])}" for n, x, i in zip(estimate.of[2:], inner, place, strict=True)]
            index = (cell, slice(None), slice(None), *place)
            yield _Square(", ".join([*said, *also]), estimate.values[index], estimate.low[index], estimate.high[index])


def _square(estimate: Table, group: _Square, across: Ints, down: Ints, width: int) -> alt.LayerChart:
    first, second = ([_text(label) for label in labels] for labels in estimate.labels[:2])
    unit, form, write = ("share", ".0%", percent) if _in_shares(estimate) else (_unit(estimate), ",~r", count)
    rows = [
        {
            "across": first[i],
            "down": second[j],
            "amount": max(float(group.estimate[i, j]), 0.0),
            "about": f"{first[i]}, {second[j]}: {write(group.estimate[i, j])} {unit}, "
            f"{estimate.level:.0%} interval {write(group.low[i, j])} to {write(group.high[i, j])}",
        }
        for i in across.tolist()
        for j in down.tolist()
    ]
    return squares(rows, [first[i] for i in across], [second[j] for j in down], width, unit, form)


def _largest(numbers: Floats, most: int) -> Ints:
    """Where the largest numbers stand, in the order of the domain."""
    return np.sort(np.argsort(-numbers, kind="stable")[:most])


def _intervals(part: Distribution) -> str:
    known = np.isfinite(part.low).any()
    return f"the lines are {part.level:.0%} intervals" if known else "without intervals"


def _left_out(shown: int, there: int, things: str, which: str = "largest") -> list[str]:
    return [f"the {shown:,} {which} of {there:,} {things}"] if shown < there else []


def _about(estimate: Table, under: Sequence[str]) -> str:
    """The line below the title: number of records, estimator, and what the reader must know."""
    return "; ".join([f"{estimate.records:,} records", f"estimator {estimate.estimator}", *under])


def _text(value: Any) -> str:
    return "(none)" if value is None else written(value)


def coefficients(rows: Sequence[Mapping[str, Any]], formula: str, level: float) -> AnyChart:
    """The coefficients of a regression with their intervals, and a line at 0."""
    base = alt.Chart(alt.InlineData(values=list(rows))).encode(
        y=alt.Y("term:N", sort=[row["term"] for row in rows], title=None)
    )
    lines = base.mark_rule().encode(x=alt.X("low:Q", title=f"coefficient, {level:.0%} interval"), x2="high:Q")
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4]).encode(x="zero:Q")
    points = base.mark_point(filled=True, size=60).encode(x="estimate:Q")
    return alt.layer(zero, lines, points).properties(title=formula, width=480)
