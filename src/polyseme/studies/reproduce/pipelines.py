"""The pairs of algorithms that the journal paper compares (its Table 12), ours, and the least error there can be.

| name                              | sets by                              | estimate by                       |
|-----------------------------------|--------------------------------------|-----------------------------------|
| N-Proposal, N-Existing, N-Simple  | Algorithm 1 with Algorithm 3         | Algorithm 2, Eq. 21, Eq. 20       |
| N-Anonymity                       | the same                             | none: the published records as they are |
| Ex-Proposal, Ex-Existing, Ex-Simple | Algorithm 1                        | Algorithm 2, Eq. 21, Eq. 20       |
| LE                                | groups of the (l, e) paper           | Eq. 20 within each group          |
| ours                              | the balanced design                  | maximum likelihood on the sets    |

Duplicate processing goes round a circle of ranks: its window runs over the end and on at the beginning (the paper's
Figure 4(e)). So for N-Proposal the `extract` of Equation 2 is that of a circle; with that of a line the two would not
fit.

Where no balanced design exists, ours is the one of least risk.

Tables are estimated for each cell of age and sex by itself, as the paper does, and errors are those of its Equation 18
over all cells and values.
"""

from __future__ import annotations

import numpy as np

from polyseme.analysis.identifiability import spectrum
from polyseme.analysis.precision import precision
from polyseme.arrays import Floats, Ints
from polyseme.designs import make_design
from polyseme.distances import CircleDistance, LineDistance
from polyseme.distances.base import Distance
from polyseme.distances.structure import Structure
from polyseme.errors import ImpossibleError
from polyseme.estimators.base import Reports
from polyseme.estimators.linear import Existing, Linear, Paper, Simple
from polyseme.estimators.maximum import MaximumLikelihood
from polyseme.mechanism import Mechanism
from polyseme.methods.bucketization import bucketize
from polyseme.randomness import SystemStream
from polyseme.studies.reproduce.coded import Coded

__all__ = [
    "EX",
    "LE",
    "LIMIT",
    "OURS",
    "N",
    "anatomy_table",
    "containment_of",
    "mechanism_or_none",
    "most_likely",
    "our_mechanism",
    "paper_tables",
    "reports_of",
    "squared_error",
    "structure_of",
    "table_limit",
]

N, EX, OURS, LE, LIMIT = "N", "Ex", "ours", "LE", "the limit"
_ANALYSES: dict[str, Linear] = {"Proposal": Paper(), "Existing": Existing(), "Simple": Simple()}
_RARE = 1e-9
_LISTED = 500_000
"""The limit goes through all sets for every cell: beyond so many it is left out."""


def mechanism_or_none(design: str, structure: Structure, l: int) -> Mechanism | None:
    """The mechanism, or None where the design cannot have this l at this d."""
    try:
        return Mechanism(make_design(design, structure, l))
    except ImpossibleError:
        return None


def structure_of(design: str, distance: Distance, d: float) -> Structure:
    """Which values may share a set: for duplicate processing those that are far apart on the circle of ranks."""
    ranks = np.arange(distance.size)
    even = isinstance(distance, LineDistance) and np.array_equal(distance.positions, ranks)
    circle = design == "duplicate" and even and d > 1
    return (CircleDistance.ranks(distance.size) if circle else distance).structure(d)


def our_mechanism(distance: Distance, l: int, d: float) -> Mechanism | None:
    """Balanced, or of least risk where that does not exist; None where there is no valid set for some value."""
    structure = distance.structure(d)
    return mechanism_or_none("balanced", structure, l) or mechanism_or_none("least-risk", structure, l)


def reports_of(table: Coded, sets: Ints) -> Reports:
    """Identical sets of a cell counted once."""
    key = table.cell.copy()
    for column in sets.T:
        key = key * table.size + column
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return Reports((sets[first],), table.cell[first], counts.astype(np.int64), len(table.groups))


def containment_of(table: Coded, sets: Ints) -> Floats:
    """How many published sets of each cell hold each value: (cells, F)."""
    flat = (table.cell[:, None] * table.size + sets).ravel()
    return np.bincount(flat, minlength=len(table.groups) * table.size).reshape(-1, table.size).astype(np.float64)


def paper_tables(family: str, table: Coded, mechanism: Mechanism, sets: Ints) -> dict[str, Floats]:
    """What the papers' analyses make of the sets, by their names in Table 12."""
    counted = containment_of(table, sets)
    found = {f"{family}-{name}": how.axis_map(mechanism).apply(counted, 1) for name, how in _ANALYSES.items()}
    return {**found, "N-Anonymity": counted} if family == N else found


def most_likely(table: Coded, mechanism: Mechanism, sets: Ints) -> Floats:
    """Our estimate."""
    return MaximumLikelihood().fit(reports_of(table, sets), [mechanism]).values


def anatomy_table(table: Coded, structure: Structure, l: int, stream: SystemStream) -> tuple[Floats, int]:
    """Groups of records by maximal-bucket-first, analyzed as the paper does, and how many records they leave out.

    A record counts for each value with the share that the value has in its group. Records in no group are lost; the
    others stand for them, so that totals are right.
    """
    made = bucketize(table.codes, structure, l, stream, "mbf")
    kept = ~made.suppressed
    shares = np.zeros((made.count, table.size))
    np.add.at(shares, (made.groups[kept], table.codes[kept]), 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    estimate = np.zeros((len(table.groups), table.size))
    np.add.at(estimate, table.cell[kept], shares[made.groups[kept]])
    return estimate * (table.records / max(int(kept.sum()), 1)), int((~kept).sum())


def squared_error(table: Coded, estimate: Floats) -> float:
    """Equation 18."""
    return float((((estimate - table.counts()) / table.records) ** 2).mean())


def table_limit(table: Coded, mechanism: Mechanism) -> float | None:
    """The least mean squared error that any unbiased estimate from these sets can have, about the people themselves.

    The limit of a cell with n records is that of shares over n, times (n / N)^2. Values that no person of a cell has
    count as very rare.
    """
    if not mechanism.design.has_at_most(_LISTED):
        return None
    counts = table.counts()
    limits = []
    shape = spectrum(mechanism)
    for cell in counts[counts.sum(axis=1) > 0]:
        pi = np.maximum(cell / cell.sum(), _RARE)
        found = precision(mechanism, pi / pi.sum(), 1, shape, []).limit
        if found is None:
            return None
        limits.append(found * float(cell.sum()) / table.records**2)
    return float(np.sum(limits) / len(counts))
