from __future__ import annotations

from pathlib import Path

import click

from polyseme.cli.console import PathType, say


@click.group("key")
def command() -> None:
    """Make a secret key for sticky decoys."""


@command.command("new")
@click.argument("file", type=PathType)
def new(file: Path) -> None:
    """Write a fresh secret key to FILE, readable by its owner only; never overwrites.

    Keep it: with the same key and the same policy the same person reporting the same value gives the same
    set again, so that repeated releases cannot be intersected. When the values, l, d or another promise of
    an attribute change, its sets change. An attacker who has the key can tell decoys from true values.

    \b
    Example:
      polyseme key new secret.key
    """
    from polyseme.kernel.randomness import new_key

    new_key(file)
    say(f"Wrote a new key to {file}. Keep it secret, and do not lose it.", err=True)
