from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from polyseme.cli.console import PathType, allow_outside_option, force_option, json_option, print_json, show
from polyseme.errors import PolicyError


@click.command("plan")
@click.argument("policy", type=PathType)
@click.option("--records", type=click.IntRange(min=1), help="How many records to expect, for the expected error.")
@click.option("--data", type=PathType, help="A table, for domains that the policy leaves open.")
@click.option("--frontier", is_flag=True, help="The grid of risk against expected error over (l, d).")
@click.option("--chart", type=PathType, help="Draw the grid into this PNG or SVG file; --frontier is then implied.")
@allow_outside_option
@force_option
@json_option
def command(
    policy: Path,
    records: int | None,
    data: Path | None,
    frontier: bool,
    chart: Path | None,
    allow_outside: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Say what POLICY comes to before any record is touched.

    Is it possible? Can the distributions be recovered? What can an attacker learn at worst, and how large
    will the error be? When a setting is impossible or cannot be estimated, the nearest ones that work are
    named and the exit code is 2.

    \b
    Example:
      polyseme plan policy.yaml --records 100000
    """
    from polyseme import pipeline
    from polyseme.policy import Policy

    made = pipeline.plan(Policy.load(policy, allow_outside), records, data)
    grid = pipeline.frontier(made) if frontier or chart else None
    if chart and not grid:
        raise PolicyError("no attribute has a distance, so there is no grid to draw", "leave --chart out")
    if as_json:
        extra = (
            {"frontier": {name: [asdict(setting) for setting in settings] for name, settings in grid.items()}}
            if grid
            else {}
        )
        print_json({**made.to_dict(), **extra})
    else:
        from polyseme.reports.terminal import frontier_view, plan_view

        show(plan_view(made))
        for name, settings in (grid or {}).items():
            show(frontier_view(name, settings))
    if chart and grid:
        from polyseme.reports.charts import frontier_chart, save_chart
        from polyseme.tables.writing import whole_file

        with whole_file(chart, force) as partial:
            save_chart(frontier_chart(grid), partial)
    if not made.usable:
        sys.exit(2)
