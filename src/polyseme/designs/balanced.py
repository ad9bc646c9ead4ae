"""Balanced designs, designs between a uniform and the true prior, and what is possible.

A design that is balanced for the reference prior `q_v` proportional to `pi_v^alpha` is uniform at alpha = 0 and, at
alpha = 1, gives an attacker who knows `pi` exactly 1/l. In between, a learner's success falls as alpha rises and the
expected error grows: rare values are drawn rarely.

Where neighboring values hold more than 1/l of `q` no balanced design exists. Then the target `l q` is approached from
the *plain* design, `P(R)` proportional to the product of `q_v` over R, whose inclusion probabilities follow `q` as far
as the valid sets let them:

    rho = plain + reach * s * (l q - plain),        s the largest for which plain + s (l q - plain) can be had

At the very edge of what is possible some windows are in every set and hardly anything can be estimated.

Possible inclusion probabilities are given by linear conditions:

    rho = expand @ y        where y satisfies every condition

On a line `y` holds the sums of `rho` along the line, and no window of mutually incompatible values holds more than
one (`feasibility.py` proves that this is all). Where sets are listed, `y` holds their probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.designs.base import LEAST_SHARE, SET_LIMIT
from polyseme.designs.circle import ROOTED_LIMIT, CircleDesign, fit_rooted
from polyseme.designs.clusters import ClustersDesign, cluster_masses, fit_clusters
from polyseme.designs.distribution import MaximumEntropy, count_sets, list_sets
from polyseme.designs.feasibility import (
    LISTED_LIMIT,
    best_l,
    few_sets,
    heaviest_clique,
    largest_l,
    least_posterior,
    membership,
    possible_sets,
    program,
    tight_windows,
    window_masses,
)
from polyseme.designs.line import LineDesign, fit_line
from polyseme.designs.maximum_entropy import ListedFamily, fit_listed
from polyseme.designs.ring import as_line
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, PolicyError
from polyseme.semantics.distances.base import Circle, Clusters, Graph, Line, Structure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "RAREST",
    "REACH",
    "Reach",
    "balanced",
    "floor_inclusion",
    "floor_posterior",
    "near_floor",
    "proper_prior",
    "reach_of",
    "tempered",
    "tempered_prior",
]

_SMALL = 40_000
"""Entries up to which a matrix is written with its zeros: to put sparse ones together takes longer than to solve."""


class Reach(ABC):
    """The inclusion probabilities of all distributions over valid sets.

    expand  from the unknowns `y` to `rho`, by code: (F, unknowns)
    """

    l: int
    expand: csr_array

    @cached_property
    def full(self) -> Floats | None:
        """The same with its zeros, where it is small."""
        return self.expand.toarray() if self.expand.shape[0] * self.expand.shape[1] <= _SMALL else None

    @abstractmethod
    def conditions(self, extra: int) -> dict[str, Any]:
        """Conditions on `y` and `extra` free unknowns, in the form of `scipy.optimize.linprog`."""

    @abstractmethod
    def lightest_sets(self, cost: Floats) -> Ints:
        """For each value the valid set of least total cost that holds it: (F, l)."""

    def solve(self, cost: Floats, rows: csr_array | Floats, limits: Floats) -> Floats:
        """The unknowns that minimize `cost` under the conditions and `rows @ (y, extra) <= limits`."""
        from scipy.sparse import csr_array, vstack

        given = dict(self._given(len(cost) - self.expand.shape[1]))
        above, most = given.pop("A_ub"), np.concatenate([given.pop("b_ub"), limits])
        if isinstance(rows, np.ndarray):
            return program(cost, A_ub=np.vstack([_written(above), rows]), b_ub=most, **given)
        return program(cost, A_ub=vstack([csr_array(above), rows], format="csr"), b_ub=most, **given)

    def _given(self, extra: int) -> dict[str, Any]:
        """The conditions, written down once."""
        if extra not in self._conditions:
            found = self.conditions(extra)
            self._conditions[extra] = found if self.full is None else {**found, "A_ub": _written(found["A_ub"])}
        return self._conditions[extra]

    @cached_property
    def _conditions(self) -> dict[int, dict[str, Any]]:
        return {}

    def worst_posterior(self, prior: Floats, rho: Floats) -> float:
        """The largest posterior at p = 1 where every valid set can occur."""
        cost = prior / rho
        return float((cost / cost[self.lightest_sets(cost)].sum(axis=1)).max())


def _written(matrix: Any) -> Floats:
    """A matrix with its zeros."""
    from scipy.sparse import csr_array

    return matrix if isinstance(matrix, np.ndarray) else csr_array(matrix).toarray()


class LineReach(Reach):
    """On a line, and over clusters as a line."""

    def __init__(self, line: Line, l: int) -> None:
        from scipy.sparse import csr_array

        self.line, self.l = line, l
        size, codes = line.size, line.order
        places, ones = np.arange(size), np.ones(size)
        entries = (np.append(ones, -ones), (np.tile(codes, 2), np.append(places + 1, places)))
        self.expand = csr_array(entries, shape=(size, size + 1))
        self._windows = csr_array(
            (np.append(ones, -ones), (np.tile(places, 2), np.append(line.ahead, places))), shape=(size, size + 1)
        )

    def conditions(self, extra: int) -> dict[str, Any]:
        from scipy.sparse import coo_array, hstack, vstack

        size = self.line.size
        # Sums may not fall, and a window holds at most one.
        rows = vstack([self._windows, -self.expand])
        bounds = [(0.0, 0.0), *[(0.0, None)] * (size - 1), (float(self.l), float(self.l))]
        return {
            "A_ub": hstack([rows, coo_array((2 * size, extra))]),
            "b_ub": np.append(np.ones(size), np.zeros(size)),
            "bounds": bounds + [(None, None)] * extra,
        }

    def lightest_sets(self, cost: Floats) -> Ints:
        size, l, ahead = self.line.size, self.l, self.line.ahead
        places, mine = np.arange(size), cost[self.line.order]
        before, previous = _chains(mine, np.searchsorted(ahead, places, side="right"), l)
        after, following = _chains(mine[::-1], (size - ahead)[::-1], l)
        after, following = after[:, ::-1], size - 1 - following[:, ::-1]
        rank = (before + after[::-1]).argmin(axis=0)
        sets = np.empty((size, l), dtype=np.int64)
        sets[places, rank] = places
        earlier, later = places.copy(), places.copy()
        for r in range(l - 1, 0, -1):
            here = rank >= r
            earlier[here] = previous[r, earlier[here]]
            sets[here, r - 1] = earlier[here]
            here = rank <= l - 1 - r
            later[here] = following[r, later[here]]
            sets[here, l - r] = later[here]
        by_code = np.empty_like(sets)
        by_code[self.line.order] = self.line.order[sets]
        return by_code


def _chains(cost: Floats, count: Ints, l: int) -> tuple[Floats, Ints]:
    """Least cost of r members before each place, and the last of these members: (l, F) each.

    count  how many places, from the first on, may stand before each place
    """
    size = len(cost)
    least, link = np.full((l, size), np.inf), np.zeros((l, size), dtype=np.int64)
    least[0] = 0.0
    open_ = count > 0
    last = np.maximum(count - 1, 0)
    for r in range(l - 1):
        total = cost + least[r]
        running = np.minimum.accumulate(total)
        where = np.maximum.accumulate(np.where(total == running, np.arange(size), 0))
        least[r + 1] = np.where(open_, running[last], np.inf)
        link[r + 1] = where[last]
    return least, link


class ListedReach(Reach):
    """Where the valid sets are listed."""

    def __init__(self, sets: Ints, size: int) -> None:
        self.sets, self.l = sets, sets.shape[1]
        self.expand = membership(sets, size)

    def conditions(self, extra: int) -> dict[str, Any]:
        from scipy.sparse import csr_array

        count = len(self.sets)
        return {
            "A_ub": csr_array((0, count + extra)),
            "b_ub": np.empty(0),
            "A_eq": csr_array(np.append(np.ones(count), np.zeros(extra))[None, :]),
            "b_eq": [1.0],
            "bounds": [(0.0, None)] * count + [(None, None)] * extra,
        }

    def lightest_sets(self, cost: Floats) -> Ints:
        order = np.argsort(-cost[self.sets].sum(axis=1), kind="stable")
        number = np.zeros(self.expand.shape[0], dtype=np.int64)
        # The lightest come last, and the last one counts.
        for column in self.sets[order].T:
            np.maximum.at(number, column, np.arange(len(order)))
        return self.sets[order[number]]


def reach_of(structure: Structure, l: int) -> Reach:
    """The inclusion probabilities within reach of sets of `l` values."""
    if isinstance(structure, (Line, Clusters)):
        return LineReach(as_line(structure), l)
    return ListedReach(few_sets(structure, l), structure.size)


def floor_posterior(reach: Reach, prior: Floats) -> float:
    """The least `t` for which some `rho` within reach has `rho_v >= pi_v / t` for every value.

    No mechanism whose sets hold the true value (p = 1) has an average posterior below it, and the worst posterior is at
    least the average one. At least `1/l`, and at least the mass of the heaviest crowd.
    """
    return 1.0 / float(_covering(reach, prior)[-1])


def floor_inclusion(reach: Reach, prior: Floats) -> Floats:
    """Inclusion probabilities within reach that are at least `pi / t` for that least `t`.

    Any design that has them has, at p = 1, that average posterior.
    """
    rho: Floats = np.asarray(reach.expand @ _covering(reach, prior)[:-1])
    return rho


def _covering(reach: Reach, prior: Floats) -> Floats:
    """The unknowns of the reach, and the largest `1 / t`."""
    from scipy.sparse import coo_array, hstack

    rows = hstack([-reach.expand, coo_array(prior[:, None])], format="csr")
    cost = np.append(np.zeros(reach.expand.shape[1]), -1.0)
    return reach.solve(cost, rows, np.zeros(len(prior)))


_SLACK = 1e-11
"""By how much `l` times a mass may exceed one: sums of 70,000 rounded shares are good to about 1e-11."""
_EVEN = 1e-15
"""Shares that differ by less are the same share, rounded."""
_RARE = 1e-6
"""Shares of the prior that are near the tolerance of a linear program (1e-7)."""


def proper_prior(prior: Floats | None, size: int) -> Floats:
    """A reference prior that adds up to one; uniform when none is given."""
    if prior is None:
        return np.full(size, 1.0 / size)
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (size,) or not np.all(np.isfinite(prior)) or np.any(prior <= 0):
        raise PolicyError(
            f"a reference prior needs one positive number for each of the {size:,} values",
            "remove values that never occur from the domain; give rare ones a small number",
        )
    proper: Floats = prior / prior.sum()
    if proper.min() < LEAST_SHARE:
        raise PolicyError(f"a reference prior with shares below {LEAST_SHARE:g}", "give rare values a small number")
    return proper


def balanced(
    structure: Structure, l: int, prior: Floats | None = None, labels: Sequence[object] | None = None
) -> MaximumEntropy:
    """The maximum-entropy design with inclusion `l * prior`: every posterior is 1/l."""
    pi = proper_prior(prior, structure.size)
    even = prior is None or float(np.ptp(pi)) <= _EVEN
    if isinstance(structure, Circle) and structure.spacing is not None and even:
        if l * structure.spacing > structure.size:
            raise _impossible(structure, l, pi, labels)
        return CircleDesign(structure, l)
    if l * heaviest_clique(structure, pi).mass > 1.0 + _SLACK:
        raise _impossible(structure, l, pi, labels)
    if isinstance(structure, Line):
        return fit_line(structure, l, l * pi, tight_windows(structure, l * pi))
    if isinstance(structure, Clusters):
        mass = cluster_masses(structure, pi)
        return _over_clusters(structure, l, l * mass, None if even else pi)
    return _over_listed(structure, l, pi, labels)


def _over_clusters(clusters: Clusters, l: int, target: Floats, prior: Floats | None) -> ClustersDesign:
    full = np.flatnonzero(target >= 1.0 - _SLACK).astype(np.int64)
    single = clusters.count == clusters.size
    shares = None
    if prior is not None and not single:
        shares = prior / cluster_masses(clusters, prior)[clusters.labels]
    return fit_clusters(clusters, l, np.minimum(target, 1.0), shares, full)


def _over_listed(structure: Circle | Graph, l: int, pi: Floats, labels: Sequence[object] | None) -> MaximumEntropy:
    if isinstance(structure, Circle) and l > 1 and structure.size <= ROOTED_LIMIT and _concentrated(structure, l):
        return fit_rooted(structure, l, l * pi)
    sets = list_sets(structure, l)
    possible = np.arange(len(sets), dtype=np.int64)
    if len(sets) <= LISTED_LIMIT:
        possible = possible_sets(sets, l * pi)
    if possible.size == 0 or len(np.unique(sets[possible])) < structure.size:
        if len(sets) == 0 or pi.min() > _RARE:
            raise _impossible(structure, l, pi, labels)
        # A linear program takes so small a share for none; the fit does not, and refuses what it does not reach.
        possible = np.arange(len(sets), dtype=np.int64)
        try:
            return fit_listed(structure, l, sets, possible, l * pi)
        except ImpossibleError:
            raise _impossible(structure, l, pi, labels) from None
    return fit_listed(structure, l, sets, possible, l * pi)


def _concentrated(circle: Circle, l: int) -> bool:
    """Whether there are too many sets to list."""
    return count_sets(circle, l) > SET_LIMIT


def _impossible(structure: Structure, l: int, pi: Floats, labels: Sequence[object] | None) -> ImpossibleError:
    clique = heaviest_clique(structure, pi)
    best = best_l(structure, pi)
    way_out = f"the largest l here is {best}" if best > 1 else "no value of l is feasible here"
    if l * clique.mass > 1.0 + _SLACK:
        mass = f"{clique.mass:.4g} of the prior, more than 1/{l}"
        what = f"no balanced design of {l} candidates: the value {clique.name(labels)} alone has {mass}"
        if len(clique.codes) > 1:
            what = (
                f"no balanced design of {l} candidates: the values {clique.name(labels)} are mutually too close, so a "
                f"set holds at most one of them, but together they have {mass}"
            )
    else:
        what = f"no balanced design of {l} candidates: no mixture of valid sets includes every value in proportion"
    if isinstance(structure, Clusters) and structure.count == structure.size:
        # Without distances there is neither another design nor a d to choose.
        return ImpossibleError(what, f"{way_out}; or declare a prior that is less uneven")
    if largest_l(structure) >= l:
        floor = least_posterior(structure, pi)
        way_out += f"; or use the least-risk design, whose worst posterior is at least {floor:.4g}"
    return ImpossibleError(what, f"{way_out}; or choose a smaller d")


RAREST = 1e-6
"""Shares below this are taken for it: a value that no person in a group has must still be able to be a decoy."""

REACH = 0.5
"""How far toward the edge of what is possible a design goes where no balanced one exists.

On the demo's ten strata (decades of age by sex) at (2,2), alpha = 0.75 and p chosen for a success of 0.5, parts of 0.3,
0.5, 0.7, 0.85 and 0.95 of the way have expected root mean squared errors of 16.0, 16.2, 16.5, 17.5 and 20.8 e-4: up to
half of the way the error hardly grows, while the learner's success falls.
"""

_NONE = np.empty(0, dtype=np.int64)
_NAME = "least-risk"


def tempered_prior(shares: Floats, alpha: float) -> Floats:
    """`pi^alpha`, adding up to one.

    >>> tempered_prior(np.array([0.8, 0.2]), 0.5).round(4)
    array([0.6667, 0.3333])
    """
    raised = np.maximum(shares, RAREST) ** alpha
    return np.asarray(raised / raised.sum())


def tempered(structure: Structure, l: int, shares: Floats, alpha: float, reach: float = REACH) -> MaximumEntropy:
    """The design balanced for `shares ** alpha`, or one toward it if there is none (see above)."""
    prior = tempered_prior(shares, alpha)
    try:
        return balanced(structure, l, prior)
    except ImpossibleError:
        plain = _plain(structure, l, prior)
        target = plain + reach * _room(structure, l, plain, l * prior) * (l * prior - plain)
        return _with_inclusion(structure, l, target, np.log(prior))


def near_floor(structure: Structure, l: int, shares: Floats, step: float) -> MaximumEntropy:
    """A design near the lowest learner's success that truthful sets allow.

    `step` (0 to 1) is the distance from that edge.
    """
    prior = tempered_prior(shares, 1.0)
    plain = _plain(structure, l, prior)
    target = (1.0 - step) * floor_inclusion(reach_of(structure, l), prior) + step * plain
    return _with_inclusion(structure, l, target, np.log(prior))


def _plain(structure: Structure, l: int, prior: Floats) -> Floats:
    """The inclusion probabilities of the plain design."""
    if isinstance(structure, Line):
        plain = LineDesign(structure, l, np.log(prior), _NONE, _NAME)
        found = plain.inclusion() if np.isfinite(plain.chain.log_total) else np.zeros(1)
    elif isinstance(structure, Clusters):
        possible = structure.count >= l
        found = _tempered_over_clusters(structure, l, prior).inclusion() if possible else np.zeros(1)
    else:
        sets = few_sets(structure, l)
        found = ListedFamily(sets, np.log(prior)).inclusion if len(sets) else np.zeros(1)
    if not found.min() > 0.0:
        raise ImpossibleError("some values are in no valid set", "choose a smaller l or d")
    return found


def _tempered_over_clusters(clusters: Clusters, l: int, prior: Floats) -> ClustersDesign:
    mass = cluster_masses(clusters, prior)
    return ClustersDesign(clusters, l, np.log(mass), prior / mass[clusters.labels], _NONE, _NAME)


def _with_inclusion(structure: Structure, l: int, target: Floats, start: Floats) -> MaximumEntropy:
    """The maximum entropy design with inclusion probabilities well inside the possible range."""
    if isinstance(structure, Line):
        return fit_line(structure, l, target, _NONE, _NAME, start)
    if isinstance(structure, Clusters):
        mass = cluster_masses(structure, target)
        shares = None if structure.count == structure.size else target / mass[structure.labels]
        return fit_clusters(structure, l, mass, shares, _NONE, _NAME)
    sets = few_sets(structure, l)
    return fit_listed(structure, l, sets, np.arange(len(sets), dtype=np.int64), target, _NAME, start)


def _room(structure: Structure, l: int, plain: Floats, target: Floats) -> float:
    """The largest part of the way from `plain` to `target` that is within reach; at most one."""
    if isinstance(structure, (Line, Clusters)):
        # Exactly where the first window holds one (`feasibility.py`).
        here, there = window_masses(structure, plain), window_masses(structure, target)
        more = there > here
        return float(np.min((1.0 - here[more]) / (there - here)[more], initial=1.0))
    return _listed_room(membership(few_sets(structure, l), structure.size), plain, target)


def _listed_room(member: csr_array, plain: Floats, target: Floats) -> float:
    from scipy.sparse import coo_array, hstack

    columns = hstack([member, coo_array((plain - target)[:, None])], format="csr")
    cost = np.append(np.zeros(member.shape[1]), -1.0)
    bounds = [(0.0, None)] * member.shape[1] + [(0.0, 1.0)]
    return float(program(cost, A_eq=columns, b_eq=plain, bounds=bounds)[-1])
