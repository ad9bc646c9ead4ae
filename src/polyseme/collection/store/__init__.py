"""Stores of reports: `sqlite:///FILE` or `postgresql://..`."""

from __future__ import annotations

from pathlib import Path

from polyseme.collection.store.base import Counts, Credential, Entry, Kept, Outcome, State, Store, UnknownCampaign
from polyseme.kernel.errors import CollectionError
from polyseme.kernel.plugins import require

__all__ = ["Counts", "Credential", "Entry", "Kept", "Outcome", "State", "Store", "UnknownCampaign", "open_store"]

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")


def open_store(address: str, create: bool = True) -> Store:
    """The store at an address; tables are made or brought up to date.

    create  whether to begin one where there is none
    """
    if address.startswith(_POSTGRES):
        require("postgres", "a PostgreSQL store")
        from polyseme.collection.store.postgres import PostgresStore

        return PostgresStore(address, create)
    file = address.removeprefix(_SQLITE)
    if not address.startswith(_SQLITE) or not file:
        # The address itself is not shown: it may hold a password.
        raise CollectionError(
            "the address of a store is not one of those that are known",
            "sqlite:///reports.db (a file here), sqlite:////var/lib/polyseme/reports.db or postgresql://user@host/name",
        )
    require("collect", "a store of reports")
    from polyseme.collection.store.sqlite import SqliteStore

    return SqliteStore(Path(file), create)
