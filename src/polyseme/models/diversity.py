"""l-diversity of published sets: every set offers at least l different candidates of the domain.

    |R| >= l   and   R is a subset of V   for every published set R

where
    R    the set of candidates published for a record
    V    the domain of the attribute

This is what a record promises by itself; how likely each candidate is, is a matter of the mechanism
(`Mechanism.worst_posterior`).
"""

from __future__ import annotations

import numpy as np

from polyseme.models.base import Score, Verdict, judge
from polyseme.tables.classes import PublishedSets

__all__ = ["check", "strangers"]


def strangers(sets: PublishedSets) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which sets have a candidate outside the domain."""
    owner = np.repeat(np.arange(len(sets.counts)), np.diff(sets.starts))
    return np.bincount(owner[sets.value < 0], minlength=len(sets.counts)) > 0


def check(sets: PublishedSets, l: int) -> Verdict:
    """Has every set at least l different candidates, all of them from the domain?

    >>> check(PublishedSets.from_codes(np.array([[0, 2], [1, 1]]), 3), l=2).holds
    False
    """

    def score() -> Score:
        strange = strangers(sets)
        note = f"{int(strange.sum()):,} sets have a candidate outside the domain" if strange.any() else ""
        return Score(sets.distinct, (sets.distinct >= l) & ~strange, l, at_least=True, note=note)

    return judge("diversity", sets.attribute, {"l": l}, sets, sets.counts, score)
