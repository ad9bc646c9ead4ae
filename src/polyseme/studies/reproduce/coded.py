"""Tables as the journal paper's experiments see them: a sensitive value and a cell of age and sex for each record."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.distances import LineDistance
from polyseme.distances.base import Distance
from polyseme.studies.income import INCOME_CLASSES, REPRESENTATIVE_VALUES, income_table

__all__ = ["Coded", "income"]


@dataclass(frozen=True, eq=False)
class Coded:
    """A table as the journal paper's experiments see it.

    codes     the sensitive value of each record
    cell      the combination of ten-year age and sex of each record
    labels    of the values
    groups    of the cells
    distance  how far values are apart
    """

    name: str
    codes: Ints
    cell: Ints
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    distance: Distance

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def records(self) -> int:
        return len(self.codes)

    def counts(self) -> Floats:
        """Records of each cell and value."""
        flat = np.bincount(self.cell * self.size + self.codes, minlength=len(self.groups) * self.size)
        return flat.reshape(len(self.groups), self.size).astype(np.float64)


@lru_cache(maxsize=4)
def income(records: int, yen: bool = False) -> Coded:
    """The generated incomes.

    yen  whether values are as far apart as their representative values in million yen, or as their ranks
    """
    table = income_table(records)
    place = {label: code for code, label in enumerate(INCOME_CLASSES)}
    codes = np.array([place[label] for label in table["income"]], dtype=np.int64)
    band = table["age"].to_numpy() // 10 - 2
    woman = (table["sex"] == "F").to_numpy().astype(np.int64)
    groups = tuple(f"{10 * band}-{10 * band + 9}, {sex}" for band in range(2, 7) for sex in ("men", "women"))
    distance = LineDistance(REPRESENTATIVE_VALUES) if yen else LineDistance.ranks(len(INCOME_CLASSES))
    cell = np.asarray(band * 2 + woman, dtype=np.int64)
    return Coded("income", codes, cell, INCOME_CLASSES, groups, distance)
