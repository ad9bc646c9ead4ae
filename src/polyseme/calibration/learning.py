"""Sets for people whose distribution is known: what they are balanced for, and how often they tell the truth.

A design with inclusion probabilities `rho` is balanced for the prior `rho / l`, whatever it was made for. So the design
that a promise about learners leads to is drawn, checked and attacked like any other, with that prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from polyseme.analysis.calibrating import Calibration, Values
from polyseme.arrays import Floats
from polyseme.designs import Design, design_from
from polyseme.errors import ImpossibleError, PolicyError, Problem
from polyseme.promises import Drawing, Known, Promises

__all__ = ["Served", "serve_learner"]

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
    """The mechanism with the least expected error that keeps the attribute's promise about learners.

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
    sizes = _sizes(promises, values.size) if l is None else (l,)
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


def _sizes(promises: Promises, size: int) -> Iterable[int]:
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
