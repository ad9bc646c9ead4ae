"""Groups of people that untouched columns tell apart, and how many of each group have each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from polyseme.analysis.learner import Population
from polyseme.arrays import Bools, Floats, Ints
from polyseme.strata.stratum import Strata

__all__ = ["Groups"]


@dataclass(frozen=True, eq=False)
class Groups:
    """The distribution of the values of an attribute among people, as far as it is known.

    counts  how many people, or which share of them, have each value: (G, F)
    cells   what the untouched columns are in each group, as texts; no column where everybody is one group
    placed  the stratum of each group, where that is known otherwise than from the cells: (G,)
    own     where counts are those of records at hand: for each number of records that a person has in a group with one
            value, the records of such persons, (G, F); empty where the counts come from elsewhere
    """

    counts: Floats
    cells: pl.DataFrame = field(default_factory=pl.DataFrame)
    placed: Ints | None = None
    own: Mapping[int, Floats] = field(default_factory=dict)

    @classmethod
    def everybody(cls, counts: Floats) -> Groups:
        """One group."""
        return cls(np.asarray(counts, dtype=np.float64)[None, :])

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that tell groups apart."""
        return tuple(self.cells.columns)

    @property
    def some(self) -> Bools:
        """Which groups are not empty: (G,)."""
        return np.asarray(self.counts.sum(axis=1) > 0.0)

    @property
    def population(self) -> Population:
        """Shares of the groups that are not empty, and of the values in each."""
        return Population.counted(self.counts)

    def believed(self, counts: Floats) -> Groups:
        """The same groups, with other counts that are no records: what is believed of them."""
        return replace(self, counts=counts, own={})

    def places(self, strata: Strata) -> Ints | None:
        """The stratum of each group that is not empty; None where the columns do not decide it."""
        if self.placed is not None:
            return self.placed[self.some]
        rows = int(self.some.sum())
        if len(strata.members) == 1:
            return np.zeros(rows, dtype=np.int64)
        if not set(strata.columns) <= set(self.by):
            return None
        cells = self.cells.filter(pl.Series(self.some))
        return strata.places({name: cells[name] for name in strata.columns}, rows)

    def names(self) -> Sequence[str]:
        """Each group that is not empty, in words."""
        if not self.by:
            return [""] * int(self.some.sum())
        cells = self.cells.filter(pl.Series(self.some))
        return [", ".join(f"{name} = {_shown(text)}" for name, text in row.items()) for row in cells.to_dicts()]


def _shown(text: object) -> str:
    return "(missing)" if text is None else str(text)
