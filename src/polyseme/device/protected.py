"""A protected column on a device: what its sets can reveal, and when the device refuses.

A device cannot know whether a declared prior is true. So it computes three numbers from the document itself: the worst
posterior under the declared prior, which is what is promised; the worst posterior under a uniform prior; and the
largest factor by which a set changes the odds between two of its candidates, which holds whatever the prior is.

For an attacker who expects the values with shares `pi` the posterior of v is, with `c = pi / rho`,

    (p c_v + (1 - p) pi_v) / (p sum_R c + 1 - p)    inside of R
    (1 - p) pi_v / (p sum_R c + 1 - p)              outside of it

where `rho_v` is the probability that v is in a set. The lightest set that holds v is the worst for it.

Whatever an attacker expects, a set changes the odds between two of its values u and v by the factor

    (p / rho_u + 1 - p) / (p / rho_v + 1 - p)

so the largest such factor bounds what the set adds for every prior, also for one that the document does not declare.

A campaign also says its settings in plain words, on the page and in the report. A respondent reads these
sentences before anything is sent, an analyst reads them in the report. They say what is not protected as plainly as
what is; `docs/collection/threats.md` holds them with the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from polyseme.device.sampler import Sampling
from polyseme.device.terms import Placing
from polyseme.kernel.errors import CampaignError, ChannelError, Problem, nearest

__all__ = [
    "LARGEST_ODDS",
    "LEAST_SHARE",
    "ODDS_WITH_CONSENT",
    "REPORTED",
    "RESPONDENT_TEXTS",
    "SLACK",
    "Channel",
    "Label",
    "Member",
    "OnePerPerson",
    "Protected",
    "channel_of",
    "largest_odds",
    "reported",
    "respondent_texts",
    "worst_posterior",
]


def worst_posterior(sampling: Sampling, prior: Sequence[float] | None = None) -> float:
    """The largest probability of any value given any set, for this prior; uniform by default."""
    shares = [1.0 / sampling.size] * sampling.size if prior is None else prior
    if len(shares) != sampling.size:
        raise ValueError("one share for each value")
    p = sampling.p
    cost = [share / rho for share, rho in zip(shares, sampling.inclusion, strict=True)]
    totals = [p * least + 1.0 - p for least in sampling.kind.lightest(cost)]
    # A set of which this prior believes no value is never seen by its owner.
    inside = [
        (p * one + (1.0 - p) * share) / total if total > 0.0 else 0.0
        for one, share, total in zip(cost, shares, totals, strict=True)
    ]
    outside = (1.0 - p) * max(shares) / min(totals) if p < 1.0 else 0.0
    return max(*inside, outside)


def largest_odds(sampling: Sampling) -> float:
    """The largest factor by which any set changes the odds of two of its values, for any prior."""
    p = sampling.p
    factors = [p / rho + 1.0 - p for rho in sampling.inclusion]
    best = sampling.kind.partners(factors)
    return max(1.0, *(other / own for own, other in zip(factors, best, strict=True)))


SLACK = 1e-6
"""By how much, relatively, a number may exceed its limit: weights are fitted to 1e-9 and rounded after."""
LARGEST_ODDS = 1_024
"""No set may change the odds between two of its candidates by more than this factor."""
ODDS_WITH_CONSENT = 64
"""Above this factor a person has to agree first."""
LEAST_SHARE = 1.0 / 1_024
"""No declared share may be smaller than this part of a uniform one."""

Label = str | int | bool


@dataclass(frozen=True, eq=False)
class Member:
    """One stratum of a protected column.

    codes        in the domain, of the values that are possible in it
    prior        of these values; None for a uniform one
    """

    codes: Sequence[int]
    sampling: Sampling
    fingerprint: str
    prior: Sequence[float] | None

    @cached_property
    def worst_posterior(self) -> float:
        """The largest posterior of any value given any set, under the declared prior."""
        return worst_posterior(self.sampling, self.prior)

    @cached_property
    def uniform_posterior(self) -> float:
        """The same under a uniform prior."""
        return worst_posterior(self.sampling) if self.prior is not None else self.worst_posterior

    @cached_property
    def odds(self) -> float:
        """The largest factor by which a set changes the odds between two of its candidates."""
        return largest_odds(self.sampling)

    @property
    def even(self) -> bool:
        """Whether the declared prior is uniform."""
        return self.prior is None or min(self.prior) * len(self.prior) >= 1.0 - SLACK


@dataclass(frozen=True, eq=False)
class Protected:
    """A column in whose place a set is sent.

    posterior  what is promised; None where no bound is, which devices refuse
    source     where a prior that is not uniform comes from, by language
    """

    name: str
    labels: Sequence[Label]
    l: int
    posterior: float | None
    placing: Placing
    strata: Sequence[Member]
    source: Mapping[str, str] | None = None

    @property
    def worst_posterior(self) -> float:
        """The largest posterior of any stratum, under the declared priors."""
        return max(member.worst_posterior for member in self.strata)

    @property
    def uniform_posterior(self) -> float:
        """The largest posterior of any stratum, under a uniform prior."""
        return max(member.uniform_posterior for member in self.strata)

    @property
    def odds(self) -> float:
        """The largest factor by which a set of any stratum changes the odds of two candidates."""
        return max(member.odds for member in self.strata)

    def require_promise(self) -> None:
        """Refuse where the device finds that a set reveals more than promised, or than any may."""
        if problems := [Problem(where, what, _TELL) for where, what in self._objections()]:
            raise CampaignError(problems)

    def _objections(self) -> Iterator[tuple[str, str]]:
        where = f"promises.{self.name}"
        if self.l < 2:
            yield f"{where}.l", "a set of one candidate is the answer itself"
            return
        if self.posterior is None:
            yield f"{where}.posterior", "nothing is promised: a set could tell anything"
        if any(member.prior is not None and min(member.prior) < _least(member) for member in self.strata):
            yield f"{where}.priors", "a share is 0, or smaller than 1/1,024 of a uniform one"
        if self.source is None and not all(member.even for member in self.strata):
            yield f"questions.{self.name}.source", "the prior is not uniform, and nothing says where it comes from"
        if not self.odds <= LARGEST_ODDS * (1.0 + SLACK):
            what = f"a set can change the odds between two of its candidates by a factor of {self.odds:.6g}"
            yield f"sampling.{self.name}", f"{what}, more than {LARGEST_ODDS:,}"
        if self.posterior is not None and not self.worst_posterior <= self.posterior * (1.0 + SLACK):
            what = f"{self.posterior:.6g} is promised, but a set can give {self.worst_posterior:.6g}"
            yield f"{where}.posterior", what


_TELL = "nothing was sent; tell the organizers of this campaign"


def _least(member: Member) -> float:
    return LEAST_SHARE / len(member.codes) * (1.0 - SLACK)


Channel = Literal["direct", "relay"]
OnePerPerson = Literal["none", "invitation", "blind-rsa"]

RESPONDENT_TEXTS: dict[str, dict[str, str]] = {
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
"""What a respondent reads, by setting and language."""

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
"""What a reader of the report reads, by setting."""


def respondent_texts(tokens: str, relay: str | None, language: str) -> list[str]:
    """What a respondent reads about the way an answer takes and how often it counts.

    English where unknown.
    """
    texts = [RESPONDENT_TEXTS[channel_of(relay)], RESPONDENT_TEXTS[_known(tokens)]]
    return [text.get(language, text["en"]) for text in texts]


def reported(tokens: str, channel: Channel) -> list[str]:
    """What a reader of the report learns about both."""
    return [REPORTED[channel], REPORTED[_known(tokens)]]


def channel_of(relay: str | None) -> Channel:
    """The way that reports take in a campaign with this relay, or with none."""
    return "direct" if relay is None else "relay"


def _known(tokens: str) -> str:
    kinds = ("none", "invitation", "blind-rsa")
    if tokens not in kinds:
        raise ChannelError("an unknown kind of tokens", nearest(tokens, kinds))
    return tokens
