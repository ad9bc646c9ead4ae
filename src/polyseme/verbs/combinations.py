"""Questions about the members of joint attributes: sums over the combinations that were published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np

from polyseme.arrays import Floats, Ints
from polyseme.errors import Problem, QuestionError
from polyseme.estimators.estimate import NO_SUMS, Estimate
from polyseme.estimators.independence import Independence
from polyseme.estimators.intervals import widened
from polyseme.release import Manifest, Sets
from polyseme.results.summary import Summary
from polyseme.tables.coding.codes import label_array

__all__ = ["Combined", "CombinedEstimate", "asks_members"]

Sums: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats, Floats]]
"""Value, standard error and limits of contrasts."""

_CONTRASTS = 20_000_000
"""Numbers in memory at a time: 160 MB."""


@dataclass(frozen=True, eq=False)
class _Axis:
    """One name of a question: its column among those that are asked, and the code of its value for each of theirs."""

    name: str
    column: int
    codes: Ints
    labels: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Combined:
    """A question in which members of joint attributes are asked for.

    columns  the published attributes that answer it
    axes     what is asked for, in order
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    axes: tuple[_Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.labels) for axis in self.axes)

    @property
    def targets(self) -> Ints:
        """The place in the answer of each combination of the columns' values: (F_1, ..., F_q)."""
        grid = np.indices(self.sizes)
        codes = [axis.codes[grid[axis.column]] for axis in self.axes]
        return np.asarray(np.ravel_multi_index(codes, self.shape), dtype=np.int64)

    def summed(self, table: Floats) -> Floats:
        """A table of the columns (cells, F_1, ..., F_q) as one of what is asked for."""
        cells = len(table)
        found = np.zeros((cells, prod(self.shape)))
        np.add.at(found.T, self.targets.ravel(), table.reshape(cells, -1).T)
        return found.reshape(cells, *self.shape)

    def answered(self, table: Estimate, given: bool = False) -> CombinedEstimate:
        """An estimate of the columns as one of what is asked for: every number is a sum, with its own error.

        given  as for sums
        """
        cells, width = len(table.values), prod(self.shape)
        step = max(1, _CONTRASTS // max(table.values.size, 1))
        starts = range(0, cells * width, step)
        parts = [
            table.sums(self._contrasts(cells, np.arange(start, min(start + step, cells * width))), given)
            for start in starts
        ]
        _, error, low, high = (np.concatenate(part).reshape(cells, *self.shape) for part in zip(*parts))
        value = self.summed(table.values)
        low, high = widened(value, low, high)
        notes = (NO_SUMS,) if np.isnan(error).any() else ()
        shown: dict[str, Any] = {each.name: getattr(table, each.name) for each in fields(Estimate)}
        shown |= {
            "of": tuple(axis.name for axis in self.axes),
            "labels": tuple(axis.labels for axis in self.axes),
            "values": value,
            "stderr": error,
            "low": low,
            "high": high,
            "notes": (*table.notes, *notes),
            "fit": None,
            "parts": (),
        }
        return CombinedEstimate(**shown, whole=table, question=self)

    def of_axes(self, kept: Sequence[int]) -> Combined:
        """The question about some of the axes only, and the columns that they need."""
        chosen = [self.axes[place] for place in kept]
        needed = sorted({axis.column for axis in chosen})
        axes = tuple(replace(axis, column=needed.index(axis.column)) for axis in chosen)
        return Combined(tuple(self.columns[old] for old in needed), tuple(self.sizes[old] for old in needed), axes)

    def spread(self, contrasts: Floats) -> Floats:
        """Contrasts of what is asked for (k, cells, ...) as contrasts of the columns: (k, cells, F_1, ..., F_q)."""
        flat = contrasts.reshape(*contrasts.shape[:2], -1)
        return flat[:, :, self.targets.ravel()].reshape(*contrasts.shape[:2], *self.sizes)

    def _contrasts(self, cells: int, wanted: Ints) -> Floats:
        """For each place of the answer, cell by cell, ones where the combinations are that belong to it."""
        cell, place = np.divmod(wanted, prod(self.shape))
        contrasts = np.zeros((len(wanted), cells, *self.sizes))
        rows = np.arange(len(wanted))
        contrasts[rows, cell] = self.targets[None] == place.reshape(-1, *[1] * len(self.sizes))
        return contrasts


@dataclass(frozen=True, eq=False, repr=False)
class CombinedEstimate(Estimate):
    """A table of members. Its sums, margins, means and differences are sums over the combinations that were published.

    whole     the table of the published columns
    question  what of them is asked for
    """

    whole: Estimate = field(kw_only=True)
    question: Combined = field(kw_only=True)

    def sums(self, contrasts: Floats, given: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
        if self.factor is not None:
            contrasts, given = contrasts * self.factor.reshape(-1, *[1] * len(self.of)), True
        return self._through(partial(self.whole.sums, given=given), contrasts)

    def _own_sums(self, contrasts: Floats, given: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
        return self._through(partial(self.whole._own_sums, given=given), contrasts)

    def proportions(self) -> Estimate:
        return Estimate.proportions(self if self.weight is None else self.question.answered(self.whole, given=True))

    def _through(self, sums: Sums, contrasts: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        step = max(1, _CONTRASTS // max(self.whole.values.size, 1))
        parts = [
            sums(self.question.spread(contrasts[start : start + step])) for start in range(0, len(contrasts), step)
        ]
        value, error, low, high = (np.concatenate(part) for part in zip(*parts))
        return value, error, low, high

    def margin(self, of: Sequence[str] | str | None = None, by: Sequence[str] | str | None = None) -> Estimate:
        self._refuse_shares("margin", "take the margin first, then the proportions")
        kept = self._places("of", self.of, self.of if of is None else of)
        question = self.question.of_axes(kept)
        whole = self.whole.margin(question.columns, by)
        return question.answered(whole) if kept else whole

    def top(self, k: int = 10) -> Summary:
        order = np.argsort(-self.values.ravel(), kind="stable")[:k]
        low, high = self.low.ravel()[order], self.high.ravel()[order]
        if 0 < len(order) < self.values.size:
            units = self.question._contrasts(len(self.values), order)
            if self.factor is not None:
                units = units * self.factor.reshape(-1, *[1] * len(self.question.sizes))
            strict = 1.0 - (1.0 - self.level) * len(order) / self.values.size
            _, _, lower, upper = replace(self.whole, level=strict).sums(units)
            low, high = np.fmin(low, lower), np.fmax(high, upper)
        return Summary.of(self._columns(order), self.values.ravel()[order], self.stderr.ravel()[order], low, high)

    def independence(self, left: str | None = None, right: str | None = None) -> Independence:
        given = [name for name in (left, right) if name is not None]
        self._places("independence", self.of, given)
        pair = [*given, *(name for name in self.of if name not in given)][:2]
        members = [name for name in pair if name not in self.question.columns]
        if not members:
            return self.whole.independence(*pair)
        homes = {axis.name: self.question.columns[axis.column] for axis in self.question.axes}
        raise QuestionError(
            Problem(
                "independence",
                f"'{name}' was published as a part of '{homes[name]}', and sets of parts are not tested by themselves",
                f"test the whole: estimate --of {homes[name]} --by ...",
            )
            for name in members
        )

    def _unknown(self) -> tuple[str, ...]:
        return self.whole._unknown()


def asks_members(manifest: Manifest, of: Sequence[str]) -> Combined | None:
    """How a question about members is answered; None where it has none."""
    homes = {member.name: (item, member) for item in manifest.sets for member in item.attribute.members}
    if not any(name in homes for name in of):
        return None
    whole = [name for name in of if name not in homes]
    both = [name for name in of if name in homes and homes[name][0].name in whole]
    if both:
        raise QuestionError(
            Problem("of", f"'{name}' is a part of '{homes[name][0].name}'", "ask for one of the two") for name in both
        )
    columns = tuple(dict.fromkeys(homes[name][0].name if name in homes else name for name in of))
    found = [column for name in columns if isinstance(column := manifest[name], Sets)]
    if len(found) < len(columns):
        raise QuestionError(
            Problem("of", f"'{name}' is published {manifest[name].in_words}", f"use it as --by {name}")
            for name in columns
            if not isinstance(manifest[name], Sets)
        )
    axes = []
    for name in of:
        if name in homes:
            item, member = homes[name]
            labels = tuple(label_array(member.domain.values).to_pylist())
            axes.append(_Axis(name, columns.index(item.name), np.array(member.codes), labels))
        else:
            column = found[columns.index(name)]
            labels = tuple(label_array(column.domain.values).to_pylist())
            axes.append(_Axis(name, columns.index(name), np.arange(column.domain.size), labels))
    return Combined(columns, tuple(column.domain.size for column in found), tuple(axes))
