"""Sets with at most one value of each cluster: clusters are drawn first, then a value of each.

Where all clusters are alike, the others are drawn one after the other among those that are left, by their rank there.
Otherwise they form a chain in which any cluster may follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from polyseme.device.chain import Chain
from polyseme.device.fields import LARGEST, Fields
from polyseme.device.stream import KeyStream
from polyseme.device.workload import MOST_VALUES

__all__ = ["Clusters"]


class Clusters:
    """Sets of `l` values of different clusters.

    labels   the cluster of each value
    weights  of the clusters; None where they are alike
    shares   weights of the values within their clusters; None where they are alike
    full     clusters of which every set holds a value
    """

    fields = ("size", "labels", "weights", "shares", "full")

    def __init__(
        self,
        l: int,
        labels: Sequence[int],
        weights: Sequence[int] | None,
        shares: Sequence[int] | None,
        full: Sequence[int],
    ) -> None:
        self.l, self.size, self.labels, self.weights, self.shares = l, len(labels), labels, weights, shares
        self.members: list[list[int]] = [[] for _ in range(max(labels) + 1)]
        for code, label in enumerate(labels):
            self.members[label].append(code)
        count = len(self.members)
        self.chain = None if weights is None else Chain(l, range(1, count + 1), full, weights)

    @classmethod
    def read(cls, fields: Fields, l: int, declared: bool) -> Clusters:
        if ("size" in fields.given) is ("labels" in fields.given):
            fields.wrong("labels", "expected exactly one of size and labels")
        if "size" in fields.given:
            size = fields.integer("size", 1, MOST_VALUES)
            fields.charge(8 * size)
            labels = list(range(size))
        else:
            labels = fields.integers("labels", 0, MOST_VALUES - 1)
            fields.charge(8 * len(labels))
        count = max(labels, default=-1) + 1
        if not 0 < len(labels) <= MOST_VALUES or len(set(labels)) < count:
            fields.wrong("labels", f"expected 1 to {MOST_VALUES:,} values, and one at least in each cluster")
        weights = fields.integers("weights", 1, LARGEST, count) if "weights" in fields.given else None
        shares = fields.integers("shares", 1, LARGEST, len(labels)) if "shares" in fields.given else None
        full = fields.ascending("full", count) if "full" in fields.given else []
        if l > count:
            fields.wrong("l", f"sets of {l:,} candidates from {count:,} clusters")
        if (len(full) >= l and l < count) or (weights is None and 0 < len(full) < l):
            fields.wrong("full", "clusters that cannot all be in every set, or leave no room for others")
        fields.done()
        fields.charge(l * l * (1 if weights is None else count))
        return cls(l, labels, weights, shares, full)

    def given(self, code: int, stream: KeyStream) -> list[int]:
        own = self.labels[code]
        chosen = self.chain.given(own, stream) if self.chain else self._distinct([own], stream)
        return sorted(code if cluster == own else self._member(cluster, stream) for cluster in chosen)

    def blind(self, stream: KeyStream) -> list[int]:
        chosen = self.chain.blind(stream) if self.chain else self._distinct([], stream)
        return sorted(self._member(cluster, stream) for cluster in chosen)

    def _distinct(self, taken: list[int], stream: KeyStream) -> list[int]:
        """Clusters by their rank among those that are not taken, until there are `l`; ascending."""
        while len(taken) < self.l:
            number = stream.below(len(self.members) - len(taken))
            place = 0
            while place < len(taken) and taken[place] <= number:
                number, place = number + 1, place + 1
            taken.insert(place, number)
        return taken

    def _member(self, cluster: int, stream: KeyStream) -> int:
        members = self.members[cluster]
        if len(members) == 1:
            return members[0]
        if self.shares is None:
            return members[stream.below(len(members))]
        return members[stream.between(self._share_sums[cluster], 0, len(members))]

    @cached_property
    def _share_sums(self) -> list[list[int]]:
        shares = self.shares or ()
        return [[0, *accumulate(shares[code] for code in members)] for members in self.members]

    def inclusion(self) -> list[float]:
        count = len(self.members)
        rho = self.chain.inclusion() if self.chain else [self.l / count] * count
        if self.shares is None:
            return [rho[label] / len(self.members[label]) for label in self.labels]
        return [
            rho[label] * (share / self._share_sums[label][-1])
            for label, share in zip(self.labels, self.shares, strict=True)
        ]

    def lightest(self, cost: Sequence[float]) -> list[float]:
        cheapest = [min(cost[code] for code in members) for members in self.members]
        least = self.chain.lightest(cheapest) if self.chain else self._cheapest(cheapest)
        # The value itself in the place of the cheapest of its cluster.
        return [least[label] - cheapest[label] + cost[code] for code, label in enumerate(self.labels)]

    def partners(self, values: Sequence[float]) -> list[float]:
        largest = [max(values[code] for code in members) for members in self.members]
        found = self.chain.partners(largest) if self.chain else _largest_others(largest, self.l)
        return [found[label] for label in self.labels]

    def _cheapest(self, cost: Sequence[float]) -> list[float]:
        cheap = sorted(cost)[: self.l]
        # A cluster that is not among the cheapest takes the room of the dearest of them.
        return [max(one - cheap[-1], 0.0) + sum(cheap) for one in cost]


def _largest_others(values: Sequence[float], l: int) -> list[float]:
    """For each cluster, the largest value of another one; 0 where sets have one candidate."""
    first = max(range(len(values)), key=values.__getitem__)
    second = max((value for place, value in enumerate(values) if place != first), default=0.0)
    return [(second if place == first else values[first]) if l > 1 else 0.0 for place in range(len(values))]
