"""Tables for the terminal. Loaded only when something is shown; in a pipe they are plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rich import box
from rich.bar import Bar
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from polyseme.metrics import Preserved
from polyseme.models.base import Verdict
from polyseme.reports.document import Reached, Setting
from polyseme.reports.formats import count, plain
from polyseme.reports.tables import (
    FINDING_HEAD,
    LEARNING_HEAD,
    PLAN_HEAD,
    SETTING_HEAD,
    VERDICT_HEAD,
    Head,
    Planned,
    finding_rows,
    learning_rows,
    metric_head,
    metric_rows,
    plan_remarks,
    plan_rows,
    setting_rows,
    verdict_notes,
    verdict_rows,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "estimate_view",
    "findings_view",
    "frontier_view",
    "learning_view",
    "metrics_view",
    "plan_view",
    "verdict_view",
]

_SHOWN = 60
"""Cells of an estimate beyond this are not shown."""

_FIGURES = ("estimate", "stderr", "low", "high")


class Estimated(Protocol):
    """An estimated table, one row a cell."""

    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def estimator(self) -> object: ...
    def to_polars(self) -> pl.DataFrame: ...


def plan_view(plan: Planned) -> RenderableType:
    """What a policy comes to, attribute by attribute."""
    records = plan.to_dict()["records"]
    title = "Plan" if records is None else f"Plan for {records:,} records"
    return Group(_title(title), _table(PLAN_HEAD, plan_rows(plan)), *_remarks(plan_remarks(plan)))


def frontier_view(name: str, settings: Iterable[Setting]) -> RenderableType:
    """Every (l, d) of one attribute: whether it can be had, how risky and how precise it is."""
    return Group(_title(f"Settings of {name}"), _table(SETTING_HEAD, setting_rows(settings)))


def verdict_view(verdicts: Iterable[Verdict]) -> RenderableType:
    """Each model, whether it holds, and how far the worst class or set is from the bound; the sum of it below."""
    verdicts = tuple(verdicts)
    failed = sum(not verdict.holds for verdict in verdicts)
    if not verdicts:
        return Text("Nothing was checked.", style="yellow")
    closing = (
        Text("Every model holds.", style="bold green")
        if not failed
        else Text(f"Violated: {failed} of {len(verdicts)} models.", style="bold red")
    )
    return Group(_table(VERDICT_HEAD, verdict_rows(verdicts)), *_remarks(verdict_notes(verdicts)), closing)


def findings_view(findings: Iterable[Reached]) -> RenderableType:
    """What each attack reached, against what was promised."""
    findings = tuple(findings)
    helps = {found.attack: getattr(found, "helps", "") for found in findings if found.exceeded}
    remarks = [f"{attack}: {text}" for attack, text in helps.items() if text]
    return Group(_table(FINDING_HEAD, finding_rows(findings)), *_remarks(remarks))


def metrics_view(metrics: Mapping[str, Any]) -> RenderableType:
    """Metrics by name, or by question and name."""
    return _table(metric_head(metrics), metric_rows(metrics))


def learning_view(learned: Mapping[str, Mapping[str, Preserved]]) -> RenderableType:
    """Scores of what was learned from the original and from the estimate, by question."""
    tables = [
        (_title(f"Predicted: {question}"), _table(LEARNING_HEAD, learning_rows(learned[question])))
        for question in learned
    ]
    return Group(*(part for pair in tables for part in pair))


def estimate_view(estimate: Estimated) -> RenderableType:
    """The estimated cells with their intervals, and a bar for each where there is room."""
    frame = estimate.to_polars()
    names = [name for name in frame.columns if name not in _FIGURES]
    figures = [name for name in _FIGURES if name in frame.columns]
    head = [(plain(name), False) for name in names] + [(name, True) for name in figures]
    shown = frame.head(_SHOWN)
    rows = [
        (
            *(str(row[name]) for name in names),
            *(count(float("nan") if row[name] is None else row[name]) for name in figures),
        )
        for row in shown.iter_rows(named=True)
    ]
    values = [max(float(value or 0.0), 0.0) for value in shown["estimate"].to_list()]
    remarks = [*estimate.notes]
    if len(shown) < len(frame):
        remarks.insert(0, f"{len(frame) - len(shown):,} more cells are not shown")
    title = _title(f"Estimated numbers of records ({_name(estimate.estimator)})")
    return Group(title, _WithBars(head, rows, values), *_remarks(remarks))


def _name(estimator: object) -> str:
    return str(getattr(estimator, "name", estimator))


class _WithBars:
    """A table that gets a column of bars on a wide terminal."""

    def __init__(self, head: Head, rows: Sequence[Sequence[str]], values: Sequence[float]) -> None:
        self.head, self.rows, self.values = head, rows, values

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = _table(self.head, self.rows)
        room = options.max_width - console.measure(table, options=options).maximum - 3
        largest = max((value for value in self.values if value == value), default=0.0)
        if console.is_terminal and room >= 12 and largest > 0:
            bars = [Bar(largest, 0, 0 if value != value else value, width=min(room, 40)) for value in self.values]
            table = _table(self.head, self.rows, bars)
        yield table


_BRIEF = {"epsilon": "ε", "expected error, points": "error, points"}
"""Shorter titles, so that a plan fits 80 columns."""

_STACKED = ("worst posterior", "expected error, points")
"""Titles that are written below each other, being much longer than what stands under them."""

_NAME_WIDTH = 20
"""Names up to so long are not broken."""


def _table(head: Head, rows: Sequence[Sequence[str]], bars: Sequence[Bar] | None = None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    for index, (title, numeric) in enumerate(head):
        words = plain(_BRIEF.get(title, title)).split() or [""]
        wrapped = numeric and title in _STACKED
        short = all(len(row[index]) <= _NAME_WIDTH for row in rows)
        table.add_column(
            Text("\n".join(words) if wrapped else " ".join(words)),
            justify="right" if numeric else "left",
            no_wrap=numeric or short,
            overflow="fold",
        )
    if bars is not None:
        table.add_column("")
    for index, row in enumerate(rows):
        cells: list[RenderableType] = [_cell(title, text) for (title, _), text in zip(head, row, strict=True)]
        table.add_row(*cells, *([bars[index]] if bars is not None else []))
    return table


_ANSWERS = ("possible", "estimable", "holds", "kept")
_STYLES = {"yes": "green", "no": "bold red"}


def _cell(title: str, text: str) -> Text:
    """Text as it is: never read as markup, and without control characters."""
    return Text(plain(text), style=_STYLES.get(text, "") if title in _ANSWERS else "")


def _title(text: str) -> Text:
    return Text(plain(text), style="bold")


def _remarks(texts: Iterable[str]) -> list[Padding]:
    return [Padding(Text(f"- {_lines(text)}", style="dim"), (0, 0, 0, 1), expand=False) for text in texts]


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.splitlines())
