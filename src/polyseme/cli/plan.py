from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    allow_outside_option,
    busy,
    chart_place,
    explain_option,
    force_option,
    json_option,
    policy_places,
    print_json,
    say,
    show,
    show_hint,
    show_offending,
    show_values_option,
)
from polyseme.kernel.errors import PolicyError

if TYPE_CHECKING:
    from polyseme.results.method import Alternative


@click.command("plan")
@click.argument("policy", type=PathType)
@click.option("--records", type=click.IntRange(min=1), help="How many records to expect, for the expected error.")
@click.option("--data", type=TableType, help="A table, for open domains and for attackers who know its distributions.")
@click.option(
    "--distribution",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Public statistics of an attribute as CSV: columns that tell groups apart, the value, a number.",
)
@click.option("--population", type=TableType, help="People with the same quasi-identifiers, for k-map.")
@click.option(
    "--frontier",
    is_flag=True,
    help="Risk against expected error over (l, d); where a distribution is known, over alpha and p too.",
)
@click.option("--chart", type=PathType, help="Draw it into this PNG, SVG or PDF file; --frontier is then implied.")
@click.option("--advise", is_flag=True, help="The setting with the least error that keeps --learner, to paste.")
@click.option("--learner", type=float, default=0.5, show_default=True, help="For --advise: what a learner may reach.")
@click.option(
    "--alternatives", is_flag=True, help="Other levels for full-domain: which columns could be shown, at what cost."
)
@allow_outside_option
@force_option
@explain_option
@json_option
@show_values_option
@policy_places
def command(
    policy: Path,
    records: int | None,
    data: Path | str | None,
    distribution: tuple[str, ...],
    population: Path | str | None,
    frontier: bool,
    chart: Path | None,
    advise: bool,
    learner: float,
    alternatives: bool,
    allow_outside: bool,
    force: bool,
    explain: bool,
    as_json: bool,
    show_values: bool,
) -> None:
    """Show the risk and the error of POLICY before you publish.

    Is it possible? Can the distributions be recovered? What can an attacker learn at worst, and how large
    will the error be? When a setting is impossible or cannot be estimated, the nearest ones that work are
    named and the exit code is 2. With --data it is 1 where `anonymize` would refuse the table.

    For every protected attribute attackers guess: one has the public prior, one knows the distribution of the
    values, one knows it given the untouched columns, and one also reads the sets of other attributes.
    What they know comes from --distribution, or --data, or the policy. From --data it describes your records:
    do not publish it. When the last one breaks a promise about learners, the exit code is 2.

    \b
    Example:
      polyseme plan policy.yaml --records 100000
      polyseme plan policy.yaml --records 100000 --distribution income=income-by-age-sex.csv
      polyseme plan policy.yaml --data people.csv --advise --learner 0.6
      polyseme plan levels.yaml --data people.csv --alternatives
    """
    from polyseme.inference.knowledge.tradeoff import advise as advise_on
    from polyseme.inference.knowledge.tradeoff import tradeoff
    from polyseme.policy import Policy
    from polyseme.verbs.plan import Planner
    from polyseme.verbs.plan import frontier as frontier_of

    chart_place(chart, force)
    with busy("Planning"):
        read = Policy.load(policy, allow_outside)
        planner = Planner(data, records, distribution, population)
        made = planner.plan(read)
        others = planner.alternatives(read) if alternatives else ()
        wanted = frontier or chart is not None
        grid = frontier_of(made) if wanted else {}
        tried = tradeoff(made) if wanted else {}
        advice = advise_on(made, learner) if advise else []
    if chart and not grid:
        raise PolicyError("no attribute has a distance, so there is no grid to draw", "leave --chart out")
    if as_json:
        extras = {
            "frontier": {name: [asdict(setting) for setting in settings] for name, settings in grid.items()},
            "tradeoff": {name: [one.to_dict() for one in settings] for name, settings in tried.items()},
            "advice": [one.to_dict() for one in advice],
            "alternatives": [one.to_dict() for one in others],
        }
        print_json({**made.to_dict(), **{name: entry for name, entry in extras.items() if entry}})
    else:
        from polyseme.results.views.terminal import advice_view, frontier_view, tradeoff_view

        show(made.view(explain))
        for name, settings in grid.items():
            show(frontier_view(name, settings, explain))
        for name, several in tried.items():
            show(tradeoff_view(name, several, explain))
        for one in advice:
            show(advice_view(one))
        if alternatives:
            _show_alternatives(policy, others)
        if not explain:
            show_hint()
    if chart and grid:
        from polyseme.kernel.files import whole_file
        from polyseme.results.drawing.bars import save_chart
        from polyseme.results.drawing.charts import frontier_chart

        with whole_file(chart, force) as partial:
            save_chart(frontier_chart(grid, tried=tried), partial)
    if show_values:
        show_offending(made.refused)
    if not made.usable or made.refusals:
        sys.exit(1 if made.usable else 2)


def _show_alternatives(policy: Path, others: Sequence[Alternative]) -> None:
    """Other levels that keep the same models, each with the command that takes it."""
    from polyseme.policy.edit import spelled
    from polyseme.results.views.terminal import titled_view

    head = (("more of", False), ("less of", False), ("shown", False), ("loss", True), ("left out", True))
    rows = [
        (
            ", ".join(one.more) or "-",
            ", ".join(one.less) or "-",
            ", ".join(f"{name} {words}" for name, words in one.words.items()),
            f"{one.loss:.4g}",
            f"{one.share:.1%}",
        )
        for one in others
    ]
    if not rows:
        say("Alternatives: no column can be shown in more detail with these models and this suppression.")
        return
    show(titled_view("Alternatives: other levels that keep the same models", head, rows))
    for one in others:
        cut = shlex.quote(spelled(dict(one.cut)))
        click.echo(f"polyseme policy set {shlex.quote(str(policy))} method.full-domain.levels {cut}")
