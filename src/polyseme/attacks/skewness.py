"""The skewness adversary: compares what is known about a person after the release with what was known before.

Success is the largest earth mover's distance between the two distributions over all published sets. On the equal
ground that is the total variation distance: the most by which the probability of any statement about a person can
change. Exact; on other grounds, where a large domain has very many different sets, from some of them. The bound is the
t of closeness, where that was promised, on its ground and for its reference distribution; diversity promises nothing
here.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.attacks.posterior import posterior_of, uniform
from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.counts import distinct
from polyseme.mechanism import Mechanism
from polyseme.recipes.ground import Equal, Ground

__all__ = ["attack"]

_CHUNK, _MOST = 4_000_000, 400_000_000
"""Probabilities that are moved at a time, and in all; beyond that only some of the sets are looked at."""


def attack(
    sets: Ints,
    mechanism: Mechanism,
    *,
    attribute: str = "",
    prior: Floats | None = None,
    ground: Ground | None = None,
    bound: float | None = None,
) -> Finding:
    """On published sets: posterior against prior (uniform unless given), moved on a ground (the equal one)."""
    prior = uniform(mechanism.size) if prior is None else np.asarray(prior, dtype=np.float64)
    unique, inverse = distinct(sets, mechanism.size)
    if ground is None or isinstance(ground, Equal):
        posterior = posterior_of(unique, mechanism, prior).inside
        # No value outside the set gains: the channel favours members, and outsiders all change by one factor.
        work = np.maximum(posterior - prior[unique], 0.0).sum(axis=1)
    else:
        work = _work(unique[:: 1 + len(unique) * mechanism.size // _MOST], mechanism, prior, ground)
    whole = len(work) == len(unique)
    detail = {"mean": float(work[inverse].mean())} if whole else {"sets_looked_at": float(len(work))}
    success = float(work.max())
    return Finding(
        "skewness",
        attribute,
        success,
        bound,
        0.0,
        above(success, bound),
        "the published set, the mechanism and the public distribution",
        "that some values are much more likely for the person than for others",
        "closeness, with a t that the people concerned can live with",
        detail,
    )


def _work(sets: Ints, mechanism: Mechanism, prior: Floats, ground: Ground) -> Floats:
    """The earth mover's distance from the prior to the posterior of each set."""
    out = np.empty(len(sets))
    step = max(1, _CHUNK // len(prior))
    for start in range(0, len(sets), step):
        part = sets[start : start + step]
        posterior = posterior_of(part, mechanism, prior).inside
        kept = 1.0 - posterior.sum(axis=1)
        # All values outside keep their proportions.
        beyond = np.maximum(1.0 - prior[part].sum(axis=1), np.finfo(np.float64).tiny)
        shift = (kept / beyond - 1.0)[:, None] * prior
        np.put_along_axis(shift, part, posterior - prior[part], axis=1)
        out[start : start + step] = ground.work(shift)
    return out
