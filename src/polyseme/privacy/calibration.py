"""Calibration: from the promises for an attribute to the parameters of its mechanism.

Diversity promises bound the size of a set from below, closeness and local differential privacy bound the odds of
truth from above. The smallest odds win; among the sizes that are allowed the one with the least expected error is
taken. (Their section VII-D does this for diversity and closeness.)

The headline promise is the highest posterior for an attacker who knows the mechanism and the prior.

A design with inclusion probabilities `rho` is balanced for the prior `rho / l`, whatever it was made for. So the design
that a promise about learners leads to is drawn, checked and attacked like any other, with that prior.

The accuracy of a reconstructed distribution is known before any record is touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from polyseme.designs import Design, design_from, restrict
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError, Problem
from polyseme.privacy.analysis.closeness import closeness_of_epsilon, probability
from polyseme.privacy.analysis.success_limit import Calibration, Values
from polyseme.privacy.promises import Drawing, Grounds, Known, Outcome, Promises
from polyseme.semantics.distances.base import Clusters, Distance, Structure
from polyseme.semantics.distances.ground import Equal

__all__ = [
    "UNBALANCED",
    "Choice",
    "Served",
    "choose",
    "choose_within",
    "expected_l2",
    "mechanism_for",
    "promised_posterior",
    "serve_learner",
]


def expected_l2(records: float, size: int, eta: int | Ints, p: float | Floats) -> Floats:
    """Expected L2 distance of estimated shares, for uniform sets and the inverse estimator.

        EL2^2 = (F - 1) ((F - 1 + p^2) eta - p^2 F) / (p^2 F N (F - eta))

    where
        records  N, the number of records
        size     F, the number of values (the paper's d_j)
        eta      the number of candidates in a set
        p        the truth probability

    It is the root of the summed squared error of all shares, whatever the distribution is; multiply by N for counts.
    It grows with eta and falls with p (Equation 9 and Theorem 1 of the sensitive quasi-identifier paper).
    Infinite when nothing can be estimated: p = 0, or sets that hold the whole domain.

    >>> round(float(expected_l2(1_000, 10, 2, 1.0)), 4)
    0.0335
    """
    F, k, truthful = float(size), np.asarray(eta, dtype=np.float64), np.asarray(p, dtype=np.float64) ** 2
    if size == 1:
        return np.zeros(np.broadcast_shapes(k.shape, truthful.shape))
    # (F - 1 + p^2) eta - p^2 F, regrouped so that it is exactly zero at eta = p = 1.
    spread = (F - 1.0) * (k - truthful) + truthful * (k - 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = (F - 1.0) * spread / (truthful * F * records * (F - k))
    return np.where((truthful > 0.0) & (k < F), np.sqrt(squared), np.inf)


UNBALANCED = ("simple", "simple-printed", "duplicate", "least-risk")
"""Designs that do not stand for 1/l. A policy gets one of them only by naming it."""


def promised_posterior(design: str, l: int, reached: float | None) -> float:
    """The posterior that is never exceeded: 1/l, or what the least-risk design reaches.

    Infinite if none is promised.

    >>> promised_posterior("balanced", 4, 0.25), promised_posterior("simple", 2, 0.727)
    (0.25, inf)
    """
    if design not in UNBALANCED:
        return 1.0 / l
    known = design == "least-risk" and reached is not None and isfinite(reached)
    return float(reached) if known and reached is not None else inf


_LARGEST = 6
"""Most candidates that are tried where no promise says how many. The expected error grows from three or four on."""


@dataclass(frozen=True, eq=False)
class Served:
    """A design and a truth probability that keep a promise about learners.

    shares   what the learner knows
    drawing  of sets that are balanced for the prior that the design amounts to
    """

    shares: Floats
    calibration: Calibration
    design: Design
    drawing: Drawing

    @property
    def odds(self) -> float:
        p = self.calibration.strata[0].p
        return math.inf if p == 1.0 else p / (1.0 - p)


def serve_learner(
    promises: Promises,
    drawing: Drawing,
    known: Known,
    values: Values,
    l: int | None,
    labels: Sequence[object] | None,
) -> Served:
    """The mechanism of least expected error that keeps the attribute's promise on learners.

    l  how many candidates a set has, where that is settled

    Raises `ImpossibleError` where it cannot be kept and `PolicyError` where there is nothing to calibrate against.
    """
    learner, shares = promises.learner, known.reference if known.prior is None else known.prior
    if learner is None:
        raise ValueError("nothing is promised about learners")
    if shares is None:
        raise PolicyError(
            Problem(
                "learner",
                "no distribution is declared that an attacker could know",
                "prior: {by: [...], file: F.csv}, made by `polyseme prior`; or prior: [...], or reference: [...]",
            )
        )
    sizes = _group_sizes(promises, values.size) if l is None else (l,)
    found: dict[int, Calibration] = {}
    obstacles: list[ImpossibleError] = []
    for size in sizes:
        try:
            found[size] = learner.serve(values, size, drawing.d, shares, labels)
        except ImpossibleError as error:
            obstacles.append(error)
    if not found:
        raise obstacles[0]
    eta = min(found, key=lambda size: found[size].strata[0].cost)
    return _served(drawing, shares, found[eta])


def _group_sizes(promises: Promises, size: int) -> Iterable[int]:
    """The numbers of candidates to choose from."""
    if promises.fixed_size is not None:
        return promises.fixed_size[:1]
    least, _ = promises.least_size(size)
    # One candidate that is always the true one hides nothing.
    fewest = 2 if promises.learner is not None and promises.learner.truthful else 1
    return (least,) if least > 1 else range(fewest, max(min(_LARGEST, size - 1), fewest) + 1)


def _served(drawing: Drawing, shares: Floats, calibration: Calibration) -> Served:
    fitted = calibration.strata[0].mechanism.design
    design = design_from("balanced", drawing.structure, fitted.l, fitted.parameters())
    prior = design.blind_inclusion() / design.l
    made = replace(drawing, design="balanced", prior=prior, _designs={design.l: design}, _listed={})
    return Served(shares, calibration, design, made)


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
    t          the same for the reference distribution and the requested ground; None without a reference, or
               for a design with distances when no closeness was promised
    lines      the reasoning, for people
    warnings   what the reader must not miss
    calibration  of the prior and of p, where a promise about learners requires it
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
        """Whether the sets say anything about the values at all.

        The design may still hide some of them.
        """
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

    >>> from polyseme.privacy.promises import Closeness, Diversity
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
    """Design and truth probability that bound the success of an attacker with the distribution.

    l  how many candidates a set has, where that is settled
    """
    try:
        served = serve_learner(promises, drawing, known, values, l, labels)
    except ImpossibleError as error:
        return replace(
            _silent(drawing, l or promises.least_size(values.size)[0], "learner", str(error)), obstacle=error
        )
    eta, made = served.design.l, replace(known, prior=served.drawing.prior, learner_prior=served.shares)
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
    # form for uniform sets only; a design with distances keeps the requested size.
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
    # Where truth is unlimited the set size did it: the one a diversity requires, or a larger one.
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
    least, promise = promises.least_size(outcome.known.size)
    if promise and outcome.eta == least:
        return f"as {promise} asks"
    if promises.fixed_size is not None:
        return f"as {promises.fixed_size[1]} asks"
    if outcome.drawing.uniform or promises.learner is not None:
        return "the size with the least expected error" + (f" (at least {least}: {promise})" if promise else "")
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
    """The mechanism of a choice.

    `ImpossibleError` when no such design exists, naming values by their labels.
    """
    if choice.obstacle is not None:
        raise choice.obstacle
    return Mechanism(choice.made or choice.drawing.build(choice.l, labels), choice.p)
