from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from polyseme.cli.console import PathType, say
from polyseme.kernel.plugins import require


@click.command("workbench")
@click.argument("table", required=False, type=PathType)
@click.option("--policy", type=PathType, help="The policy to open, or to draft.  [default: policy.yaml]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on loopback; a free one by default.")
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@click.option("--allow-outside", is_flag=True, help="Allow files outside the folder in which it was started.")
def command(table: Path | None, policy: Path | None, port: int, no_browser: bool, allow_outside: bool) -> None:
    """Open a page on which you go from TABLE to a release, without writing YAML.

    The page is served on this machine only, to the browser that has the printed address. The table is read where it
    is, and every click is a line of the policy: the page shows the command that does the same.

    \b
    Example:
      polyseme workbench patients.csv
    """
    require("workbench", "the workbench")
    from polyseme.workbench.opened import Opened
    from polyseme.workbench.server import serve

    folder = Path.cwd()
    opened = Opened(folder, (folder / (policy or "policy.yaml")).resolve(), allow_outside)
    if table is not None:
        opened.place(str(table))
        opened.table = table.as_posix() if not table.is_absolute() else str(table)

    def listening(address: str) -> None:
        click.echo(address)
        say("Press Ctrl-C to end the workbench. The policy is on disk.")
        if not no_browser:
            webbrowser.open(address)

    serve(opened, port, listening)
