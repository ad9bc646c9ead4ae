"""`regress`: coefficients of a regression on open and protected columns, with intervals."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Never

from polyseme.inference.base import refuse_unknown
from polyseme.inference.regression import RegressOptions, regression_of
from polyseme.inference.regression.scores import Family
from polyseme.kernel.work import verb
from polyseme.publishing.inputs import release_given
from polyseme.release import Release
from polyseme.results.regression import Regression
from polyseme.results.table import Population

__all__ = ["regress"]

_log = logging.getLogger(__name__)


@verb(read=1, fit=4)
def regress(
    release: Release | str | Path,
    formula: str,
    *,
    family: Family = "linear",
    where: str | None = None,
    positions: Mapping[str, Sequence[float] | Mapping[str, float]] | None = None,
    population: Population = "super",
    level: float = 0.95,
    cluster: str | None = None,
    unweighted: bool = False,
    **unknown: Never,
) -> Regression:
    """The coefficients of a regression, by corrected scores.

    formula     such as "y ~ income + age*sex"
    family      "linear", "logistic", "poisson" or "multinomial"
    where       a condition such as 'age >= 30'
    positions   numbers for values, in order or by label
    population  "super": the population the records were drawn from; "finite": the people in the table
    level       of the intervals
    cluster     a column that tells people apart
    unweighted  count the records also where the release has survey weights
    """
    refuse_unknown(unknown)
    options = RegressOptions(family, where, positions, population, level, cluster, unweighted)
    found = regression_of(release_given(release), formula, options)
    _log.info("regress: %d terms, %d records", len(found.terms), found.records)
    return found
