"""How a question is to be answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from polyseme.errors import Problem, QuestionError, nearest
from polyseme.estimators.base import Estimator, Population
from polyseme.results.table import Target

__all__ = ["EstimateOptions", "Nonnegative", "refuse_unknown"]

Nonnegative: TypeAlias = Literal["no", "project"]


@dataclass(frozen=True)
class EstimateOptions:
    """How a question is to be answered.

    estimator    a name or an estimator; None lets the data choose between `ml`, `shrink` and `smooth`
    level        of the intervals
    population   "finite": the people in the table; "super": the population they were drawn from
    nonnegative  for linear estimators: "project" gives the nearest table without negative cells
    unweighted   whether records are counted also where the release has a weight for each
    target       "published": the published records; "table": all records, also those that are left out
    """

    estimator: str | Estimator | None = None
    level: float = 0.95
    population: Population = "finite"
    nonnegative: Nonnegative = "no"
    unweighted: bool = False
    target: Target = "published"

    def problems(self) -> Iterator[Problem]:
        """What is wrong with them; an estimator that does not exist is refused where it is looked up."""
        level: Any = self.level  # whatever a caller without a type checker hands in
        if not isinstance(level, int | float) or not 0.0 < level < 1.0:
            yield Problem("level", f"a level lies between 0 and 1, not {level!r}")
        for word, given, choices in (
            ("population", self.population, get_args(Population)),
            ("nonnegative", self.nonnegative, get_args(Nonnegative)),
            ("target", self.target, get_args(Target)),
        ):
            if given not in choices:
                yield Problem(word, f"'{given}' is not a choice", nearest(given, choices))


def refuse_unknown(unknown: Mapping[str, object], *further: str) -> None:
    """Raise for options that do not exist, naming those that do: these ones, and further ones of a verb."""
    known = ", ".join([item.name for item in fields(EstimateOptions)] + list(further))
    if unknown:
        raise QuestionError(Problem(name, "there is no such option", f"known: {known}") for name in unknown)
