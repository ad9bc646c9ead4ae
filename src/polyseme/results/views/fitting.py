"""Tables that fit the terminal: no word is cut. Where not even the words fit side by side, each row becomes a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Literal, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from polyseme.results.views.formats import plain
from polyseme.results.views.tables import Head

__all__ = ["FittedTable", "column_widths", "items"]

_GAP = 2
"""Blanks between two columns."""

_LONGEST_TITLE = 28
"""Characters of a title beside which a block shows a value; longer ones are broken."""

Bars: TypeAlias = Callable[[int], Sequence[RenderableType]]
"""A last column of so many characters."""

_LEAST_BAR, _LARGEST_BAR = 12, 40
"""Characters of the largest bar: with fewer nothing can be seen, and more are no easier to compare."""


def column_widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int] | None:
    """Widths of columns between their longest words and their longest lines; None where the words do not fit.

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
