"""A protected column as a device sees it: what its sets can tell, and when the device refuses to answer.

A device cannot know whether a declared prior is true. So it computes three numbers from the document itself: the worst
posterior under the declared prior, which is what is promised; the worst posterior under a uniform prior; and the
largest factor by which a set changes the odds between two of its candidates, which holds whatever the prior is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from polyseme.device.posterior import largest_odds, worst_posterior
from polyseme.device.sampling import Sampling
from polyseme.device.strata import Placing
from polyseme.errors import CampaignError, Problem

__all__ = ["LARGEST_ODDS", "LEAST_SHARE", "ODDS_WITH_CONSENT", "SLACK", "Label", "Member", "Protected"]

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
        """The largest factor by which a set of any stratum changes the odds between two of its candidates."""
        return max(member.odds for member in self.strata)

    def require_promise(self) -> None:
        """Refuse where the device itself finds that a set tells more than is promised, or than any set may."""
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
