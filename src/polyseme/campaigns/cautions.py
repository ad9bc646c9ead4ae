"""What whoever makes a campaign should hear before people answer it."""

from __future__ import annotations

from collections.abc import Iterator

from polyseme.device.campaign import Campaign, Protected

__all__ = ["cautions"]


def cautions(campaign: Campaign) -> tuple[str, ...]:
    """What the campaign does not protect from, though its settings might make one think so."""
    return tuple(_changing_strata(campaign))


def _changing_strata(campaign: Campaign) -> Iterator[str]:
    """Devices draw the sets of each stratum on their own; `anonymize` makes them as alike as it can."""
    for column in campaign.protected if campaign.collection.sticky else ():
        if len(column.strata) > 1:
            names = " or ".join(f"'{name}'" for name in _deciding(column))
            yield (
                f"sets of '{column.name}' are sticky, but drawn otherwise for each group that {names} tells apart. "
                f"Somebody whose answer to {names} changes between two waves sends another set, and both can be "
                "intersected: ask for what does not change, or declare nothing impossible and no prior by group."
            )


def _deciding(column: Protected) -> list[str]:
    return list(dict.fromkeys(step.column for step in column.placing.steps))
