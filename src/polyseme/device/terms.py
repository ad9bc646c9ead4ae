"""The terms of a campaign as its document states them, and the stratum of a record.

The terms say when, by whom and through what the answers are collected.

The stratum of a record is looked up column by column, from its open columns. What is known after some columns is a
*state*, first 0. A column's code has a *class*, and the next state is `next[state][class]`; after the last column
`strata[state]` is the number of the stratum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from polyseme.device.fields import Fields

__all__ = ["LARGEST_REPORT", "Collection", "Issuer", "Placing", "Step", "read_collection"]

LARGEST_REPORT = 4_096
"""The most bytes of a report."""

_TOKENS = ("none", "invitation", "blind-rsa")
_LONGEST_DELAY = 7 * 24 * 3600
_MOST_REPORTS = 1_000


@dataclass(frozen=True)
class Issuer:
    """Who signs blind tokens.

    key  its public key: SPKI in base64url
    """

    address: str
    key: str


@dataclass(frozen=True)
class Collection:
    """How answers are collected; `docs/collection/protocol.md` says what each field means."""

    draws: str
    opens: str | None
    closes: str | None
    wave: int
    minimum: int
    planned: int
    tokens: str
    relay: str | None
    size: int
    delay: int
    purpose: Mapping[str, str]
    contact: str
    gateway: str | None = None
    issuer: Issuer | None = None
    reports: int | None = None

    @property
    def most(self) -> int | None:
        """How many reports a device may send.

        None where only the person knows, because sets are fresh.
        """
        return (self.reports or 1) if self.sticky else None

    @property
    def sticky(self) -> bool:
        """Whether the same answer gives the same set again."""
        return self.draws == "sticky"


def read_collection(fields: Fields, languages: Sequence[str]) -> Collection:
    """The part of a document that says how; what is wrong with it is noted in `fields`."""
    fields.only(*Collection.__dataclass_fields__)
    opens, closes = (_moment(fields, key) for key in ("opens", "closes"))
    if opens and closes and datetime.fromisoformat(opens) >= datetime.fromisoformat(closes):
        fields.wrong("closes", "not after it opens")
    return Collection(
        draws=fields.choice("draws", ("fresh", "sticky")),
        opens=opens,
        closes=closes,
        wave=fields.integer("wave", 1, 1_000_000),
        minimum=fields.integer("minimum", 1, 1_000_000_000),
        planned=fields.integer("planned", 1, 1_000_000_000),
        tokens=fields.choice("tokens", _TOKENS),
        relay=_relay(fields),
        size=fields.integer("size", 128, LARGEST_REPORT),
        delay=fields.integer("delay", 0, _LONGEST_DELAY),
        purpose=fields.spoken("purpose", languages),
        contact=fields.text("contact", 1_000),
        gateway=_gateway(fields),
        issuer=_issuer(fields),
        reports=_reports(fields),
    )


def _reports(fields: Fields) -> int | None:
    """How many reports a device may send; fresh sets of several reports could be intersected."""
    if "reports" not in fields.given:
        return None
    found = fields.integer("reports", 1, _MOST_REPORTS)
    if found > 1 and fields.given.get("draws") == "fresh":
        fields.wrong("reports", "several reports of a device need sticky sets: fresh ones can be intersected")
    return found


def _moment(fields: Fields, key: str) -> str | None:
    """A moment with its zone, or null."""
    value = fields.given.get(key)
    if value is None and key in fields.given:
        return None
    try:
        zone = datetime.fromisoformat(str(value)).tzinfo if isinstance(value, str) else None
    except ValueError:
        zone = None
    if zone is None:
        fields.wrong(key, "expected a moment with its zone, as 2026-12-01T08:00:00Z, or null")
        return None
    return str(value)


def _relay(fields: Fields) -> str | None:
    """The address of the relay, or null."""
    if fields.given.get("relay") is None and "relay" in fields.given:
        return None
    return _address(fields, "relay")


def _address(fields: Fields, key: str) -> str:
    """An address that is encrypted on the way; on this machine it need not be."""
    value = fields.given.get(key)
    local = ("http://localhost", "http://127.0.0.1", "http://[::1]")
    if isinstance(value, str) and value.startswith(("https://", *(f"{one}{end}" for one in local for end in ":/"))):
        return value
    fields.wrong(key, "expected an address that begins with https://")
    return ""


def _gateway(fields: Fields) -> str | None:
    """The key configurations of the gateway, which a relay cannot do without."""
    if fields.given.get("relay") is not None and fields.given.get("gateway") is None:
        fields.wrong("gateway", "missing: the key configurations of the gateway behind the relay")
    return _encoded(fields, "gateway") if fields.given.get("gateway") is not None else None


def _issuer(fields: Fields) -> Issuer | None:
    """Who signs tokens, where they are blind."""
    if fields.given.get("issuer") is None:
        if fields.given.get("tokens") == "blind-rsa":
            fields.wrong("issuer", "missing: the address and the key of who signs the tokens")
        return None
    inner = fields.inner("issuer")
    inner.only("address", "key")
    return Issuer(_address(inner, "address"), _encoded(inner, "key"))


def _encoded(fields: Fields, key: str) -> str:
    value = fields.text(key, 4_000)
    if value and not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        fields.wrong(key, "expected base64url without padding")
    return value


@dataclass(frozen=True)
class Step:
    """What one open column says.

    classes  of its codes
    following  the next state by state and class (`next` in the document)
    """

    column: str
    classes: Sequence[int]
    following: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Placing:
    """How records find their stratum."""

    steps: Sequence[Step] = ()
    strata: Sequence[int] = (0,)

    @classmethod
    def read(cls, fields: Fields, sizes: Mapping[str, int], count: int) -> Placing:
        """Check it.

        sizes  how many codes each open column has
        count  how many strata there are
        """
        fields.only("steps", "strata")
        steps, states = list[Step](), 1
        for inner in fields.objects("steps"):
            step = _read_step(inner, sizes, states)
            steps.append(step)
            states = max((state for row in step.following for state in row), default=0) + 1
        strata = fields.integers("strata", 0, count - 1, states)
        return cls(tuple(steps), strata)

    def stratum(self, codes: Mapping[str, int]) -> int:
        """The number of the stratum of a record with these codes in its open columns."""
        state = 0
        for step in self.steps:
            state = step.following[state][step.classes[codes[step.column]]]
        return self.strata[state]


def _read_step(fields: Fields, sizes: Mapping[str, int], states: int) -> Step:
    fields.only("column", "classes", "next")
    column = fields.text("column")
    if column and column not in sizes:
        fields.wrong("column", "not an open column of this campaign")
    classes = fields.integers("classes", 0, 1 << 20, sizes.get(column))
    rows = fields.given.get("next")
    inner = Fields({f"[{number}]": row for number, row in enumerate(rows)} if isinstance(rows, list) else None, "")
    inner.where, inner.problems = fields.place("next"), fields.problems
    following = [inner.integers(key, 0, 1 << 20, max(classes, default=0) + 1) for key in inner.given]
    if len(following) != states:
        fields.wrong("next", f"expected {states:,} rows, one for each state")
    return Step(column, classes, following)
