"""Where to look next: a rough model of how many records violate at each node.

The logarithm of their number is fitted by ridge regression on what each quasi-identifier still tells at its level (the
entropy of its groups). The fit only decides which node is looked at, never what is found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.methods.full_domain.lattice import Lattice, Node, Singles, outer_sum
from polyseme.methods.microdata import Microdata

__all__ = ["Guide"]

_RIDGE = 0.05
_LEAST_SPREAD = 0.25
"""The least standard error of a predicted logarithm: a judgment, so that no node is taken for certain."""


@dataclass(eq=False)
class Guide:
    """What was seen so far, and what it lets expect.

    told    for each axis, what is still told at each of its places, 1 at the first
    places  the nodes seen, and the logarithms of the records that violated there
    """

    told: tuple[Floats, ...]
    places: list[Floats] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, data: Microdata, lattice: Lattice) -> Guide:
        told = []
        for ladder, axis, leaves in zip(data.ladders, lattice.axes, data.codes.T, strict=True):
            frequency = np.bincount(leaves, data.counts, ladder.leaves)
            bits = np.array(
                [_entropy(np.bincount(ladder.groups[level], frequency).astype(np.float64)) for level in axis]
            )
            told.append(bits / bits[0] if len(bits) and bits[0] > 0 else np.linspace(1.0, 0.0, len(axis)))
        return cls(tuple(told))

    def learn(self, node: Node, violating: int) -> None:
        self.places.append(np.array([1.0, *(part[place] for part, place in zip(self.told, node, strict=True))]))
        self.seen.append(float(np.log1p(violating)))

    def violating(self, within: Sequence[slice], limit: int) -> Singles:
        """How likely it is that more than `limit` records violate, at each node of a box."""
        rows, seen = np.array(self.places), np.array(self.seen)
        # Nothing is known of an attribute that was never moved: it is taken to matter like the others.
        prior = np.concatenate(
            ([seen.min(initial=0.0)], np.full(len(self.told), np.ptp(seen) / max(len(self.told), 1)))
        )
        gram = rows.T @ rows + _RIDGE * np.eye(rows.shape[1])
        fitted = prior + np.linalg.solve(gram, rows.T @ (seen - rows @ prior))
        errors = seen - rows @ fitted
        spread = max(_LEAST_SPREAD, float(np.sqrt((errors @ errors + 1.0) / (len(seen) + 1.0))))
        # The logistic curve that is closest to the normal one.
        scale = -1.7 / spread
        parts = [scale * weight * part[side] for weight, part, side in zip(fitted[1:], self.told, within, strict=True)]
        shift = np.float32(scale * (fitted[0] - np.log1p(limit + 0.5)))
        odds = outer_sum([part.astype(np.float32) for part in parts]) + shift
        np.minimum(odds, np.float32(50.0), out=odds)
        np.exp(odds, out=odds)
        odds += np.float32(1.0)
        return np.asarray(np.reciprocal(odds, out=odds))


def _entropy(frequency: Floats | Ints) -> float:
    share = frequency[frequency > 0] / max(float(frequency.sum()), 1.0)
    return float(-(share * np.log2(share)).sum())
