"""The patient adversary: has two releases of the same people and intersects what they say.

With fresh decoys the true value is the only one sure to be in both sets; with sticky decoys (keyed randomness) both
sets are the same and nothing is gained. Success is the chance that a guess among the common candidates is right, on
average over the records: 1/|intersection|, exact for the release alone when every set holds its true value. With the
original, the observed share.
"""

from __future__ import annotations

import numpy as np

from polyseme.attacks.base import Finding, above, hit_rate, significantly_above
from polyseme.distances.structure import Ints
from polyseme.errors import TableError

__all__ = ["attack"]


def attack(
    first: Ints,
    second: Ints,
    *,
    size: int,
    attribute: str = "",
    bound: float | None = None,
    truth: Ints | None = None,
) -> Finding:
    """Rows of `first` and `second` belong to the same people; `size` is the number of values of the domain."""
    if len(first) != len(second) or len(first) == 0:
        raise TableError(
            f"the releases have {len(first):,} and {len(second):,} records", "match the people first, one row each"
        )
    bound = 1.0 / first.shape[1] if bound is None else bound
    common = (first[:, :, None] == second[:, None, :]).any(axis=2)
    left = common.sum(axis=1)
    detail = {"records_certain": float((left == 1).mean()), "same_set": float((left == first.shape[1]).mean())}
    if truth is None:
        chances = np.divide(1.0, left, out=np.zeros(len(left)), where=left > 0)
        success = float(chances.mean())
        exceeded = above(success, bound)
    else:
        # Without anything in common (a mechanism that may lie) the first set is all there is to guess from.
        chances = hit_rate(np.where(common.any(axis=1, keepdims=True), common, True) * 1.0, first == truth[:, None])
        success = float(chances.mean())
        exceeded = significantly_above(float(chances.sum()), len(chances), bound)
    return Finding(
        "repetition",
        attribute,
        success,
        bound,
        1.0 / size if truth is None else float(np.bincount(truth).max() / len(truth)),
        exceeded,
        knows="two releases about the same people",
        gains="the value, when it is the only one both sets have in common",
        helps="sticky decoys: anonymize with the same key file and record keys",
        detail=detail,
    )
