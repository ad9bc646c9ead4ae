"""The sharp design: the promise of the balanced design at the least expected error.

Among all distributions over valid sets with inclusion probabilities `rho = l * pi` every member of every set has
posterior 1/l under the prior `pi`; the one of maximum entropy is the smoothest of them, not the one that estimates
best. The sharp design minimises the expected squared error of the shares (`sharpening.py`). Its probabilities follow no
formula, so they are listed, one for each valid set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs.balanced import balanced, proper_prior
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.enumerated import EnumeratedDesign, ListedFamily
from polyseme.designs.listing import count_sets, list_sets
from polyseme.designs.portable import document, whole
from polyseme.designs.sharpening import sharpen
from polyseme.distances.structure import Structure
from polyseme.errors import ImpossibleError

__all__ = ["SHARP_LIMIT", "VALUES_LIMIT", "SharpDesign", "sharp"]

SHARP_LIMIT = 50_000
"""Most valid sets whose probabilities are listed: a manifest of about a megabyte."""
VALUES_LIMIT = 50
"""Most values: the problem is solved over their pairs, which takes some seconds here and soon minutes beyond."""

_NEVER = 1e-13
"""Sets that are drawn more rarely than this are not drawn at all; inclusion changes by less than its tolerance."""


class GivenFamily(ListedFamily):
    """A distribution over listed sets by their probabilities."""

    def __init__(self, sets: Ints, probability: Floats, size: int) -> None:
        self.sets, self.size = sets, size
        self.probability = probability
        self.log_partition = 0.0


class SharpDesign(EnumeratedDesign):
    """A design by the probability of each valid set.

    probabilities  of all valid sets in lexicographic order
    gap            how much lower the least expected error can be, as a share of this one's; None when it was read
    """

    def __init__(
        self, structure: Structure, l: int, probabilities: Floats, name: str = "sharp", gap: float | None = None
    ) -> None:
        MaximumEntropy.__init__(self, structure, l, name)
        self.gap = gap
        self._probabilities = probabilities
        self._all = list_sets(structure, l)
        drawn = probabilities > 0.0
        self.possible = self._all[drawn]
        self.family = GivenFamily(self.possible, probabilities[drawn] / probabilities.sum(), structure.size)

    def portable(self, p: float = 1.0) -> dict[str, Any]:
        sets, chance = self.possible.tolist(), self.family.probability
        return document("table", self.l, p, size=self.size, sets=sets, weights=whole(np.log(chance)))

    def parameters(self) -> Mapping[str, Any]:
        return {"probabilities": self._probabilities.tolist()}


def sharp(
    structure: Structure, l: int, prior: Floats | None = None, labels: Sequence[object] | None = None
) -> SharpDesign:
    """The design with inclusion `l * prior` and the least expected error; refuses where sets are too many to list."""
    _check_size(structure, l)
    even = balanced(structure, l, prior, labels)
    sets = even.sets()
    start = np.exp(even.log_probability(sets))
    possible = start > 0.0
    found = sharpen(sets[possible], l * proper_prior(prior, structure.size), start[possible])
    if found is None:
        # Nothing can be estimated whatever the design; the smoothest will do.
        return SharpDesign(structure, l, start / start.sum(), gap=None)
    probabilities = np.zeros(len(sets))
    probabilities[possible] = np.where(found.probability > _NEVER, found.probability, 0.0)
    return SharpDesign(structure, l, probabilities, gap=found.gap / found.error if found.error > 0.0 else 0.0)


def _check_size(structure: Structure, l: int) -> None:
    hint = "use `mechanism: balanced`, which keeps the same promise and needs no list"
    if structure.size > VALUES_LIMIT:
        what = f"the sharp design is made for at most {VALUES_LIMIT} values, not for {structure.size:,}"
        raise ImpossibleError(what, hint)
    count = count_sets(structure, l)
    if count > SHARP_LIMIT:
        what = f"the sharp design lists every valid set: {count:,} are too many (limit {SHARP_LIMIT:,})"
        raise ImpossibleError(what, hint)
