"""From what was promised for one attribute to one mechanism.

Diversity promises bound the size of a set from below, closeness and local differential privacy bound the odds of
truth from above. The smallest odds win; among the sizes that are allowed the one with the least expected error is
taken. (Their section VII-D does this for diversity and closeness.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.designs.base import Design
from polyseme.distances.base import Distance
from polyseme.distances.structure import Clusters, Floats, Ints, Structure
from polyseme.errors import PolicyError, Problem
from polyseme.mechanism import Mechanism
from polyseme.recipes.accuracy import expected_l2
from polyseme.recipes.closeness import (
    CELL_LIMIT,
    closeness_of_epsilon,
    exact_distance,
    exact_odds,
    probability,
    safe_odds,
    uniform_distance,
    uniform_odds,
)
from polyseme.recipes.ground import Ground, ground_from
from polyseme.recipes.promises import Promises, read_promises

__all__ = ["Choice", "choose", "mechanism_for"]

_LARGE_SET = 64
"""Sets beyond this are pointed out."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The parameters that keep every promise of one attribute, and what they imply.

    structure  which values may stand in one set
    l          candidates in a set (the paper's eta)
    d          least distance between them; 0 when none was promised
    p          truth probability
    design     the name of the design
    prior      the public distribution the design is balanced for; None for uniform
    binding    the promise that decided
    epsilon    what local differential privacy they give; infinite at p = 1
    t_any      how far a posterior can be from its prior, for every prior and ground
    t          the same for the reference distribution and the ground that was asked for; None without a reference
    lines      the reasoning, for people
    warnings   what the reader must not miss
    """

    structure: Structure
    l: int
    d: float
    p: float
    design: str
    prior: Floats | None
    binding: str
    epsilon: float
    t_any: float
    t: float | None
    lines: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """F, the number of values."""
        return self.structure.size

    @property
    def uniform(self) -> bool:
        """Whether every set of l values is equally likely."""
        return self.prior is None and _free(self.structure)

    @property
    def estimable(self) -> bool:
        """Whether the sets say anything about the values at all; the design may still hide some of them."""
        return self.size == 1 or (self.p > 0.0 and self.l < self.size)

    def expected_l2(self, records: int) -> float | None:
        """Equation 9, for shares; None for designs that are not uniform."""
        return float(expected_l2(records, self.size, self.l, self.p)) if self.uniform else None


def _free(structure: Structure) -> bool:
    return isinstance(structure, Clusters) and structure.count == structure.size


def choose(
    domain_size: int,
    distance: Distance | None,
    protection: Mapping[str, Mapping[str, Any]],
    reference: Floats | None = None,
    prior: Floats | None = None,
) -> Choice:
    """The strictest parameters among those that the promises ask for.

    domain_size  F
    distance     the semantic distance, needed for semantic diversity and a hierarchical ground
    protection   promises with their parameters, as in the policy's `protect`
    reference    the public distribution of the attribute (A_j), for closeness; without it closeness is kept for every
                 distribution, which costs some accuracy
    prior        the public distribution that the balanced design is made for; uniform by default

    Invalid promises raise `PolicyError` with all problems, places relative to `protect`.

    >>> choice = choose(10, None, {"diversity": {"l": 3}, "closeness": {"t": 0.2}})
    >>> choice.l, round(choice.p, 4), choice.binding
    (3, 0.2727, 'closeness')
    """
    if domain_size < 1:
        raise PolicyError(Problem("domain", "a domain needs at least one value"))
    promises = read_promises(protection, domain_size, distance is not None)
    reference, prior = _distribution("reference", reference, domain_size), _distribution("prior", prior, domain_size)
    ground = ground_from(promises.closeness.ground, distance) if promises.closeness else ground_from("equal")
    frame = _frame(promises, domain_size, distance, prior)
    if domain_size == 1:
        return _constant(frame, promises)
    limits = _Limits(frame, promises, reference, ground)
    etas = limits.etas()
    odds, names = limits.odds(etas)
    best = 0 if len(etas) == 1 else int(expected_l2(1.0, domain_size, etas, probability(odds)).argmin())
    return _explain(limits, int(etas[best]), float(odds[best]), names[best])


@dataclass(frozen=True, eq=False)
class _Frame:
    """What is settled before any number is sought."""

    structure: Structure
    d: float
    design: str
    prior: Floats | None

    @property
    def uniform(self) -> bool:
        return self.prior is None and _free(self.structure)

    def build(self, l: int) -> Design:
        from polyseme.designs import make_design

        return make_design(self.design, self.structure, l, self.prior)


def _frame(promises: Promises, size: int, distance: Distance | None, prior: Floats | None) -> _Frame:
    if promises.semantic is None or distance is None:
        return _Frame(Clusters(np.arange(size, dtype=np.int64)), 0.0, "balanced", prior)
    semantic = promises.semantic
    return _Frame(distance.structure(semantic.d), semantic.d, semantic.mechanism, prior)


def _distribution(name: str, values: Floats | None, size: int) -> Floats | None:
    if values is None:
        return None
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (size,):
        raise PolicyError(Problem(name, f"expected {size:,} numbers, one for each value, found {values.size:,}"))
    total = values.sum()
    if not (np.all(np.isfinite(values)) and np.all(values >= 0.0) and total > 0.0):
        raise PolicyError(Problem(name, "expected numbers that are not negative and not all zero"))
    return np.asarray(values / total)


@dataclass(frozen=True, eq=False)
class _Limits:
    """The largest odds of truth that each promise allows, by set size."""

    frame: _Frame
    promises: Promises
    reference: Floats | None
    ground: Ground

    @property
    def size(self) -> int:
        return self.frame.structure.size

    def etas(self) -> Ints:
        """The set sizes to choose from."""
        least, _ = self.promises.least_size
        for size in self.promises.fixed_sizes.values():
            return np.array([size])
        # Without a limit on truth the smallest set is the most accurate (Theorem 1). The expected error has a closed
        # form for uniform sets only; a design with distances keeps the size it was asked for.
        limited = self.promises.ldp is not None or self.promises.closeness is not None
        if not limited or not self.frame.uniform or least >= self.size:
            return np.array([least])
        return np.arange(least, self.size)

    def odds(self, etas: Ints) -> tuple[Floats, list[str]]:
        """For each size the largest odds that keep every promise, and the promise that sets them."""
        by_name: dict[str, Floats] = {}
        if self.promises.closeness is not None:
            by_name["closeness"] = self._closeness_odds(self.promises.closeness.t, etas)
        if self.promises.ldp is not None:
            least = np.array([self.least_inclusion(eta) for eta in etas.tolist()])
            by_name["ldp"] = np.expm1(min(self.promises.ldp.epsilon, 700.0)) * least
        if not by_name:
            return np.full(len(etas), np.inf), [self.promises.least_size[1]] * len(etas)
        table, names = np.array(list(by_name.values())), list(by_name)
        binding = [names[index] for index in table.argmin(axis=0)]
        smallest = table.min(axis=0)
        return smallest, [
            name if np.isfinite(value) else (self.promises.least_size[1] or name)
            for name, value in zip(binding, smallest.tolist(), strict=True)
        ]

    def _closeness_odds(self, t: float, etas: Ints) -> Floats:
        least = np.array([self.least_inclusion(eta) for eta in etas.tolist()])
        safe = safe_odds(t, least)
        if self.reference is None or t in {0.0, 1.0}:
            return safe
        if self.frame.uniform:
            return np.maximum(safe, uniform_odds(self.reference, etas, t, self.ground))
        tightened = [self._listed(eta) for eta in etas.tolist()]
        return np.array(
            [
                floor if listed is None else max(floor, exact_odds(*listed, self.reference, t, self.ground))
                for floor, listed in zip(safe.tolist(), tightened, strict=True)
            ]
        )

    def least_inclusion(self, eta: int) -> float:
        """One over the largest pull `K(R | v) / B(R)`; a lower bound where it cannot be had exactly."""
        if self.frame.uniform:
            return eta / self.size
        if self.frame.design == "balanced":
            return eta * (1.0 / self.size if self.frame.prior is None else float(self.frame.prior.min()))
        listed = self._listed(eta)
        # A sequential design's B is K averaged over all values, so no pull can exceed F.
        return 1.0 / self.size if listed is None else 1.0 / float(listed[1].max())

    def _listed(self, eta: int) -> tuple[Ints, Floats] | None:
        """Every valid set and its members' pulls, if they are few enough."""
        design = self.frame.build(eta)
        if design.count() * self.size > CELL_LIMIT:
            return None
        sets = design.sets()
        return sets, design.likelihood(sets) / design.blind_likelihood(sets)[:, None]

    def reached(self, eta: int, odds: float) -> float | None:
        """The largest distance from the reference that a set can cause."""
        if self.reference is None:
            return None
        if self.frame.uniform:
            return uniform_distance(self.reference, eta, odds, self.ground)
        listed = self._listed(eta)
        if listed is None:
            return closeness_of_epsilon(self.epsilon(eta, odds))
        return exact_distance(*listed, self.reference, odds, self.ground)

    def epsilon(self, eta: int, odds: float) -> float:
        if eta == self.size:
            return 0.0
        return math.log1p(odds / self.least_inclusion(eta)) if odds < math.inf else math.inf


def _explain(limits: _Limits, eta: int, odds: float, binding: str) -> Choice:
    frame, promises = limits.frame, limits.promises
    epsilon = limits.epsilon(eta, odds)
    p, t = float(probability(odds)), limits.reached(eta, odds)
    return Choice(
        structure=frame.structure,
        l=eta,
        d=frame.d,
        p=p,
        design=frame.design,
        prior=frame.prior,
        binding=binding or "closeness",
        epsilon=epsilon,
        t_any=closeness_of_epsilon(epsilon) if math.isfinite(epsilon) else 1.0,
        t=t,
        lines=tuple(_lines(limits, eta, p, epsilon, t, binding)),
        warnings=tuple(_warnings(promises, limits.size, eta, p)),
    )


def _lines(limits: _Limits, eta: int, p: float, epsilon: float, t: float | None, binding: str) -> list[str]:
    promises, size = limits.promises, limits.size
    least, asked_by = promises.least_size
    lines = [f"each set holds {eta} of {size:,} values"]
    if asked_by and eta == least:
        lines[0] += f", as {asked_by} asks"
    elif promises.fixed_sizes:
        lines[0] += f", as {next(iter(promises.fixed_sizes))} asks"
    else:
        lines[0] += ", the size with the least expected error" + (
            f" (at least {least}: {asked_by})" if asked_by else ""
        )
    if limits.frame.d > 0.0:
        lines.append(f"any two of them are at least {limits.frame.d:g} apart ({limits.frame.design} design)")
    if p == 1.0:
        lines.append("every set holds the true value (p = 1)")
    else:
        lines.append(f"with probability {p:.6g} a set is drawn around the true value, otherwise blindly: {binding}")
    if promises.closeness is not None:
        known = "every distribution" if limits.reference is None else "the reference distribution"
        reached = closeness_of_epsilon(epsilon) if t is None and math.isfinite(epsilon) else (1.0 if t is None else t)
        lines.append(f"closeness: a set moves {known} by at most {reached:.4g} (promised: {promises.closeness.t:g})")
        if limits.reference is not None and math.isfinite(epsilon):
            lines.append(f"someone who expects another distribution can move by {closeness_of_epsilon(epsilon):.4g}")
    shown = f"{epsilon:.4g}" if math.isfinite(epsilon) else "none (p = 1 rules values out)"
    lines.append(f"local differential privacy: epsilon = {shown}")
    return lines


def _warnings(promises: Promises, size: int, eta: int, p: float) -> list[str]:
    warnings = [
        f"{kind.name}: l = {kind.asked:g} was adapted to {kind.l}, as the domain has {size:,} values"
        for kind in promises.diversities
        if kind.asked > kind.l
    ]
    if p == 0.0:
        warnings.append("p = 0: the sets do not depend on the values; nothing can be learnt, and nothing estimated")
    elif p == 1.0 and eta == 1 and size > 1:
        warnings.append("sets of one value at p = 1: the attribute is published as it is")
    elif eta > _LARGE_SET:
        warnings.append(
            f"sets of {eta:,} candidates make a large release; a size can be named, at the cost of accuracy"
        )
    if eta == size > 1:
        warnings.append("every set is the whole domain: nothing can be learnt, and nothing estimated")
    if promises.closeness is not None and promises.closeness.t == 1.0:
        warnings.append("closeness with t = 1 promises nothing")
    return warnings


def _constant(frame: _Frame, promises: Promises) -> Choice:
    """A domain of one value: every promise about what a set reveals holds by itself."""
    names = [promise for promise in (promises.least_size[1], "closeness", "ldp") if promise]
    return Choice(
        structure=frame.structure,
        l=1,
        d=frame.d,
        p=1.0,
        design=frame.design,
        prior=frame.prior,
        binding=names[0],
        epsilon=0.0,
        t_any=0.0,
        t=0.0,
        lines=("the domain has one value: a set tells nothing that is not known",),
        warnings=tuple(_warnings(promises, 1, 1, 1.0)),
    )


def mechanism_for(choice: Choice) -> Mechanism:
    """The mechanism of a choice; `ImpossibleError` when no such design exists."""
    return Mechanism(_Frame(choice.structure, choice.d, choice.design, choice.prior).build(choice.l), choice.p)
