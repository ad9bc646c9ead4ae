from __future__ import annotations

import sys
from pathlib import Path

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    allow_outside_option,
    busy,
    json_option,
    policy_places,
    print_json,
    show,
    show_offending,
    show_values_option,
)
from polyseme.cli.engines import engine_options, require_spark


@click.command("verify")
@click.argument("subject", type=TableType, metavar="RELEASE|TABLE")
@click.option("--policy", type=PathType, help="For a table: the policy with the models to check.")
@click.option("--population", type=TableType, help="People with the same quasi-identifiers, for k-map.")
@allow_outside_option
@engine_options
@json_option
@show_values_option
@policy_places
def command(
    subject: Path | str,
    policy: Path | None,
    population: Path | str | None,
    allow_outside: bool,
    engine: str,
    master: str | None,
    as_json: bool,
    show_values: bool,
) -> None:
    """Check every promise of a RELEASE, or the models of a policy on any TABLE.

    The check starts from the definitions and trusts nothing that the release says of itself. What cannot be
    checked does not hold. Exit code 0: everything holds; 1: something is violated.

    \b
    Examples:
      polyseme verify release
      polyseme verify table.csv --policy models.yaml
    """
    from polyseme.policy import Policy
    from polyseme.verbs.verify import verify

    rules = Policy.load(policy, allow_outside) if policy is not None else None
    by_spark = require_spark(engine, master=master)
    if by_spark and population is not None:
        raise click.UsageError("--population is for --engine local.")
    with busy("Verifying"):
        if by_spark:
            from polyseme import spark

            result = spark.verify(str(subject), rules, master=master)
        else:
            result = verify(subject, rules, population)
    if as_json:
        print_json(result.to_dict())
    else:
        show(result)
    if show_values:
        show_offending(result.offending)
    if not result.holds:
        sys.exit(1)
