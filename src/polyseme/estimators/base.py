"""What every estimator takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from polyseme.distances.structure import Floats, Ints
from polyseme.mechanism import Mechanism

__all__ = ["Estimator", "Fit", "Reports"]


@dataclass(frozen=True, eq=False)
class Reports:
    """Released sets of the target attributes, identical ones grouped, in cells of the untouched attributes.

    sets    one (n, l_j) array of codes for each target attribute j, rows ascending
    cell    which cell of the untouched attributes each row belongs to: (n,), values 0 .. cells-1
    counts  how many records reported exactly this combination in this cell: (n,)
    cells   the number of cells
    paired  False for the long form, where it is not known which values were published together: then there is one
            target, sets has one column and counts are containment counts
    """

    sets: tuple[Ints, ...]
    cell: Ints
    counts: Ints
    cells: int
    paired: bool = True


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimated table.

    values    estimated numbers of records: (cells, F_1, .., F_q)
    variance  of each of them, same shape; nan where an estimator has none
    notes     what the reader must know: not converged, too little data ..
    """

    values: Floats
    variance: Floats
    gap: float | None = None
    notes: tuple[str, ...] = field(default=())


class Estimator(ABC):
    """Recovers the table of true values from reports."""

    name: str

    @abstractmethod
    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        """The estimated table; one mechanism for each target attribute."""
