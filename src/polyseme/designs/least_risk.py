"""The least-risk design: least risk at an acceptable error where no balanced design exists.

*Descent.* The worst posterior is lowered over the inclusion probabilities within reach. With `c = pi / rho` the
posterior of a member v of R is `c_v / c(R)`, where `c(R)` adds up `c` over R. Its logarithm is smooth in `rho`, so the
largest of them is lowered by a sequence of linear programs: take each value with its lightest sets, replace the
logarithms by their tangents, and trust these as long as no `rho_v` changes by more than some factor. A step that does
not lower the worst posterior is taken back and tried again with the sets that raised it; after a few such tries the
trusted region shrinks. The problem is not convex, so the result is a local optimum; `floor_posterior` bounds how far it
is from the best.

*Step back.* Inclusion probabilities of least worst posterior lie on the boundary of what is possible: some windows are
in every set, and hardly anything can be estimated. So the design steps back from there toward the plain design `P0(R)`,
proportional to the product of `pi_v` over R, whose inclusion probabilities respect the prior:

    rho(step) = (1 - step) * rho_least + step * rho_plain

and of all distributions with these inclusion probabilities it is the one of maximum entropy. Of a grid of steps it is
the one with the least product of worst posterior and expected root mean squared error, among those whose worst
posterior is acceptable: its odds are at most `exp(2 * DOUBT)` times the least ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyseme.designs.balanced import ListedReach, Reach, balanced, floor_posterior, proper_prior, reach_of
from polyseme.designs.base import Trade
from polyseme.designs.chain import Chain, Steps
from polyseme.designs.clusters import cluster_masses, cluster_steps, fit_clusters
from polyseme.designs.distribution import MaximumEntropy
from polyseme.designs.feasibility import least_uneven
from polyseme.designs.information import INFORMATION_LIMIT
from polyseme.designs.line import fit_line
from polyseme.designs.maximum_entropy import ListedFamily, fit_listed
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError
from polyseme.kernel.work import check_cancelled
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["DOUBT", "STEPS", "least_risk", "lower_risk"]

_WORK = 3_000
"""Rounds times values, or times twentieths of the listed sets: what is large gets fewer rounds."""
_ROUNDS = (6, 30)
"""Fewest and most rounds. This and the other numbers here were chosen by judgment; `tests/designs/test_least_risk.py`
holds how near to the floor they come."""
_TRUST = 2.0
"""By what factor, less one, an inclusion probability may change in the first step."""
_DISTRUST = 1e-2
"""Where steps end: inclusion probabilities would change by less than a hundredth."""
_TRIES = 4
"""How often a step is tried with more sets before less is trusted."""
_GAIN = 1e-3
"""A step that lowers the worst posterior by a smaller part than this is a small one."""
_MARGIN = 4.0
"""Sets whose log posterior is this many trust radii below the worst one are left out of a program."""


def lower_risk(reach: Reach, prior: Floats, rho: Floats, floor: float) -> Floats:
    """Inclusion probabilities downhill from `rho`, until no step helps or `floor` is reached."""
    trust, failed, worst = _TRUST, 0, reach.worst_posterior(prior, rho)
    members, sets = _lightest(reach, prior, rho)
    size = max(len(prior), reach.expand.shape[1] // 20)
    for _ in range(int(np.clip(_WORK // size, *_ROUNDS))):
        check_cancelled()
        if trust < _DISTRUST or worst <= floor * (1.0 + _GAIN):
            break
        moved = _step(reach, prior, rho, (members, sets), trust)
        new = worst if moved is None else reach.worst_posterior(prior, moved)
        if moved is not None and new < worst:
            trust = trust / 2.0 if new > worst * (1.0 - _GAIN) else min(2.0 * trust, 1.0)
            rho, worst, failed = moved, new, 0
            members, sets = _lightest(reach, prior, rho)
            continue
        failed += 1
        if moved is None or failed == _TRIES:
            trust, failed = trust / 2.0, 0
        if moved is not None:
            more, spoilers = _lightest(reach, prior, moved)
            members, sets = np.append(members, more), np.concatenate([sets, spoilers])
    return rho


def _lightest(reach: Reach, prior: Floats, rho: Floats) -> tuple[Ints, Ints]:
    return np.arange(len(prior)), reach.lightest_sets(prior / rho)


def _step(reach: Reach, prior: Floats, rho: Floats, pairs: tuple[Ints, Ints], trust: float) -> Floats | None:
    """The best point by the tangents within the trust region; None when the program fails."""
    from scipy.sparse import csr_array

    members, sets = pairs
    cost = prior / rho
    total = cost[sets].sum(axis=1)
    value = np.log(cost[members] / total)
    near = value >= value.max() - _MARGIN * trust
    members, sets, total, value = members[near], sets[near], total[near], value[near]
    count, l = sets.shape
    # d ln(c_v / c(R)) / d rho_u = (share of u in c(R) - [u = v]) / rho_u
    slopes = cost[sets] / (total[:, None] * rho[sets])
    rows = np.append(np.repeat(np.arange(count), l), np.arange(count))
    entries = (np.append(slopes.ravel(), -1.0 / rho[members]), (rows, np.append(sets.ravel(), members)))
    tangents = csr_array(entries, shape=(count, len(rho)))
    unknowns = reach.expand.shape[1]
    limits = np.concatenate([tangents @ rho - value, rho * (1.0 + trust), -rho / (1.0 + trust)])
    try:
        found = reach.solve(np.append(np.zeros(unknowns), 1.0), _rows(reach, tangents), limits)
    except ImpossibleError:
        return None
    moved: Floats = np.maximum(np.asarray(reach.expand @ found[:unknowns]), rho / (1.0 + 2.0 * trust))
    moved *= reach.l / moved.sum()
    return moved


def _rows(reach: Reach, tangents: csr_array) -> csr_array | Floats:
    """Constraints: tangents below the last unknown, inclusion probabilities in the trust region."""
    from scipy.sparse import coo_array, hstack, vstack

    count, size = tangents.shape
    full = reach.full
    if full is not None:
        last = np.append(-np.ones(count), np.zeros(2 * size))[:, None]
        written: Floats = np.hstack([np.vstack([tangents @ full, full, -full]), last])
        return written
    below = hstack([tangents @ reach.expand, coo_array(-np.ones((count, 1)))])
    bounded = hstack([vstack([reach.expand, -reach.expand]), coo_array((2 * size, 1))])
    stacked: csr_array = vstack([below, bounded], format="csr")
    return stacked


STEPS = tuple(float(step) for step in np.geomspace(1e-3, 1.0, 10))
"""The steps that are tried, three to a decade. Below a thousandth the risk hardly falls, and the error soars."""

DOUBT = 0.05
"""How wrong a reference prior may be before that costs more than stepping back: `|ln(true / assumed)|` of any share.

When the prior is that wrong, posterior odds are up to `exp(2 * DOUBT)` times what was computed. So a design whose odds
are that much above the least ones gives away no more than a prior that is off by a twentieth: a worst posterior of 0.5
becomes 0.525.
"""

_NEAR_FLOOR = 1.01
"""Within this factor of what no mechanism can undercut, no second start is tried."""

_HALVINGS = 10
"""How often the way to the last bearable step is halved: to a thousandth of a step of the grid."""
_COARSE = 1e-5
"""Inclusion probabilities below this are lost in the tolerances of a linear program (1e-7)."""

_NONE = np.empty(0, dtype=np.int64)
_NAME = "least-risk"


def least_risk(structure: Structure, l: int, prior: Floats | None = None) -> MaximumEntropy:
    """Balanced where that exists; else the best trade of worst posterior and error (see above)."""
    try:
        design = balanced(structure, l, prior)
        design.name = _NAME
        return design
    except ImpossibleError:
        pass
    return _best(_path(structure, l, proper_prior(prior, structure.size)))


@dataclass(frozen=True, eq=False)
class _Path:
    """The way from the inclusion probabilities of least risk to the plain ones.

    prior   of the values, or of the clusters
    fit     the design with given inclusion probabilities, from log weights to start with
    whole   the prior of the values
    """

    reach: Reach
    prior: Floats
    floor: float
    least: Floats
    plain: Floats
    fit: Callable[[Floats, Floats], MaximumEntropy]
    whole: Floats

    def at(self, step: float) -> Floats:
        return (1.0 - step) * self.least + step * self.plain

    def risk(self, step: float) -> float:
        """The worst posterior at p = 1.

        Every valid set can occur, so the inclusion probabilities decide.
        """
        return self.reach.worst_posterior(self.prior, self.at(step))


def _path(structure: Structure, l: int, pi: Floats) -> _Path:
    if isinstance(structure, Clusters):
        return _over_clusters(structure, l, pi)
    reach = reach_of(structure, l)
    plain = _plain(structure, l, reach, np.log(pi))
    if not plain.min() > 0.0:
        raise ImpossibleError("some values are in no valid set", "choose a smaller l or d")
    floor = floor_posterior(reach, pi)
    least = _lowest(reach, pi, floor, [least_uneven(structure, l, pi), plain])
    return _Path(reach, pi, floor, least, plain, _fitter(structure, l, reach), pi)


def _plain(structure: Line | Circle | Graph, l: int, reach: Reach, log_prior: Floats) -> Floats:
    """The inclusion probabilities of `P0`."""
    if isinstance(reach, ListedReach):
        return ListedFamily(reach.sets, log_prior).inclusion if len(reach.sets) else np.zeros(structure.size)
    if not isinstance(structure, Line):
        raise TypeError("circles and graphs have listed sets")
    chain = Chain(Steps(structure.ahead, _NONE), l, log_prior[structure.order])
    plain = np.zeros(structure.size)
    if np.isfinite(chain.log_total):
        plain[structure.order] = chain.inclusion
    return plain


def _fitter(structure: Line | Circle | Graph, l: int, reach: Reach) -> Callable[[Floats, Floats], MaximumEntropy]:
    if isinstance(structure, Line):
        return lambda target, start: fit_line(structure, l, target, _NONE, _NAME, start)
    if not isinstance(reach, ListedReach):
        raise TypeError("circles and graphs have listed sets")
    every = np.arange(len(reach.sets), dtype=np.int64)
    return lambda target, start: fit_listed(structure, l, reach.sets, every, target, _NAME, start)


def _over_clusters(clusters: Clusters, l: int, pi: Floats) -> _Path:
    """The design over clusters; values are drawn by their share, so its bounds hold for them."""
    if clusters.count < l:
        raise ImpossibleError(
            f"{l} candidates that far apart do not exist: the values form {clusters.count} groups, "
            "and a set holds at most one of each",
            f"l can be at most {clusters.count}; or choose a smaller d",
        )
    mass = cluster_masses(clusters, pi)
    shares = None if clusters.count == clusters.size else pi / mass[clusters.labels]
    singles = Clusters(np.arange(clusters.count, dtype=np.int64))
    reach = reach_of(singles, l)
    plain = Chain(cluster_steps(clusters.count), l, np.log(mass)).inclusion
    floor = max(1.0 / l, float(mass.max()))
    least = _lowest(reach, mass, floor, [_capped(l, mass), plain])

    def fit(target: Floats, start: Floats) -> MaximumEntropy:
        return fit_clusters(clusters, l, target, shares, _NONE, _NAME, start)

    return _Path(reach, mass, floor, least, plain, fit, pi)


def _capped(l: int, mass: Floats) -> Floats:
    """Proportional to `mass`, none above one, sum l: heavy clusters are in every set."""
    full = np.zeros(len(mass), dtype=bool)
    while True:
        rho = np.where(full, 1.0, mass * (l - full.sum()) / max(mass[~full].sum(), 1e-300))
        over = (rho > 1.0) & ~full
        if not over.any():
            return rho
        full |= over


def _lowest(reach: Reach, prior: Floats, floor: float, starts: list[Floats]) -> Floats:
    """The best of what is reached downhill from each start."""
    best, worst = starts[0], np.inf
    for start in starts:
        found = lower_risk(reach, prior, _lifted(start, prior), floor)
        risk = reach.worst_posterior(prior, found)
        if risk < worst:
            best, worst = found, risk
        if worst <= _NEAR_FLOOR * floor:
            break
    return best


def _lifted(rho: Floats, prior: Floats) -> Floats:
    """The same with rare values at least in proportion to the prior: too rare for the program."""
    clear = rho >= _COARSE
    lifted = np.maximum(rho, prior * float((rho[clear] / prior[clear]).min()))
    return np.asarray(lifted * (rho.sum() / lifted.sum()))


def _best(path: _Path) -> MaximumEntropy:
    """The design of the chosen step, and what it was chosen from."""
    risks = _bearable(path)
    # Where the domain is too large for errors to be computed, only the ends are needed.
    large = len(path.prior) > INFORMATION_LIMIT
    made = _designs(path, [min(risks, key=risks.__getitem__), max(risks)] if large else list(risks))
    errors = {step: design.least_error(path.whole) for step, design in made.items()}

    def loss(step: float) -> float:
        error = errors[step]
        # Unknown, it is taken to fall with the step.
        return -step if error is None else risks[step] * float(np.sqrt(error))

    least = min(made, key=risks.__getitem__)
    chosen = min(made, key=loss)
    chosen = least if errors[chosen] == np.inf else chosen
    design = made[chosen]
    design.trade = Trade(chosen, path.floor, least, made[least])
    return design


def _bearable(path: _Path) -> dict[float, float]:
    """Steps with acceptable worst posteriors, including the last acceptable one, and these."""
    risks = {step: path.risk(step) for step in STEPS}
    least = min(risks.values())
    limit = least / (least + (1.0 - least) * float(np.exp(-2.0 * DOUBT)))
    found = {step: risk for step, risk in risks.items() if risk <= limit}
    low = max(found)
    high = min((step for step in STEPS if step > low), default=low)
    for _ in range(_HALVINGS if high > low else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if path.risk(middle) <= limit else (low, middle)
    return {**found, low: path.risk(low)}


def _designs(path: _Path, steps: list[float]) -> dict[float, MaximumEntropy]:
    """The designs of these steps, from the largest down: each starts where the one before ended."""
    made: dict[float, MaximumEntropy] = {}
    start, refusal = np.log(path.prior), None
    for step in sorted(set(steps), reverse=True):
        try:
            made[step] = path.fit(path.at(step), start)
        except ImpossibleError as error:
            refusal = error
        else:
            start = np.asarray(made[step].parameters().get("log_weights", start))
    if refusal is not None and not made:
        raise refusal
    return made
