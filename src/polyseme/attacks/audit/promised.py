"""What was promised for the records of a stratum, in the terms of the adversaries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyseme.attacks.audit.seen import Part
from polyseme.attacks.scene import Promised
from polyseme.errors import InvalidInput, ReleaseError
from polyseme.promises import Bounds, Channel

__all__ = ["bounds_of", "channel_of", "promised_for"]


def channel_of(part: Part) -> Channel:
    """The mechanism of a stratum and what is public about its values."""
    return part.item.channels[part.number]


def bounds_of(part: Part) -> Bounds:
    """What was promised to hold against adversaries; refuses promises that cannot be read."""
    promises = part.item.attribute.promises
    try:
        promises.for_domain(part.item.domain.size, part.item.attribute.distance is not None)
    except InvalidInput:
        raise ReleaseError(f"column '{part.item.name}': its promises cannot be read", "run polyseme verify") from None
    bounds = promises.bounds(channel_of(part))
    return bounds if bounds.guess is not None else replace(bounds, guess=_worst_guess(channel_of(part)))


def _worst_guess(channel: Channel) -> float:
    """Where nothing is promised about a guess: what the mechanism allows at worst."""
    worst = channel.mechanism.worst_posterior(channel.known.prior)
    return 1.0 if np.isnan(worst) else worst


def promised_for(part: Part) -> Promised:
    """What was promised for the records of a stratum."""
    bounds, known = bounds_of(part), channel_of(part).known
    promised = Promised(guess=bounds.guess, apart=bounds.apart, any_prior=bounds.any_prior, learned=bounds.learner)
    if bounds.moved is None:
        return promised
    return replace(promised, moved=bounds.moved, reference=known.reference, ground=known.ground(bounds.ground))
