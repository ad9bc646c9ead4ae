"""A campaign as the collector needs it: which reports it takes, and how they are stored.

The stored part of a report, its payload, is a byte with the number of this layout, then a whole number of 2 bytes (4
where some domain is larger than 65,536), little-endian, for each open column in the document's order, then for each
candidate of each protected attribute in that order. The id is the row's key; the token and the padding are not kept.

Whole batches are checked before they are stored: can a device of this campaign have sent that?

A report is possible when each of its sets can be drawn by the design of the stratum that its open columns put it into.
Fakes that are possible cannot be distinguished from honest reports, one by one; impossible ones would do far more harm.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from polyseme.collection.campaigns import columns_of
from polyseme.collection.credentials import code_hash
from polyseme.collection.store.base import Entry
from polyseme.device.campaign import Campaign
from polyseme.device.terms import Collection
from polyseme.device.tokens import from_text, read_public_key, verify_token
from polyseme.kernel.arrays import Bools, Ints
from polyseme.kernel.documents import read_json
from polyseme.kernel.errors import ChannelError, CollectionError, InternalError
from polyseme.release import AsIs, Column, Sets
from polyseme.strata import Placing, by_stratum
from polyseme.tables.codes import as_series, label_array

__all__ = [
    "ID_BYTES",
    "Checker",
    "Impossible",
    "Malformed",
    "Survey",
    "TokenNeeded",
    "code_matrix",
    "possible_entries",
    "read_id",
    "read_object",
]

ID_BYTES = 16
_LAYOUT = 1
_LONGEST_TOKEN = 1_024
"""Letters: a blind token under a key of 4,096 bits has 726."""
_FIELDS = frozenset({"id", "open", "sets", "token", "pad"})
_NEEDED = frozenset({"id", "open", "sets", "pad"})


class Malformed(Exception):
    """Not a report; the text says what was expected, and nothing of what came."""


class Impossible(Exception):
    """A report, but not one that a device of this campaign can make."""


class TokenNeeded(Exception):
    """The campaign takes one report a person, and this one has no token."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What reports of a campaign look like.

    columns  with the domains whose codes are sent
    """

    campaign: Campaign
    columns: tuple[Column, ...]

    @classmethod
    def read(cls, document: bytes, campaign: str | None = None) -> Survey:
        """The campaign that a document describes.

        One that does not have the id by which it is known is refused.
        """
        found = Campaign.read(document, campaign)
        survey = cls(found, columns_of(found))
        if found.collection.issuer is not None:
            read_public_key(survey.issuer_key)
        return survey

    @property
    def id(self) -> str:
        return self.campaign.id

    @property
    def settings(self) -> Collection:
        """How answers are collected."""
        return self.campaign.collection

    @property
    def size(self) -> int:
        """Bytes of every report."""
        return self.settings.size

    @property
    def tokens(self) -> str:
        """How the campaign sees to one report a person."""
        return self.settings.tokens

    @property
    def relay(self) -> str | None:
        """Through which alone reports come; None where devices send them straight here."""
        return self.settings.relay

    @cached_property
    def issuer_key(self) -> bytes:
        """The public key of who signs blind tokens."""
        return b"" if self.settings.issuer is None else from_text(self.settings.issuer.key)

    @cached_property
    def open(self) -> tuple[AsIs, ...]:
        """The columns that travel in clear."""
        return tuple(column for column in self.columns if isinstance(column, AsIs))

    @cached_property
    def sets(self) -> tuple[Sets, ...]:
        """The columns of which devices send sets."""
        return tuple(column for column in self.columns if isinstance(column, Sets))

    @cached_property
    def open_sizes(self) -> dict[str, int]:
        """How many values each open column has."""
        return {column.name: _size(column) for column in self.open}

    @cached_property
    def set_sizes(self) -> dict[str, tuple[int, int]]:
        """How many candidates each set has, and how many values there are."""
        return {column.name: (column.l, column.domain.size) for column in self.sets}

    @cached_property
    def code_type(self) -> np.dtype[Any]:
        """In which a code is kept."""
        largest = max([*self.open_sizes.values(), *(size for _, size in self.set_sizes.values())])
        return np.dtype("<u2" if largest <= 1 << 16 else "<u4")

    @cached_property
    def width(self) -> int:
        """Codes to a report."""
        return len(self.open_sizes) + sum(l for l, _ in self.set_sizes.values())

    @cached_property
    def _packing(self) -> struct.Struct:
        return struct.Struct(f"<B{self.width}{'H' if self.code_type.itemsize == 2 else 'I'}")

    def entry(self, body: bytes) -> Entry:
        """A report as it came; `Malformed`, `Impossible` or `TokenNeeded` for what is none."""
        if len(body) != self.size:
            raise Malformed(f"a report of this campaign has exactly {self.size} bytes")
        report = read_object(body)
        if not _NEEDED <= report.keys() <= _FIELDS:
            raise Malformed("a report has id, open, sets, pad and sometimes token")
        if type(report["pad"]) is not str:
            raise Malformed("pad is a text")
        report_id = read_id(report["id"])
        codes = [*self._open_codes(report["open"]), *self._set_codes(report["sets"])]
        return Entry(self.id, report_id, self._packing.pack(_LAYOUT, *codes), self._spends(report, report_id))

    def _open_codes(self, given: Any) -> list[int]:
        if type(given) is not dict or given.keys() != self.open_sizes.keys():
            raise Malformed("open has a code for every open column of the campaign")
        codes = [given[name] for name in self.open_sizes]
        for code, size in zip(codes, self.open_sizes.values()):
            if type(code) is not int:
                raise Malformed("a code is a whole number")
            if not 0 <= code < size:
                raise Impossible("a code of an open column is not in its domain")
        return codes

    def _set_codes(self, given: Any) -> list[int]:
        if type(given) is not dict or given.keys() != self.set_sizes.keys():
            raise Malformed("sets has a list of codes for every protected attribute of the campaign")
        codes: list[int] = []
        for name, (l, size) in self.set_sizes.items():
            codes += _candidates(given[name], l, size)
        return codes

    def _spends(self, report: Mapping[str, Any], report_id: bytes) -> bytes | None:
        """The hash of the invitation that a report spends; with a blind token, its id is spent."""
        token = report.get("token")
        if self.tokens == "none":
            if token is not None:
                raise Malformed("this campaign takes no token")
            return None
        if type(token) is not str or len(token) > _LONGEST_TOKEN:
            raise TokenNeeded("this campaign takes one report for each invitation")
        if self.tokens == "blind-rsa":
            self._require_signed(token, report_id)
            return None
        spent = code_hash(self.id, token)
        if spent is None:
            raise TokenNeeded("this is not an invitation; is there a slip in it?")
        return spent

    def _require_signed(self, token: str, report_id: bytes) -> None:
        try:
            signed = verify_token(self.issuer_key, self.id, from_text(token))
        except ChannelError:
            signed = None
        if signed is None:
            raise TokenNeeded("the issuer of this campaign has not signed this token")
        if signed != report_id:
            raise Malformed("with a blind token the id of a report is the hash of the token")

    def matrix(self, payloads: Sequence[bytes]) -> Ints:
        """The codes of reports: (reports, width)."""
        return code_matrix(payloads, self.width, self.code_type)


def code_matrix(payloads: Sequence[bytes], width: int, kind: np.dtype[Any]) -> Ints:
    """Payloads of one layout as codes."""
    row = np.dtype([("layout", "u1"), ("codes", kind, (width,))])
    try:
        rows = np.frombuffer(b"".join(payloads), dtype=row)
    except ValueError:
        raise InternalError("what is stored of a report does not fit its campaign") from None
    if len(rows) != len(payloads) or (rows["layout"] != _LAYOUT).any():
        raise InternalError("what is stored of a report does not fit its campaign")
    return rows["codes"].astype(np.int64).reshape(len(payloads), width)


def _candidates(given: Any, l: int, size: int) -> list[int]:
    """The codes of one set; l of them, ascending, all in the domain."""
    if type(given) is not list:
        raise Malformed("a set is a list of codes")
    last = -1
    for code in given:
        if type(code) is not int:
            raise Malformed("a code is a whole number")
        if code <= last:
            raise Impossible("the codes of a set ascend")
        last = code
    if len(given) != l or last >= size:
        raise Impossible("a set does not have the right number of candidates, or one is not in the domain")
    return given


def read_id(given: Any) -> bytes:
    """The id of a report: 16 bytes as canonical base64url without padding."""
    try:
        found = base64.urlsafe_b64decode(f"{given}==") if type(given) is str and len(given) == 22 else b""
    except (ValueError, binascii.Error):
        found = b""
    if len(found) != ID_BYTES or base64.urlsafe_b64encode(found)[:22].decode() != given:
        raise Malformed("id is 16 bytes in base64url, 22 characters")
    return found


def read_object(body: bytes) -> dict[str, Any]:
    """A JSON object of UTF-8 in which no key occurs twice, and no number is infinite."""
    try:
        found = read_json(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Malformed("the body is not JSON in UTF-8, or a key occurs twice") from None
    if type(found) is not dict:
        raise Malformed("the body is not a JSON object")
    return found


def _size(column: AsIs) -> int:
    if column.attribute.domain is None:
        raise CollectionError(f"'{column.name}' travels in clear, but its values are not listed in the campaign")
    return column.attribute.domain.size


@dataclass(frozen=True, eq=False)
class Checker:
    """Checks the reports of one campaign."""

    survey: Survey

    def possible(self, payloads: Sequence[bytes]) -> Bools:
        """Which of the reports some device can have sent: (n,)."""
        codes = self.survey.matrix(payloads)
        shown, well = len(self.survey.open), np.ones(len(codes), dtype=bool)
        start = shown
        for column in self.survey.sets:
            sets = codes[:, start : start + column.l]
            well &= _drawable(column, sets, self.places(column, codes[:, :shown]))
            start += column.l
        return well

    def places(self, column: Sets, shown: Ints) -> Ints:
        """The stratum of each report, from the codes of its open columns: (n,)."""
        states = np.zeros(len(shown), dtype=np.int64)
        for place, table in self._steps[column.name]:
            states = table[states, shown[:, place]]
        return self._members[column.name][states]

    @cached_property
    def _steps(self) -> Mapping[str, list[tuple[int, Ints]]]:
        """For each attribute, column by column: the next state for each state and code."""
        return {column.name: self._tables(column.strata.placing) for column in self.survey.sets}

    @cached_property
    def _members(self) -> Mapping[str, Ints]:
        """For each attribute the stratum of each state that is left in the end."""
        found = {}
        for column in self.survey.sets:
            number = {member.key: index for index, member in enumerate(column.strata.members)}
            placing = column.strata.placing
            found[column.name] = np.array([number[placing.keys[place]] for place in placing.places], dtype=np.int64)
        return found

    def _tables(self, placing: Placing) -> list[tuple[int, Ints]]:
        places = {column.name: place for place, column in enumerate(self.survey.open)}
        return [
            (places[step.name], step.table[:, step.read(self._labels(places[step.name]))[0]]) for step in placing.steps
        ]

    def _labels(self, place: int) -> pl.Series:
        """The values of an open column, as a release will show them."""
        domain = self.survey.open[place].attribute.domain
        return as_series(label_array(domain.values if domain is not None else ()))


def _drawable(column: Sets, sets: Ints, places: Ints) -> Bools:
    """Which sets the design of their stratum can draw."""
    well = np.zeros(len(sets), dtype=bool)
    for number, rows in by_stratum(places):
        member = column.strata.members[number]
        allowed = rows[~member.forbids[sets[rows]].any(axis=1)]
        if len(allowed):
            well[allowed] = member.mechanism.design.can_draw(member.narrow(sets[allowed]))
    return well


def possible_entries(entries: Sequence[Entry], checkers: Mapping[str, Checker]) -> list[bool]:
    """Which entries of several campaigns are possible; a withdrawal always is."""
    possible = [True] * len(entries)
    by_campaign: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.payload is not None:
            by_campaign.setdefault(entry.campaign, []).append(place)
    for campaign, places in by_campaign.items():
        payloads = [entries[place].payload or b"" for place in places]
        for place, well in zip(places, checkers[campaign].possible(payloads).tolist()):
            possible[place] = well
    return possible
