"""Tables for the terminal. Loaded only when something is shown; in a pipe they are plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from rich import box
from rich.bar import Bar
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from polyseme.models.base import Verdict
from polyseme.results.views.formats import count, plain
from polyseme.results.views.protocols import Estimated, Planned, Reached, Scored, Setting, Tried
from polyseme.results.views.tables import (
    FINDING_HEAD,
    LEARNING_HEAD,
    NOBODY,
    PLAN_HEAD,
    SETTING_HEAD,
    TRIED_HEAD,
    VERDICT_HEAD,
    WHO_HEAD,
    Document,
    Head,
    above_sentence,
    finding_notes,
    finding_rows,
    guesser_notes,
    guesser_rows,
    learning_rows,
    metric_head,
    metric_rows,
    plan_remarks,
    plan_rows,
    planned_learners,
    setting_rows,
    tried_rows,
    verdict_notes,
    verdict_rows,
)

__all__ = [
    "advice_view",
    "as_text",
    "estimate_view",
    "evaluation_view",
    "findings_view",
    "frontier_view",
    "learning_view",
    "metrics_view",
    "plan_view",
    "titled_view",
    "verdict_view",
]

_WIDTH = 120
"""Characters in a line of plain text: tables of all results fit, and so do most editors."""

_SHOWN = 60
"""Cells of an estimate beyond this are not shown."""

_FIGURES = ("estimate", "stderr", "low", "high")


def as_text(view: RenderableType) -> str:
    """A view as plain text, not folded to the width of a terminal."""
    console = Console(file=StringIO(), width=_WIDTH, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(view)
    return captured.get().rstrip()


def plan_view(plan: Planned) -> RenderableType:
    """What a policy comes to, attribute by attribute."""
    records = plan.to_dict()["records"]
    title = "Plan" if records is None else f"Plan for {records:,} records"
    rows = plan_rows(plan)
    table = [_table(PLAN_HEAD, rows)] if rows else []
    return Group(_title(title), *table, *_guessing(planned_learners(plan)), *_remarks(plan_remarks(plan)))


def _guessing(learners: Mapping[str, Document]) -> list[RenderableType]:
    """Who guesses right how often, and what that means."""
    if not learners:
        return []
    title = _title("Who guesses right how often, without the release and with it")
    return [title, _table(WHO_HEAD, guesser_rows(learners)), *_remarks(guesser_notes(learners))]


def frontier_view(name: str, settings: Iterable[Setting]) -> RenderableType:
    """Every (l, d) of one attribute: whether it can be had, how risky and how precise it is."""
    return Group(_title(f"Settings of {name}"), _table(SETTING_HEAD, setting_rows(settings)))


def tradeoff_view(name: str, tried: Iterable[Tried]) -> RenderableType:
    """What somebody who knows the distribution of one attribute reaches, against precision."""
    note = "alpha: how strongly decoys follow the distribution; p: how often sets are drawn around the true value"
    note += "; own: each stratum has its own"
    title = _title(f"Learners of {name}: settings that no other one of at least this d beats")
    return Group(title, _table(TRIED_HEAD, tried_rows(tried)), *_remarks([note]))


def advice_view(advice: Tried) -> RenderableType:
    """Lines of a policy to paste, and why."""
    told = advice.to_dict()
    lines = [Text(f"    {plain(line)}") for line in told["policy"]]
    return Group(_title(f"Advice for {told['attribute']}"), *lines, *_remarks(told["lines"]))


def verdict_view(verdicts: Iterable[Verdict], learners: Mapping[str, Document] = NOBODY) -> RenderableType:
    """Each model, whether it holds, and how far the worst class or set is from the bound; the sum of it below."""
    verdicts = tuple(verdicts)
    if not verdicts:
        return Text("Nothing was checked.", style="yellow")
    table, notes = _table(VERDICT_HEAD, verdict_rows(verdicts)), _remarks(verdict_notes(verdicts))
    return Group(table, *notes, *_guessing(learners), _closing(verdicts, learners))


def _closing(verdicts: Sequence[Verdict], learners: Mapping[str, Document]) -> Text:
    """What it comes to: no all-clear where somebody who reads the release knows more than was reckoned with."""
    failed = sum(not verdict.holds for verdict in verdicts)
    if failed:
        return Text(f"Violated: {failed} of {len(verdicts)} models.", style="bold red")
    more = above_sentence(learners)
    return Text(f"Every model holds. {more}".rstrip(), style="bold yellow" if more else "bold green")


def findings_view(findings: Iterable[Reached]) -> RenderableType:
    """What each attack reached, against what was promised."""
    findings = tuple(findings)
    return Group(_table(FINDING_HEAD, finding_rows(findings)), *_remarks(finding_notes(findings)))


def evaluation_view(
    metrics: Mapping[str, Mapping[str, float]], learned: Mapping[str, Mapping[str, Scored]]
) -> RenderableType:
    """How far estimates are from the truth, and what can be learned from them."""
    return Group(metrics_view(metrics), *([learning_view(learned)] if learned else []))


def titled_view(title: str, head: Head, rows: Sequence[Sequence[str]], notes: Iterable[str] = ()) -> RenderableType:
    """Any table under a title, with notes below."""
    return Group(_title(title), _table(head, rows), *_remarks(notes))


def metrics_view(metrics: Mapping[str, Any]) -> RenderableType:
    """Metrics by name, or by question and name."""
    return _table(metric_head(metrics), metric_rows(metrics))


def learning_view(learned: Mapping[str, Mapping[str, Scored]]) -> RenderableType:
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
    what = "numbers of records" if estimate.weight is None else f"sums of {plain(estimate.weight)}"
    title = _title(f"Estimated {what} ({_name(estimate.estimator)})")
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
        if console.is_terminal and room >= _LEAST_BAR and largest > 0:
            bars = [
                Bar(largest, 0, 0 if value != value else value, width=min(room, _LARGEST_BAR)) for value in self.values
            ]
            table = _table(self.head, self.rows, bars)
        yield table


_BRIEF = {"epsilon": "ε", "expected error, points": "error, points"}
"""Shorter titles, so that a plan fits 80 columns."""

_STACKED = ("worst posterior", "expected error, points", "worst group", "worst stratum", "range before", "range after")
"""Titles that are written below each other, being much longer than what stands under them."""

_LEAST_BAR, _LARGEST_BAR = 12, 40
"""Characters of the largest bar: with fewer nothing can be seen, and more are no easier to compare."""

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
