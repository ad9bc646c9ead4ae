"""Keeping a learner's success below a promise, at the least expected error.

Two parameters lower it: the strength alpha of the reference prior (`polyseme.designs.balanced`), and the truth
probability p. For each stratum, people who share a mechanism, and each alpha

- the success `V(p)` is convex and never falls with p, so the largest p that keeps the promise is found by bisection;
- the expected error falls with p, so that p is the best one for this alpha;

and the best alpha is searched. Strata are calibrated one by one: the promise is kept in each, and the squared errors of
the shares of all people add up,

    mean squared error = sum_q P(q) e_q / (F N),        e_q = tr I_q^-1 - 1

with `I_q` the Fisher information of a report about the shares of its stratum.

The trade-off of risk against error lists what each setting of the two parameters comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.designs.balanced import RAREST, near_floor, tempered
from polyseme.designs.distribution import MaximumEntropy, restrict
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.work import check_cancelled
from polyseme.privacy.analysis.learner import Population, success
from polyseme.privacy.analysis.lower_bound import Floor, floor
from polyseme.privacy.analysis.summary import least_limit, spectrum, thresholds
from polyseme.semantics.distances.base import Clusters, Distance, Structure

__all__ = [
    "Calibrated",
    "Calibration",
    "Point",
    "Values",
    "calibrate",
    "expected_error",
    "learner_frontier",
    "parts_of",
    "success_curve",
]

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Strengths that are tried first; then halves of the way to either side of the best one, `_REFINED` times."""
_REFINED = 3
"""How often halves are tried: to a 32nd. Chosen by judgment."""
_HALVINGS = 30
"""How often the largest truth probability is halved toward: to 1e-9, what inclusion probabilities are good to."""
_STEPS = (0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""How far from the floor a truthful design stays, where no strength of the prior keeps the promise."""
_LISTED = 20_000
"""Up to so many sets success and error are sums over them; beyond, neither needs a list."""
_SLACK = 1e-9
"""By so much a success may exceed the promise: inclusion probabilities are fitted to a relative 1e-9."""
_NEAREST = 3
"""How many settings that work are named."""
_TRIED = 12
"""Of how many distances below the requested one: chosen by judgment, each of them takes a calibration."""


@dataclass(frozen=True, eq=False)
class Values:
    """The values that some people can have, and which of them may stand in one set.

    size      how many values there are in all
    distance  between all of them; None where any may stand together
    allowed   the codes of those that these people can have; all when None
    """

    size: int
    distance: Distance | None
    allowed: Ints | None = None

    def structure(self, d: float) -> Structure:
        whole = Clusters(np.arange(self.size)) if self.distance is None else self.distance.structure(d)
        return whole if self.allowed is None else restrict(whole, self.allowed)[0]

    def thresholds(self, d: float) -> list[float]:
        """Distances to choose from, up to `d`."""
        if self.distance is None:
            return [d]
        below = [value for value in thresholds(self.distance) if value <= d]
        chosen = np.unique(np.linspace(0, len(below) - 1, _TRIED).astype(int)) if below else ()
        return [below[index] for index in chosen]


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The mechanism of one stratum.

    alpha    strength of the prior its design is made for
    success  of an attacker who knows the distribution in each of its groups
    error    `e_q`: N times F times the mean squared error of its shares; None where it is not computed
    """

    alpha: float
    mechanism: Mechanism
    success: float
    error: float | None

    @property
    def p(self) -> float:
        return self.mechanism.p

    @property
    def cost(self) -> tuple[float, float, float]:
        """What is least for the best: the error; where it is unknown, lying and then strength."""
        # Errors that differ by rounding are alike.
        return (0.0 if self.error is None else float(f"{self.error:.9g}"), 1.0 - self.p, self.alpha)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Mechanisms that keep a learner's success at or below `promised` in every stratum.

    weights  the share of each stratum
    floors   what no truthful mechanism can undercut, by stratum
    before   the learner's success without a release, by stratum
    """

    promised: float
    weights: Floats
    strata: tuple[Calibrated, ...]
    floors: Floats
    before: Floats

    @classmethod
    def together(cls, found: Sequence[Calibration], weights: Floats) -> Calibration:
        """Calibrations for one promise, of parts with these shares of the people."""
        each = [weight * item.weights for weight, item in zip(weights, found, strict=True)]
        return cls(
            found[0].promised,
            np.concatenate(each) / weights.sum(),
            tuple(stratum for item in found for stratum in item.strata),
            np.concatenate([item.floors for item in found]),
            np.concatenate([item.before for item in found]),
        )

    @property
    def success(self) -> float:
        return float(self.weights @ [each.success for each in self.strata])

    @property
    def worst(self) -> float:
        return max(each.success for each in self.strata)

    def root_error(self, records: int) -> float | None:
        """The expected root mean squared error of the shares of all people."""
        errors = [each.error for each in self.strata if each.error is not None]
        if len(errors) < len(self.strata):
            return None
        return float(np.sqrt(self.weights @ errors / (self.strata[0].mechanism.size * records)))

    def lines(self) -> list[str]:
        """The choice in words."""
        alphas, truths = [each.alpha for each in self.strata], [each.p for each in self.strata]
        before, least = float(self.weights @ self.before), float(self.weights @ self.floors)
        worst = f" and {self.worst:.1%} in the worst of {len(self.strata)} strata" if len(self.strata) > 1 else ""
        return [
            f"an attacker who knows the distribution is right with {self.success:.1%} on average{worst} (promised: "
            f"{self.promised:.1%}; without a release {before:.1%}; with truthful sets at least {least:.1%})",
            f"the prior is taken to the power {_span(alphas)}, and a set is drawn around the true value with "
            f"probability {_span(truths)}: the least expected error that keeps the promise",
        ]


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def calibrate(
    values: Distance | Values,
    l: int,
    d: float,
    population: Population,
    success: float,
    *,
    strata: Ints | None = None,
    truthful: bool = False,
    labels: Sequence[object] | None = None,
) -> Calibration:
    """The mechanisms of least expected error with a learner's success of at most `success`.

    values      or the distance between them, where all are possible
    population  the distribution of the values in each group of people that a learner can tell from others
    strata      the stratum of each group: groups of one stratum share a mechanism; by default each is one
    truthful    whether every set must hold the true value (p = 1)
    labels      names of the values for messages

    The promise is kept on average in every stratum. Raises `ImpossibleError` where it cannot be, saying what can.
    """
    values = values if isinstance(values, Values) else Values(values.size, values)
    structure = values.structure(d)
    parts = parts_of(population, strata)
    weights = np.array([float(weight) for weight, _ in parts])
    before = np.array([float(part.weights @ part.shares.max(axis=1)) for _, part in parts])
    if before.max() >= success:
        raise _known_already(float(before.max()), success)
    floors = _floors(structure, l, parts)
    least = np.array([sum(share * each.value for share, each in found) for found in floors])
    if truthful and least.max() > success + _SLACK:
        raise _below_floor(values, l, d, parts, success, floors[int(least.argmax())], labels)
    found = tuple(_Stratum(structure, l, part, success).best(truthful) for _, part in parts)
    return Calibration(success, weights, found, least, before)


def parts_of(population: Population, strata: Ints | None) -> list[tuple[float, Population]]:
    """The strata of a population, each with its share; without numbers every group is one."""
    numbers = np.arange(len(population.weights)) if strata is None else np.asarray(strata)
    chosen = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    return [(float(population.weights[groups].sum()), population.part(groups)) for groups in chosen]


def _floors(structure: Structure, l: int, parts: list[tuple[float, Population]]) -> list[list[tuple[float, Floor]]]:
    """For each stratum, the share and the floor of each of its groups."""
    return [
        [(float(share), floor(structure, l, shares)) for share, shares in zip(part.weights, part.shares, strict=True)]
        for _, part in parts
    ]


class _Stratum:
    """One stratum: which strength and which truth probability."""

    def __init__(self, structure: Structure, l: int, part: Population, limit: float) -> None:
        self.structure, self.l, self.part, self.limit = structure, l, part, limit
        margin = np.maximum(part.margin, RAREST)
        self.shares: Floats = margin / margin.sum()
        self.lowest = 1.0

    def best(self, truthful: bool) -> Calibrated:
        tried: dict[float, Calibrated] = {}
        for alpha in ALPHAS:
            self._try(alpha, tried, truthful)
        step = ALPHAS[1] - ALPHAS[0]
        for _ in range(_REFINED if tried else 0):
            check_cancelled()
            step /= 2
            here = min(tried, key=lambda alpha: tried[alpha].cost)
            for alpha in (here - step, here + step):
                if 0.0 <= alpha <= 1.0:
                    self._try(alpha, tried, truthful)
        if tried:
            return min(tried.values(), key=lambda each: each.cost)
        return self._at_the_floor(truthful)

    def _try(self, alpha: float, tried: dict[float, Calibrated], truthful: bool) -> None:
        try:
            design = tempered(self.structure, self.l, self.shares, alpha)
        except ImpossibleError:
            return
        found = self._with(design, alpha, truthful)
        if found is not None:
            tried[alpha] = found

    def _with(self, design: MaximumEntropy, alpha: float, truthful: bool) -> Calibrated | None:
        curve = success_curve(design, self.part)
        p = 1.0 if truthful else _largest_truth(curve, self.limit)
        reached = curve(p)
        self.lowest = min(self.lowest, reached)
        if p == 0.0 or reached > self.limit + _SLACK:
            return None
        mechanism = Mechanism(design, p)
        error = expected_error(mechanism, self.shares)
        return None if error == np.inf else Calibrated(alpha, mechanism, reached, error)

    def _at_the_floor(self, truthful: bool) -> Calibrated:
        """Designs near the lower bound, where no strength of the prior keeps the promise."""
        for step in _STEPS:
            try:
                found = self._with(near_floor(self.structure, self.l, self.shares, step), 1.0, truthful)
            except ImpossibleError:
                continue
            if found is not None:
                return found
        raise ImpossibleError(
            f"no design of {self.l} candidates was found that can be estimated from and under which a learner is right "
            f"with at most {self.limit:.4g} in every stratum: the lowest success in one of them is {self.lowest:.4g}",
            "promise a little more, choose a smaller d, or make strata of finer groups",
        )


def success_curve(design: MaximumEntropy, part: Population) -> Callable[[float], float]:
    """A learner's success as a function of p."""
    if not design.has_at_most(_LISTED):
        return lambda p: float(part.weights @ [success(Mechanism(design, p), shares) for shares in part.shares])
    sets = design.sets()
    chance, odds = np.exp(design.log_probability(sets)), 1.0 / design.inclusion()[sets]
    mine = part.shares[:, sets]
    top = part.shares.max(axis=1)[:, None]

    def at(p: float) -> float:
        inside = (mine * (p * odds + 1.0 - p)).max(axis=2)
        return float(part.weights @ (np.maximum(inside, (1.0 - p) * top) @ chance))

    return at


def _largest_truth(curve: Callable[[float], float], limit: float) -> float:
    if curve(1.0) <= limit + _SLACK:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        check_cancelled()
        middle = (low + high) / 2.0
        low, high = (middle, high) if curve(middle) <= limit else (low, middle)
    return low


def expected_error(mechanism: Mechanism, shares: Floats) -> float | None:
    """`tr I^-1 - 1` at these true shares: infinite if not estimable, None if not computed."""
    design = mechanism.design
    if not design.has_at_most(_LISTED):
        found = design.least_error(shares, mechanism.p)
        if found is not None:
            return found
    shape = spectrum(mechanism)
    if shape.identifiable is False:
        return float("inf")
    limit = least_limit(mechanism, shares)
    return None if limit is None else limit * mechanism.size


def _known_already(before: float, limit: float) -> ImpossibleError:
    return ImpossibleError(
        f"a learner may be right with at most {limit:.4g}, but an attacker who knows the distribution is right "
        f"with {before:.4g} in one stratum without any release",
        "promise more than that; or coarsen the untouched columns, so that they tell less",
    )


def _below_floor(
    values: Values,
    l: int,
    d: float,
    parts: list[tuple[float, Population]],
    limit: float,
    found: list[tuple[float, Floor]],
    labels: Sequence[object] | None,
) -> ImpossibleError:
    value = sum(share * each.value for share, each in found)
    worst = max(found, key=lambda pair: pair[1].value)[1]
    settings = _within(values, l, d, parts, limit)
    named = ", ".join(f"({size}, {threshold:g})" for size, threshold in settings)
    way_out = (
        f"with truthful sets it can be kept at (l, d) = {named}" if named else "no setting with truthful sets does"
    )
    return ImpossibleError(
        f"a learner is to be right with at most {limit:.4g}, but with truthful sets of {l} candidates at least "
        f"{d:g} apart the learner is right with {value:.4g} or more in some stratum: {worst.why(labels)}",
        f"{way_out}; or let sets be drawn blindly now and then (truthful: false)",
    )


def _within(
    values: Values, l: int, d: float, parts: list[tuple[float, Population]], limit: float
) -> list[tuple[int, float]]:
    """The settings nearest to (l, d) whose floor allows the promise in every stratum."""
    found = {}
    for size in range(2, l + 3):
        for threshold in values.thresholds(d):
            if _allows(values.structure(threshold), size, parts, limit):
                found[size, threshold] = abs(size - l) / l + abs(threshold - d) / (d or 1.0)
    return sorted(found, key=lambda pair: (found[pair], pair))[:_NEAREST]


def _allows(structure: Structure, l: int, parts: list[tuple[float, Population]], limit: float) -> bool:
    try:
        found = _floors(structure, l, parts)
    except ImpossibleError:
        return False
    return all(sum(share * each.value for share, each in stratum) <= limit for stratum in found)


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
    """Risk against error for every pair of alpha and p.

    At alpha = 0 there is one mechanism for all, and one stratum.
    """
    parts, chances = parts_of(population, strata), list(truths)
    points: list[Point] = []
    for alpha in alphas:
        served = [(1.0, population)] if alpha == 0.0 else parts
        designs = [tempered(structure, l, part.margin, alpha) for _, part in served]
        each = designs * len(parts) if len(designs) < len(parts) else designs
        curves = [success_curve(design, part) for design, (_, part) in zip(each, parts, strict=True)]
        points += [_point(alpha, p, designs, served, parts, curves) for p in chances]
    return points


def _point(
    alpha: float,
    p: float,
    designs: list[MaximumEntropy],
    served: list[tuple[float, Population]],
    parts: list[tuple[float, Population]],
    curves: list[Callable[[float], float]],
) -> Point:
    risks = [curve(p) for curve in curves]
    average = sum(weight * risk for (weight, _), risk in zip(parts, risks, strict=True))
    total: float | None = 0.0
    for design, (weight, part) in zip(designs, served, strict=True):
        error = expected_error(Mechanism(design, p), np.maximum(part.margin, RAREST))
        total = None if error is None or total is None else total + weight * error
    return Point(alpha, p, average, max(risks), total)
