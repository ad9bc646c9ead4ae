"""Answers become reports: open columns as codes, a set in place of every protected value.

Whatever leaves the device is in a `Report`; the true values of protected columns are nowhere in it.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from polyseme.device.campaign import Campaign, compact, label_text
from polyseme.device.chain import fresh_subkey, sticky_subkey
from polyseme.device.protected import Label, Member, Protected
from polyseme.kernel.errors import CampaignError, Problem, nearest

__all__ = ["Report", "answer", "answer_codes", "code_of", "longest_report"]

_ID_BYTES = 16
_TOKEN_ROOM = {"none": 0, "invitation": 64, "blind-rsa": 1_024}
"""Bytes of a report that are kept for a token."""


@dataclass(frozen=True)
class Report:
    """What leaves the device.

    id    16 random bytes in base64url; enough to withdraw the report
    open  code of each open column
    sets  codes of the candidates of each protected column, ascending
    """

    id: str = field(repr=False)
    open: Mapping[str, int]
    sets: Mapping[str, tuple[int, ...]]
    token: str | None = field(default=None, repr=False)

    def body(self, size: int) -> bytes:
        """The bytes that are sent, filled up to exactly `size`."""
        content: dict[str, Any] = {"id": self.id, "open": dict(self.open), "sets": {**self.sets}}
        if self.token is not None:
            content["token"] = self.token
        bare = len(compact({**content, "pad": ""}))
        if bare > size:
            raise CampaignError(
                f"a report of {bare:,} bytes does not fit into {size:,}", "collection.size is too small"
            )
        return compact({**content, "pad": "0" * (size - bare)})


def answer(
    campaign: Campaign,
    record: Mapping[str, object],
    key: bytes | None = None,
    token: str | None = None,
    consent: bool = False,
) -> Report:
    """The report of a record: for each column its label, or a number that falls into a bin.

    key      32 secret bytes of this device, for campaigns with sticky sets: the same answer then gives the same set
    token    that the campaign asks for
    consent  whether the person agrees to sets that change the odds between candidates by a factor above 64

    Raises `CampaignError`, which quotes no answer, with everything that is wrong.
    """
    labels = campaign.labels
    problems = [
        Problem(name, "not asked in this campaign", nearest(name, labels)) for name in record if name not in labels
    ]
    bins = _bins(campaign)
    codes = dict[str, int]()
    for name, values in labels.items():
        code = code_of(record[name], values, bins.get(name)) if name in record else None
        if code is None:
            problems.append(Problem(name, "not one of the answers" if name in record else "no answer"))
        else:
            codes[name] = code
    if problems:
        raise CampaignError(problems)
    return answer_codes(campaign, codes, key, token, consent)


def answer_codes(
    campaign: Campaign,
    codes: Mapping[str, int],
    key: bytes | None = None,
    token: str | None = None,
    consent: bool = False,
) -> Report:
    """The same from the code of each column."""
    campaign.require_promises()
    _require_consent(campaign, consent)
    _require_key(campaign, key)
    _require_token(campaign, token)
    opened = {item.name: codes[item.name] for item in campaign.open}
    sets = {item.name: _drawn(item, opened, codes[item.name], key) for item in campaign.protected}
    return Report(_id(campaign, token), opened, sets, token)


def _id(campaign: Campaign, token: str | None) -> str:
    """A random id; with a blind token its hash, so that a token admits one report."""
    number = os.urandom(_ID_BYTES)
    if campaign.collection.tokens == "blind-rsa" and token is not None:
        number = hashlib.sha256(base64.urlsafe_b64decode(token + "==")).digest()[:_ID_BYTES]
    return base64.urlsafe_b64encode(number).rstrip(b"=").decode("ascii")


def code_of(value: object, labels: Sequence[Label], edges: Sequence[float | None] | None = None) -> int | None:
    """The code of an answer: by its label, or as a number by the bin that it falls into.

    >>> code_of("b", ["a", "b"]), code_of(7.5, ["[0, 5)", "[5, 10]"], [0, 5, 10]), code_of("c", ["a", "b"])
    (1, 1, None)
    """
    text = label_text(value)
    for code, label in enumerate(labels):
        if text == label_text(label):
            return code
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    if edges is not None:
        return _bin(float(value), edges)
    same = [code for code, label in enumerate(labels) if not isinstance(label, bool) and label == value]
    return same[0] if same else None


def _bin(value: float, edges: Sequence[float | None]) -> int | None:
    """Bins are half-open, but the last one; an open end is null."""
    for code in range(len(edges) - 1):
        low, high = edges[code], edges[code + 1]
        last = code == len(edges) - 2
        if (low is None or low <= value) and (high is None or value < high or (last and value == high)):
            return code
    return None


def _bins(campaign: Campaign) -> dict[str, Sequence[float | None]]:
    return {
        entry["name"]: entry["domain"]["bins"]
        for entry in campaign.document["columns"]
        if isinstance(entry["domain"].get("bins"), list)
    }


def _require_key(campaign: Campaign, key: bytes | None) -> None:
    if campaign.collection.sticky and key is None:
        raise CampaignError("this campaign draws sticky sets, for which the device needs a key of its own")
    if not campaign.collection.sticky and key is not None:
        raise CampaignError("this campaign draws fresh sets, so a key would do nothing")


def _require_consent(campaign: Campaign, consent: bool) -> None:
    if campaign.needs_consent and not consent:
        odds = max(column.odds for column in campaign.protected)
        raise CampaignError(
            f"a set of this campaign can change the odds between two of its candidates by a factor of {odds:,.4g}",
            "it relies on the declared prior: tell the person, and answer with consent=True if they agree",
        )


def _require_token(campaign: Campaign, token: str | None) -> None:
    wanted = campaign.collection.tokens
    if wanted != "none" and token is None:
        raise CampaignError(f"this campaign wants a token ({wanted}) with each report")
    if wanted == "none" and token is not None:
        raise CampaignError("this campaign takes no tokens")


def _drawn(column: Protected, opened: Mapping[str, int], code: int, key: bytes | None) -> tuple[int, ...]:
    number = column.placing.stratum(opened)
    member = column.strata[number]
    inner = _within(column, member, code)
    subkey = fresh_subkey() if key is None else sticky_subkey(key, member.fingerprint, number, inner)
    return tuple(member.codes[chosen] for chosen in member.sampling.draw(inner, subkey))


def _within(column: Protected, member: Member, code: int) -> int:
    """The code among the values that are possible."""
    try:
        return member.codes.index(code)
    except ValueError:
        raise CampaignError(
            Problem(column.name, "impossible together with the other answers", "is one of them a slip?")
        ) from None


def longest_report(campaign: Campaign) -> int:
    """The bytes of the longest report that there can be, with room for a token."""
    widest = Report(
        "x" * 22,
        {item.name: len(item.labels) - 1 for item in campaign.open},
        {item.name: (len(item.labels) - 1,) * item.l for item in campaign.protected},
    )
    bare = compact({"id": widest.id, "open": dict(widest.open), "sets": {**widest.sets}, "pad": ""})
    return len(bare) + _TOKEN_ROOM[campaign.collection.tokens]
