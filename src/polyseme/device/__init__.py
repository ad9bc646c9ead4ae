"""What runs on a device: draws a set by a campaign's integers, checks the promise, sends it.

Nothing here needs numpy, polars, pyarrow or scipy, so that it runs on a small device: the standard library and
`cryptography` only. `docs/collection/protocol.md` says what other implementations have to do alike.

    campaign = Campaign.read(document, id)
    queue.put(campaign, answer(campaign, {"sex": "male", "income": 27}))
    send(queue, "https://collect.example.org")
"""

from polyseme.device.campaign import Campaign
from polyseme.device.delivery import send, transport_of, withdraw
from polyseme.device.queue import Queue
from polyseme.device.reports import Report, answer, answer_codes

__all__ = ["Campaign", "Queue", "Report", "answer", "answer_codes", "send", "transport_of", "withdraw"]
