"""What every store can do, the words in which it answers, and its migrations.

A store keeps campaigns, their reports, the hashes of invitations and the hashes of the tokens of its operators. It has
no clock: no row says when it came. A report's place is its random id, so the order of rows says nothing either.

One object serves one thread at a time; open two for two threads.

Migrations are numbered steps from an empty database to the present tables, one SQL file each; they are never changed
afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from polyseme.kernel.errors import CollectionError, InternalError, Problem

__all__ = [
    "Counts",
    "Credential",
    "Entry",
    "Kept",
    "Outcome",
    "State",
    "Store",
    "migrations",
    "require_known",
    "require_step",
    "rounds",
    "taken",
]

PIECE = 10_000
"""Payloads that are read at a time."""


class UnknownCampaign(CollectionError):
    """The store has no campaign with this id."""

    def __init__(self, campaign: str) -> None:
        super().__init__(Problem(f"campaign {campaign}", "the store has no such campaign", "polyseme collect status"))


class State(Enum):
    """Where a campaign stands; it never goes back."""

    DRAFT = "draft"
    OPEN = "open"
    CLOSED = "closed"
    RELEASED = "released"
    PURGED = "purged"

    def leads_to(self, other: State) -> bool:
        """Whether one step goes there: a draft may also be purged, and what is closed need not be released before."""
        return other in _STEPS[self]


_STEPS = {
    State.DRAFT: {State.OPEN, State.PURGED},
    State.OPEN: {State.CLOSED},
    State.CLOSED: {State.RELEASED, State.PURGED},
    State.RELEASED: {State.PURGED},
    State.PURGED: set[State](),
}


class Outcome(Enum):
    """What became of one entry of a batch."""

    STORED = "stored"
    SAME = "same"
    """The same report again: nothing changed."""
    DIFFERENT = "different"
    """Another report has this id: nothing changed."""
    TOMBSTONED = "tombstoned"
    """A report with this id was withdrawn: it does not come back."""
    WITHDRAWN = "withdrawn"
    UNINVITED = "uninvited"
    """The invitation was not issued, or was used already."""
    IMPOSSIBLE = "impossible"
    """No device can have drawn this; said before anything reaches a store."""
    CLOSED = "closed"
    """The campaign does not take anything now."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A report on its way into the store, or a withdrawal.

    id       16 random bytes that the device has chosen
    payload  what is kept of the report; None withdraws the report with this id
    spends   hash of an invitation that is used up by storing it; kept apart from the report
    """

    campaign: str
    id: bytes
    payload: bytes | None = field(repr=False)
    spends: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Kept:
    """A campaign as a store keeps it."""

    id: str
    state: State
    document: bytes = field(repr=False)
    signature: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, row: Sequence[Any]) -> Kept:
        """From a row of the table of campaigns."""
        campaign, state, document, signature = row
        return cls(campaign, State(state), document, signature)


@dataclass(frozen=True)
class Counts:
    """How many there are in a campaign.

    reports    that can be released
    withdrawn  reports that were there and are gone
    invited    invitations that were issued
    spent      those of them that were used
    """

    reports: int = 0
    withdrawn: int = 0
    invited: int = 0
    spent: int = 0


@dataclass(frozen=True)
class Credential:
    """Who may use the admin listener: a name to know it by, a role, and the hash of a token."""

    name: str
    role: str
    hash: bytes = field(repr=False)


class Store(Protocol):
    """Where campaigns and reports are kept.

    Every method is one transaction, durable when it returns. `StoreUnavailable` says that nothing can be known now:
    the request may or may not have taken effect, and repeating it is safe.
    """

    def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Store and withdraw in the order given, all in one transaction; what became of each."""
        ...

    def add_campaign(self, campaign: str, document: bytes, signature: bytes | None = None) -> None:
        """Keep a draft; the same document again changes nothing."""
        ...

    def campaign(self, campaign: str) -> Kept:
        """One campaign; an error that lists some others where there is none with this id."""
        ...

    def campaigns(self) -> list[Kept]:
        """All of them, by id."""
        ...

    def move(self, campaign: str, state: State) -> None:
        """Take a campaign to its next state.

        Purging forgets its reports and invitations, closing their order.
        """
        ...

    def counts(self, campaign: str) -> Counts:
        """How many reports and invitations a campaign has."""
        ...

    def payloads(self, campaign: str) -> Iterator[list[bytes]]:
        """What is kept of all reports, in the order of their random ids, some thousands at a time."""
        ...

    def invite(self, campaign: str, hashes: Iterable[bytes]) -> None:
        """Take note of invitations that are issued."""
        ...

    def add_credential(self, credential: Credential) -> None:
        """Give access to the admin listener; a name that is taken is refused."""
        ...

    def remove_credential(self, name: str) -> None:
        """Never again."""
        ...

    def credentials(self) -> list[Credential]:
        """Everybody who may, by name."""
        ...

    def backup(self, target: Path) -> None:
        """A copy of everything, whole and checked, in one new file.

        Reports keep coming in meanwhile.
        """
        ...

    def ping(self) -> None:
        """Raise `StoreUnavailable` unless the store answers and can be written to."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def rounds(entries: Sequence[Entry]) -> list[list[int]]:
    """The numbers of the entries in groups within which no report and no invitation occurs twice.

    Groups come one after the other, so that of two entries with the same id the first one is first; nearly always
    there is one group.

    >>> a, b = Entry("c", b"a", b"1"), Entry("c", b"b", b"1")
    >>> rounds([a, b]), rounds([a, b, a])
    ([[0, 1]], [[0, 1], [2]])
    """
    result: list[list[int]] = []
    depth: dict[object, int] = {}
    for number, entry in enumerate(entries):
        keys: list[object] = [(entry.campaign, entry.id)]
        if entry.spends is not None:
            keys.append((entry.campaign, entry.spends, ""))
        place = max(depth.get(key, 0) for key in keys)
        depth.update(dict.fromkeys(keys, place + 1))
        if place == len(result):
            result.append([])
        result[place].append(number)
    return result


def require_step(campaign: str, now: State, wanted: State) -> None:
    """Raise unless a campaign can go from one state to the other."""
    if not now.leads_to(wanted):
        ways = ", ".join(state.value for state in State if now.leads_to(state)) or "nothing"
        raise CollectionError(
            Problem(
                f"campaign {campaign}", f"it is {now.value} and cannot become {wanted.value}", f"next can be: {ways}"
            )
        )


def taken(name: str) -> CollectionError:
    return CollectionError(f"there is a token with the name '{name}' already", "choose another name")


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
