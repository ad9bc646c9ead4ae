from __future__ import annotations

from pathlib import Path

import click

from polyseme.cli.console import PathType, busy, force_option, say


@click.command("demo")
@click.option("--out", type=PathType, default=Path("demo-out"), show_default=True, help="The folder to write.")
@click.option("--records", type=click.IntRange(min=100), default=100_000, show_default=True, help="People to invent.")
@force_option
def command(out: Path, records: int, force: bool) -> None:
    """Run the whole pipeline on generated incomes: plan, anonymize, verify, estimate, report.

    \b
    Example:
      polyseme demo --out demo-out
    """
    from polyseme.demo.walkthrough import run_demo

    steps = run_demo(out, records, force)
    while True:
        with busy("Working"):
            line = next(steps, None)
        if line is None:
            break
        # A line goes on below what it says, not below the name of the step.
        say(line, hang=0 if line.startswith(" ") else 12)
