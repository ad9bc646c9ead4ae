"""What a test of published sets found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.estimators.likelihood import likelihood_of
from polyseme.estimators.solver import MATRIX_CELLS, maximise, tolerance_for
from polyseme.mechanism import Mechanism

__all__ = ["Evidence", "Finding", "fitted", "impossible", "least", "nothing", "tally"]

_STEPS, _STEPS_WITHOUT_MATRIX = 200, 6
"""Most steps of the fit: to convergence where a matrix makes them cheap, otherwise a few. Chosen by judgment; the
level and the power that go with it are measured in `benchmarks/evidence.py`."""


@dataclass(frozen=True)
class Finding:
    """One statistic.

    name     of the statistic
    value    what it came to
    tail     logarithm of the probability of something as unlikely, for each of `looks` looks
    looks    how many chances it had to be unlikely
    freedom  degrees of freedom, where a statistic has them
    """

    name: str
    value: float
    tail: float
    looks: int = 1
    freedom: int | None = None

    @property
    def log_p(self) -> float:
        return min(0.0, self.tail + float(np.log(self.looks)))


@dataclass(frozen=True)
class Evidence:
    """Whether published sets can have come from a mechanism.

    p_value   the probability, at most, of sets that fit as badly when the mechanism was followed
    records   how many independent records it rests on
    findings  the statistics behind it
    note      what the reader must know
    """

    p_value: float
    records: float
    findings: tuple[Finding, ...] = field(default=())
    note: str = ""

    def parameters(self) -> Mapping[str, Any]:
        """The statistics, for a verdict."""
        shown: dict[str, Any] = {}
        for finding in self.findings:
            if finding.freedom is None:
                shown[f"{finding.name}_p_value"] = float(np.exp(finding.log_p))
            else:
                shown |= {finding.name: finding.value, "degrees_of_freedom": finding.freedom}
        return shown


def least(findings: Sequence[Finding], records: float, note: str = "") -> Evidence:
    """The evidence of several statistics: the least likely one counts, and that there were several."""
    best = min((finding.log_p for finding in findings), default=0.0)
    return Evidence(float(min(np.exp(best) * max(len(findings), 1), 1.0)), float(records), tuple(findings), note)


def impossible(records: float, note: str) -> Evidence:
    """Something was published that the mechanism never publishes."""
    return Evidence(0.0, float(records), (), note)


def nothing(records: float, note: str) -> Evidence:
    """Nothing could be tested."""
    return Evidence(1.0, float(records), (), note)


def tally(places: Ints, weights: Floats, size: int) -> Floats:
    """The sum of the weights at each place: (size,)."""
    return np.asarray(np.bincount(places, weights, size), dtype=np.float64)


def fitted(sets: Ints, counts: Floats, mechanism: Mechanism) -> tuple[Floats, float]:
    """The shares of true values under which the sets are likeliest, and by how much, per record, they can be missed."""
    likelihood = likelihood_of((sets,), np.ones(len(sets), dtype=np.int64), (mechanism,)).counting(counts)
    steps = _STEPS if likelihood.size <= MATRIX_CELLS else _STEPS_WITHOUT_MATRIX
    solution = maximise(likelihood, tolerance_for(likelihood.records), steps)
    return solution.x, solution.gap
