"""The likelihoods of the cells of a table, made once and used by whatever is fitted to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from polyseme.estimators.base import Reports
from polyseme.estimators.likelihood import RecordLikelihood, likelihood_of
from polyseme.mechanism import Mechanism

__all__ = ["CellLikelihoods"]

_KEPT = 10_000_000
"""Entries of all likelihoods together that are kept in memory: 320 MB at 32 bytes an entry (its place and its weight,
once in rows and once in columns). Chosen by judgment; a larger table has its likelihoods made again each time."""


class CellLikelihoods:
    """The likelihood of each cell of some reports."""

    def __init__(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> None:
        self.reports = reports
        self.mechanisms = mechanisms
        entries = len(reports.counts) * float(np.prod([item.l + (item.p < 1.0) for item in mechanisms]))
        self._kept: dict[int, RecordLikelihood] | None = {} if entries <= _KEPT else None

    def __len__(self) -> int:
        return self.reports.cells

    def __iter__(self) -> Iterator[RecordLikelihood]:
        return (self[cell] for cell in range(len(self)))

    def __getitem__(self, cell: int) -> RecordLikelihood:
        if self._kept is None:
            return self._made(cell)
        if cell not in self._kept:
            self._kept[cell] = self._made(cell)
        return self._kept[cell]

    def _made(self, cell: int) -> RecordLikelihood:
        sets, counts = self.reports.within(cell)
        return likelihood_of(sets, counts, self.mechanisms)
