"""A test of independence of two attributes, from the published sets themselves.

Decoys of different attributes are drawn independently. So when two attributes are independent, their sets are too,
and whatever is computed from the one set is uncorrelated with whatever is computed from the other:

    C = 1/n sum_r (y_r - mean y) (z_r - mean z)',      C = 0 in expectation

where
    y_r  what report r says about the values of the left attribute, z_r about those of the right one or of the groups

All records published through one mechanism: y and z are indicators of the candidates, and under independence the
covariance of C is the product of those of y and z. The statistic

    T = (n - 1) tr(S_y^-1 C S_z^-1 C')

where
    S_y, S_z  the covariances of y and z (inverted where they are not singular)

has, over all ways of pairing the sets of one attribute with those of the other, exactly its degrees of freedom as its
mean, however sparse the table; with one candidate each it is Pearson's chi-square.

Records published through several mechanisms: y and z are the unbiased contributions to the table of `inverse`, so that
C estimates `p_ij - p_i. p_.j`. Its covariance is that of the products over the reports, with Hotelling's correction for
having been estimated.

The fitted table has no part in it. A likelihood fit puts cells at zero, where its departures look free of noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from polyseme.inference.axes import exact_map
from polyseme.inference.counts import Part
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.semantics.distances.base import MATRIX_LIMIT

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["Independence", "independence_test"]

_DEPARTURES = 2_000
"""Departures from independence that can be tested: their covariance is a matrix (32 MB) whose eigenvalues are taken."""
_ROWS = 2_000
"""Reports that are looked at together, so that with that many departures 32 MB are in memory at a time."""
_SINGULAR = 1e-9
"""Eigenvalues below this share of the largest are directions in which the reports say nothing; a judgment."""
_ROUNDING = 1e-12
"""Eigenvalues below this are zero, whatever the others are."""

Side: TypeAlias = int | Ints
"""One of the two attributes: the place of a protected one, or for groups the group of each cell of the table."""


@dataclass(frozen=True)
class Independence:
    """A test of independence: statistic, degrees of freedom, and p-value."""

    statistic: float
    freedom: int
    p_value: float


def independence_test(parts: Sequence[Part], left: Side, right: Side) -> Independence:
    """Test that two attributes are independent, from the reports of all parts."""
    sides = (left, right)
    _check(parts, sides)
    if sum(int(part.reports.counts.sum()) for part in parts) < 2:
        return Independence(0.0, 0, 1.0)
    return _pearson(parts[0], sides) if len(parts) == 1 else _hotelling(parts, sides)


def _check(parts: Sequence[Part], sides: tuple[Side, Side]) -> None:
    if not all(part.reports.paired for part in parts):
        raise QuestionError(
            Problem("independence", "it is not known which values were published together", "publish the set form")
        )
    if max(_width(parts, side) for side in sides) > MATRIX_LIMIT:
        raise QuestionError(
            Problem("independence", f"refused for more than {MATRIX_LIMIT:,} values or groups", "ask for coarser ones")
        )
    used = [part.mechanisms[side] for part in parts for side in sides if isinstance(side, int)]
    if not all(exact_map(mechanism).identifiable for mechanism in used):
        raise QuestionError("independence cannot be tested: the sets do not distinguish some of the values")


def _width(parts: Sequence[Part], side: Side) -> int:
    """How many values or groups there are."""
    if isinstance(side, int):
        return 1 + max(int(part.axes[side].max(initial=0)) for part in parts)
    return 1 + int(side.max(initial=0))


# -- one mechanism ---------------------------------------------------------------------------------------------------


def _pearson(part: Part, sides: tuple[Side, Side]) -> Independence:
    from scipy import special

    counts = part.reports.counts.astype(np.float64)
    n = counts.sum()
    left, right = (_indicators(part, side) for side in sides)
    roots = [_root(_covariance(side, side, counts)) for side in (left, right)]
    freedom = roots[0].shape[1] * roots[1].shape[1]
    turned = roots[0].T @ _covariance(left, right, counts) @ roots[1]
    statistic = float((n - 1.0) * (turned**2).sum())
    return Independence(statistic, freedom, float(special.chdtrc(freedom, statistic)) if freedom else 1.0)


def _indicators(part: Part, side: Side) -> sparse.csr_array:
    """Which values each report holds, or which group it belongs to: (reports, values)."""
    from scipy import sparse

    codes = part.reports.sets[side] if isinstance(side, int) else side[part.cells[part.reports.cell]][:, None]
    rows = np.repeat(np.arange(len(codes)), codes.shape[1])
    shape = (len(codes), int(codes.max(initial=0)) + 1)
    return sparse.csr_array((np.ones(codes.size), (rows, codes.ravel())), shape=shape)


def _covariance(left: sparse.csr_array, right: sparse.csr_array, counts: Floats) -> Floats:
    n = counts.sum()
    products = (left.T @ (right * counts[:, None]).tocsr()).toarray() / n
    return np.asarray(products - np.outer(left.T @ counts / n, right.T @ counts / n), dtype=np.float64)


def _root(covariance: Floats) -> Floats:
    """`B` with `B B' = S^-1` where S is not singular."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > max(_SINGULAR * values.max(initial=0.0), _ROUNDING)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]), dtype=np.float64)


# -- several mechanisms ----------------------------------------------------------------------------------------------


def _hotelling(parts: Sequence[Part], sides: tuple[Side, Side]) -> Independence:
    widths = [_width(parts, side) for side in sides]
    size = (widths[0] - 1) * (widths[1] - 1)
    if size > _DEPARTURES:
        raise QuestionError(
            Problem(
                "independence",
                f"{size:,} departures are too many to test where impossible values differ between records",
                f"ask for coarser values, up to {_DEPARTURES:,}",
            )
        )
    n = float(sum(part.reports.counts.sum() for part in parts))
    centers = [
        sum(counts @ said for said, counts in _said(parts, side, width)) / n for side, width in zip(sides, widths)
    ]
    sums, squares = np.zeros(size), np.zeros((size, size))
    pairs = zip(*(_said(parts, side, width) for side, width in zip(sides, widths)))
    for (left, counts), (right, _) in pairs:
        # The last value of each follows from the others.
        one, other = (left - centers[0])[:, :-1], (right - centers[1])[:, :-1]
        products = (one[:, :, None] * other[:, None, :]).reshape(len(counts), size)
        sums += counts @ products
        squares += (products * counts[:, None]).T @ products
    mean = sums / n
    root = _root(squares / n - np.outer(mean, mean))
    return _corrected((n - 1.0) * float(((mean @ root) ** 2).sum()), root.shape[1], n)


def _corrected(statistic: float, freedom: int, n: float) -> Independence:
    """Hotelling's: the statistic is compared with the F distribution, not with chi-square."""
    from scipy import special

    if freedom >= n:
        raise QuestionError(Problem("independence", "fewer records than departures to test", "ask for coarser values"))
    if not freedom:
        return Independence(0.0, 0, 1.0)
    scaled = statistic * (n - freedom) / (freedom * (n - 1.0))
    return Independence(statistic, freedom, float(special.fdtrc(freedom, n - freedom, scaled)))


def _said(parts: Sequence[Part], side: Side, width: int) -> Iterator[tuple[Floats, Floats]]:
    """Unbiased scores of reports about each value, (reports, values), and counts; in chunks."""
    for part in parts:
        say = _speaker(part, side)
        for start in range(0, len(part.reports.counts), _ROWS):
            rows = slice(start, start + _ROWS)
            counts = part.reports.counts[rows].astype(np.float64)
            said = np.zeros((len(counts), width))
            said[:, part.axes[side] if isinstance(side, int) else slice(None)] = say(rows)
            yield said, counts


def _speaker(part: Part, side: Side) -> Callable[[slice], Floats]:
    """What some reports say about the values that their mechanism has, or about the groups."""
    if isinstance(side, int):
        solved, sets = exact_map(part.mechanisms[side]), part.reports.sets[side]
        return lambda rows: solved.contributions(sets[rows])
    groups, group = np.arange(side.max(initial=0) + 1), side[part.cells[part.reports.cell]]
    return lambda rows: (group[rows, None] == groups).astype(np.float64)
