"""What runs on a device: draws a set by a campaign's integers, checks the promise, sends it.

Nothing here needs numpy, polars, pyarrow or scipy, so that it runs on a small device: the standard library and
`cryptography` only. `docs/collection/protocol.md` says what other implementations have to do alike.

    campaign = Campaign.read(document, id)
    queue.put(campaign, answer(campaign, {"sex": "male", "income": 27}))
    send(queue, "https://collect.example.org")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.device.campaign import Campaign
    from polyseme.device.delivery import send, transport_of, withdraw
    from polyseme.device.queue import Queue
    from polyseme.device.reports import Report, answer, answer_codes

__all__ = ["Campaign", "Queue", "Report", "answer", "answer_codes", "send", "transport_of", "withdraw"]

_HOMES = {"Campaign": "campaign", "Queue": "queue", "Report": "reports", "answer": "reports", "answer_codes": "reports"}
"""The module of each name, imported when it is used: designs need numbers of this package, but no network."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f"polyseme.device.{_HOMES.get(name, 'delivery')}"), name)
    raise AttributeError(f"module 'polyseme.device' has no attribute '{name}'")
