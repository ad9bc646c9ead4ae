"""The estimators by name: those of the package and those of plugins."""

from __future__ import annotations

from polyseme.errors import Problem, QuestionError, nearest
from polyseme.estimators.base import Estimator
from polyseme.estimators.linear import Existing, Inverse, Paper, Simple, ValueAdding
from polyseme.estimators.maximum import Bayes, MaximumLikelihood
from polyseme.estimators.shrink import Shrink
from polyseme.estimators.smooth import Smooth
from polyseme.plugins import Registry

__all__ = ["ESTIMATORS", "estimator_given", "estimator_named"]

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
