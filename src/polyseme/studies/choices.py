"""The distributions of values and the designs that studies of coverage choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.designs import make_design
from polyseme.distances import CircleDistance, Distance, LineDistance
from polyseme.distances.structure import Clusters
from polyseme.mechanism import Mechanism

__all__ = ["DESIGNS", "TRUTHS", "DesignChoice"]

Generator: TypeAlias = np.random.Generator
Truth: TypeAlias = Callable[[int, Generator], Floats]


def _smooth(size: int, _: Generator) -> Floats:
    return np.asarray(np.exp(-0.5 * ((np.arange(size) - 0.4 * size) / (0.25 * size)) ** 2))


def _steep(size: int, _: Generator) -> Floats:
    return np.power(0.45, np.arange(size, dtype=np.float64))


def _spike(size: int, _: Generator) -> Floats:
    shares = np.full(size, 0.01 / (size - 1))
    shares[-1] = 0.99
    return shares


def _one(size: int, _: Generator) -> Floats:
    return np.asarray(np.eye(size)[0], dtype=np.float64)


def _sparse(size: int, random: Generator) -> Floats:
    shares, some = np.zeros(size), random.choice(size, max(2, size // 5), replace=False)
    shares[some] = random.uniform(0.3, 1.0, len(some))
    return shares


def _bimodal(size: int, _: Generator) -> Floats:
    places = np.arange(size) / size
    return np.asarray(np.exp(-0.5 * ((places - 0.2) / 0.08) ** 2) + np.exp(-0.5 * ((places - 0.8) / 0.08) ** 2))


TRUTHS: Mapping[str, Truth] = MappingProxyType(
    {
        "uniform": lambda size, _: np.ones(size),
        "smooth": _smooth,
        "steep": _steep,
        "spike": _spike,
        "one": _one,
        "sparse": _sparse,
        "bimodal": _bimodal,
    }
)


def _line(size: int) -> Distance:
    return LineDistance.ranks(size)


@dataclass(frozen=True)
class DesignChoice:
    """A design that can also be made for some of the values only."""

    size: int
    l: int
    d: float
    p: float = 1.0
    distance: Callable[[int], Distance] | None = _line
    name: str = "balanced"

    @lru_cache(maxsize=256)  # noqa: B019 - a few frozen choices, kept for the length of a study
    def mechanism(self, excluded: int | None = None) -> tuple[Mechanism, Ints, Floats]:
        """The mechanism without one of the values, its sets and its channel."""
        allowed = np.delete(np.arange(self.size), [] if excluded is None else [excluded])
        near = None if self.distance is None else self.distance(self.size).among(allowed)
        structure = Clusters(np.arange(len(allowed))) if near is None else near.structure(self.d)
        mechanism = Mechanism(make_design(self.name, structure, l=self.l), self.p)
        sets, channel = mechanism.channel()
        return mechanism, sets, channel / channel.sum(axis=1, keepdims=True)


def _randomised(size: int, l: int, epsilon: float) -> DesignChoice:
    """Subsets that keep local differential privacy."""
    odds = (np.exp(epsilon) - 1.0) * l / size
    return DesignChoice(size, l, 1.0, float(odds / (1.0 + odds)), None)


DESIGNS: Mapping[str, DesignChoice] = MappingProxyType(
    {
        "line (3,3)": DesignChoice(12, 3, 3),
        "line (3,4)": DesignChoice(14, 3, 4),
        "line (2,6)": DesignChoice(14, 2, 6),
        "line (2,2)": DesignChoice(14, 2, 2),
        "circle (3,2)": DesignChoice(10, 3, 2, 1.0, CircleDistance.ranks),
        "any 3 of 12": DesignChoice(12, 3, 1.0, 1.0, None),
        "simple (3,3)": DesignChoice(12, 3, 3, 1.0, _line, "simple"),
        "line (3,2), p 0.7": DesignChoice(10, 3, 2, 0.7),
        "epsilon 3": _randomised(10, 1, 3.0),
        "epsilon 1": _randomised(10, 3, 1.0),
    }
)
