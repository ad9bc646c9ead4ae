"""Warnings for the maker of a campaign before people answer it."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log

from polyseme.device.campaign import Campaign
from polyseme.device.protected import ODDS_WITH_CONSENT, SLACK, Protected

__all__ = ["cautions", "tempered_offer"]

_SHOWN = 24
"""Shares that are written out in a message."""
_RAREST = 1e-6
"""Shares below this are taken for it."""


def cautions(campaign: Campaign) -> tuple[str, ...]:
    """What the campaign does not protect from, though its settings might make one think so."""
    return (*_large_odds(campaign), *_changing_strata(campaign))


def _large_odds(campaign: Campaign) -> Iterator[str]:
    for column in campaign.protected:
        if column.odds > ODDS_WITH_CONSENT * (1.0 + SLACK):
            yield (
                f"a set of '{column.name}' can change the odds between two of its candidates by a factor of "
                f"{column.odds:,.3g}. Respondents are told so and have to agree. {tempered_offer(column)}"
            )


def tempered_offer(column: Protected) -> str:
    """How to stay below the factor for which people have to agree; nothing where the prior is uniform."""
    priors = [[max(share, _RAREST) for share in member.prior] for member in column.strata if member.prior]
    steepest = max((max(prior) / min(prior) for prior in priors), default=1.0)
    if steepest <= ODDS_WITH_CONSENT:
        return ""
    power = floor(100 * log(ODDS_WITH_CONSENT) / log(steepest)) / 100
    knows = steepest ** (1.0 - power)
    return (
        f"To stay below {ODDS_WITH_CONSENT}, {_advice(priors, power)}. An attacker who knows the shares as they are "
        f"now can then be up to {knows / (knows + column.l - 1):.1%} sure of an answer."
    )


def _advice(priors: list[list[float]], power: float) -> str:
    advice = f"temper the prior: raise every share to the power {power:g} and divide by their sum"
    if len(priors) > 1 or len(priors[0]) > _SHOWN:
        return advice
    raised = [share**power for share in priors[0]]
    shares = ", ".join(f"{share / sum(raised):.4g}" for share in raised)
    return f"{advice}, which gives prior: [{shares}]"


def _changing_strata(campaign: Campaign) -> Iterator[str]:
    """Devices draw the sets of each stratum on their own; `anonymize` makes them as alike as it can."""
    for column in campaign.protected if campaign.collection.sticky else ():
        if len(column.strata) > 1:
            names = " or ".join(f"'{name}'" for name in _deciding(column))
            yield (
                f"sets of '{column.name}' are sticky, but each group of {names} has its own mechanism. "
                f"A respondent whose answer to {names} changes between two waves sends another set, and both can be "
                "intersected: ask for what does not change, or declare nothing impossible and no prior by group."
            )


def _deciding(column: Protected) -> list[str]:
    return list(dict.fromkeys(step.column for step in column.placing.steps))
