"""Likelihood estimators on sets: `ml`, `shrink`, and `bayes` on containment counts.

`ml` is maximum likelihood on the sets, `bayes` the composite likelihood of containment counts. `shrink` is maximum
likelihood drawn toward a simpler table, as far as the release itself says it should be:

    x  maximizes  sum_i c_i log f_i  +  strength * sum_v m_v log x_v

where
    m         the simpler table, see `Simpler`: the product of the margins of the attributes; for one attribute in
              several groups its distribution over all of them; for one ordered attribute alone the neighbors' average;
              else uniform
    strength  in records: as many further records as if drawn from m

The penalty is that of a Dirichlet prior, so it acts like further reports whose true value is known, and the solver is
that of `ml`. The strength is the one under which reports left out of the fit are most likely, see `cross_validation`;
it is never set by stopping the search early. Strength zero is `ml`, and the same criterion chooses between the two.

`x` is about the population that the records were drawn from: it is pulled toward m even where the records themselves
differ from it. The people in the table are estimated by what the reports say of each of them when x is the prior,

    sum_i c_i A[i, v] x_v / f_i  =  (n + strength) x_v - strength m_v      for the proportions x_v

so that only the doubt about a report is settled by m, never the report itself.

*Design effects.* People may have several records with the same decoys. The manifest states one design effect for the
whole table. The people of one group may have more records than others, and then its errors are larger than that says.
It shows in the sets: records of one draw come in clumps, so counts of sets spread more widely around what is expected
of them,

    phi = sum_R (c_R - e_R)^2 / e_R / freedom

where
    c_R, e_R  how many records reported the set R, and how many are expected from the fitted table; sets expected to be
              drawn less than once are counted as one
    freedom   the number of sets less the number of fitted values

(the dispersion of a quasi-likelihood). A group has the larger of the stated effect and of phi, drawn toward what is
stated as if that came from a few further sets.

Records with weights have their effect where the weights are: people with many records may have large ones, too. With
w a weight, n_w how many records have it, and f_R how likely the set R is among them,

    phi = sum_w w^2 sum_R (c_wR - n_w f_R)^2  /  sum_w w^2 n_w (1 - sum_R f_R^2)

which is 1 for independent records, and the mean of w^2 m^2 over that of w^2 m for people with m records each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.axes import exact_map
from polyseme.inference.base import Estimator, Fit, Reports, check
from polyseme.inference.counts import containment, shape_of
from polyseme.inference.intervals.limits import (
    CellFit,
    LikelihoodLimits,
    LinearLimits,
    Widened,
    around,
    cell_fit,
    stacked_fits,
    variances,
)
from polyseme.inference.intervals.unbiased import UnbiasedMap, unbiased_map, unbiased_table
from polyseme.inference.likelihood import CellLikelihoods, ContainmentLikelihood, Joined, RecordLikelihood
from polyseme.inference.sets.cross_validation import best_strength, margin_of, simpler_table, toward
from polyseme.inference.sets.linear import NO_VARIANCE, Inverse
from polyseme.inference.solver import (
    GAP,
    MANY_RECORDS,
    MATRIX_CELLS,
    WORK,
    maximize,
    maximize_stacked,
    shared_out,
    stacked_shares,
    tolerance_for,
    tolerances_for,
)
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.semantics.distances.base import MATRIX_LIMIT

__all__ = [
    "LARGE",
    "Bayes",
    "MaximumLikelihood",
    "Shrink",
    "assemble",
    "convergence_note",
    "draw_effect",
    "group_effect",
    "linear_start",
    "may_lie",
    "most_likely",
    "shrunk",
]

_LISTED = 2_000_000
"""Largest number of values times sets for which expectations are formed: 16 MB for each group. A judgment."""
_OWN = 5.0
"""Records for each value from which on those of one weight have a distribution of their own. A judgment."""
_ABSENT = 1e-6
"""Shares up to which a value is not in a distribution: the solver leaves that much."""
_DECLARED = 2.0
"""Degrees of freedom with which the stated effect speaks: few, so that a group with many records speaks for itself.
A judgment."""


def group_effect(sets: Ints, counts: Ints, x: Floats, mechanism: Mechanism, declared: float) -> float:
    """The design effect of a group with these reports and this fitted table (F,) in records."""
    if mechanism.design.count() * mechanism.size > _LISTED or mechanism.l * np.log2(max(mechanism.size, 2)) >= 62:
        return declared
    listed, channel = mechanism.channel()
    expected, observed = x @ channel, np.zeros(len(listed))
    observed[np.searchsorted(_keys(listed, mechanism.size), _keys(sets, mechanism.size))] = counts
    usual = expected >= declared
    expected = np.append(expected[usual], expected[~usual].sum())
    observed = np.append(observed[usual], observed[~usual].sum())
    kept = expected >= declared
    freedom = int(kept.sum()) - int((x > 0.0).sum())
    if freedom < 1:
        return declared
    found = float(np.sum((observed[kept] - expected[kept]) ** 2 / expected[kept]))
    return max(declared, (found + _DECLARED * declared) / (freedom + _DECLARED))


def draw_effect(sets: Ints, counts: Ints, weights: Floats | None, mechanism: Mechanism, declared: float) -> float:
    """The larger of the declared design effect and the one that these reports show."""
    if not counts.sum():
        return declared
    weight, kind = np.unique(np.ones(len(counts)) if weights is None else weights, return_inverse=True)
    records = np.bincount(kind, weights=counts)
    # Weights that few records have are likely to go with the same values as the others.
    many = records >= _OWN * mechanism.size
    found = expected = 0.0
    for here in (*(kind == each for each in np.flatnonzero(many)), ~many[kind]):
        kinds, squares, held = np.unique(kind[here]), weight[kind[here]] ** 2, counts[here]
        fit = _Fitted.of(sets[here], held, mechanism)
        spread = squares @ (held**2 - 2.0 * held * records[kind[here]] * fit.likely)
        spread += fit.alike * (weight[kinds] ** 2 @ records[kinds] ** 2)
        found += fit.factor * float(spread)
        expected += (1.0 - fit.alike) * float(weight[kinds] ** 2 @ records[kinds])
    return max(declared, found / expected) if expected > 0.0 else declared


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What the distribution of the values behind some sets says of them.

    likely  how likely each of the sets is
    alike   how likely two sets are to be the same
    factor  for what is left unexplained: fitted numbers explain some noise
    """

    likely: Floats
    alike: float
    factor: float

    @classmethod
    def of(cls, sets: Ints, counts: Ints, mechanism: Mechanism) -> _Fitted:
        """Of these sets; where a design has too many to list, they are hardly ever the same."""
        if not len(sets) or not mechanism.lists(_LISTED) or mechanism.l * np.log2(max(mechanism.size, 2)) >= 62:
            return cls(np.zeros(len(sets)), 0.0, 1.0)
        listed, channel = mechanism.channel()
        shares = margin_of(sets, counts, mechanism)
        likely = shares @ channel
        place = np.searchsorted(_keys(listed, mechanism.size), _keys(sets, mechanism.size))
        freedom = len(listed) - int((shares > _ABSENT).sum())
        return cls(likely[place], float(likely @ likely), len(listed) / freedom if freedom > 0 else 1.0)


def _keys(sets: Ints, size: int) -> Ints:
    """One number for each set, ascending as the sets are."""
    key = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        key = key * size + column
    return key


COMPOSITE = (
    "counts only: which values were published together is unknown, so the composite likelihood of the containment "
    "counts was maximized; set form would be more precise"
)
LARGE = (
    f"groups of more than {MATRIX_CELLS:,} cells: standard errors and intervals are those of `inverse`, wider than "
    "profile-likelihood limits"
)
FLAT = "these reports cannot distinguish some values: the estimate is one of several that fit equally well"

_MATRIX = 1_000
"""Values of an attribute up to which a linear estimate takes next to no time."""
_INSIDE = 1e-4
"""Share of an even table below which no cell of a start may lie, so that every cell can still grow."""
_UNBIASED_WORK = 1e9
"""Operations that an unbiased estimate of one group may take, about a second."""


def convergence_note(gap: float) -> tuple[str, ...]:
    """A warning when the maximum was not reached."""
    if gap <= GAP:
        return ()
    return (f"not converged: the log-likelihood per record may still grow by {gap:.1e} (promised {GAP:.0e})",)


class MaximumLikelihood(Estimator):
    """The table under which the published sets are most likely: efficient, never negative.

    The default.

    Its duality gap is certified, see `solver`; its intervals are profile-likelihood ones, see `intervals`.
    """

    name = "ml"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        return most_likely(CellLikelihoods(reports, mechanisms))


def most_likely(likelihoods: CellLikelihoods) -> Fit:
    """The table under which the reports of every cell are most likely."""
    reports, mechanisms = likelihoods.reports, likelihoods.mechanisms
    if not reports.paired:
        fit = _composite(reports, mechanisms)
        return replace(fit, notes=(COMPOSITE, *fit.notes))
    fits = _fits(likelihoods)
    fit = assemble(fits, (reports.cells, *shape_of(mechanisms)), reports.totals(mechanisms))
    if all(cell.quadratic is not None or cell.x.sum() == 0.0 for cell in fits):
        return fit
    return _with_inverse(fit, [cell.ceiling for cell in fits], reports, mechanisms)


def _fits(likelihoods: CellLikelihoods) -> list[CellFit]:
    """The fit of each cell; small groups go together."""
    reports, mechanisms = likelihoods.reports, likelihoods.mechanisms
    found: dict[int, CellFit] = {}
    for cells, stack in likelihoods.stacks(2 * WORK, MANY_RECORDS):
        solutions = maximize_stacked(stack, tolerances_for(stack.records))
        expected = solutions.x * stack.records[:, None]
        effects = [_effect(reports, mechanisms, cell, x) for cell, x in zip(cells.tolist(), expected)]
        ceilings = None if may_lie(mechanisms) else stack.presence()
        found.update(zip(cells.tolist(), stacked_fits(stack, solutions, ceilings, effects)))
    for cell in range(reports.cells):
        if cell in found:
            continue
        likelihood = likelihoods[cell]
        records = likelihood.records
        solution = maximize(likelihood, tolerance_for(records), start=linear_start(likelihood, mechanisms))
        ceiling = None if may_lie(mechanisms) else likelihood.presence()
        repeats = _effect(reports, mechanisms, cell, solution.x * records)
        found[cell] = cell_fit(likelihood, solution, records, ceiling, repeats)
    maps, size = _uniform_maps(mechanisms) if may_lie(mechanisms) else (), int(np.prod(shape_of(mechanisms)))
    for cell, sets, counts in reports.by_cell() if maps else ():
        if len(counts) * size**2 <= _UNBIASED_WORK:
            found[cell] = replace(found[cell], unbiased=unbiased_table(maps, sets, counts))
    return [found[cell] for cell in range(reports.cells)]


def _effect(reports: Reports, mechanisms: Sequence[Mechanism], cell: int, x: Floats) -> float:
    """The design effect of a cell with this fitted table in records."""
    if reports.repeats <= 1.0 or reports.cells == 1 or len(mechanisms) > 1:
        return reports.repeats
    sets, counts = reports.within(cell)
    return group_effect(sets[0], counts, x, mechanisms[0], reports.repeats) if counts.sum() > 0 else reports.repeats


def may_lie(mechanisms: Sequence[Mechanism]) -> bool:
    """Whether a published set need not hold the true value."""
    return any(mechanism.p < 1.0 for mechanism in mechanisms)


def _uniform_maps(mechanisms: Sequence[Mechanism]) -> tuple[UnbiasedMap, ...]:
    """What a set adds to an unbiased estimate; nothing where some values leave the same traces."""
    maps = tuple(unbiased_map(mechanism, np.ones(mechanism.size)) for mechanism in mechanisms)
    return maps if all(axis.identifiable for axis in maps) else ()


def linear_start(likelihood: RecordLikelihood, mechanisms: Sequence[Mechanism]) -> Floats | None:
    """The unbiased table as a start: with very many reports it is near the maximum."""
    if likelihood.records < MANY_RECORDS or max(shape_of(mechanisms)) > _MATRIX:
        return None
    maps = [exact_map(mechanism) for mechanism in mechanisms]
    if not all(axis_map.identifiable for axis_map in maps):
        return None
    table = likelihood.presence().reshape(likelihood.shape)
    for axis, axis_map in enumerate(maps):
        table = axis_map.apply(table, axis)
    x = np.maximum(table.ravel() / likelihood.records, _INSIDE / likelihood.size)
    return np.asarray(x / x.sum(), dtype=np.float64)


def assemble(fits: Sequence[CellFit], shape: tuple[int, ...], totals: Floats) -> Fit:
    """One table from the fits of its cells."""
    values = np.array([fit.x for fit in fits]).reshape(shape)
    variance = variances(fits).reshape(shape)
    variance[totals == 0] = 0.0
    gap = max((fit.gap for fit in fits), default=0.0)
    notes = (*convergence_note(gap), *((FLAT,) if np.isnan(variance).any() else ()))
    profile = LikelihoodLimits(tuple(fits), totals, shape)
    repeats = max((fit.repeats for fit in fits), default=1.0)
    return Fit(values, variance, gap, notes, totals, profile.spread, profile, repeats=repeats)


def _with_inverse(
    fit: Fit, ceilings: Sequence[Floats | None], reports: Reports, mechanisms: Sequence[Mechanism]
) -> Fit:
    """A table too large for likelihood limits, with the errors and limits of `inverse`."""
    notes = convergence_note(fit.gap or 0.0)
    try:
        linear = Inverse().fit(reports, mechanisms)
    except ImpossibleError:
        return replace(fit, notes=(*notes, NO_VARIANCE), spread=None, limits=None)
    known = all(ceiling is not None for ceiling in ceilings)
    inner = LinearLimits(linear, np.array(ceilings).reshape(fit.values.shape) if known else None)
    limits = Widened(inner, fit.values, fit.values)
    said = (*notes, LARGE, *linear.notes)
    return replace(fit, variance=linear.variance, notes=said, spread=linear.spread, limits=limits)


class Bayes(Estimator):
    """Equations 26 and 27 of the sensitive-QID paper, carried to their certified limit.

        x_a  <-  sum_b w_b delta(a, b) x_a / sum_g delta(g, b) x_g,      finally divided by prod(eta)

    where
        delta(a, b)  probability that the sets of a record of true combination a contain combination b

    This is expectation-maximization for the composite likelihood of the containment counts, so its limit is found by
    the same solver as `ml`. `delta` is the exact inclusion matrix of each attribute; for the paper's own mechanism the
    two agree.
    """

    name = "bayes"

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        return _composite(reports, mechanisms)


def _composite(reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
    if max(shape_of(mechanisms)) > MATRIX_LIMIT:
        raise ImpossibleError(
            f"the composite likelihood needs inclusion matrices, refused beyond {MATRIX_LIMIT:,} values",
            "use `inverse`, or `ml` on a release in set form",
        )
    counts, totals = containment(reports, mechanisms), reports.totals(mechanisms)
    inclusion = tuple(mechanism.inclusion_matrix() for mechanism in mechanisms)
    values, gap = np.zeros(counts.shape), 0.0
    for cell, table in enumerate(counts):
        likelihood = ContainmentLikelihood(inclusion, table.ravel(), table.shape)
        if totals[cell] > 0:
            solution = maximize(likelihood, tolerance_for(totals[cell]))
            values[cell] = totals[cell] * solution.x.reshape(table.shape)
            gap = max(gap, solution.gap)
    linear = Inverse().fit(reports, mechanisms)
    flat = () if all(exact_map(mechanism).identifiable for mechanism in mechanisms) else (FLAT,)
    notes = (*convergence_note(gap), *flat)
    limits = Widened(LinearLimits(linear, None), values, values)
    return replace(linear, values=values, gap=gap, notes=notes, limits=limits)


class Shrink(Estimator):
    """Penalized likelihood; wins where cells are many and records few.

    strength  fixed by hand, in records for each group; None lets held-out reports decide
    """

    name = "shrink"

    def __init__(self, strength: float | None = None) -> None:
        self.strength = strength

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        check(reports, mechanisms)
        likelihoods = CellLikelihoods(reports, mechanisms)
        plain = most_likely(likelihoods)
        if not reports.paired:
            return replace(plain, notes=("shrinkage needs the sets: not applied to counts only", *plain.notes))
        simpler, strength = simpler_table(reports.sets, reports.counts, mechanisms, reports.cells), self.strength
        if strength is None:
            strength, _ = best_strength(likelihoods, simpler, plain.values)
        return shrunk(likelihoods, simpler.table, strength, plain)


def shrunk(likelihoods: CellLikelihoods, target: Floats, strength: float, plain: Fit) -> Fit:
    """The table shrunk toward `target` with this strength; `plain` is the one without."""
    plains = plain.values.reshape(len(plain.values), -1)
    expected, people, gap, done = np.zeros(plains.shape), np.zeros(plains.shape), 0.0, np.zeros(len(plains), bool)
    for cells, stack in likelihoods.stacks(2 * WORK, MANY_RECORDS):
        records = stack.records[:, None]
        start = toward(plains[cells] / records, target, strength / records)
        prior = np.broadcast_to(strength * target, (len(cells), len(target)))
        joined = stack.with_prior(prior) if strength > 0.0 else stack
        solutions = maximize_stacked(joined, tolerances_for(stack.records), start=start)
        expected[cells], people[cells] = solutions.x * records, stacked_shares(stack, solutions.x)
        gap, done[cells] = max(gap, float(solutions.gap.max(initial=0.0))), True
    for cell in np.flatnonzero(~done).tolist():
        likelihood = likelihoods[cell]
        held = Joined.of(likelihood, strength * target) if strength > 0.0 else likelihood
        count = likelihood.records
        first = toward(plains[cell] / count, target, strength / count) if count else None
        solution = maximize(held, tolerance_for(count), start=first)
        expected[cell], people[cell] = solution.x * count, shared_out(likelihood, solution.x)
        gap = max(gap, solution.gap)
    shape = plain.values.shape
    note = f"shrunk toward a simpler table, as if by {_rounded(strength)} further records in each group"
    notes = (note, *convergence_note(gap), *plain.notes)
    return around(plain, people.reshape(shape), expected.reshape(shape), gap=gap, notes=notes)


def _rounded(strength: float) -> str:
    return f"{strength:,.0f}" if strength >= 10.0 else f"{strength:.2g}"
