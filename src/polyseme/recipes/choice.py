"""From what was promised for one attribute to one mechanism.

Diversity promises bound the size of a set from below, closeness and local differential privacy bound the odds of
truth from above. The smallest odds win; among the sizes that are allowed the one with the least expected error is
taken. (Their section VII-D does this for diversity and closeness.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyseme.designs import restrict
from polyseme.distances.base import Distance
from polyseme.distances.structure import Clusters, Floats, Ints, Structure
from polyseme.errors import ImpossibleError, PolicyError, Problem
from polyseme.mechanism import Mechanism
from polyseme.recipes.accuracy import expected_l2
from polyseme.recipes.closeness import closeness_of_epsilon, probability
from polyseme.recipes.ground import ground_from
from polyseme.recipes.limits import Frame, Limits
from polyseme.recipes.promises import Promises, read_promises

__all__ = ["Choice", "choose", "choose_within", "mechanism_for"]

_LARGE_SET = 64
"""Sets beyond this are pointed out."""
_NEARLY_ALWAYS = 0.99
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Choice:
    """The parameters that keep every promise of one attribute, and what they imply.

    structure  which values may stand in one set
    l          candidates in a set (the paper's eta)
    d          least distance between them; 0 when none was promised
    p          truth probability
    design     the name of the design
    prior      the public distribution the design is balanced for; None for uniform
    binding    the promise that decided: the one that limits p, or that sets l when p = 1
    epsilon    what local differential privacy they give; infinite at p = 1
    t_any      how far a posterior can be from its prior, for every prior and ground
    t          the same for the reference distribution and the ground that was asked for; None without a reference, or
               for a design with distances when no closeness was promised
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
        return self.frame.uniform

    @property
    def frame(self) -> Frame:
        return Frame(self.structure, self.d, self.design, self.prior)

    @property
    def estimable(self) -> bool:
        """Whether the sets say anything about the values at all; the design may still hide some of them."""
        return self.size == 1 or (self.p > 0.0 and self.l < self.size)

    def expected_l2(self, records: int) -> float | None:
        """Equation 9, for shares; None for designs that are not uniform."""
        return float(expected_l2(records, self.size, self.l, self.p)) if self.uniform else None


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

    Invalid promises raise `PolicyError` with all problems, places relative to `protect`. Whether the design exists is
    for `mechanism_for` to say.

    >>> choice = choose(10, None, {"diversity": {"l": 3}, "closeness": {"t": 0.2}})
    >>> choice.l, round(choice.p, 4), choice.binding
    (3, 0.2727, 'closeness')
    """
    if domain_size < 1:
        raise PolicyError(Problem("domain", "a domain needs at least one value"))
    if distance is not None and distance.size != domain_size:
        raise PolicyError(Problem("distance", f"made for {distance.size:,} values, but the domain has {domain_size:,}"))
    promises = read_promises(protection, domain_size, distance is not None)
    reference, prior = _distribution("reference", reference, domain_size), _distribution("prior", prior, domain_size)
    if prior is not None and np.ptp(prior) <= _ROUNDING:
        prior = None
    ground = ground_from(promises.closeness.ground, distance) if promises.closeness else ground_from("equal")
    frame = _frame(promises, domain_size, distance, prior)
    if domain_size == 1:
        return _constant(frame, promises, next(iter(protection)))
    limits = Limits(frame, promises, reference, ground)
    etas = limits.etas()
    try:
        odds, names = limits.odds(etas)
    except ImpossibleError:
        return _silent(frame, int(etas[0]), next(iter(protection)), "no such sets exist")
    best = 0 if len(etas) == 1 else int(expected_l2(1.0, domain_size, etas, probability(odds)).argmin())
    return _explain(limits, int(etas[best]), float(odds[best]), names[best])


def choose_within(
    choice: Choice, protection: Mapping[str, Mapping[str, Any]], allowed: Ints, reference: Floats | None = None
) -> Choice:
    """The choice for records that can only have some of the values: same l, d and design, odds of truth of its own.

    allowed    the codes of these values, ascending
    reference  as for `choose`; it and the prior are taken given that the value is one of these

    Closeness is kept for the equal ground, which is at least as dear as any other, whatever the values.
    """
    if len(allowed) < choice.l:
        raise ImpossibleError(f"a set needs {choice.l} candidates")
    structure, _ = restrict(choice.structure, allowed)
    prior, reference = _given("prior", choice.prior, allowed), _given("reference", reference, allowed)
    frame = Frame(structure, choice.d, choice.design, prior)
    limits = Limits(frame, read_promises(protection, choice.size, True), reference, ground_from("equal"))
    odds, names = limits.odds(np.array([choice.l]))
    return _explain(limits, choice.l, float(odds[0]), names[0])


def _given(name: str, shares: Floats | None, allowed: Ints) -> Floats | None:
    return None if shares is None else _distribution(name, np.asarray(shares)[allowed], len(allowed))


def _frame(promises: Promises, size: int, distance: Distance | None, prior: Floats | None) -> Frame:
    if promises.semantic is None or distance is None:
        return Frame(Clusters(np.arange(size, dtype=np.int64)), 0.0, "balanced", prior)
    semantic = promises.semantic
    return Frame(distance.structure(semantic.d), semantic.d, semantic.mechanism, prior)


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


def _explain(limits: Limits, eta: int, odds: float, binding: str) -> Choice:
    frame, promises = limits.frame, limits.promises
    epsilon = limits.epsilon(eta, odds)
    wanted = frame.uniform or promises.closeness is not None
    p, t = float(probability(odds)), limits.reached(eta, odds) if wanted else None
    return Choice(
        structure=frame.structure,
        l=eta,
        d=frame.d,
        p=p,
        design=frame.design,
        prior=frame.prior,
        binding=binding or "closeness",
        epsilon=epsilon,
        t_any=closeness_of_epsilon(epsilon),
        t=t,
        lines=tuple(_lines(limits, eta, p, epsilon, t, binding)),
        warnings=tuple(_warnings(promises, limits.size, eta, p)),
    )


def _lines(limits: Limits, eta: int, p: float, epsilon: float, t: float | None, binding: str) -> list[str]:
    promises, size = limits.promises, limits.size
    least, asked_by = promises.least_size
    lines = [f"each set holds {eta} of {size:,} values"]
    if asked_by and eta == least:
        lines[0] += f", as {asked_by} asks"
    elif promises.fixed_sizes:
        lines[0] += f", as {next(iter(promises.fixed_sizes))} asks"
    elif limits.frame.uniform:
        lines[0] += ", the size with the least expected error" + (
            f" (at least {least}: {asked_by})" if asked_by else ""
        )
    else:
        lines[0] += ", the least there is; the best one is not sought for uneven designs, but a size can be named"
    if limits.frame.d > 0.0:
        lines.append(f"any two of them are at least {limits.frame.d:g} apart ({limits.frame.design} design)")
    if p == 1.0:
        lines.append("every set holds the true value (p = 1)")
    else:
        lines.append(f"with probability {p:.6g} a set is drawn around the true value, otherwise blindly ({binding})")
    if promises.closeness is not None:
        known = "every distribution" if limits.reference is None else "the reference distribution"
        reached = closeness_of_epsilon(epsilon) if t is None else t
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
    elif p > _NEARLY_ALWAYS and eta == 1 and size > 1:
        warnings.append(f"sets of one value at p = {p:.4g}: the attribute is published as it is")
    elif eta > _LARGE_SET:
        warnings.append(
            f"sets of {eta:,} candidates make a large release; a size can be named, at the cost of accuracy"
        )
    if eta == size > 1:
        warnings.append("every set is the whole domain: nothing can be learnt, and nothing estimated")
    if promises.closeness is not None and promises.closeness.t == 1.0:
        warnings.append("closeness with t = 1 promises nothing")
    return warnings


def _constant(frame: Frame, promises: Promises, binding: str) -> Choice:
    """A domain of one value: every promise about what a set reveals holds by itself."""
    line = "the domain has one value: a set tells nothing that is not known"
    return replace(_silent(frame, 1, binding, line), p=1.0, warnings=tuple(_warnings(promises, 1, 1, 1.0)))


def _silent(frame: Frame, eta: int, binding: str, line: str) -> Choice:
    """Sets that reveal nothing, or do not exist."""
    return Choice(
        structure=frame.structure,
        l=eta,
        d=frame.d,
        p=0.0,
        design=frame.design,
        prior=frame.prior,
        binding=binding,
        epsilon=0.0,
        t_any=0.0,
        t=0.0,
        lines=(line,),
    )


def mechanism_for(choice: Choice, labels: Sequence[object] | None = None) -> Mechanism:
    """The mechanism of a choice; `ImpossibleError` when no such design exists, naming values by their labels."""
    return Mechanism(choice.frame.build(choice.l, labels), choice.p)
