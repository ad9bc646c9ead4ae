from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from polyseme.kernel.errors import InternalError


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example:
      polyseme completion bash >> ~/.bashrc
    """
    from polyseme.cli import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise InternalError(f"no completion for {shell}")
    click.echo(kind(cli, {}, "polyseme", "_POLYSEME_COMPLETE").source())
