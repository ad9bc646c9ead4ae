"""From what was promised for one attribute to one mechanism.

Diversity promises bound the size of a set from below, closeness and local differential privacy bound the odds of
truth from above. The smallest odds win; among the sizes that are allowed the one with the least expected error is
taken. (Their section VII-D does this for diversity and closeness.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.analysis.calibrating import Calibration, Values
from polyseme.analysis.closeness import closeness_of_epsilon, probability
from polyseme.arrays import Floats, Ints
from polyseme.calibration.accuracy import expected_l2
from polyseme.calibration.learning import serve_learner
from polyseme.designs import Design, restrict
from polyseme.distances.base import Distance
from polyseme.distances.ground import Equal
from polyseme.distances.structure import Clusters, Structure
from polyseme.errors import ImpossibleError, PolicyError, Problem
from polyseme.mechanism import Mechanism
from polyseme.promises import Drawing, Grounds, Known, Outcome, Promises

__all__ = ["Choice", "choose", "choose_within", "mechanism_for"]

_LARGE_SET = 64
"""Sets beyond this are pointed out: chosen by judgment, as readers do not read so many candidates."""
_NEARLY_ALWAYS = 0.99
"""Single candidates that are true more often than this are pointed out: chosen by judgment."""
_ROUNDING = 1e-15
"""Shares that differ by less are the same share, rounded."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The parameters that keep every promise of one attribute, and what they imply.

    structure  which values may share a set
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
    calibration  of the prior and of p, where a promise about learners asked for it
    made       the design that was fitted on the way, if one was
    obstacle   why there is no mechanism, where that is known already
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
    calibration: Calibration | None = None
    made: Design | None = None
    obstacle: ImpossibleError | None = None

    @property
    def size(self) -> int:
        """F, the number of values."""
        return self.structure.size

    @property
    def uniform(self) -> bool:
        """Whether every set of l values is equally likely."""
        return self.drawing.uniform

    @property
    def drawing(self) -> Drawing:
        """How its sets are drawn, whatever their size."""
        return Drawing(self.structure, self.d, self.design, self.prior)

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
    promises: Promises,
    reference: Floats | None = None,
    prior: Floats | None = None,
    labels: Sequence[object] | None = None,
) -> Choice:
    """The strictest parameters among those that the promises ask for.

    domain_size  F
    distance     the semantic distance, needed for semantic diversity and a hierarchical ground
    promises     what is promised for the attribute
    reference    the public distribution of the attribute (A_j), for closeness; without it closeness is kept for every
                 distribution, which costs some accuracy
    prior        the public distribution that the balanced design is made for; uniform by default
    labels       names of the values for messages

    Promises that cannot be made for this domain raise `PolicyError` with all problems, places relative to `protect`.
    Whether the design exists is for `mechanism_for` to say.

    >>> from polyseme.promises import Closeness, Diversity
    >>> choice = choose(10, None, Promises.of(Diversity(l=3), Closeness(t=0.2)))
    >>> choice.l, round(choice.p, 4), choice.binding
    (3, 0.2727, 'closeness')
    """
    if domain_size < 1:
        raise PolicyError(Problem("domain", "a domain needs at least one value"))
    if distance is not None and distance.size != domain_size:
        raise PolicyError(Problem("distance", f"made for {distance.size:,} values, but the domain has {domain_size:,}"))
    if not promises.items:
        raise PolicyError(Problem("", "nothing is promised", "promise diversity, closeness or another model"))
    promises = promises.for_domain(domain_size, distance is not None)
    reference, prior = _distribution("reference", reference, domain_size), _prior(prior, domain_size)
    drawing = _drawing(promises, domain_size, distance, prior)
    known = Known(domain_size, prior, reference, Grounds(distance))
    first = next(iter(promises)).name
    if domain_size == 1:
        return _constant(drawing, promises, first)
    if promises.learner is not None:
        values = Values(domain_size, distance if promises.spacing is not None else None)
        return _for_learner(promises, drawing, known, values, None, labels)
    etas = _sizes(promises, drawing)
    try:
        odds, names = _odds(promises, etas, drawing, known)
    except ImpossibleError:
        return _silent(drawing, int(etas[0]), first, "no such sets exist")
    best = 0 if len(etas) == 1 else int(expected_l2(1.0, domain_size, etas, probability(odds)).argmin())
    return _explain(promises, drawing, known, int(etas[best]), float(odds[best]), names[best])


def choose_within(
    choice: Choice,
    promises: Promises,
    allowed: Ints,
    distance: Distance | None,
    reference: Floats | None = None,
    prior: Floats | None = None,
) -> Choice:
    """The choice for the records of a stratum: same l, d and design, odds of truth of its own.

    allowed           the codes of the values that they can have, ascending
    distance          between all values of the domain
    reference, prior  as for `choose`, over the values that they can have
    """
    if len(allowed) < choice.l:
        raise ImpossibleError(f"a set needs {choice.l} candidates")
    structure, _ = restrict(choice.structure, allowed)
    reference, prior = _distribution("reference", reference, len(allowed)), _prior(prior, len(allowed))
    drawing = Drawing(structure, choice.d, choice.design, prior)
    codes = allowed if len(allowed) < choice.size else None
    known = Known(choice.size, prior, reference, Grounds(distance), codes)
    if promises.learner is not None:
        values = Values(choice.size, distance if promises.spacing is not None else None, codes)
        return _for_learner(promises, drawing, known, values, choice.l, None)
    odds, names = _odds(promises, np.array([choice.l]), drawing, known)
    return _explain(promises, drawing, known, choice.l, float(odds[0]), names[0])


def _for_learner(
    promises: Promises,
    drawing: Drawing,
    known: Known,
    values: Values,
    l: int | None,
    labels: Sequence[object] | None,
) -> Choice:
    """Design and truth together, so that an attacker who knows the distribution seldom guesses right.

    l  how many candidates a set has, where that is settled
    """
    try:
        served = serve_learner(promises, drawing, known, values, l, labels)
    except ImpossibleError as error:
        return replace(
            _silent(drawing, l or promises.least_size(values.size)[0], "learner", str(error)), obstacle=error
        )
    eta, made = served.design.l, replace(known, prior=served.drawing.prior, stated=served.shares)
    odds, names = _odds(promises, np.array([eta]), served.drawing, made)
    mine = served.odds <= odds[0]
    choice = _explain(
        promises, served.drawing, made, eta, float(min(served.odds, odds[0])), "learner" if mine else names[0]
    )
    outcome = Outcome(served.drawing, made, eta, served.odds, choice.t)
    lines = (*_size_lines(promises, outcome), *promises.reasoning(outcome))
    return replace(choice, lines=lines, calibration=served.calibration, made=served.design)


def _sizes(promises: Promises, drawing: Drawing) -> Ints:
    """The set sizes to choose from."""
    least, _ = promises.least_size(drawing.size)
    if promises.fixed_size is not None:
        return np.array(promises.fixed_size[:1])
    # Without a limit on truth the smallest set is the most accurate (Theorem 1). The expected error has a closed
    # form for uniform sets only; a design with distances keeps the size it was asked for.
    if not promises.limiting or not drawing.uniform or least >= drawing.size:
        return np.array([least])
    return np.arange(least, drawing.size)


def _odds(promises: Promises, etas: Ints, drawing: Drawing, known: Known) -> tuple[Floats, list[str]]:
    """For each size the largest odds that keep every promise, and the promise that sets them."""
    limits = promises.odds(etas, drawing, known)
    least, asking = promises.least_size(known.size)
    if not limits:
        return np.full(len(etas), np.inf), [asking] * len(etas)
    table, names = np.array(list(limits.values())), list(limits)
    smallest = table.min(axis=0)
    # Where truth is unlimited the set size did it: the one a diversity asked for, or a larger one.
    free = np.isinf(smallest) & (etas == least) & bool(asking)
    return smallest, [asking if idle else names[index] for index, idle in zip(table.argmin(axis=0), free, strict=True)]


def _prior(values: Floats | None, size: int) -> Floats | None:
    """None where all values are equally likely, however that was said."""
    prior = _distribution("prior", values, size)
    return None if prior is None or np.ptp(prior) <= _ROUNDING else prior


def _drawing(promises: Promises, size: int, distance: Distance | None, prior: Floats | None) -> Drawing:
    spacing = promises.spacing
    if spacing is None or distance is None:
        return Drawing(Clusters(np.arange(size, dtype=np.int64)), 0.0, "balanced", prior)
    return Drawing(distance.structure(spacing.d), spacing.d, spacing.design, prior)


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


def _explain(promises: Promises, drawing: Drawing, known: Known, eta: int, odds: float, binding: str) -> Choice:
    p, ground = float(probability(odds)), promises.moves_on(known)
    moved = None
    if known.reference is not None and (drawing.uniform or ground is not None):
        moved = drawing.moved(eta, odds, known.reference, ground or Equal())
    outcome = Outcome(drawing, known, eta, odds, moved)
    return Choice(
        structure=drawing.structure,
        l=eta,
        d=drawing.d,
        p=p,
        design=drawing.design,
        prior=drawing.prior,
        binding=binding,
        epsilon=outcome.epsilon,
        t_any=closeness_of_epsilon(outcome.epsilon),
        t=moved,
        lines=tuple(_lines(promises, outcome, p, binding)),
        warnings=tuple(_warnings(promises, known.size, drawing.size, eta, p)),
    )


def _size_lines(promises: Promises, outcome: Outcome) -> list[str]:
    drawing = outcome.drawing
    lines = [f"each set holds {outcome.eta} of {drawing.size:,} values, {_why(promises, outcome)}"]
    if drawing.d > 0.0:
        lines.append(f"any two of them are at least {drawing.d:g} apart ({drawing.design} design)")
    return lines


def _lines(promises: Promises, outcome: Outcome, p: float, binding: str) -> list[str]:
    lines = _size_lines(promises, outcome)
    if p == 1.0:
        lines.append("every set holds the true value (p = 1)")
    else:
        lines.append(f"with probability {p:.6g} a set is drawn around the true value, otherwise blindly ({binding})")
    lines += promises.reasoning(outcome)
    shown = f"{outcome.epsilon:.4g}" if math.isfinite(outcome.epsilon) else "none (p = 1 rules values out)"
    return [*lines, f"local differential privacy: epsilon = {shown}"]


def _why(promises: Promises, outcome: Outcome) -> str:
    """Why sets have the size they have."""
    least, asked_by = promises.least_size(outcome.known.size)
    if asked_by and outcome.eta == least:
        return f"as {asked_by} asks"
    if promises.fixed_size is not None:
        return f"as {promises.fixed_size[1]} asks"
    if outcome.drawing.uniform or promises.learner is not None:
        return "the size with the least expected error" + (f" (at least {least}: {asked_by})" if asked_by else "")
    return "the smallest possible; the best size is not searched for uneven designs, but you can set one"


def _warnings(promises: Promises, whole: int, size: int, eta: int, p: float) -> list[str]:
    """What the reader must not miss.

    whole, size  how many values the domain has, and how many of them are possible here
    """
    warnings = []
    if p == 0.0:
        warnings.append("p = 0: the sets do not depend on the values; nothing can be learned, and nothing estimated")
    elif p > _NEARLY_ALWAYS and eta == 1 and size > 1:
        warnings.append(f"sets of one value at p = {p:.4g}: the attribute is published as it is")
    elif eta > _LARGE_SET:
        warnings.append(f"sets of {eta:,} candidates make a large release; you can set a size, at the cost of accuracy")
    if eta == size > 1:
        warnings.append("every set is the whole domain: nothing can be learned, and nothing estimated")
    return [*promises.warnings(whole), *warnings]


def _constant(drawing: Drawing, promises: Promises, binding: str) -> Choice:
    """A domain of one value: every promise about what a set reveals holds by itself."""
    line = "the domain has one value, so a set reveals nothing new"
    return replace(_silent(drawing, 1, binding, line), p=1.0, warnings=tuple(_warnings(promises, 1, 1, 1, 1.0)))


def _silent(drawing: Drawing, eta: int, binding: str, line: str) -> Choice:
    """Sets that reveal nothing, or do not exist."""
    return Choice(
        structure=drawing.structure,
        l=eta,
        d=drawing.d,
        p=0.0,
        design=drawing.design,
        prior=drawing.prior,
        binding=binding,
        epsilon=0.0,
        t_any=0.0,
        t=0.0,
        lines=(line,),
    )


def mechanism_for(choice: Choice, labels: Sequence[object] | None = None) -> Mechanism:
    """The mechanism of a choice; `ImpossibleError` when no such design exists, naming values by their labels."""
    if choice.obstacle is not None:
        raise choice.obstacle
    return Mechanism(choice.made or choice.drawing.build(choice.l, labels), choice.p)
