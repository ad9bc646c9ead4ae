"""Published sets counted within cells of untouched columns; sums for joint attributes.

A question about members of joint attributes is a sum over the combinations that were published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.counts import Part
from polyseme.inference.intervals.intervals import holding
from polyseme.inference.sets.auxiliary import MOST_KINDS, Help, with_help
from polyseme.inference.sets.estimate import NO_SUMS, Estimate
from polyseme.inference.sets.independence import Independence
from polyseme.inference.sets.sums import is_clear
from polyseme.kernel.arrays import Floats, Ints, arrow
from polyseme.kernel.errors import Problem, QuestionError, ReleaseError, numbered
from polyseme.release import Manifest, Release, Sets
from polyseme.release.release import SetCounts, stratum_column, target_of
from polyseme.results.table import Summary
from polyseme.schema import Weighting
from polyseme.semantics.distances import Distance, LineDistance
from polyseme.strata import Strata
from polyseme.tables.codes import as_series, label_array
from polyseme.tables.groups import CandidateKinds, Grouped, Kinds, group_sets, kinds_of
from polyseme.tables.readings import alike, read_weights

__all__ = [
    "WEIGHT",
    "Combined",
    "CombinedEstimate",
    "Mark",
    "Weights",
    "asks_members",
    "check_drawn",
    "coarser_cells",
    "coarser_weights",
    "grouped_sets",
    "marks_of",
    "match_cells",
    "parts_of",
    "published_counts",
    "repeated_draws",
    "reports_of",
]

Sums: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats, Floats]]
"""Value, standard error and limits of contrasts."""

_CONTRASTS = 20_000_000
"""Numbers in memory at a time: 160 MB."""


@dataclass(frozen=True, eq=False)
class _Axis:
    """One name of a question: its column's index, and the code of its value for each of theirs."""

    name: str
    column: int
    codes: Ints
    labels: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Combined:
    """A question about members of joint attributes.

    columns  the published attributes that answer it
    axes     the axes of the question, in order
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
        """A table of the columns (cells, F_1, ..., F_q) as one of the question's axes."""
        cells = len(table)
        found = np.zeros((cells, prod(self.shape)))
        np.add.at(found.T, self.targets.ravel(), table.reshape(cells, -1).T)
        return found.reshape(cells, *self.shape)

    def answered(self, table: Estimate, given: bool = False) -> CombinedEstimate:
        """An estimate of the columns on the question's axes: every number is a sum with its error.

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
        low, high = holding(value, low, high, is_clear(value, error), table.level)
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
        """Contrasts of the question as contrasts of the columns: (k, cells, F_1, ..., F_q)."""
        flat = contrasts.reshape(*contrasts.shape[:2], -1)
        return flat[:, :, self.targets.ravel()].reshape(*contrasts.shape[:2], *self.sizes)

    def _contrasts(self, cells: int, wanted: Ints) -> Floats:
        """For each place of the answer, ones at the combinations that belong to it, cell by cell."""
        cell, place = np.divmod(wanted, prod(self.shape))
        contrasts = np.zeros((len(wanted), cells, *self.sizes))
        rows = np.arange(len(wanted))
        contrasts[rows, cell] = self.targets[None] == place.reshape(-1, *[1] * len(self.sizes))
        return contrasts


@dataclass(frozen=True, eq=False, repr=False)
class CombinedEstimate(Estimate):
    """A table of members: its numbers are sums over the combinations that were published.

    whole     the table of the published columns
    question  what it wants of them
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


WEIGHT = "\0weight"
"""The name of the column that says what each record weighs."""


@dataclass(frozen=True)
class Weights:
    """The survey weight of each record, as a mark."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def places(self, columns: Mapping[str, pa.Array], rows: int) -> Floats:
        """What each record weighs."""
        weights, flaws = read_weights(as_series(columns[self.name]))
        if flaws:
            raise ReleaseError(
                Problem(f"column '{self.name}'", numbered(count, what), "--unweighted counts the records instead")
                for (what, _), count in flaws.items()
            )
        return weights


Mark: TypeAlias = Strata | Kinds | CandidateKinds | Weights
"""What tells records apart beside the columns of a question."""


def marks_of(release: Release, targets: Sequence[Sets], using: Sequence[str]) -> dict[str, Mark]:
    """What distinguishes records beside `by`: strata with own mechanisms, columns that help."""
    marks: dict[str, Mark] = {stratum_column(item): item.strata for item in targets if item.stratified}
    protected = {item.name: item for item in release.manifest.sets}
    untouched = [name for name in using if name not in protected]
    kinds = kinds_of(release.counted(untouched), untouched, MOST_KINDS) if untouched else {}
    for name in using:
        if name in protected:
            target = target_of(release, protected[name])
            marks[_kind(name)] = CandidateKinds.of(target, published_counts(release, name)[0], MOST_KINDS)
        else:
            marks[_kind(name)] = kinds[name]
    return marks


def _kind(name: str) -> str:
    """The name of the column that says of which kind each record is in a column that helps."""
    return f"\0kind of {name}"


def grouped_sets(
    release: Release,
    targets: Sequence[Sets],
    by: Sequence[str],
    marks: Mapping[str, Mark],
    counts: SetCounts | None = None,
) -> Grouped:
    """Distinct sets within cells of untouched attributes and marks."""
    if counts is not None and len(targets) == 1 and counts.answers(by) and _only_strata(marks):
        return counts.of(targets[0], by)
    deciding = [name for mark in marks.values() for name in mark.columns]
    columns = dict.fromkeys([*by, *deciding, *(item.name for item in targets)])
    rows = release.counted(list(columns))
    wanted = [target_of(release, item) for item in targets]
    marked = ((_marked(batch, marks), number) for batch, number in rows) if marks else rows
    return group_sets(marked, wanted, (*by, *marks))


def _only_strata(marks: Mapping[str, Mark]) -> bool:
    return all(isinstance(mark, Strata) for mark in marks.values())


def _marked(batch: pa.RecordBatch, marks: Mapping[str, Mark]) -> pa.RecordBatch:
    for name, mark in marks.items():
        columns = {column: batch.column(column) for column in mark.columns}
        batch = batch.append_column(name, arrow(mark.places(columns, batch.num_rows)))
    return batch


def coarser_cells(cells: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, Ints]:
    """The distinct cells of `by` alone, and which of them each of the sorted cells belongs to."""
    if not by:
        return cells.select([]), np.zeros(max(cells.height, 1), dtype=np.int64)
    coarse = cells.select(by).unique(maintain_order=True)
    return coarse, match_cells(cells, coarse, by)


def match_cells(
    found: pl.DataFrame, wanted: pl.DataFrame, by: Sequence[str], missing_values: Sequence[str] = ()
) -> Ints:
    """Where each cell of the original stands among the release's cells; -1 where it does not."""
    if not by:
        return np.zeros(max(found.height, 1), dtype=np.int64)
    pairs = {name: alike(found[name], wanted[name], missing_values) for name in by}
    left, right = (pl.DataFrame({name: pair[side] for name, pair in pairs.items()}) for side in (0, 1))
    places = right.with_row_index("\0place")
    joined = left.join(places, on=list(by), how="left", nulls_equal=True, maintain_order="left")
    return joined["\0place"].cast(pl.Int64).fill_null(-1).to_numpy()


def published_counts(
    release: Release, attribute: str, by: str | None = None, counts: SetCounts | None = None
) -> Floats:
    """How often each value stands among the candidates, as a naive reader counts: (cells, F).

    Counts are divided by l, so that a cell adds up to its number of records.
    """
    item = release.manifest[attribute]
    if not isinstance(item, Sets):
        raise QuestionError(f"'{attribute}' is published {item.in_words}")
    names = (by,) if by else ()
    grouped = grouped_sets(release, [item], names, marks_of(release, [item], ()), counts)
    cells, cell = coarser_cells(grouped.cells, names)
    width, groups = grouped.sets[0].shape[1], max(cells.height, 1)
    place = np.repeat(cell[grouped.cell], width) * item.domain.size + grouped.sets[0].ravel()
    weights = np.repeat(grouped.counts, width).astype(np.float64)
    held = np.bincount(place, weights, minlength=groups * item.domain.size).reshape(groups, -1)
    return np.asarray(held * (release.manifest.records / max(float(held.sum()), 1.0)), dtype=np.float64)


def coarser_weights(manifest: Manifest, weight: str | None) -> tuple[str, ...]:
    rule = None if weight is None else manifest[weight].attribute.weighting
    if rule is None or rule == Weighting():
        return ()
    return (f"{weight} was {rule.in_words}: intervals are about sums of the published weights",)


def reports_of(release: Release, targets: Sequence[Sets], grouped: Grouped, cell: Ints, cells: int) -> Reports:
    """What the estimators see of the counted sets.

    cell  the cell of the table that each cell of `grouped` belongs to
    """
    long, records = release.manifest.form == "long", grouped.counts
    if long:
        # A candidate of one attribute stands in a row for every combination of the others' candidates.
        others = [item.l for item in release.manifest.sets if item not in targets]
        records = records // int(np.prod(others, dtype=np.int64))
    distances, repeats = tuple(_distance(item) for item in targets), max(item.repeats for item in targets)
    return Reports(grouped.sets, cell[grouped.cell], records, cells, not long, distances, repeats=repeats)


def repeated_draws(manifest: Manifest, targets: Sequence[Sets], reports: Reports) -> tuple[str, ...]:
    """The design effect of sticky or shared sets: a person's or group's value is one draw."""
    if manifest.uncounted:
        return (
            "decoys are sticky, but the records per draw were not counted: intervals are too short where people have "
            "several records",
        )
    if reports.repeats == 1.0:
        return ()
    records = manifest.records / reports.repeats
    if all(item.shared_by for item in targets if item.repeats > 1.0):
        columns = ", ".join(dict.fromkeys(item.shared_by for item in targets if item.shared_by))
        return (f"records of one group of {columns} have one set: errors are those of about {records:,.0f} records",)
    return (f"people have several records with the same decoys: errors are those of about {records:,.0f} records",)


def check_drawn(item: Sets, mechanism: Mechanism, sets: Ints) -> None:
    """Refuse sets that the stated mechanism never draws, whatever the distribution."""
    if sets.shape[1] == mechanism.l and (strange := mechanism.never_drawn(sets)):
        raise ReleaseError(
            f"column '{item.name}': {strange:,} of {len(sets):,} distinct sets cannot have been drawn by the mechanism "
            "that the manifest states",
            "run polyseme verify",
        )


def parts_of(reports: Reports, targets: Sequence[Sets], marked: pl.DataFrame, helping: Sequence[Help]) -> list[Part]:
    """The reports of each combination of strata, in codes of the strata's own mechanisms.

    marked  the stratum of each row, for the attributes that have several
    """
    none = np.zeros(len(reports.counts), dtype=np.int64)
    places = np.column_stack([marked[stratum_column(item)].to_numpy() if item.stratified else none for item in targets])
    parts = []
    for combination in np.unique(places, axis=0):
        rows = np.flatnonzero((places == combination).all(axis=1))
        strata = [item.strata.members[place] for item, place in zip(targets, combination)]
        for item, stratum, sets in zip(targets, strata, reports.sets):
            if stratum.forbids[sets[rows]].any():
                raise ReleaseError(
                    f"column '{item.name}': some sets hold a value that is impossible for their record",
                    "run polyseme verify to see how many",
                )
        cells, cell = np.unique(reports.cell[rows], return_inverse=True)
        narrowed = tuple(stratum.narrow(sets[rows]) for stratum, sets in zip(strata, reports.sets))
        for item, stratum, sets in zip(targets, strata, narrowed):
            check_drawn(item, stratum.mechanism, sets)
        distances = tuple(
            distance and distance.among(stratum.allowed) for distance, stratum in zip(reports.distances or (), strata)
        )
        part = replace(
            reports,
            sets=narrowed,
            cell=cell,
            counts=reports.counts[rows],
            cells=len(cells),
            distances=distances,
            weights=None if reports.weights is None else reports.weights[rows],
        )
        mechanisms = tuple(stratum.mechanism for stratum in strata)
        # A column that decides the stratum is the same for all its records.
        telling = [column.among(rows) for column in helping if len(np.unique(column.kinds[rows])) > 1]
        if helping:
            part = with_help(part, telling, mechanisms)
        parts.append(Part(part, mechanisms, cells, tuple(stratum.allowed for stratum in strata)))
    return parts


def _distance(item: Sets) -> Distance | None:
    """The distance of an attribute; intervals and periods without one are ordered."""
    domain = item.domain
    if item.attribute.distance is None and domain.cut is not None and domain.missing.action != "category":
        return LineDistance.ranks(domain.size)
    return item.attribute.distance
