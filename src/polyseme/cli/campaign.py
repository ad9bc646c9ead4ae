"""`polyseme campaign`: the document from which devices draw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import (
    PathType,
    allow_outside_option,
    busy,
    force_option,
    json_option,
    policy_places,
    print_json,
    say,
    show,
    write_text,
)

if TYPE_CHECKING:
    from polyseme.collection.campaigns.overview import Summary

_campaign = click.argument("campaign", type=PathType)


@click.group("campaign", short_help="Ask people whose devices draw the sets themselves.")
def command() -> None:
    """Make and look at a campaign: what devices need to answer with sets instead of values.

    \b
    Example:
      polyseme campaign new survey.yaml --questions questions.yaml --out campaign
      polyseme campaign show campaign
    """


@command.command("new")
@click.argument("policy", type=PathType)
@click.option("--questions", required=True, type=PathType, help="YAML: what is asked, and how answers are collected.")
@click.option("--out", required=True, type=PathType, help="The folder to write campaign.json into.")
@allow_outside_option
@force_option
@json_option
@policy_places
def new(policy: Path, questions: Path, out: Path, allow_outside: bool, force: bool, as_json: bool) -> None:
    """Plan POLICY for the answers that the questions file expects, and write the document.

    Refused, with everything that is wrong at once: promises that cannot be kept, values that could never be
    told apart, open columns without declared values, methods that group records, designs that devices cannot
    draw, questions that are missing in some language, and a prior that is not uniform without its source.

    Warned of: sticky sets that change where an open answer does, and sets that change the odds between two
    candidates by a factor above 64; a prior tempered below that is offered.

    The campaign's id is the hash of the document: any change makes another campaign.

    \b
    Example:
      polyseme campaign new survey.yaml --questions questions.yaml --out campaign
    """
    from polyseme.collection.campaigns import cautions, make_campaign, summary
    from polyseme.collection.campaigns.overview import write_campaign
    from polyseme.policy import Policy

    with busy("Planning"):
        made = make_campaign(Policy.load(policy, allow_outside), questions)
    write_campaign(made.campaign, out, force)
    _present(summary(made.campaign), as_json)
    click.echo(f"Wrote {out}", err=True)
    for text in cautions(made.campaign):
        say(f"Warning: {text}", err=True, hang=2)


@command.command("show")
@_campaign
@click.option("--records", type=click.IntRange(min=1), help="Instead of the planned number of answers.")
@json_option
def show_campaign(campaign: Path, records: int | None, as_json: bool) -> None:
    """Say what CAMPAIGN asks, promises and will tell: a folder, or its campaign.json.

    \b
    Example:
      polyseme campaign show campaign --records 2000
    """
    from polyseme.collection.campaigns import open_campaign, summary

    _present(summary(open_campaign(campaign), records), as_json)


@command.command("sign")
@_campaign
@click.option("--key", required=True, type=PathType, help="An Ed25519 private key in PEM.")
@force_option
def sign_campaign(campaign: Path, key: Path, force: bool) -> None:
    """Put a detached signature beside the document of CAMPAIGN: campaign.sig.

    \b
    Example:
      openssl genpkey -algorithm ed25519 -out key.pem
      polyseme campaign sign campaign --key key.pem
    """
    from polyseme.collection.campaigns import open_campaign
    from polyseme.collection.campaigns.overview import SIGNATURE, read_private_key, sign

    found = open_campaign(campaign)
    folder = campaign if campaign.is_dir() else campaign.parent
    write_text(sign(found.data, read_private_key(key)) + "\n", folder / SIGNATURE, force)


def _present(found: Summary, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
        return
    from polyseme.collection.campaigns.overview import campaign_view

    show(campaign_view(found))
