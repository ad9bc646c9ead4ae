"""A mechanism is a design plus a truth probability; everything else follows from its channel

    P(R | v) = p * K(R | v) + (1 - p) * B(R)

where
    R        the published set of l candidates
    v        the true value
    p        truth probability: with p the set is drawn given that it contains v, otherwise blindly
    K, B     the design's conditional and blind distributions; for one distribution P over valid sets,
             K(R | v) = P(R) [v in R] / rho_v and B = P
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyseme.designs.base import Design
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.kernel.randomness import RecordStream, Stream, SystemStream
from polyseme.semantics.distances.base import MATRIX_LIMIT

__all__ = ["Mechanism"]

_CHUNK = 1 << 16
_FEW = 200_000
"""Values times sets up to which it is quicker to list the sets. A judgment."""
_LISTED = 20_000_000
"""Largest number of values times sets for which a channel is formed: 160 MB. A judgment."""


@dataclass(frozen=True, eq=False)
class Mechanism:
    """How one attribute is published."""

    design: Design
    p: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.p <= 1.0:
            raise PolicyError(f"a truth probability lies between 0 and 1, not {self.p}")

    @property
    def size(self) -> int:
        """F, the number of values of the domain."""
        return self.design.size

    @property
    def l(self) -> int:  # noqa: E743 - the field's own letter
        """How many candidates each set holds."""
        return self.design.l

    @property
    def draws(self) -> int:
        """How many uniform numbers one record takes."""
        return self.design.draws if self.p == 1.0 else self.design.draws + 2

    def sample(self, codes: Ints, stream: Stream) -> Ints:
        """A set for each true value: (n, l), rows ascending."""
        codes = np.asarray(codes, dtype=np.int64)
        if len(codes) <= _CHUNK or not isinstance(stream, SystemStream | RecordStream):
            return self._draw(codes, stream)
        # Uniform numbers are used while they are still in the cache; a sticky stream serves all its records at once.
        sets = np.empty((len(codes), self.l), dtype=np.int64)
        for start in range(0, len(codes), _CHUNK):
            part = slice(start, start + _CHUNK)
            mine = stream.take(part) if isinstance(stream, RecordStream) else stream
            sets[part] = self._draw(codes[part], mine)
        return sets

    def _draw(self, codes: Ints, stream: Stream) -> Ints:
        uniforms = stream.uniforms(self.draws, len(codes))
        if self.p == 1.0:
            return self.design.sample(codes, uniforms)
        truthful = uniforms[0] < self.p
        sets = np.empty((len(codes), self.l), dtype=np.int64)
        sets[truthful] = self.design.sample(codes[truthful], uniforms[2:, truthful])
        sets[~truthful] = self.design.sample_blind(uniforms[1:, ~truthful])
        return sets

    def log_channel(self, codes: Ints, sets: Ints) -> Floats:
        """`ln P(R | v)` for each set and one value v each: (n,)."""
        if self.p == 1.0:
            return self.design.log_given(codes, sets)
        with np.errstate(divide="ignore"):
            truthful = np.log(self.p) + self.design.log_given(codes, sets)
        return np.asarray(np.logaddexp(truthful, np.log1p(-self.p) + self.design.log_blind(sets)), dtype=np.float64)

    def weights(self, sets: Ints) -> tuple[Floats, Floats]:
        """`P(R | v)` up to a factor of the set: for members (n, l), and for values outside (n,)."""
        return self.design.weights(sets, self.p)

    def never_drawn(self, sets: Ints) -> int:
        """How many of these sets have no chance under any value, as far as their weights tell."""
        inside, outside = self.weights(sets)
        return int(np.count_nonzero((inside.max(axis=1, initial=0.0) <= 0.0) & (outside <= 0.0)))

    def inclusion_given(self, codes: Ints) -> Floats:
        """Rows of `Q[v, u] = P(u in R | v)` for the given true values."""
        return self.design.inclusion_given(codes, self.p)

    def inclusion_matrix(self) -> Floats:
        """`Q`, whole; refuses domains beyond `MATRIX_LIMIT`."""
        if self.size > MATRIX_LIMIT:
            raise ImpossibleError(f"the inclusion matrix is refused for {self.size:,} values (limit {MATRIX_LIMIT:,})")
        return self.inclusion_given(np.arange(self.size))

    def channel(self) -> tuple[Ints, Floats]:
        """Every valid set and `P(R | v)` as a (F, sets) matrix; for small domains and tests."""
        return self._few if self.lists(_FEW) else self._channel()

    @cached_property
    def _few(self) -> tuple[Ints, Floats]:
        """The channel of a small mechanism, which is asked for again and again."""
        sets, channel = self._channel()
        sets.setflags(write=False)
        channel.setflags(write=False)
        return sets, channel

    def _channel(self) -> tuple[Ints, Floats]:
        sets = self.design.sets()
        likelihood = self.design.likelihood(sets)
        channel = np.repeat((1.0 - self.p) * self.design.blind_likelihood(sets)[None, :], self.size, axis=0)
        columns = np.repeat(np.arange(len(sets)), self.l)
        np.add.at(channel, (sets.ravel(), columns), self.p * likelihood.ravel())
        return sets, channel

    def lists(self, numbers: int = _LISTED) -> bool:
        """Whether its channel has at most so many numbers."""
        if numbers not in self._listed:
            self._listed[numbers] = self.design.has_at_most(numbers // self.size)
        return self._listed[numbers]

    @cached_property
    def _listed(self) -> dict[int, bool]:
        """What `lists` has found before: to count sets takes a while."""
        return {}

    def information(self, shares: Floats) -> Floats | None:
        """`sum_R P(R | v) P(R | u) / P(R)`: (F, F).

        The Fisher information of a report about shares that are positive.

        None where there are too many sets to list, and the structure of the design does not give it either.
        """
        known = None if self.lists(_FEW) else self.design.information(shares, self.p)
        if known is not None or not self.lists():
            return known
        _, channel = self.channel()
        expected = shares @ channel
        scaled = np.divide(channel, expected, out=np.zeros_like(channel), where=expected > 0.0)
        return np.asarray(scaled @ channel.T, dtype=np.float64)

    def worst_posterior(self, prior: Floats | None = None) -> float:
        """The largest `P(v | R)` any set can give an attacker with this prior (uniform by default).

        Exact.
        """
        prior = np.full(self.size, 1.0 / self.size) if prior is None else np.asarray(prior, dtype=np.float64)
        return self.design.worst_posterior(prior, self.p)
