"""`polyseme rules`: the semantic rules that come with the package."""

from __future__ import annotations

import json

import click

from polyseme.cli.console import say

__all__ = ["command"]


@click.group("rules", short_help="Built-in semantic rules: list, show.", epilog="Example: polyseme rules list")
def command() -> None:
    """Look at the rules that `semantic-rules: {repository: {ATTRIBUTE: NAME}}` can use."""


@command.command("list", short_help="Name every kind of rules.", epilog="Example: polyseme rules list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_(as_json: bool) -> None:
    """Name every kind of rules, and what it is about."""
    from polyseme.models.repository import kind_names, load_kind

    kinds = [load_kind(name) for name in kind_names()]
    if as_json:
        found = [{"name": kind.name, "title": kind.title, "rules": list(kind.tests)} for kind in kinds]
        click.echo(json.dumps({"kinds": found}, indent=2))
        return
    for kind in kinds:
        say(f"{kind.name:<14} {kind.title}", hang=15)
        say(f"{'':<14} {', '.join(kind.tests)}")


@command.command("show", short_help="Print rules for a policy.", epilog="Example: polyseme rules show icd10")
@click.argument("name")
@click.option("--attribute", default="attribute", metavar="A", help="The attribute that holds such values.")
def show(name: str, attribute: str) -> None:
    """Print the rules of one kind as YAML (and JSON), to be copied into a file and changed."""
    from polyseme.models.repository import load_kind

    kind = load_kind(name)
    click.echo(f"# {kind.title}")
    for rule in kind.rules(attribute):
        click.echo(f"- {json.dumps(rule, ensure_ascii=False)}")
