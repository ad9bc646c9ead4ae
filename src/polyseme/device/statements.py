"""What a campaign's settings mean for the people who answer, in plain words: for the page and for the report.

A respondent reads these sentences before anything is sent, an analyst reads them in the report. They say what is not
protected as plainly as what is; `docs/collection/threats.md` holds them with the reasons.
"""

from __future__ import annotations

from typing import Literal

from polyseme.errors import ChannelError, nearest

__all__ = ["REPORTED", "TOLD", "Channel", "OnePerPerson", "channel_of", "reported", "told"]

Channel = Literal["direct", "relay"]
OnePerPerson = Literal["none", "invitation", "blind-rsa"]

TOLD: dict[str, dict[str, str]] = {
    "direct": {
        "en": "Your answer goes straight to the collector, which sees the internet address it comes from. "
        "It promises not to keep it; your device cannot check that.",
        "de": "Ihre Antwort geht direkt an die Sammelstelle. Diese sieht, von welcher Internetadresse sie kommt. "
        "Sie verspricht, die Adresse nicht zu speichern; Ihr Gerät kann das nicht prüfen.",
    },
    "relay": {
        "en": "Your answer goes through a relay. The relay sees your internet address but cannot read the answer; "
        "the collector can read it but does not see your address. Only together could they connect the two.",
        "de": "Ihre Antwort geht über eine Zwischenstelle. Diese sieht Ihre Internetadresse, kann die Antwort aber "
        "nicht lesen; die Sammelstelle kann sie lesen, sieht aber Ihre Adresse nicht. Nur gemeinsam könnten beide "
        "sie verbinden.",
    },
    "none": {
        "en": "How often a person answers is not checked. Please answer once.",
        "de": "Es wird nicht geprüft, wie oft eine Person antwortet. Bitte antworten Sie nur einmal.",
    },
    "invitation": {
        "en": "Your invitation code goes with your answer and can be used once. A person who noted which code you "
        "got could see which answer is yours.",
        "de": "Ihr Einladungscode wird mit der Antwort gesendet und gilt einmal. Eine Person, die notiert hat, "
        "welchen Code Sie bekommen haben, könnte sehen, welche Antwort von Ihnen ist.",
    },
    "blind-rsa": {
        "en": "Your invitation code is exchanged for a token that cannot be traced back to it. The token goes with "
        "your answer and can be used once.",
        "de": "Ihr Einladungscode wird gegen eine Marke getauscht, die sich nicht auf ihn zurückführen lässt. Die "
        "Marke wird mit der Antwort gesendet und gilt einmal.",
    },
}
"""What a respondent is told, by setting and language."""

REPORTED = {
    "direct": "Reports came directly: the collector could see the address of each sender, and was set not to keep it.",
    "relay": "Reports came through a relay: the collector could not see the address of a sender, "
    "unless it worked together with the relay.",
    "none": "Nothing kept a person from reporting more than once; counts are of reports, not of people.",
    "invitation": "Each report used up an invitation, so there is at most one for each. "
    "A person who knows who got which code could tell whose report is whose as they arrived.",
    "blind-rsa": "Each report used up a blindly signed token, one for each invitation. "
    "Neither the issuer nor the collector can tell whose token it was.",
}
"""What a reader of the report is told, by setting."""


def told(tokens: str, relay: str | None, language: str) -> list[str]:
    """What a respondent is told about the way an answer takes and how often it counts; English where unknown."""
    texts = [TOLD[channel_of(relay)], TOLD[_known(tokens)]]
    return [text.get(language, text["en"]) for text in texts]


def reported(tokens: str, channel: Channel) -> list[str]:
    """What a reader of the report is told about both."""
    return [REPORTED[channel], REPORTED[_known(tokens)]]


def channel_of(relay: str | None) -> Channel:
    """The way that reports take in a campaign with this relay, or with none."""
    return "direct" if relay is None else "relay"


def _known(tokens: str) -> str:
    kinds = ("none", "invitation", "blind-rsa")
    if tokens not in kinds:
        raise ChannelError("an unknown kind of tokens", nearest(tokens, kinds))
    return tokens
