"""The commands of the anonymous channel and of tokens, below `polyseme collect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polyseme.cli.console import PathType, write_text

if TYPE_CHECKING:
    from polyseme.collection.gateway import SmallServer

__all__ = ["gateway", "issuer", "relay"]

host_option = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")


@click.command("relay")
@click.option(
    "--gateway", "address", required=True, metavar="URL", help="The gateway, such as https://HOST/v1/gateway."
)
@host_option
@click.option("--port", type=click.IntRange(0, 65_535), default=8_083, show_default=True, help="Port to listen on.")
def relay(address: str, host: str, port: int) -> None:
    """Run a relay: hand sealed reports to a gateway, and nothing that names who sent them.

    It protects only if the collector does not run it. Put TLS in front of it, without a log.

    \b
    Example:
      polyseme collect relay --gateway https://collect.example.org/v1/gateway
    """
    from polyseme.collection.gateway import relay_server

    _serve(relay_server(address, host, port), "Relay")


@click.group("gateway")
def gateway() -> None:
    """Make and rotate the keys of the gateway behind a relay.

    \b
    Example:
      polyseme collect gateway new gateway.json
      polyseme collect gateway show gateway.json
    """


@gateway.command("new")
@click.argument("file", type=PathType)
def gateway_new(file: Path) -> None:
    """Write a first key to FILE, readable by its owner only; never overwrites.

    \b
    Example:
      polyseme collect gateway new gateway.json
    """
    from polyseme.collection.gateway import new_gateway

    new_gateway(file)
    click.echo(f"Wrote the keys of a gateway to {file}. Every collector of a campaign needs this file.", err=True)


@gateway.command("add")
@click.argument("file", type=PathType)
def gateway_add(file: Path) -> None:
    """Put a new key before those in FILE; campaigns made from now on name it.

    \b
    Example:
      polyseme collect gateway new gateway.json
      polyseme collect gateway add gateway.json
    """
    from polyseme.collection.gateway import add_gateway_key

    click.echo(f"Added the key {add_gateway_key(file).keys[0].number} to {file}.", err=True)


@gateway.command("drop")
@click.argument("file", type=PathType)
@click.argument("number", type=click.IntRange(0, 255))
def gateway_drop(file: Path, number: int) -> None:
    """Forget the key NUMBER in FILE, once the last campaign that names it has closed.

    \b
    Example:
      polyseme collect gateway new gateway.json
      polyseme collect gateway add gateway.json
      polyseme collect gateway drop gateway.json 1
    """
    from polyseme.collection.gateway import drop_gateway_key

    drop_gateway_key(file, number)
    click.echo(f"Dropped the key {number} from {file}.", err=True)


@gateway.command("show")
@click.argument("file", type=PathType)
def gateway_show(file: Path) -> None:
    """Print the newest public key in FILE, as the document of a new campaign names it.

    \b
    Example:
      polyseme collect gateway new gateway.json
      polyseme collect gateway show gateway.json
    """
    from polyseme.collection.gateway import read_gateway
    from polyseme.device.tokens import to_text

    click.echo(to_text(read_gateway(file).keys[0].configuration().encoded()))


@click.group("issuer")
def issuer() -> None:
    """Issue blind tokens: one for every invitation, which no report can be traced back to.

    \b
    Example:
      polyseme collect issuer key issuer.pem
      polyseme collect issuer invite 5000 --campaign ID --out codes.txt --hashes hashes.txt
    """


@issuer.command("key")
@click.argument("file", type=PathType)
def issuer_key(file: Path) -> None:
    """Write a new signing key to FILE and print its public half for the campaign document.

    Make one for every campaign: an issuer cannot see for which campaign it signs.

    \b
    Example:
      polyseme collect issuer key issuer.pem
    """
    from polyseme.collection.credentials import new_issuer_key
    from polyseme.device.tokens import to_text

    click.echo(to_text(new_issuer_key(file).public()))


@issuer.command("invite")
@click.argument("number", type=click.IntRange(1, 10_000_000))
@click.option("--campaign", required=True, metavar="ID", help="The campaign's id.")
@click.option("--out", type=PathType, required=True, help="Where the codes go, one a line, to be handed out.")
@click.option("--hashes", type=PathType, required=True, help="Where their hashes go, which the issuer reads.")
def issuer_invite(number: int, campaign: str, out: Path, hashes: Path) -> None:
    """Make NUMBER invitations, each good for one blind token.

    The issuer needs only the hashes. Delete the codes after you have handed them out: a list of who got which
    code shows who fetched a token.

    \b
    Example:
      polyseme collect issuer invite 5000 --campaign ID --out codes.txt --hashes hashes.txt
    """
    from polyseme.collection.credentials import hash_lines, new_codes, write_secret
    from polyseme.kernel.files import require_place

    require_place(hashes, False)
    codes = new_codes(number)
    write_secret(out, "".join(f"{code}\n" for code in codes))
    write_text(hash_lines(campaign, codes), hashes, force=False)
    click.echo(f"Wrote {number:,} codes to {out}. Keep them secret until they are handed out.", err=True)


@issuer.command("serve")
@click.option("--campaign", required=True, metavar="ID", help="The campaign's id.")
@click.option("--key", type=PathType, required=True, help="The signing key (issuer key).")
@click.option("--invitations", type=PathType, required=True, help="Hashes of the codes (issuer invite).")
@click.option("--store", type=PathType, required=True, help="File in which used invitations are kept (SQLite).")
@host_option
@click.option("--port", type=click.IntRange(0, 65_535), default=8_082, show_default=True, help="Port to listen on.")
def issuer_serve(campaign: str, key: Path, invitations: Path, store: Path, host: str, port: int) -> None:
    """Run the issuer of a campaign.

    Run it on another machine than the collector: the issuer knows who was invited.

    TLS belongs in front of it, with no log.

    \b
    Example:
      polyseme collect issuer serve --campaign ID --key issuer.pem --invitations hashes.txt --store issued.db
    """
    from polyseme.collection.credentials import Invited, Issuer, read_hashes, read_issuer_key
    from polyseme.collection.gateway import SmallServer

    signing, hashes = read_issuer_key(key), read_hashes(invitations)
    invited = Invited(store)
    invited.add(hashes)
    click.echo("{:,} invited, {:,} of them have a token.".format(*invited.counts()), err=True)
    _serve(SmallServer(Issuer(campaign, signing, invited).answer, host, port), "Issuer")


def _serve(server: SmallServer, what: str) -> None:
    click.echo(f"{what} at {server.address}; Ctrl-C stops it.", err=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()
