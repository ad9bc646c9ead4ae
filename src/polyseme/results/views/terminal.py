"""Tables for the terminal that fit it. Loaded only when something is shown.

No word is cut: where the words do not fit side by side, each row becomes a block. In a pipe tables are plain text.

What matters is printed plainly, what is wrong in red. Views with `explain` add a dim legend: what each row means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from itertools import chain
from typing import Literal, TypeAlias

from rich import box
from rich.bar import Bar
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from polyseme.models.base import Verdict
from polyseme.results.views.formats import count, plain
from polyseme.results.views.plan_tables import (
    NO_LEARNERS,
    PLAN_HEAD,
    SETTING_HEAD,
    TRIED_HEAD,
    above_sentence,
    guesser_head,
    guesser_legend,
    guesser_notes,
    guesser_rows,
    plan_notes,
    plan_rows,
    planned_learners,
    setting_notes,
    setting_rows,
    tried_rows,
)
from polyseme.results.views.tables import (
    ESTIMATED,
    FINDING_HEAD,
    FINDINGS,
    GUESSERS,
    LEARNING_HEAD,
    METRIC_HEAD,
    PLAN,
    SETTINGS,
    TRIED,
    VERDICT_HEAD,
    VERDICTS,
    Document,
    Estimated,
    Head,
    Planned,
    Reached,
    Scored,
    Setting,
    Tried,
    adversary_rows,
    finding_notes,
    finding_rows,
    finding_title,
    learning_rows,
    metric_rows,
    unbounded,
    verdict_notes,
    verdict_rows,
)
from polyseme.results.views.words import measures

__all__ = [
    "FittedTable",
    "advice_view",
    "as_text",
    "column_widths",
    "estimate_view",
    "evaluation_view",
    "findings_view",
    "frontier_view",
    "items",
    "learning_view",
    "plan_view",
    "remarks",
    "titled_view",
    "tradeoff_view",
    "verdict_view",
]

_GAP = 2
"""Blanks between two columns."""

_LONGEST_TITLE = 28
"""Characters of a title beside which a block shows a value; longer ones are broken."""

Bars: TypeAlias = Callable[[int], Sequence[RenderableType]]
"""A last column of so many characters."""

_LEAST_BAR, _LARGEST_BAR = 12, 40
"""Characters of the largest bar: with fewer nothing can be seen, and more are no easier to compare."""


def column_widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int] | None:
    """Widths of columns between their longest words and their longest lines.

    None where the words do not fit.

    >>> column_widths([5, 4], [10, 30], 80), column_widths([5, 4], [10, 30], 30), column_widths([5, 4], [10, 30], 10)
    ([10, 30], [10, 18], None)
    """
    room -= _GAP * (len(most) - 1)
    if sum(least) > room:
        return None
    widths = list(most)
    for _ in range(sum(most) - room):
        widest = max((place for place in range(len(widths)) if widths[place] > least[place]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


class FittedTable:
    """Rows under titles; on a wide terminal with a column of bars.

    style  of a cell, from the title of its column and its text
    """

    def __init__(
        self,
        head: Head,
        rows: Sequence[Sequence[str]],
        style: Callable[[str, str], str] = lambda title, text: "",
        bars: Bars | None = None,
    ) -> None:
        self.head, self.style, self.bars = [(plain(title), numeric) for title, numeric in head], style, bars
        self.rows = [[_lines(text) for text in row] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = column_widths(*self._needs(), options.max_width)
        if widths is None:
            yield self._blocks()
            return
        room = min(options.max_width - sum(widths) - _GAP * len(widths), _LARGEST_BAR)
        wanted = self.bars is not None and console.is_terminal and room >= _LEAST_BAR
        yield self._table(widths, self.bars(room) if wanted and self.bars is not None else ())

    def _needs(self) -> tuple[list[int], list[int]]:
        """The longest word and the longest line of each column; a number is one word."""
        least, most = [], []
        for place, (title, numeric) in enumerate(self.head):
            lines = list(chain.from_iterable(row[place].splitlines() for row in self.rows))
            words = [*title.split(), *(lines if numeric else chain.from_iterable(line.split() for line in lines))]
            least.append(max(map(cell_len, words), default=0))
            # A title of several words is broken before it makes a column of numbers wide.
            wide = title.split() if numeric else [title]
            most.append(max([least[-1], *map(cell_len, [*wide, *lines])]))
        return least, most

    def _table(self, widths: Sequence[int], bars: Sequence[RenderableType]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)
        for (title, numeric), width in zip(self.head, widths, strict=True):
            side: Literal["left", "right"] = "right" if numeric else "left"
            table.add_column(Text(title, "bold"), justify=side, width=width, overflow="fold", vertical="top")
        if bars:
            table.add_column("")
        for place, row in enumerate(self.rows):
            table.add_row(*self._cells(row), *bars[place : place + 1])
        return table

    def _cells(self, row: Sequence[str]) -> list[Text]:
        """Text as it is: never read as markup."""
        return [Text(text, self.style(title, text)) for (title, _), text in zip(self.head, row, strict=True)]

    def _blocks(self) -> Table:
        """A block for each row: titles on the left, values on the right, a blank line between two."""
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(max_width=_LONGEST_TITLE, overflow="fold")
        grid.add_column(overflow="fold")
        for number, row in enumerate(self.rows):
            if number:
                grid.add_row("", "")
            for (title, _), cell in zip(self.head, self._cells(row), strict=True):
                if title or cell.plain:
                    grid.add_row(Text(title, "bold"), cell)
        return grid


def items(texts: Sequence[tuple[str, str]], mark: str = "-") -> RenderableType:
    """A list of remarks, each with its style; further lines of one are indented."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column()
    grid.add_column(overflow="fold")
    for text, style in texts:
        grid.add_row(Text(f" {mark}", style), Text(_lines(text), style))
    return grid


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.splitlines())


_WIDTH = 120
"""Characters in a line of plain text: tables of all results fit, and so do most editors."""

_SHOWN = 60
"""Cells of an estimate beyond this are not shown."""

_BY_THEMSELVES = " records by themselves: "
"""What a note says of a part of the table, between the number of its records and what is true of them."""

_NAMED = 5
"""Parts that such a note names."""

_FIGURES = ("estimate", "stderr", "low", "high")
_WRONG, _LEGEND, _PLAIN = "bold red", "dim", ""


def as_text(view: RenderableType) -> str:
    """A view as plain text, not folded to the width of a terminal."""
    console = Console(file=StringIO(), width=_WIDTH, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(view)
    return captured.get().rstrip()


def plan_view(plan: Planned, explain: bool = False) -> RenderableType:
    """What a policy comes to, attribute by attribute."""
    records = plan.to_dict()["records"]
    title = "Plan" if records is None else f"Plan for {records:,} records"
    rows, notes = plan_rows(plan), plan_notes(plan)
    table = [_table(PLAN_HEAD, rows), *_legend(PLAN if explain else ())] if rows else []
    wrong, others = (_remarks([text for text, bad in notes if bad is kind], kind) for kind in (True, False))
    return Group(_title(title), *table, *wrong, *_guessing(planned_learners(plan), explain), *others)


def _guessing(learners: Mapping[str, Document], explain: bool) -> list[RenderableType]:
    """How often each attacker guesses right, and what that means."""
    if not learners:
        return []
    title = _title("How often each attacker guesses right, before and after the release")
    table = _table(guesser_head(learners), guesser_rows(learners))
    legend = _legend((*GUESSERS, *guesser_legend(learners)) if explain else ())
    return [Text(), title, table, *legend, *_remarks(guesser_notes(learners))]


def frontier_view(name: str, settings: Iterable[Setting], explain: bool = False) -> RenderableType:
    """Every (l, d) of one attribute: whether it can be had, how risky and how precise it is."""
    settings = tuple(settings)
    table = _table(SETTING_HEAD, setting_rows(settings))
    legend = _legend(SETTINGS if explain else ())
    return Group(Text(), _title(f"Settings of {name}"), table, *legend, *_remarks(setting_notes(settings)))


def tradeoff_view(name: str, tried: Iterable[Tried], explain: bool = False) -> RenderableType:
    """Success of an attacker who knows the distribution of one attribute, against precision."""
    title = _title(f"Learners of {name}: the best settings for each d")
    legend = _legend(TRIED if explain else ())
    return Group(Text(), title, _table(TRIED_HEAD, tried_rows(tried)), *legend)


def advice_view(advice: Tried) -> RenderableType:
    """Lines of a policy to paste, and why."""
    document = advice.to_dict()
    lines = [Text(f"    {plain(line)}") for line in document["policy"]]
    return Group(Text(), _title(f"Advice for {document['attribute']}"), *lines, *_remarks(document["lines"]))


def verdict_view(
    verdicts: Iterable[Verdict],
    learners: Mapping[str, Document] = NO_LEARNERS,
    remarks: Sequence[str] = (),
    explain: bool = False,
) -> RenderableType:
    """Each model, whether it holds, and how far the worst class or set is from the bound.

    The sum of it below.
    """
    verdicts = tuple(verdicts)
    if not verdicts:
        return Text("Nothing was checked.", style="yellow")
    table = _table(VERDICT_HEAD, verdict_rows(verdicts))
    meant = measures((verdict.model, verdict.counts) for verdict in verdicts)
    legend = _legend((*VERDICTS, *meant) if explain else ())
    broken, kept = (
        _remarks(verdict_notes(verdict for verdict in verdicts if verdict.holds is holds), not holds)
        for holds in (False, True)
    )
    remarks_shown = [*kept, *broken, *_remarks(remarks)]
    closing = _closing(verdicts, learners, remarks)
    return Group(table, *legend, *remarks_shown, *_guessing(learners, explain), Text(), closing)


def _closing(verdicts: Sequence[Verdict], learners: Mapping[str, Document], remarks: Sequence[str]) -> Text:
    """The summary: no all-clear where an attacker exceeds the promise, or a remark exists."""
    failed = sum(not verdict.holds for verdict in verdicts)
    if failed:
        return Text(f"Violated: {failed} of {len(verdicts)} models.", style=_WRONG)
    besides = "No model covers what is remarked above." if remarks else ""
    more = " ".join(filter(None, [besides, above_sentence(learners)]))
    return Text(f"Every model holds. {more}".rstrip(), style="bold yellow" if more else "bold green")


def findings_view(findings: Iterable[Reached], explain: bool = False) -> RenderableType:
    """What each attack reached against the promise; with `explain`, what attackers know."""
    findings = tuple(findings)
    broken = any(found.exceeded for found in findings)
    # No all-clear where nothing was promised against some of them.
    calm = "bold" if unbounded(findings) or not findings else "bold green"
    title = Text(finding_title(findings), style=_WRONG if broken else calm)
    if not findings:
        return title
    table, notes = _table(FINDING_HEAD, finding_rows(findings)), _remarks(finding_notes(findings))
    if not explain:
        return Group(title, table, *notes)
    legend = _legend(FINDINGS)
    return Group(title, table, *legend, *notes, Text(), _title("The attackers"), _adversaries(findings))


def _adversaries(findings: Iterable[Reached]) -> RenderableType:
    """What each of them knows and gains, and what would help; in red where a promise is broken."""
    grid = Table.grid()
    parts: list[RenderableType] = []
    for word, says, broken in adversary_rows(findings):
        if not says:
            grid = Table.grid(padding=(0, 2, 0, 0))
            grid.add_column(no_wrap=True)
            grid.add_column(overflow="fold")
            parts += [Text(plain(word), style=_WRONG if broken else "bold"), grid]
        else:
            grid.add_row(Text(word), Text(plain(says), style=_WRONG if broken and "helps" in word else ""))
    return Group(*parts)


def evaluation_view(
    metrics: Mapping[str, Mapping[str, float]], learned: Mapping[str, Mapping[str, Scored]]
) -> RenderableType:
    """How far estimates are from the truth, and what can be learned from them."""
    parts: list[RenderableType] = []
    for question, found in metrics.items():
        parts += [_title(f"Estimated against true: {question}"), _table(METRIC_HEAD, metric_rows(found)), Text()]
    return Group(*parts[:-1], *([Text(), learning_view(learned)] if learned else []))


def titled_view(
    title: str, head: Head, rows: Sequence[Sequence[str]], notes: Iterable[str] = (), legend: Iterable[str] = ()
) -> RenderableType:
    """Any table under a title, with what its numbers mean and notes below."""
    return Group(_title(title), _table(head, rows), *_legend(legend), *_remarks(notes))


def remarks(legend: Iterable[str], notes: Iterable[str]) -> list[RenderableType]:
    """What stands below a table: what its numbers mean, and what the reader must know."""
    return [*_legend(legend), *_remarks(notes)]


def learning_view(learned: Mapping[str, Mapping[str, Scored]]) -> RenderableType:
    """Scores of what was learned from the original and from the estimate, by question."""
    tables = [
        (_title(f"Predicted: {question}"), _table(LEARNING_HEAD, learning_rows(learned[question])))
        for question in learned
    ]
    legend = "original, estimate: trained on either and tested on the original; constant: the best constant prediction"
    return Group(*(part for pair in tables for part in pair), *_legend([legend]))


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
    more = len(frame) - len(shown)
    rest = [Text(f"{more:,} more {'cells' if more > 1 else 'cell'}: use --csv FILE to see all")] if more else []
    whose = "published records" if estimate.left_out and estimate.target == "published" else "records"
    what = f"numbers of {whose}" if estimate.weight is None else f"sums of {plain(estimate.weight)}"
    title = _title(f"Estimated {what} ({_name(estimate.estimator)})")
    unit = "number of records" if estimate.weight is None else f"sum of {plain(estimate.weight)}"
    legend = _legend([ESTIMATED.format(what=unit, level=f"{100 * estimate.level:g}%")])
    return Group(title, _with_bars(head, rows, values), *rest, *legend, *_remarks(_gathered(estimate.notes)))


def _gathered(notes: Iterable[str]) -> list[str]:
    """Notes about parts of the table, each of which is said once."""
    parts: dict[str, list[str]] = {}
    for note in notes:
        records, _, sentence = note.partition(_BY_THEMSELVES)
        parts.setdefault(sentence or note, []).append(records if sentence else "")
    return [
        f"{_listed(found)}{_BY_THEMSELVES}{sentence}" if any(found) else sentence for sentence, found in parts.items()
    ]


def _listed(numbers: Sequence[str]) -> str:
    more = len(numbers) - _NAMED
    return "; ".join(numbers[:_NAMED]) + (f"; and {more:,} more" if more > 0 else "")


def _name(estimator: object) -> str:
    return str(getattr(estimator, "name", estimator))


def _with_bars(head: Head, rows: Sequence[Sequence[str]], values: Sequence[float]) -> FittedTable:
    """A table that gets a column of bars where there is room."""
    largest = max((value for value in values if value == value), default=0.0)

    def bars(room: int) -> list[Bar]:
        return [Bar(largest, 0, 0 if value != value else value, width=room) for value in values]

    return FittedTable(head, rows, _style, bars if largest > 0 else None)


def _table(head: Head, rows: Sequence[Sequence[str]]) -> FittedTable:
    return FittedTable(head, rows, _style)


_ANSWERS = ("possible", "holds", "kept")
_STYLES = {"yes": "green", "no": _WRONG, "not estimable": _WRONG}


def _style(title: str, text: str) -> str:
    return _STYLES.get(text, "") if title in _ANSWERS else ""


def _title(text: str) -> Text:
    return Text(plain(text), style="bold")


def _remarks(texts: Iterable[str], wrong: bool = False) -> list[RenderableType]:
    texts = list(texts)
    return [items([(text, _WRONG if wrong else _PLAIN) for text in texts])] if texts else []


def _legend(texts: Iterable[str]) -> list[RenderableType]:
    """What the titles of a table stand for."""
    texts = list(texts)
    return [items([(text, _LEGEND) for text in texts], " ")] if texts else []
