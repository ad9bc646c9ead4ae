"""What a test of published sets found, and p-values that hold for few records and for many.

Chi-square approximations fail where sets are many and records few, which is where most tables are. So every p-value
here is a Chernoff bound, `P(T >= t) <= min over theta of E exp(theta T) / exp(theta t)`: never too small for the
distribution it is computed from, and too large by a small factor only.

- `share_tail`: a count of n independent records against its probability. Records that differ in their probabilities
  (people have different true values) are only more regular than that.
- `deviance_tail`: the deviance `2 sum c ln(c / e)` of counts against expected ones. Each cell contributes what a
  Poisson count does, computed for its own `e`, so cells with an expectation of a millionth are as welcome as full ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp, rel_entr

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.likelihood import likelihood_of
from polyseme.inference.solver import MATRIX_CELLS, maximise, tolerance_for
from polyseme.kernel.arrays import Floats, Ints

__all__ = [
    "Evidence",
    "Finding",
    "deviance",
    "deviance_tail",
    "fitted",
    "impossible",
    "least",
    "nothing",
    "share_tail",
    "tally",
]

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
    """The evidence of several statistics: the least likely one, corrected for their number."""
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
    """The shares of true values under which the sets are likeliest, and the gap per record."""
    likelihood = likelihood_of((sets,), np.ones(len(sets), dtype=np.int64), (mechanism,)).counting(counts)
    steps = _STEPS if likelihood.size <= MATRIX_CELLS else _STEPS_WITHOUT_MATRIX
    solution = maximise(likelihood, tolerance_for(likelihood.records), steps)
    return solution.x, solution.gap


_THETA: Floats = np.array([0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.43, 0.45])
"""Where the moment generating function of a deviance is looked at; it is infinite from one half on."""
_LOWEST, _HIGHEST, _TAIL_STEPS = -12.0, 2.5, 24
"""Powers of ten of the expectations that are tabled, and steps in each; beyond, cells are like chi-square variables."""


def share_tail(counts: Floats, trials: Floats | float, probability: Floats | float) -> Floats:
    """Logarithm of a bound on the probability of a count as far out, on its side, as each one.

    >>> bool(np.isclose(share_tail(np.array([10.0]), 10, 0.5), 10 * np.log(0.5))[0])
    True
    """
    trials = np.maximum(np.asarray(trials, dtype=np.float64), np.finfo(float).tiny)
    share = np.clip(counts / trials, 0.0, 1.0)
    likely = np.clip(np.asarray(probability, dtype=np.float64), 0.0, 1.0)
    return np.asarray(-trials * (rel_entr(share, likely) + rel_entr(1.0 - share, 1.0 - likely)), dtype=np.float64)


def deviance(counts: Floats, expected: Floats) -> float:
    """`2 sum (c ln(c / e) - c + e)`; infinite where something happened that cannot."""
    return 2.0 * float((rel_entr(counts, expected) - counts + expected).sum())


def deviance_tail(found: float, expected: Floats) -> float:
    """Logarithm of a bound on the probability of so large a deviance from these expectations.

    >>> deviance_tail(36.0, np.full(36, 50.0)), deviance_tail(5598.0, np.full(36, 50.0)) < -2000
    (0.0, True)
    """
    if not np.isfinite(found):
        return -np.inf
    growth = _table() @ _spread(expected[expected > 0.0])
    return min(0.0, float((growth - _THETA * found).min()))


def _spread(expected: Floats) -> Floats:
    """How many cells stand at each tabled expectation; one between two is shared between them."""
    steps = round((_HIGHEST - _LOWEST) * _TAIL_STEPS)
    place = np.clip((np.log10(expected) - _LOWEST) * _TAIL_STEPS, 0.0, steps)
    below = np.minimum(place.astype(np.int64), steps - 1)
    above = place - below
    size = steps + 1
    spread = np.bincount(below, 1.0 - above, size) + np.bincount(below + 1, above, size)
    return np.asarray(spread, dtype=np.float64)


@cache
def _table() -> Floats:
    """`ln E exp(theta D)` of the deviance D of a Poisson count: (thetas, expectations)."""
    powers = np.linspace(_LOWEST, _HIGHEST, round((_HIGHEST - _LOWEST) * _TAIL_STEPS) + 1)
    return np.column_stack([_growth(10.0**power) for power in powers])


def _growth(mean: float) -> Floats:
    counts = np.arange(int(mean + 40.0 * np.sqrt(mean)) + 160, dtype=np.float64)
    chance = counts * np.log(mean) - mean - gammaln(counts + 1.0)
    apart = 2.0 * (rel_entr(counts, mean) - counts + mean)
    return np.asarray(logsumexp(chance + _THETA[:, None] * apart, axis=1), dtype=np.float64)
