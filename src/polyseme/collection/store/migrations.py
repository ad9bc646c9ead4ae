"""Numbered steps from an empty database to the present tables, one SQL file each; they are never changed afterwards."""

from __future__ import annotations

import re
from importlib import resources

from polyseme.errors import CollectionError, InternalError

__all__ = ["migrations", "require_known"]

_NAME = re.compile(r"(\d{3})_[a-z_]+\.sql")


def migrations(kind: str) -> list[str]:
    """The SQL of every step, in order; the first is number 1."""
    found: dict[int, str] = {}
    for file in resources.files("polyseme.collection.store").joinpath("sql", kind).iterdir():
        if named := _NAME.fullmatch(file.name):
            found[int(named[1])] = file.read_text(encoding="utf-8")
    if sorted(found) != list(range(1, len(found) + 1)):
        raise InternalError("the migrations of a store are not numbered from 1 on")
    return [found[number] for number in sorted(found)]


def require_known(present: int, known: int) -> None:
    """Raise where a newer program has changed the tables."""
    if present > known:
        raise CollectionError(
            f"the store has tables of version {present}, this program knows {known}", "install a newer polyseme"
        )
