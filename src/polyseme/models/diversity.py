"""Kinds of l-diversity: of published sets, and distinct, entropy, frequency and recursive.

*l-diversity of published sets*: every set offers at least l different candidates of the domain.

    |R| >= l   and   R is a subset of V   for every published set R

where
    R    the set of candidates published for a record
    V    the domain of the attribute

This is what a record promises by itself; how likely each candidate is, is a matter of the mechanism
(`Mechanism.worst_posterior`).

*Distinct l-diversity*: every class has at least l different sensitive values.

    |{s : n(E, s) > 0}| >= l   for every class E

*Entropy l-diversity*: the sensitive values of every class have at least the entropy of l equally frequent values.

    - sum_s p(s) ln p(s) >= ln l,   p(s) = n(E, s) / |E|

where
    n(E, s)  records of E with sensitive value s; where people are counted, p(s) is over the sum of their counts
    l        at least 1, need not be whole

The entropies are compared, with a tolerance of 1e-12, and nothing is rounded down. The worst value is the exponential
of the entropy: the effective number of values, 2.83 say, which fails l = 3.

*Frequency l-diversity*: no sensitive value has more than 1/l of a class.

    n(E, s) * l <= |E|   for every class E and value s

where
    n(E, s)  records of E with sensitive value s
    l        at least 1, need not be whole

Compared in integers for a whole `l`. The worst value is `|E| / max_s n(E, s)`, the largest l the class satisfies.
With the other sensitive quasi-identifiers as known this is (l1, ..., lq)-diversity (Sei, Okumura, Takenouchi
and Ohsuga, Definition 12), one verdict for each of them.

*Recursive (c, l)-diversity*: the most frequent value is not too frequent, even after l - 2 others are ruled out.

    r_1 < c * (r_l + r_(l+1) + ... + r_m)   for every class

where
    r_1 >= r_2 >= ... >= r_m   the counts of the m different sensitive values of the class, in descending order
    c > 0, l >= 1

A class with fewer than l different values fails: its sum is empty. The worst value is `r_1 / (r_l + ... + r_m)`, which
must stay below c.
"""

from __future__ import annotations

import math

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.models.base import SLACK, TOLERANCE, Score, Verdict, judge
from polyseme.tables.equivalence_classes import Counts, PublishedSets

__all__ = [
    "at_least",
    "check",
    "check_distinct",
    "check_entropy",
    "check_frequency",
    "check_recursive",
    "entropies",
    "largest_count",
    "score_distinct",
    "score_entropy",
    "score_frequency",
    "score_recursive",
    "strangers",
]


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


def score_distinct(counts: Counts, l: int) -> Score:
    """How many different values each class has."""
    return Score(counts.distinct, counts.distinct >= l, l, at_least=True)


def at_least(counts: Counts, l: float) -> Bools:
    """Whether each class has l different values, which every other kind of l-diversity implies."""
    return np.asarray(counts.distinct >= math.ceil(l - SLACK))


def check_distinct(counts: Counts, l: int) -> Verdict:
    """Does every class have at least l different values?"""
    return judge(
        "distinct-diversity", counts.attribute, {"l": l}, counts, counts.sizes, lambda: score_distinct(counts, l)
    )


def entropies(counts: Counts) -> Floats:
    """The entropy of each class, in nats."""
    share = counts.count / counts.spread.sizes[counts.owner]
    return np.add.reduceat(-share * np.log(share), counts.starts[:-1])


def score_entropy(counts: Counts, l: float) -> Score:
    """The effective number of values of each class."""
    entropy = entropies(counts)
    return Score(np.exp(entropy), entropy >= math.log(l) - TOLERANCE, l, at_least=True)


def check_entropy(counts: Counts, l: float) -> Verdict:
    """Is the entropy of every class at least ln l?"""
    return judge(
        "entropy-diversity", counts.attribute, {"l": l}, counts, counts.sizes, lambda: score_entropy(counts, l)
    )


def largest_count(counts: Counts) -> Ints:
    """`max_s n(E, s)` of each class."""
    return np.maximum.reduceat(counts.count, counts.starts[:-1])


def score_frequency(counts: Counts, l: float) -> Score:
    """The largest l that each class satisfies."""
    largest = largest_count(counts)
    value = counts.sizes / largest
    fine = largest * int(l) <= counts.sizes if float(l).is_integer() else value >= l
    return Score(value, fine, l, at_least=True)


def check_frequency(counts: Counts, l: float) -> Verdict:
    """Is every value at most a share 1/l of its class?"""
    return judge(
        "frequency-diversity", counts.attribute, {"l": l}, counts, counts.sizes, lambda: score_frequency(counts, l)
    )


def _head_and_tail(counts: Counts, l: int) -> tuple[Ints, Ints]:
    """`r_1` and `r_l + ... + r_m` of each class."""
    order = np.lexsort((-counts.count, counts.owner))
    descending = counts.count[order]
    place = np.arange(len(descending)) - counts.starts[:-1][counts.owner]
    tail = np.add.reduceat(np.where(place >= l - 1, descending, 0), counts.starts[:-1])
    return descending[counts.starts[:-1]], tail


def score_recursive(counts: Counts, c: float, l: int) -> Score:
    """The most frequent value of each class over what remains from the l-th on."""
    head, tail = _head_and_tail(counts, l)
    value = np.divide(head, tail, out=np.full(len(head), np.inf), where=tail > 0)
    fine = head < int(c) * tail if float(c).is_integer() else value < c
    return Score(value, fine, c, at_least=False, strict=True)


def check_recursive(counts: Counts, c: float, l: int) -> Verdict:
    """Is the most frequent value of every class below c times what remains from the l-th on?"""
    parameters = {"c": c, "l": l}
    return judge(
        "recursive-diversity", counts.attribute, parameters, counts, counts.sizes, lambda: score_recursive(counts, c, l)
    )
