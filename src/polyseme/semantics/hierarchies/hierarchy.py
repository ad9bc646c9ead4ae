"""A hierarchy: the levels of generalization of one column, as codes and as labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from polyseme.kernel.arrays import MISSING, UNSEEN, Ints
from polyseme.kernel.errors import PolicyError, QuestionError, TableError
from polyseme.kernel.spelling import spelled, spellings

__all__ = ["MISSING_LABEL", "TOP", "Hierarchy", "MissingAs"]

TOP = "*"
"""What stands for a value that is suppressed."""
MISSING_LABEL = "(missing)"
"""What stands for a missing value that is a leaf of its own."""
MissingAs: TypeAlias = Literal["leaf", "wildcard"]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """What each value of a column becomes at each level.

    labels   at each level, the groups by their codes; at level 0 the leaves, as they are spelled
    groups   at each level, the group of each leaf: `groups[2][leaf]` is a place in `labels[2]`
    missing  whether a missing value is one more leaf, the last one, or may be anything; None where none is missing

    Laws: level 0 is the identity, each level merges groups of the one below, the last level has one group.

    >>> ages = Hierarchy.from_labels(["31", "34", "36"], [["[30, 35)", "[30, 35)", "[35, 40)"]], "wildcard")
    >>> ages.generalize(pl.Series([34, 36, None]), 1).to_list()
    ['[30, 35)', '[35, 40)', None]
    >>> ages.height, ages.groups[1], ages.labels[2]
    (2, array([0, 0, 1]), ('*',))
    """

    labels: tuple[tuple[str, ...], ...] = field(repr=False)
    groups: tuple[Ints, ...] = field(repr=False)
    missing: MissingAs | None = "leaf"

    @classmethod
    def from_labels(
        cls, leaves: Sequence[str], levels: Sequence[Sequence[str]], missing: MissingAs | None = "leaf"
    ) -> Hierarchy:
        """From the label of each leaf at each level between 0 and the last, which is added.

        A missing value that is a leaf of its own meets the others only there.
        """
        leaves, above = spellings(leaves), [list(level) for level in levels]
        if missing == "leaf":
            leaves, above = [*leaves, MISSING_LABEL], [[*level, MISSING_LABEL] for level in above]
        coded = [_numbered(level) for level in above]
        size = len(leaves)
        return cls(
            labels=(tuple(leaves), *(labels for labels, _ in coded), (TOP,)),
            groups=(np.arange(size), *(groups for _, groups in coded), np.zeros(size, dtype=np.int64)),
            missing=missing,
        )

    def __post_init__(self) -> None:
        """Refuse what is no hierarchy: a search trusts that going up only merges."""
        for level in range(1, len(self.groups)):
            split = _split(self.groups[level - 1], self.groups[level])
            if split:
                raise PolicyError(f"{split:,} groups of level {level - 1} have more than one parent at level {level}")

    @property
    def height(self) -> int:
        """The last level, at which nothing is left of a value."""
        return len(self.labels) - 1

    @property
    def leaves(self) -> tuple[str, ...]:
        """The values it is made for, without the leaf for missing ones."""
        return self.labels[0][:-1] if self.missing == "leaf" else self.labels[0]

    def codes(self, series: pl.Series) -> Ints:
        """The leaf of each value.

        -1 for a missing one that may be anything, -2 for what is not in the hierarchy.
        """
        texts = spelled(series)
        leaves = self.leaves
        found = texts.replace_strict(
            pl.Series(leaves, dtype=pl.String), pl.Series(range(len(leaves)), dtype=pl.Int64), default=UNSEEN
        )
        codes = found.cast(pl.Int64).fill_null(UNSEEN).to_numpy().copy()
        codes[texts.is_null().to_numpy()] = self._missing_code
        return codes

    @property
    def _missing_code(self) -> int:
        if self.missing is None:
            return UNSEEN
        return len(self.leaves) if self.missing == "leaf" else MISSING

    def groups_at(self, codes: Ints, level: int) -> Ints:
        """The group of each leaf at a level; what may be anything stays so until the last level."""
        self._check_level(level)
        if level == self.height:
            return np.zeros(len(codes), dtype=np.int64)
        found = self.groups[level][np.maximum(codes, 0)] if len(self.groups[level]) else np.zeros_like(codes)
        return np.where(codes < 0, codes, found)

    def generalize(self, series: pl.Series, level: int) -> pl.Series:
        """A column at a level: itself at level 0, labels of groups above."""
        self._check_level(level)
        codes = self.codes(series)
        unseen = int(np.count_nonzero(codes == UNSEEN))
        if unseen:
            raise TableError(
                f"{unseen:,} of {len(codes):,} records have a value that the hierarchy lacks",
                "count them with: polyseme hierarchy check",
            )
        if level == 0:
            return series
        groups = pl.Series(self.groups_at(codes, level))
        labels = pl.Series(self.labels[level], dtype=pl.String)
        return labels.gather(groups.set(groups < 0, None)).alias(series.name)

    def paths(self) -> Iterator[tuple[str, ...]]:
        """For each leaf its labels from level 0 to the last, as ARX writes a hierarchy."""
        for leaf in range(len(self.labels[0])):
            yield tuple(labels[groups[leaf]] for labels, groups in zip(self.labels, self.groups))

    def _check_level(self, level: int) -> None:
        if not 0 <= level <= self.height:
            raise QuestionError(f"no level {level}", f"the levels of this hierarchy are 0 to {self.height}")


def _numbered(labels: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Different labels in the order in which they come, and the place of each."""
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return tuple(places), np.array([places[label] for label in labels], dtype=np.int64)


def _split(finer: Ints, coarser: Ints) -> int:
    """How many groups of the finer level lie in more than one of the coarser."""
    parent = np.zeros(int(finer.max(initial=-1)) + 1, dtype=np.int64)
    parent[finer] = coarser
    return len(np.unique(finer[parent[finer] != coarser]))
