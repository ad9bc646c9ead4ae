"""Risk against error: what each setting of the two dials of `calibrating` comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polyseme.analysis.calibrating import expected_error, parts_of, success_curve
from polyseme.analysis.learner import Population
from polyseme.arrays import Ints
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.tempered import RAREST, tempered
from polyseme.distances.structure import Structure
from polyseme.mechanism import Mechanism

__all__ = ["Point", "learner_frontier"]


@dataclass(frozen=True)
class Point:
    """One setting of the two dials, the same in every stratum.

    success, worst  of a learner: on average, and in the worst stratum
    error           expected `F N` times the mean squared error of the shares; None where it is not computed
    """

    alpha: float
    p: float
    success: float
    worst: float
    error: float | None

    def root_error(self, size: int, records: int) -> float | None:
        return None if self.error is None else float(np.sqrt(self.error / (size * records)))


def learner_frontier(
    structure: Structure,
    l: int,
    population: Population,
    alphas: Iterable[float],
    truths: Iterable[float],
    strata: Ints | None = None,
) -> list[Point]:
    """Risk against error for every pair of dials. At alpha = 0 there is one mechanism for all, and one stratum."""
    parts, chances = parts_of(population, strata), list(truths)
    points: list[Point] = []
    for alpha in alphas:
        served = [(1.0, population)] if alpha == 0.0 else parts
        designs = [tempered(structure, l, part.margin, alpha) for _, part in served]
        points += [_point(alpha, p, designs, served, parts) for p in chances]
    return points


def _point(
    alpha: float,
    p: float,
    designs: list[MaximumEntropy],
    served: list[tuple[float, Population]],
    parts: list[tuple[float, Population]],
) -> Point:
    each = designs * len(parts) if len(designs) < len(parts) else designs
    risks = [success_curve(design, part)(p) for design, (_, part) in zip(each, parts, strict=True)]
    average = sum(weight * risk for (weight, _), risk in zip(parts, risks, strict=True))
    total: float | None = 0.0
    for design, (weight, part) in zip(designs, served, strict=True):
        error = expected_error(Mechanism(design, p), np.maximum(part.margin, RAREST))
        total = None if error is None or total is None else total + weight * error
    return Point(alpha, p, average, max(risks), total)
