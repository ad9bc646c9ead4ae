"""The fingerprint of a sampling document: what sticky sets depend on beside the device's key and the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from polyseme.errors import CampaignError

__all__ = ["compact", "fingerprint"]


def compact(value: Any) -> bytes:
    """JSON without blanks, as `JSON.stringify` of JavaScript writes it, in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise CampaignError("a text with half of a surrogate pair, which is no character") from None


def fingerprint(attribute: str, labels: Sequence[str | int | bool], document: Mapping[str, Any]) -> str:
    """SHA-256 of `[attribute, labels, document]` in hexadecimal, the document's fields in their order.

    The attribute is part of it: two questions with the same answers and the same integers would otherwise have the same
    sticky sets wherever the answers are the same, and their sets would not be independent.
    """
    return hashlib.sha256(compact([attribute, list(labels), dict(document)])).hexdigest()
