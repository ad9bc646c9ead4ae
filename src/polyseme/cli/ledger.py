from __future__ import annotations

from pathlib import Path

import click

from polyseme.cli.console import PathType, busy, json_option, print_json, say, show


@click.group("ledger")
def command() -> None:
    """Keep what was published about the same people, and say what all of it tells together.

    `anonymize --ledger` asks the ledger before it publishes, and records the release afterwards.

    \b
    Example:
      polyseme ledger show ledger.json
    """


@command.command("add")
@click.argument("ledger", type=PathType)
@click.argument("release", type=PathType)
@click.option("--people", required=True, help="Whom the release is about: any name that you will know again.")
def add(ledger: Path, release: Path, people: str) -> None:
    """Record a published RELEASE in the file LEDGER, which is created if it does not exist.

    The ledger holds public things only: the manifest's checksum, how each column was published and the distributions
    that every reader can estimate from the release. Only --people is yours: choose a name that may be read.

    \b
    Example:
      polyseme ledger add ledger.json published --people patients
    """
    from polyseme.verbs.ledger import record

    with busy("Recording"):
        after = record(ledger, release, people)
    number = len(after.about(people))
    say(f"{ledger}: {number} {'release' if number == 1 else 'releases'} about {people}", err=True)


@command.command("show")
@click.argument("ledger", type=PathType)
@click.option("--people", help="Only what is about these people.")
@json_option
def show_command(ledger: Path, people: str | None, as_json: bool) -> None:
    """Say what all releases of a LEDGER tell together.

    For each attribute: how many different sets a person has, the sum of the epsilons, how often only the true value is
    in all sets, and how often an attacker who knows the distribution and has every release guesses right.

    \b
    Example:
      polyseme ledger show ledger.json
    """
    from polyseme.results.ledger import Ledger
    from polyseme.verbs.ledger import exposures

    kept = Ledger.load(ledger)
    with busy("Adding up"):
        found = exposures(kept, people)
    if as_json:
        print_json({**kept.to_dict(), **found.to_dict()})
        return
    show(kept)
    show(found)
