"""The adversary with background knowledge: can rule out m values for the person it is after.

Success is what its best guess is worth once the m most troublesome other values are struck out, in the worst class or
set; exact. Where l values were promised, l - m remain, so the bound is 1 / (l - m), and 1 when nothing remains.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above
from polyseme.attacks.posterior import distinct_rows, posterior_of, uniform
from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism
from polyseme.tables.classes import Counts

__all__ = ["attack", "attack_sets"]

_HELPS = "a larger l; recursive diversity, which is made for this adversary"


def _bound(l: int | None, m: int) -> float | None:
    return None if l is None else 1.0 / max(l - m, 1)


def _finding(attribute: str, success: float, m: int, l: int | None, baseline: float) -> Finding:
    bound = _bound(l, m)
    return Finding(
        "background-knowledge",
        attribute,
        success,
        bound,
        baseline,
        above(success, bound),
        f"the class or set of the person, and {m} {'value' if m == 1 else 'values'} the person does not have",
        "the value, by striking out",
        _HELPS,
        {"m": float(m)},
    )


def attack(counts: Counts, m: int, l: int | None = None) -> Finding:
    """On a table published in classes, of which l-diversity was promised."""
    order = np.lexsort((-counts.count, counts.owner))
    descending = counts.count[order]
    place = np.arange(len(order)) - counts.starts[:-1][counts.owner]
    struck = np.add.reduceat(np.where((place >= 1) & (place <= m), descending, 0), counts.starts[:-1])
    share = descending[counts.starts[:-1]] / (counts.sizes - struck)
    return _finding(counts.attribute, float(share.max()), m, l, float(counts.total.max() / counts.records))


def attack_sets(
    sets: Ints, mechanism: Mechanism, m: int, *, attribute: str = "", prior: Floats | None = None
) -> Finding:
    """On published sets."""
    prior = uniform(mechanism.size) if prior is None else np.asarray(prior, dtype=np.float64)
    unique, _ = distinct_rows(sets, mechanism.size)
    inside = np.sort(posterior_of(unique, mechanism, prior).inside, axis=1)[:, ::-1]
    left = 1.0 - inside[:, 1 : m + 1].sum(axis=1)
    success = float(np.minimum(inside[:, 0] / np.maximum(left, inside[:, 0]), 1.0).max())
    return _finding(attribute, success, m, mechanism.l, float(prior.max()))
