"""`plan --frontier` and `plan --advise`: the cost of a learner's success, cheapest setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl

from polyseme.designs.balanced import RAREST
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import ImpossibleError, Problem, QuestionError
from polyseme.kernel.work import tracked
from polyseme.methods.decoys import sets_of
from polyseme.privacy.analysis import thresholds
from polyseme.privacy.analysis.learner import Population, success
from polyseme.privacy.analysis.lower_bound import floor
from polyseme.privacy.analysis.success_limit import Calibration, calibrate, expected_error, learner_frontier
from polyseme.results.plan import Advice, AttributePlan, Plan, Tried, marked
from polyseme.semantics.distances.base import Distance
from polyseme.strata import Strata
from polyseme.strata.stratum import Groups

__all__ = ["advise", "bands", "tradeoff"]

ALPHAS = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
TRUTHS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Steps of the two dials: finer ones lie between these, and the points of a chart would touch."""
_DISTANCES = 6
"""Distances that are tried, up to the promised one and beyond."""
_SIZES = range(2, 6)
"""Candidates that are tried: more are rarely possible, and more precise never."""
_STRATA = 24
"""Strata that decoys may differ by: each has designs of its own to fit (10 of them take 0.1 s a strength)."""
_LEVELS, _BANDS = 6, 5
"""Numbers with more levels than this are taken in so many bands."""
_LARGEST = 200
"""Values up to which all settings are tried; fitting takes minutes beyond."""
_EXACT = 1e-12


def tradeoff(made: Plan) -> dict[str, list[Tried]]:
    """A learner's success against the expected error over l, d, alpha and p."""
    found = {}
    for item in made.attributes:
        distance, groups = item.attribute.distance, item.groups
        if distance is None or groups is None or not item.feasible or distance.size > _LARGEST:
            continue
        if item.attribute.constraints:  # values are impossible for some people: no setting of the dials suits all
            continue
        found[item.name] = marked([*_tried(item, distance, groups, made.records), *_own(item, groups, made.records)])
    return found


def _tried(item: AttributePlan, distance: Distance, groups: Groups, records: int | None) -> Iterator[Tried]:
    """All (l, d) with uniform decoys and truthful sets; at the promised d, other settings too."""
    population, strata, own = groups.population, bands(groups), item.choice.d
    occurring = thresholds(distance)[: 2 * _DISTANCES]
    distances = sorted({*occurring[:: -(-len(occurring) // _DISTANCES)], own})
    for l, d in tracked(list(product(_SIZES, distances)), "settings", "Trying settings"):
        alphas, truths = ([0.0, *ALPHAS], TRUTHS) if d == own else ([0.0], (1.0,))
        structure = distance.structure(d)
        try:
            points = learner_frontier(structure, l, population, alphas, truths, strata)
            least = float(population.weights @ [floor(structure, l, shares).value for shares in population.shares])
        except ImpossibleError:
            continue
        for point in points:
            error = point.root_error(distance.size, records) if records else None
            error = None if error is None or not np.isfinite(error) else error
            chosen = _is_chosen(item, l, d, point.alpha, point.p)
            yield Tried(l, d, point.alpha, point.p, point.success, point.worst, least, error, chosen=chosen)


def _is_plain(item: AttributePlan) -> bool:
    """Whether decoys are even, so that the policy is one of the settings that are tried."""
    attribute = item.attribute
    return attribute.distributions.prior is None and attribute.promises.learner is None and not attribute.conditional


def _own(item: AttributePlan, groups: Groups, records: int | None) -> Iterator[Tried]:
    """What the policy asks for, where it has a prior or a promise of its own."""
    strata = sets_of(item).strata
    places, structure = groups.places(strata), strata.members[0].mechanism.design.structure
    if _is_plain(item) or places is None:
        return
    population, l = groups.population, item.choice.l
    designs = [strata.members[place].mechanism for place in places.tolist()]
    reached = [success(made, shares) for made, shares in zip(designs, population.shares, strict=True)]
    if None in reached:
        return
    risks = population.weights * np.array(reached, dtype=np.float64)
    mine = places if (banded := bands(groups)) is None else banded
    worst = float((np.bincount(mine, risks) / np.maximum(np.bincount(mine, population.weights), _EXACT)).max())
    least = float(population.weights @ [floor(structure, l, shares).value for shares in population.shares])
    error = _own_error(strata, places, population, records)
    p = designs[0].p if len({made.p for made in designs}) == 1 else None
    yield Tried(l, item.choice.d, None, p, float(risks.sum()), worst, least, error, chosen=True)


def _own_error(strata: Strata, places: Ints, population: Population, records: int | None) -> float | None:
    """The expected error of the shares of everybody, from those of each stratum."""
    total, size = 0.0, strata.members[0].size
    for place in np.unique(places).tolist():
        part = population.part(np.flatnonzero(places == place))
        shares = np.maximum(part.margin, RAREST)
        error = expected_error(strata.members[place].mechanism, shares / shares.sum())
        if error is None or not np.isfinite(error):
            return None
        total += float(population.weights[places == place].sum()) * error
    return float(np.sqrt(total / (size * records))) if records else None


def _is_chosen(item: AttributePlan, l: int, d: float, alpha: float, p: float) -> bool:
    return (
        _is_plain(item)
        and alpha == 0.0
        and (l, d) == (item.choice.l, item.choice.d)
        and abs(p - item.choice.p) < _EXACT
    )


def bands(groups: Groups) -> Ints | None:
    """Strata that decoys may differ by: the groups, numbers with many levels taken in bands.

    One where still too many.

    >>> ages = Groups(np.ones((50, 2)), pl.DataFrame({"age": [str(age) for age in range(20, 70)]}))
    >>> bands(ages).tolist()[::10]
    [0, 1, 2, 3, 4]
    """
    cells = groups.cells.filter(pl.Series(groups.some)) if groups.by else groups.cells
    rows = int(groups.some.sum())
    if rows <= _STRATA:
        return None
    code = np.zeros(rows, dtype=np.int64)
    for series in cells:
        code = code * rows + _banded(series)
    strata = np.unique(code, return_inverse=True)[1]
    return strata if strata.max() < _STRATA else np.zeros(rows, dtype=np.int64)


def _banded(series: pl.Series) -> Ints:
    numbers = series.cast(pl.Float64, strict=False)
    numeric = numbers.null_count() == series.null_count()
    codes = (numbers if numeric else series).rank("dense").fill_null(0).to_numpy().astype(np.int64)
    levels = int(codes.max()) if len(codes) else 0
    return (codes - 1) * _BANDS // levels if numeric and levels > _LEVELS else codes


def advise(made: Plan, success: float) -> list[Advice]:
    """For each attribute with a known distribution, the best setting under a limit on learners.

    It has the least error at which a learner is right at most with `success` in every stratum.
    """
    if not 0.0 < success < 1.0:
        raise QuestionError(Problem("learner", "expected a number between 0 and 1", "--learner 0.5"))
    if made.records is None:
        raise QuestionError(Problem("records", "advice needs the number of records", "--records N"))
    known = [item for item in made.attributes if item.groups is not None and item.attribute.distance is not None]
    if not known:
        raise QuestionError(
            "advice needs an attribute with a distance, and a distribution of its values",
            "give one with --distribution FILE, or the table with --data",
        )
    return [_advised(item, success, made.records) for item in known]


def _advised(item: AttributePlan, success: float, records: int) -> Advice:
    distance, groups = item.attribute.distance, item.groups
    if distance is None or groups is None:
        raise ValueError("only attributes with a distance and a distribution are advised")
    population, found = _gathered(groups), dict[int, Calibration]()
    problems: list[Problem] = []
    for l in _SIZES:
        try:
            found[l] = calibrate(distance, l, item.choice.d, population, success)
        except ImpossibleError as error:
            problems += [replace(problem, where=f"$.attributes.{item.name}") for problem in error.problems]
    errors = {l: reached for l, each in found.items() if (reached := each.root_error(records)) is not None}
    if not errors:
        raise ImpossibleError(problems[:1] or "no setting was found whose error can be computed")
    best = min(errors, key=lambda l: errors[l])
    return _advice(item, best, success, found[best], errors)


def _gathered(groups: Groups) -> Population:
    """The strata that a policy would have priors for."""
    strata = bands(groups)
    return groups.population if strata is None else groups.population.gathered(strata)


def _advice(item: AttributePlan, l: int, success: float, chosen: Calibration, errors: dict[int, float]) -> Advice:
    by = item.groups.by if item.groups is not None else ()
    d = item.choice.d
    prior = f"prior: {{by: [{', '.join(by)}], file: {item.name}.csv}}" if by else f"prior: {item.name}.csv"
    others = ", ".join(f"{error:.2g} with {size}" for size, error in errors.items() if size != l)
    lines = (
        *chosen.lines(),
        f"expected error of a share {errors[l]:.2g}" + (f"; {others} candidates" if others else ""),
    )
    protect = f"protect: {{semantic-diversity: {{l: {l}, d: {d:g}}}, learner: {{success: {success:g}}}}}"
    return Advice(item.name, l, d, (prior, protect), lines, chosen.success, chosen.worst, errors[l])
