"""Losses: what generalization removes from a table, as numbers that a search can minimize.

    entropy             sum over records and quasi-identifiers of log2(freq(group) / freq(leaf)), in bits
    loss                mean over records and quasi-identifiers of (leaves of the group - 1) / (all leaves - 1)
    precision           mean over quasi-identifiers of level / height: 1 - Prec
    discernibility      sum over classes of |E|^2: DM*
    average-class-size  records / classes

where
    freq(group)  records of the whole table whose leaf is in the group
    |E|          records of class E

All of them are 0 or smallest for the table itself and never fall as levels rise. The first three are *separable*: a sum
over quasi-identifiers of something that depends on one level only, so they are known before any class is formed, and
quasi-identifiers can have weights. The other two follow from the sizes of classes, and rise with every two classes that
are merged.

Levels have a loss whether or not records are suppressed: all records count as if they were shown at these levels. That
is what the reference results of others say, too. The loss of a `Recoding` charges a suppressed record with everything:
the top of every ladder, or a class of its own kind as large as the table.

Entropy: Gionis and Tassa (2009), non-uniform. Loss: Iyengar (2002). Precision: Sweeney (2002). DM: Bayardo and Agrawal
(2005). Average class size: LeFevre, DeWitt and Ramakrishnan (2006), without its factor k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.methods import LOSSES
from polyseme.methods.microdata import Cells, Ladder, Microdata, Recoding

__all__ = ["LOSSES", "Loss"]

SEPARABLE = ("entropy", "loss", "precision")


@dataclass(frozen=True)
class Loss:
    """A loss by name, and how much each quasi-identifier counts, 1 unless given.

    >>> Loss("entropy", {"age": 2.0}).separable
    True
    """

    name: str = "entropy"
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no search could follow."""
        problems = [
            Problem(f"weights.{name}", "expected a number of at least 0")
            for name, weight in self.weights.items()
            if not 0.0 <= weight < np.inf
        ]
        if self.name not in LOSSES:
            problems.append(Problem("loss", f"unknown loss '{self.name}'", nearest(self.name, LOSSES)))
        elif self.weights and not self.separable:
            hint = f"weights are for {', '.join(SEPARABLE)}"
            problems.append(Problem("weights", f"{self.name} is about classes and has no weights", hint))
        if problems:
            raise PolicyError(problems)

    @property
    def separable(self) -> bool:
        """Whether it is a sum over quasi-identifiers of what each level costs."""
        return self.name in SEPARABLE

    def of_levels(self, data: Microdata) -> tuple[Floats, ...]:
        """For a separable loss: what each level of each ladder costs; the loss of a node is the sum."""
        return tuple(
            weight * np.array([self._cost(ladder, frequency, level) for level in range(ladder.height + 1)])
            for weight, ladder, frequency in zip(self._weights(data), data.ladders, _frequencies(data), strict=True)
        )

    def of_sizes(self, sizes: Ints) -> float:
        """For a loss of classes: from their sizes, suppressed classes included."""
        if self.name == "discernibility":
            return float((sizes.astype(np.float64) ** 2).sum())
        return float(sizes.sum() / len(sizes)) if len(sizes) else 0.0

    def of_recoding(self, data: Microdata, recoding: Recoding) -> float:
        """Of what a method made, a suppressed record being charged with everything."""
        if not self.separable:
            lost = recoding.lost
            if self.name == "discernibility":
                return self.of_sizes(recoding.sizes) + float(lost) * data.records
            return data.records / max(1, len(recoding.sizes) + int(lost > 0)) if data.records else 0.0
        return float(sum(((column * data.each).sum() for column in self.of_records(data, recoding)), 0.0))

    def of_records(self, data: Microdata, recoding: Recoding) -> tuple[Floats, ...]:
        """For a separable loss: what each record of each row contributes in each quasi-identifier."""
        found = []
        parts = zip(data.ladders, _frequencies(data), self._weights(data), recoding.cells, strict=True)
        for place, (ladder, frequency, weight, cells) in enumerate(parts):
            top = Cells.of_level(ladder, ladder.height)
            # A suppressed record has class -1, and with it the last cell: the top.
            shown = np.append(recoding.shown[:, place], len(cells.leaves))[recoding.classes]
            both = Cells((*cells.labels, *top.labels), (*cells.leaves, *top.leaves))
            each = self._each(ladder, frequency, both)
            if self.name == "precision" and recoding.levels:
                each[:-1] = recoding.levels[place] / (max(ladder.height, 1) * max(data.records, 1))
            found.append(weight * (each[shown] - self._own(frequency)[data.codes[:, place]]))
        return tuple(found)

    def _weights(self, data: Microdata) -> Floats:
        strangers = [name for name in self.weights if name not in data.names]
        if strangers:
            raise PolicyError([Problem(f"weights.{name}", "no such quasi-identifier") for name in strangers])
        weights = np.array([self.weights.get(name, 1.0) for name in data.names], dtype=np.float64)
        if self.name == "entropy":
            return weights
        scale = float(weights.sum()) * (data.records if self.name == "loss" else 1.0)
        return weights / scale if scale else weights

    def _cost(self, ladder: Ladder, frequency: Ints, level: int) -> float:
        """What all records cost at a level."""
        if self.name == "precision":
            return level / ladder.height if ladder.height else 0.0
        each = self._each(ladder, frequency, Cells.of_level(ladder, level))[ladder.groups[level]]
        return float(frequency @ (each - self._own(frequency)))

    def _each(self, ladder: Ladder, frequency: Ints, cells: Cells) -> Floats:
        """What a record shown in each cell costs, apart from what it costs by itself."""
        if self.name == "entropy":
            return np.log2(np.maximum([frequency[cell].sum() for cell in cells.leaves], 1))
        if self.name == "loss":
            return np.array([len(cell) - 1 for cell in cells.leaves]) / max(ladder.leaves - 1, 1)
        climbed = np.array([_level_of(ladder, cell) for cell in cells.leaves])
        return climbed / (max(ladder.height, 1) * max(int(frequency.sum()), 1))

    def _own(self, frequency: Ints) -> Floats:
        """What a record with each leaf costs by itself, before anything is generalized."""
        if self.name != "entropy":
            return np.zeros(len(frequency))
        return np.asarray(np.log2(np.maximum(frequency, 1)))


def _frequencies(data: Microdata) -> list[Ints]:
    """How many records have each leaf of each ladder."""
    return [
        np.bincount(leaves, data.counts, ladder.leaves).astype(np.int64)
        for ladder, leaves in zip(data.ladders, data.codes.T, strict=True)
    ]


def _level_of(ladder: Ladder, cell: Ints) -> int:
    """The lowest level with all leaves of a cell in one group; the last if nothing is shown."""
    if len(cell) == ladder.leaves:
        return ladder.height
    for level, groups in enumerate(ladder.groups):
        if len(np.unique(groups[cell])) <= 1:
            return level
    return ladder.height
