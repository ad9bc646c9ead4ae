"""The estimators by name, of the package and of plugins, and the choice when none is named.

The chosen likelihood estimator is the one under which reports left out of the fit are most likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Estimator, Finer, Fit, Reports, check
from polyseme.inference.likelihood import CellLikelihoods
from polyseme.inference.sets.cross_validation import LEAST_GAIN, Simpler, best_strength, left_out, simpler_table
from polyseme.inference.sets.linear import Existing, Inverse, Paper, Simple, ValueAdding
from polyseme.inference.sets.maximum import Bayes, MaximumLikelihood, Shrink, most_likely, shrunk
from polyseme.inference.sets.smooth import Smooth, Smoothed, smoothed
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import Problem, QuestionError, nearest
from polyseme.kernel.plugins import Registry
from polyseme.semantics.distances import CircleDistance, LineDistance

__all__ = ["ESTIMATORS", "choose", "estimator_given", "estimator_named"]

_ALL = (Simple(), Existing(), Paper(), Inverse(), ValueAdding(), Bayes(), MaximumLikelihood(), Shrink(), Smooth())


def _flaw(name: str, estimator: Estimator) -> str:
    own = getattr(estimator, "name", None)
    return "" if own == name else f"calls itself '{own}'"


ESTIMATORS = Registry[Estimator](
    "polyseme.estimators",
    {estimator.name: estimator for estimator in _ALL},
    Estimator,  # type: ignore[type-abstract]
    _flaw,
)
"""Every estimator by the word for it in `estimator=` and `--estimator`."""


def estimator_named(name: str) -> Estimator:
    """The estimator of this name; raises with the nearest name when there is none."""
    if name not in ESTIMATORS:
        raise QuestionError(Problem("estimator", f"there is no estimator '{name}'", nearest(name, ESTIMATORS)))
    return ESTIMATORS[name]


def estimator_given(estimator: str | Estimator | None) -> Estimator | None:
    """An estimator by its name or itself; None leaves the choice to the data."""
    if isinstance(estimator, str):
        return estimator_named(estimator)
    if estimator is not None and not isinstance(estimator, Estimator):
        found = type(estimator).__name__
        raise QuestionError(Problem("estimator", f"a name or an estimator was expected, not {found}", 'such as "ml"'))
    return estimator


def choose(reports: Reports, mechanisms: Sequence[Mechanism]) -> tuple[str, Fit]:
    """`ml`, `shrink` or `smooth`, and its fit; the notes name the choice.

    `smooth` is tried where values stand on a line, and where columns help.
    """
    check(reports, mechanisms)
    likelihoods = CellLikelihoods(reports, mechanisms)
    plain = most_likely(likelihoods)
    if not reports.paired:
        return MaximumLikelihood.name, plain
    simpler = simpler_table(reports.sets, reports.counts, mechanisms, reports.cells)
    strength, gain = best_strength(likelihoods, simpler, plain.values)
    if gain < LEAST_GAIN:
        note = "ml was chosen: shrinkage did not improve the cross-validated likelihood"
        name, fit, strength = MaximumLikelihood.name, replace(plain, notes=(note, *plain.notes)), 0.0
    else:
        name, fit = Shrink.name, shrunk(likelihoods, simpler.table, strength, plain)
    ordered = any(isinstance(distance, LineDistance | CircleDistance) for distance in reports.distances or ())
    alone = smoothed(likelihoods) if ordered else None
    helped = smoothed(likelihoods, reports.finer) if reports.finer and reports.finer.names else None
    level = _left_out(likelihoods, fit, simpler, strength) if alone or helped else 0.0
    if alone is not None and alone.left_out - level >= LEAST_GAIN:
        name, fit, level = Smooth.name, alone.fit(plain), alone.left_out
    if reports.finer is None:
        return name, fit
    reason = _refused(helped, plain, fit, likelihoods, level)
    if helped is not None and reason is None:
        return Smooth.name, helped.fit(plain)
    return name, _unhelped(fit, reports.finer, reason or "")


def _left_out(likelihoods: CellLikelihoods, fit: Fit, simpler: Simpler, strength: float) -> float:
    """Of a fit that was drawn to a simpler table with some strength.

    With few records the first order flatters it, and a smooth one too, but less, because that uses fewer numbers.
    """
    return left_out(likelihoods, _proportions(fit, likelihoods), simpler, strength)


def _proportions(fit: Fit, likelihoods: CellLikelihoods) -> Floats:
    values = fit.about("super").values
    totals = likelihoods.reports.totals(likelihoods.mechanisms).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(values / np.maximum(totals, 1.0), dtype=np.float64)


def _refused(helped: Smoothed | None, plain: Fit, fit: Fit, likelihoods: CellLikelihoods, level: float) -> str | None:
    """Why helping columns are not used; None when they are.

    Who knows the columns must be able to say more about held-out reports than who does not. That alone could be true
    of a wrong table, too: columns are taken to act on the attributes one by one, which they need not. So two things
    must not show that the table is wrong.

    1. It must explain the reports of everybody together. The other fit, which uses k numbers, explains them best; under
       the truth their log-likelihood is less by k/2 on average, with a standard deviation of sqrt(k/2).
    2. It must not be further from `ml`, which is nearly unbiased, than it would be at the same error. With variances V
       and V' of the two, and a bias b, the squared distance is V - V' + b^2 on average (the better estimate has no part
       in the noise that it does not have), and the error of the helped table V' + b^2. So the distance less V - 2 V' is
       an unbiased estimate of that error, which must be less than V. Values without a variance by `ml` have no say.

    level  the log-likelihood of held-out reports under the other fit: k less than that of the reports
    """
    if helped is None:
        return "the table is too large for that"
    if helped.left_out - level < LEAST_GAIN:
        return "knowing it does not improve the cross-validated likelihood"
    best, value = (_value(table, likelihoods) for table in (_proportions(fit, likelihoods), helped.expected))
    half = max(best - level, 0.0) / 2.0
    if best - value > half + 2.0 * np.sqrt(half):
        return "using it would lower the likelihood of the reports"
    totals = likelihoods.reports.totals(likelihoods.mechanisms)
    return "the result would differ too much from ml" if _is_far(helped, plain, totals) else None


def _is_far(helped: Smoothed, plain: Fit, totals: Floats) -> bool:
    """Whether the helped table is further from `ml` than it would be at the same error."""
    records = totals.reshape(-1, *[1] * (plain.values.ndim - 1))
    squares = (helped.expected * records - plain.values) ** 2
    drawn = plain.values - plain.values**2 / np.maximum(records, 1.0)
    gained = plain.variance + drawn - helped.variance
    known = np.isfinite(gained)
    return bool(squares[known].sum() >= 2.0 * gained[known].sum())


def _value(proportions: Floats, likelihoods: CellLikelihoods) -> float:
    """The log-likelihood of all reports."""
    return sum(likelihood.value(x.ravel()) for likelihood, x in zip(likelihoods, proportions))


def _unhelped(fit: Fit, finer: Finer, reason: str) -> Fit:
    """A fit that says why columns were not used."""
    refused = [f"without the help of {', '.join(finer.names)}: {reason}"] if finer.names else []
    return replace(fit, notes=(*refused, *finer.unused(), *fit.notes))
