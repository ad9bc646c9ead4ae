from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from polyseme.cli import channel
from polyseme.cli.console import PathType, busy, force_option, json_option, print_json, show, write_text

if TYPE_CHECKING:
    from polyseme.collection.store import Store

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("collect")
def command() -> None:
    """Take the reports of devices, and turn them into a release.

    Devices draw their sets themselves and send nothing else, so the collector learns no true value. Reports
    are acknowledged when they are on disk, and stored once however often they are sent.

    \b
    Example:
      polyseme campaign new survey.yaml --questions questions.yaml --out campaign
      polyseme collect open campaign --store sqlite:///reports.db
      polyseme collect serve --store sqlite:///reports.db
      polyseme collect status --store sqlite:///reports.db
      polyseme collect close incomes --store sqlite:///reports.db
    """


def store_option(command: Command) -> Command:
    text = "sqlite:///FILE or postgresql://USER@HOST/NAME; the environment variable POLYSEME_STORE where omitted."
    return click.option("--store", "address", envvar="POLYSEME_STORE", required=True, help=text)(command)


@contextmanager
def _store(address: str, create: bool = False) -> Iterator[Store]:
    from polyseme.collection.store import open_store

    store = open_store(address, create)
    try:
        yield store
    finally:
        store.close()


@command.command("serve")
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the public listener.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Its port; 0 for any.")
@click.option(
    "--admin-port",
    default=8081,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port of the admin listener, which is on loopback only; 0 for any.",
)
@click.option(
    "--rate",
    default=120.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Reports a minute from one address, 0 for no limit. Loopback, where a proxy sits, has none.",
)
@click.option("--gateway", type=PathType, help="Keys that open what comes through a relay (collect gateway new).")
def serve(address: str, host: str, port: int, admin_port: int, rate: float, gateway: Path | None) -> None:
    """Take reports until stopped (Ctrl-C).

    Begins the store where there is none. The public listener speaks plain HTTP: put a proxy with TLS before it,
    one that keeps no access log. Nothing is kept of who sent a report, from where or when.

    \b
    Example:
      polyseme collect serve --store sqlite:///reports.db --port 8080 --admin-port 8081
    """
    from polyseme.kernel.plugins import require

    require("collect", "a collector")
    from polyseme.collection.gateway import read_gateway
    from polyseme.collection.server.listeners import Listening, serve
    from polyseme.collection.telemetry import log_lines

    def show_addresses(listening: Listening) -> None:
        click.echo(f"Takes reports at {listening.public}; admin listener at {listening.admin}", err=True)

    log_lines()
    serve(address, host, port, admin_port, rate, read_gateway(gateway) if gateway is not None else None, show_addresses)


@command.command("open")
@click.argument("campaign")
@store_option
def open_command(campaign: str, address: str) -> None:
    """Accept reports for a CAMPAIGN: the folder or file of its document, or the id of a draft.

    Refused where devices would refuse to answer: promises that are not kept, sets of one candidate, priors without a
    source or with shares that are far too small, and documents that are too much for a device.

    \b
    Example:
      polyseme collect open campaign --store sqlite:///reports.db
    """
    from polyseme.collection.operations import open_document, open_draft

    with _store(address, create=True) as store:
        found = campaign
        if Path(campaign).exists():
            document, signature = _document(Path(campaign))
            found = open_document(store, document, signature)
        else:
            open_draft(store, campaign)
    click.echo(f"Open. Its link ends in /c/{found}", err=True)
    click.echo(found)


def _document(path: Path) -> tuple[bytes, bytes | None]:
    """The exact bytes of a campaign, and its signature where it has one."""
    from polyseme.collection.campaigns.overview import SIGNATURE, open_campaign

    data = open_campaign(path).data
    signature = (path if path.is_dir() else path.parent) / SIGNATURE
    return data, signature.read_bytes().strip() if signature.is_file() else None


@command.command("close")
@click.argument("campaign")
@store_option
def close(campaign: str, address: str) -> None:
    """Stop accepting reports for a CAMPAIGN, for good; its rows are then ordered by random id.

    \b
    Example:
      polyseme collect close incomes --store sqlite:///reports.db
    """
    from polyseme.collection.store import State

    with _store(address) as store, busy("Closing"):
        store.move(_named(store, campaign), State.CLOSED)
    click.echo("Closed.", err=True)


@command.command("status")
@click.argument("campaign", required=False)
@store_option
@json_option
def status(campaign: str | None, address: str, as_json: bool) -> None:
    """Show the campaigns of a store, their states and how many reports they have.

    \b
    Example:
      polyseme collect status --store sqlite:///reports.db
    """
    from polyseme.collection.operations import standing, standings

    with _store(address) as store, busy("Counting"):
        found = standings(store) if campaign is None else [standing(store, _named(store, campaign))]
    if as_json:
        print_json({"campaigns": [item.to_dict() for item in found]})
        return
    from polyseme.collection.operations import standings_view

    show(standings_view(found))


@command.command("release")
@click.argument("campaign")
@store_option
@click.option("--out", type=PathType, required=True, help="Folder of the release.")
@click.option(
    "--k",
    type=click.IntRange(1),
    help="Leave out records whose open values fewer than K records share; they are counted as dropped.",
)
@click.option("--format", "file_format", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@force_option
def release(campaign: str, address: str, out: Path, k: int | None, file_format: str, force: bool) -> None:
    """Write the shuffled release of a closed CAMPAIGN; refused if it has too few reports.

    `verify`, `estimate`, `attack` and `report` read it as any other.

    \b
    Example:
      polyseme collect release incomes --store sqlite:///reports.db --out release
    """
    from polyseme.collection.releases import release_campaign

    with _store(address) as store, busy("Releasing"):
        made = release_campaign(store, _named(store, campaign), out, k, file_format, force)
    dropped = f", {made.manifest.dropped:,} dropped" if made.manifest.dropped else ""
    click.echo(f"Wrote {out}: {made.manifest.records:,} records{dropped}", err=True)


@command.command("purge")
@click.argument("campaign")
@store_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(campaign: str, address: str, yes: bool) -> None:
    """Delete every report and invitation of a closed CAMPAIGN; its document stays.

    Delete backups yourself.

    \b
    Example:
      polyseme collect purge incomes --store sqlite:///reports.db
    """
    from polyseme.collection.store import State

    with _store(address) as store:
        found = _named(store, campaign)
        if not yes:
            click.confirm(f"Delete {store.counts(found).reports:,} reports for ever?", abort=True, err=True)
        store.move(found, State.PURGED)
    click.echo("Purged.", err=True)


@command.command("backup")
@click.argument("file", type=PathType)
@store_option
def backup(file: Path, address: str) -> None:
    """Copy the whole store into a new FILE, checked, while reports keep coming in.

    Of SQLite it is a store again: use it as sqlite:///FILE. Of PostgreSQL it is an archive for pg_restore, and
    until a campaign is closed it tells the order in which reports came.

    \b
    Example:
      polyseme collect backup reports-backup.db --store sqlite:///reports.db
    """
    with _store(address) as store, busy("Copying"):
        store.backup(file)
    click.echo(f"Wrote {file}", err=True)


@command.command("invite")
@click.argument("campaign")
@store_option
@click.option("--count", type=click.IntRange(1), required=True, help="How many.")
@click.option("--out", type=PathType, required=True, help="File that gets the codes, one a line.")
def invite(campaign: str, address: str, count: int, out: Path) -> None:
    """Make invitations for a CAMPAIGN: each admits one report.

    The store keeps only their hashes.

    \b
    Example:
      polyseme collect invite incomes --count 500 --out codes.txt --store sqlite:///reports.db
    """
    from polyseme.collection.operations import invite
    from polyseme.kernel.files import require_place

    require_place(out)
    with _store(address) as store:
        codes = invite(store, _named(store, campaign), count)
    write_text("".join(f"{code}\n" for code in codes), out, False, private=True)


@command.command("demo")
@click.option("--out", type=PathType, default=Path("crowd-out"), show_default=True, help="The folder to write.")
@click.option("--devices", type=click.IntRange(min=200), default=3_000, show_default=True, help="Devices to simulate.")
@force_option
def demo(out: Path, devices: int, force: bool) -> None:
    """Run a whole campaign on this machine: a collector, simulated devices, release and report.

    Devices draw their own sets and send them over real connections. Leaves the campaign, its store, the release and
    report.html in a folder.

    \b
    Example:
      polyseme collect demo --out crowd-out
    """
    from polyseme.kernel.plugins import require

    require("collect", "a collector")
    from polyseme.demo.respondents import run_respondents
    from polyseme.kernel.work import current_cancellation

    for line in run_respondents(out, devices, force, current_cancellation()):
        click.echo(line)


for _part in (channel.relay, channel.gateway, channel.issuer):
    command.add_command(_part)


@command.group("token")
def token() -> None:
    """Say who may use the admin listener.

    \b
    Example:
      polyseme collect token new anna --role analyst --store sqlite:///reports.db
    """


@token.command("new")
@click.argument("name")
@store_option
@click.option(
    "--role",
    type=click.Choice(["designer", "analyst"]),
    required=True,
    help="A designer makes, opens, closes and purges campaigns; an analyst sees counts and takes releases.",
)
def token_new(name: str, address: str, role: str) -> None:
    """Make a token, known by NAME. It is printed once; the store keeps its hash only.

    \b
    Example:
      polyseme collect token new anna --role analyst --store sqlite:///reports.db
    """
    from polyseme.collection.credentials import new_credential

    credential, made = new_credential(name, role)
    with _store(address, create=True) as store:
        store.add_credential(credential)
    click.echo(made)


@token.command("list")
@store_option
def token_list(address: str) -> None:
    """List names and roles.

    \b
    Example:
      polyseme collect token list --store sqlite:///reports.db
    """
    with _store(address) as store:
        for credential in store.credentials():
            click.echo(f"{credential.name}\t{credential.role}")


@token.command("remove")
@click.argument("name")
@store_option
def token_remove(name: str, address: str) -> None:
    """Take the token of NAME back.

    \b
    Example:
      polyseme collect token remove ben --store sqlite:///reports.db
    """
    with _store(address) as store:
        store.remove_credential(name)
    click.echo("Removed.", err=True)


def _named(store: Store, given: str) -> str:
    """The campaign with this name, or whose id begins like this; enough where only one is meant."""
    from polyseme.collection.survey import Survey
    from polyseme.kernel.errors import CollectionError, Problem

    kept = store.campaigns()
    found = [item.id for item in kept if item.id.startswith(given)]
    found = found or [item.id for item in kept if Survey.read(item.document).campaign.name == given]
    if len(found) > 1 and given not in found:
        raise CollectionError(Problem(f"campaign {given}", f"{len(found)} campaigns are called so", "give its id"))
    return given if given in found or not found else found[0]
