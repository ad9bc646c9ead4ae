"""One table from records that were published through different mechanisms.

Each part is estimated by itself, over the values its records can have, and the parts are added up:

    x = sum_s x_s        var(k . x) = sum_s var(k . x_s)
    limits of k . x:     x - sqrt(sum_s (x_s - low_s)^2),  x + sqrt(sum_s (high_s - x_s)^2)

where
    s              a part; the decoys of different parts are drawn independently
    x_s            its estimate of the sum k; zero for values that its records cannot have
    low_s, high_s  its own limits

This keeps the shape of each part's limits (they are lopsided near zero) and gives back exactly a part's own limits
where no other part has a share (Zou and Donner call it the method of variance estimates recovery). About a population,
how many of its members fall into each part is random too, which adds

    sum_s n_s m_s^2 - (sum_s n_s m_s)^2 / n,    m_s = k . x_s / n_s

where
    n_s, n  the records of the part and of all parts, in a cell of the untouched attributes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.distances.structure import Floats, Ints
from polyseme.estimators.base import Estimator, Fit, Population, Reports
from polyseme.estimators.choosing import choose
from polyseme.estimators.intervals import intervals, normal_quantile, sum_intervals
from polyseme.estimators.registry import estimator_given
from polyseme.mechanism import Mechanism

__all__ = ["Part", "Pooled", "pool"]


@dataclass(frozen=True, eq=False)
class Part:
    """Records that were published through the same mechanisms.

    reports     in codes of these mechanisms
    mechanisms  one for each target attribute
    cells       the cell of the whole table that each cell of the reports is part of, ascending
    axes        for each target, the code in the whole table of each value of its mechanism, ascending
    """

    reports: Reports
    mechanisms: tuple[Mechanism, ...]
    cells: Ints
    axes: tuple[Ints, ...]

    @classmethod
    def whole(cls, reports: Reports, mechanisms: Sequence[Mechanism]) -> Part:
        """All records of a table."""
        axes = tuple(np.arange(mechanism.size) for mechanism in mechanisms)
        return cls(reports, tuple(mechanisms), np.arange(reports.cells), axes)


@dataclass(frozen=True, eq=False)
class Pooled(Estimator):
    """An estimate that was made part by part."""

    name: str
    pooled: Fit
    parts: tuple[Part, ...]

    def fit(self, reports: Reports, mechanisms: Sequence[Mechanism]) -> Fit:
        return self.pooled


def pool(parts: Sequence[Part], shape: tuple[int, ...], estimator: str | Estimator | None = None) -> Pooled:
    """Estimate each part and add them up.

    shape      of the whole table: (cells, F_1, .., F_q)
    estimator  for every part; None lets the data of each part choose
    """
    chosen = estimator_given(estimator)
    names, pieces = [], []
    for part in parts:
        if chosen is None:
            name, fit = choose(part.reports, part.mechanisms)
        else:
            name, fit = chosen.name, chosen.fit(part.reports, part.mechanisms)
        names.append(name)
        pieces.append(_Piece(part, fit, part.reports.totals(part.mechanisms)))
    return Pooled(" and ".join(dict.fromkeys(names)), _Sum(tuple(pieces), shape).fit(), tuple(parts))


@dataclass(frozen=True, eq=False)
class _Piece:
    part: Part
    fit: Fit
    totals: Floats

    @property
    def place(self) -> tuple[Ints, ...]:
        """Where the part stands in the whole table."""
        return np.ix_(self.part.cells, *self.part.axes)

    def inside(self, contrasts: Floats) -> Floats:
        """The part of contrasts (k, cells, F_1, .., F_q) that falls on this one."""
        return contrasts[np.ix_(np.arange(len(contrasts)), self.part.cells, *self.part.axes)]

    @property
    def column(self) -> Floats:
        """The records of each cell, in the shape of the table."""
        return self.totals.reshape(-1, *[1] * len(self.part.axes))


@dataclass(frozen=True, eq=False)
class _Sum:
    """The sum of the pieces; its own spread and its own limits."""

    pieces: tuple[_Piece, ...]
    shape: tuple[int, ...]

    def fit(self) -> Fit:
        fits = [piece.fit for piece in self.pieces]
        records = np.array([piece.totals.sum() for piece in self.pieces])
        gaps = [fit.gap for fit in fits if fit.gap is not None]
        whole = bool(gaps) and len(gaps) == len(fits)
        return Fit(
            values=self._added([fit.values for fit in fits]),
            variance=self._added([fit.variance for fit in fits]),
            gap=float(np.average(gaps, weights=records)) if whole and records.sum() > 0 else None,
            notes=self._notes(),
            totals=self._totals,
            spread=self._spread if all(fit.spread is not None for fit in fits) else None,
            limits=self if any(fit.limits is not None for fit in fits) else None,
            expected=self._added([fit.about("super").values for fit in fits]),
        )

    def _notes(self) -> tuple[str, ...]:
        """What holds for every part, and what holds for some."""
        common = [note for note in self.pieces[0].fit.notes if all(note in piece.fit.notes for piece in self.pieces)]
        single = [
            f"{piece.totals.sum():,.0f} records by themselves: {note}"
            for piece in self.pieces
            for note in piece.fit.notes
            if note not in common
        ]
        return (*common, *single)

    def __call__(self, contrasts: Floats, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of sums of cells."""
        value, below, above = np.zeros((3, len(contrasts)))
        for piece in self.pieces:
            inside = piece.inside(contrasts)
            touched = np.flatnonzero(inside.reshape(len(inside), -1).any(axis=1))
            if len(touched):
                here, _, low, high = sum_intervals(piece.fit.about(population), inside[touched], level, population)
                value[touched] += here
                below[touched] += np.maximum(here - low, 0.0) ** 2
                above[touched] += np.maximum(high - here, 0.0) ** 2
        drawn = normal_quantile(level) ** 2 * self._between(contrasts) if population == "super" else 0.0
        return value - np.sqrt(below + drawn), value + np.sqrt(above + drawn)

    def cells(self, level: float, population: Population) -> tuple[Floats, Floats]:
        """Limits of every cell of the table."""
        fits = [piece.fit.about(population) for piece in self.pieces]
        values, limits = self._added([fit.values for fit in fits]), [intervals(fit, level, population) for fit in fits]
        below = self._added([np.maximum(fit.values - low, 0.0) ** 2 for fit, (low, _) in zip(fits, limits)])
        above = self._added([np.maximum(high - fit.values, 0.0) ** 2 for fit, (_, high) in zip(fits, limits)])
        total = self._totals.reshape(-1, *[1] * (len(self.shape) - 1))
        if population == "super":
            squares = self._added([_ratio(fit.values**2, piece.column) for fit, piece in zip(fits, self.pieces)])
            drawn = normal_quantile(level) ** 2 * np.maximum(squares - _ratio(values**2, total), 0.0)
            below, above = below + drawn, above + drawn
        return np.clip(values - np.sqrt(below), 0.0, total), np.clip(values + np.sqrt(above), 0.0, total)

    def _spread(self, contrasts: Floats, population: Population) -> Floats:
        """Variances of sums of cells."""
        variance = self._between(contrasts) if population == "super" else np.zeros(len(contrasts))
        for piece in self.pieces:
            if piece.fit.spread is not None:
                variance = variance + piece.fit.spread(piece.inside(contrasts), population)
        return variance

    def _between(self, contrasts: Floats) -> Floats:
        """The variance that comes from how many members of the population fall into each part."""
        squares, sums = np.zeros((2, len(contrasts), self.shape[0]))
        for piece in self.pieces:
            inside = piece.inside(contrasts) * piece.fit.about("super").values
            here = inside.reshape(*inside.shape[:2], -1).sum(axis=2)
            sums[:, piece.part.cells] += here
            squares[:, piece.part.cells] += _ratio(here**2, piece.totals)
        return np.asarray(np.maximum(squares - _ratio(sums**2, self._totals), 0.0).sum(axis=1), dtype=np.float64)

    def _added(self, tables: Sequence[Floats]) -> Floats:
        whole = np.zeros(self.shape)
        for piece, table in zip(self.pieces, tables):
            whole[piece.place] += table
        return whole

    @property
    def _totals(self) -> Floats:
        totals = np.zeros(self.shape[0])
        for piece in self.pieces:
            totals[piece.part.cells] += piece.totals
        return totals


def _ratio(numerator: Floats, records: Floats) -> Floats:
    return np.asarray(numerator / np.maximum(records, 1e-300), dtype=np.float64)
