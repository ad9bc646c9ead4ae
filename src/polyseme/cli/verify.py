from __future__ import annotations

import sys
from pathlib import Path

import click

from polyseme.cli.console import (
    PathType,
    TableType,
    allow_outside_option,
    busy,
    engine_options,
    explain_option,
    json_option,
    policy_places,
    print_json,
    require_spark,
    show_explained,
    show_offending,
    show_values_option,
)
from polyseme.kernel.errors import Problem, QuestionError


@click.command("verify")
@click.argument("subject", type=TableType, metavar="RELEASE|TABLE")
@click.option("--policy", type=PathType, help="For a table: the policy with the models to check.")
@click.option("--population", type=TableType, help="People with the same quasi-identifiers, for k-map.")
@click.option(
    "--original",
    type=TableType,
    metavar="TABLE",
    help="For a release that counts people: the table it was made of, to count them.",
)
@click.option("--person", metavar="COLUMN", help="With --original: the column that says whose each record is.")
@allow_outside_option
@engine_options
@explain_option
@json_option
@show_values_option
@policy_places
def command(
    subject: Path | str,
    policy: Path | None,
    population: Path | str | None,
    original: Path | str | None,
    person: str | None,
    allow_outside: bool,
    engine: str,
    master: str | None,
    explain: bool,
    as_json: bool,
    show_values: bool,
) -> None:
    """Check every promise of a RELEASE, or the models of a policy on any TABLE.

    The check starts from the definitions and trusts nothing that the release says of itself. What cannot be
    checked does not hold. Exit code 0: everything holds; 1: something is violated.

    A release whose policy names a record-key counts people and holds no key. Its rows are checked; the number of
    people is claimed by the publisher, and checked with --original.

    \b
    Examples:
      polyseme verify release
      polyseme verify table.csv --policy models.yaml
      polyseme verify visits --original visits.csv --person patient
    """
    from polyseme.policy import Policy
    from polyseme.verbs.verify import verify

    rules = Policy.load(policy, allow_outside) if policy is not None else None
    if person is not None and original is None:
        raise QuestionError(Problem("person", "says whose the records of --original are", "add --original TABLE"))
    by_spark = require_spark(engine, master=master)
    if by_spark and population is not None:
        raise click.UsageError("--population is for --engine local.")
    if by_spark and original is not None:
        raise QuestionError(Problem("original", "is compared on one machine", "use --engine local"))
    with busy("Verifying"):
        if by_spark:
            from polyseme import spark

            result = spark.verify(str(subject), rules, master=master)
        else:
            result = verify(subject, rules, original=original, person=person, population=population)
    if as_json:
        print_json(result.to_dict())
    else:
        show_explained(result, explain)
    if show_values:
        show_offending(result.offending)
    if not result.holds:
        sys.exit(1)
