"""`shrink`: maximum likelihood drawn towards a simpler table, as far as the release itself says it should be.

    x  maximises  sum_i c_i log f_i  +  strength * sum_v m_v log x_v

where
    m         the simpler table: the product of the margins of the attributes; for one attribute in several groups its
              distribution over all of them; for one ordered attribute alone the neighbours' average; else uniform
    strength  in records: as many further records as if drawn from m

The penalty is that of a Dirichlet prior, so it acts like further reports whose true value is known, and the solver is
that of `ml`. The strength is the one under which reports held out from the fit are most likely; it is never set by
stopping the search early. Strength zero is `ml`, and the same criterion chooses between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.distances.structure import Circle, Floats, Ints, Line
from polyseme.estimators.base import Estimator, Fit, Limits, Population, Reports, check
from polyseme.estimators.counts import distinct, shape_of
from polyseme.estimators.likelihood import Joined, Likelihood, SetLikelihood, likelihood_of
from polyseme.estimators.limits import CellFit, cell_fit
from polyseme.estimators.maximum import MaximumLikelihood, assemble, tolerance_for
from polyseme.estimators.profile import Quadratic
from polyseme.estimators.solver import MATRIX_CELLS, maximise
from polyseme.mechanism import Mechanism
from polyseme.randomness import experiment

__all__ = ["Shrink", "choose"]

_FOLDS, _GROUPS = 4, 48
_SEED = 20_210_413
_WORK = 500_000
_STEPS = tuple(10.0 ** (exponent / 2.0) for exponent in range(-1, 13))
_FLOOR = 0.01
_SLACK = 1.0
"""Log-likelihood of held-out reports that a weaker strength may lose to the best one and still be preferred."""
_WORTH = 2.0
"""Log-likelihood that shrinking must gain on all held-out reports together; less is within the luck of the draw."""


class Shrink(Estimator):
    """Penalised likelihood; wins where cells are many and records few.

    strength  fixed by hand, in records for each group; None lets held-out reports decide
    """

    name = "shrink"

    def __init__(self, strength: float | None = None) -> None:
        self.strength = strength

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        if not reports.paired:
            fit = MaximumLikelihood().fit(reports, mechanisms)
            return replace(fit, notes=("shrinkage needs the sets: not applied to counts only", *fit.notes))
        target = _target(reports, mechanisms)
        strength = _strength(reports, mechanisms, target)[0] if self.strength is None else self.strength
        return _shrunk(reports, mechanisms, target, strength)


def choose(reports: Reports, mechanisms: Sequence[Mechanism]) -> tuple[str, Fit]:
    """`ml` or `shrink`, whichever makes held-out reports more likely, and its fit; the notes name the choice."""
    check(reports, mechanisms)
    maximum = MaximumLikelihood()
    if not reports.paired:
        return maximum.name, maximum.fit(reports, mechanisms)
    target = _target(reports, mechanisms)
    strength, gain = _strength(reports, mechanisms, target)
    if gain < _WORTH:
        fit = maximum.fit(reports, mechanisms)
        return maximum.name, replace(
            fit, notes=("ml was chosen: shrinking made held-out reports less likely", *fit.notes)
        )
    return Shrink.name, _shrunk(reports, mechanisms, target, strength)


def _shrunk(reports: Reports, mechanisms: Sequence[Mechanism], target: Floats, strength: float) -> Fit:
    plain = MaximumLikelihood().fit(reports, mechanisms)
    fits = []
    for _, sets, counts in reports.by_cell():
        likelihood = likelihood_of(sets, counts, mechanisms)
        joined = Joined(likelihood, strength * target) if strength > 0.0 else likelihood
        records = likelihood.records
        solution = maximise(joined, tolerance_for(records))
        fits.append(_rescaled(cell_fit(joined, solution, records, None), joined.records, records))
    fit = assemble(fits, reports, mechanisms)
    notes = (f"shrunk towards a simpler table, as if by {strength:.3g} further records in each group", *fit.notes)
    # The penalty is no evidence: errors are at least those of `ml`, and limits are its own.
    fit = replace(fit, notes=notes, variance=np.fmax(plain.variance, fit.variance), spread=plain.spread)
    if fit.limits is None or plain.limits is None:
        return replace(fit, limits=None)
    return replace(fit, limits=_Hull(plain.limits, fit.values))


def _rescaled(fit: CellFit, joined: float, records: float) -> CellFit:
    """The information brought back from the records with the prior's to the records alone, so that `H x = 1`."""
    if fit.quadratic is None:
        return fit
    loss = Quadratic(fit.quadratic.x, fit.quadratic.information * (records / joined), 0.0 * fit.quadratic.score)
    return replace(fit, quadratic=loss)


@dataclass(frozen=True, eq=False)
class _Hull:
    """The limits of `ml`, widened to hold the shrunken value: the penalty is no evidence."""

    inner: Limits
    values: Floats

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        low, high = self.inner(contrasts, level, population)
        value = np.tensordot(contrasts, self.values, axes=self.values.ndim)
        return np.minimum(low, value), np.maximum(high, value)

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell."""
        low, high = self.inner.cells(level, population)
        return np.minimum(low, self.values), np.maximum(high, self.values)


# -- the simpler table -----------------------------------------------------------------------------------------------


def _target(reports: Reports, mechanisms: Sequence[Mechanism]) -> Floats:
    """`m`, adding up to one, nowhere zero."""
    out = np.ones(1)
    for sets, mechanism in zip(reports.sets, mechanisms):
        out = np.multiply.outer(out, _margin(sets, reports.counts, mechanism)).ravel()
    if len(mechanisms) == 1 and reports.cells == 1:
        out = _neighbours(out, mechanisms[0])
    uniform = np.full(len(out), 1.0 / len(out))
    return (1.0 - _FLOOR) * out + _FLOOR * uniform


def _margin(sets: Ints, counts: Ints, mechanism: Mechanism) -> Floats:
    rows, inverse = distinct(sets, mechanism.size)
    weights = np.bincount(inverse, weights=counts.astype(np.float64), minlength=len(rows))
    return maximise(SetLikelihood.of([rows], weights.astype(np.int64), [mechanism])).x


def _neighbours(x: Floats, mechanism: Mechanism) -> Floats:
    structure = mechanism.design.structure
    if not isinstance(structure, Line | Circle):
        return np.full(len(x), 1.0 / len(x))
    ordered = x[structure.order]
    for _ in range(2):
        padded = np.pad(ordered, 1, mode="wrap" if isinstance(structure, Circle) else "edge")
        ordered = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    out = np.empty_like(x)
    out[structure.order] = ordered / ordered.sum()
    return out


# -- how strong ------------------------------------------------------------------------------------------------------


def _strength(reports: Reports, mechanisms: Sequence[Mechanism], target: Floats) -> tuple[float, float]:
    """The weakest strength under which held-out reports are about as likely as under the best, and its gain over zero.

    Strengths rise by half a power of ten until two in a row are worse than the best.
    """
    large = _is_large(reports, mechanisms)
    pairs = list(_held_out(reports, mechanisms, 1 if large else _FOLDS))
    starts: list[Floats | None] = [None] * len(pairs)
    scores: dict[float, float] = {}
    # Less than one in ten thousand of a group's records changes nothing that can be seen.
    least = 1e-4 * float(reports.counts.sum()) / max(reports.cells, 1)
    for strength in (0.0, *(step for step in (_STEPS[1::2] if large else _STEPS) if step >= least)):
        score = 0.0
        for place, (train, test) in enumerate(pairs):
            joined = Joined(train, strength * target) if strength > 0.0 else train
            before = starts[place]
            x = maximise(joined, start=_towards(before, target, strength / train.records), limit=60).x
            starts[place] = x
            score += test.value(x)
        scores[strength] = score
        recent = list(scores.values())[-2:]
        if max(recent) < max(scores.values()) or strength > 10.0 * reports.counts.sum():
            break
    chosen = min(strength for strength, score in scores.items() if score >= max(scores.values()) - _SLACK)
    return chosen, scores[chosen] - scores[0.0] if chosen > 0.0 else 0.0


def _towards(x: Floats | None, target: Floats, ratio: float) -> Floats | None:
    """Where a stronger penalty will about take the table: no cell of it at zero."""
    return None if x is None else (x + ratio * target) / (1.0 + ratio)


def _is_large(reports: Reports, mechanisms: Sequence[Mechanism]) -> bool:
    """Whether one part held out, and strengths by whole powers of ten, must do."""
    entries = int(np.prod([mechanism.l for mechanism in mechanisms]))
    return len(reports.counts) * entries > _WORK or int(np.prod(shape_of(mechanisms))) > MATRIX_CELLS


def _held_out(
    reports: Reports, mechanisms: Sequence[Mechanism], parts_used: int
) -> Iterator[tuple[Likelihood, Likelihood]]:
    """Pairs of reports to fit and to judge for each group with enough records, whatever the order of the rows."""
    generator = experiment(_SEED)
    groups = [(sets, counts) for _, sets, counts in reports.by_cell() if counts.sum() >= _FOLDS]
    if len(groups) > _GROUPS:
        # The strength is one for all groups, so a sample of them tells it.
        groups = [groups[place] for place in np.sort(generator.permutation(len(groups))[:_GROUPS])]
    for sets, counts in groups:
        rows, inverse = distinct(np.hstack(sets), max(shape_of(mechanisms)))
        total = np.bincount(inverse, weights=counts.astype(np.float64)).astype(np.int64)
        widths = np.cumsum([codes.shape[1] for codes in sets])[:-1]
        likelihood = likelihood_of(np.split(rows, widths, axis=1), total, mechanisms)
        left = likelihood.counts.astype(np.int64)
        for fold in range(parts_used):
            test = generator.binomial(left, 1.0 / (_FOLDS - fold))
            left = left - test
            if 0 < test.sum() < total.sum():
                yield likelihood.counting(likelihood.counts - test), likelihood.counting(test.astype(np.float64))
