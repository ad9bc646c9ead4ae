"""Questions to a release: cross-tabulations of protected attributes within cells of untouched ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.distances import Distance, LineDistance
from polyseme.distances.structure import Floats, Ints
from polyseme.errors import Problem, QuestionError, ReleaseError, TableError, nearest
from polyseme.estimators.base import Estimator, Reports
from polyseme.estimators.estimate import Estimate, estimate_parts
from polyseme.estimators.helping import MOST_KINDS, Help, with_help
from polyseme.estimators.parts import Part
from polyseme.estimators.registry import estimator_given
from polyseme.estimators.smooth import Smooth
from polyseme.evidence import doubts
from polyseme.mechanism import Mechanism
from polyseme.release import Manifest, PublishedAttribute, Release
from polyseme.strata import Strata
from polyseme.tables.codes import as_series, encode, label_array
from polyseme.tables.counting import Grouped, Target, group_codes, group_sets
from polyseme.tables.kinds import CandidateKinds, Kinds, kinds_of
from polyseme.tables.readings import alike
from polyseme.tables.source import Source

__all__ = ["ask", "published_counts", "true_table"]

Mark: TypeAlias = Strata | Kinds | CandidateKinds
"""What tells records apart beside the columns of a question."""


def ask(
    release: Release, of: Sequence[str], by: Sequence[str] = (), using: Sequence[str] = (), **options: Any
) -> Estimate:
    """The estimated cross-tabulation of `of` within cells of `by`; options as for `estimate_table`.

    using  columns that help: what they have to do with `of` makes the table more exact
    """
    targets = _targets(release, of, by, using)
    long = release.manifest.form == "long"
    if using:
        _check_help(options.get("estimator"), long)
    if long and len(targets) > 1:
        raise QuestionError(
            "in the long form it is not known which candidates belong together",
            "ask for one attribute at a time, or publish the set form",
        )
    mechanisms = [item.mechanism for item in targets if item.mechanism is not None]
    marks = _marks(release, targets, using)
    grouped = _group(release, targets, by, marks)
    counts = grouped.counts
    if long:
        # A candidate of one attribute stands in a row for every combination of the others' candidates.
        others = [item.mechanism.l for item in release.manifest.protected if item.mechanism and item not in targets]
        counts = counts // int(np.prod(others, dtype=np.int64))
    cells, cell = _coarser(grouped.cells, by) if marks else (grouped.cells, np.arange(max(grouped.cells.height, 1)))
    distances = tuple(_distance(item) for item in targets)
    reports = Reports(
        grouped.sets,
        cell[grouped.cell],
        counts,
        max(cells.height, 1),
        not long,
        distances,
        repeats=max(item.repeats for item in targets),
    )
    marked = grouped.cells[grouped.cell] if marks else grouped.cells
    helping = [Help(mark.name, marked[name].to_numpy()) for name, mark in marks.items() if not isinstance(mark, Strata)]
    for item, mechanism, sets in zip(targets, mechanisms, reports.sets):
        if not item.restricted:
            _check_drawn(item, mechanism, sets)
    if any(item.restricted for item in targets):
        parts = _parts(reports, targets, marked, helping)
    else:
        parts = [Part.whole(with_help(reports, helping, mechanisms) if helping else reports, mechanisms)]
    table = estimate_parts(
        parts,
        reports.cells,
        tuple(of),
        [label_array(item.domain.values).to_pylist() for item in targets],
        cells.to_dict(as_series=False),
        **options,
    )
    return table.warned(*doubts(release.manifest, targets, table.parts), *_repeated(release.manifest, reports))


def _repeated(manifest: Manifest, reports: Reports) -> tuple[str, ...]:
    """What sticky decoys mean for the errors: records of one person with one value are one draw."""
    if manifest.uncounted:
        return (
            "decoys are sticky, but nobody counted the records to a draw: intervals are too short where people have "
            "several records",
        )
    if reports.repeats == 1.0:
        return ()
    records = manifest.records / reports.repeats
    return (f"people have several records with the same decoys: errors are those of about {records:,.0f} records",)


def _check_drawn(item: PublishedAttribute, mechanism: Mechanism, sets: Ints) -> None:
    """Refuse sets that the stated mechanism never draws: no distribution of values makes them likely."""
    if sets.shape[1] == mechanism.l and (strange := mechanism.never_drawn(sets)):
        raise ReleaseError(
            f"column '{item.name}': {strange:,} of {len(sets):,} distinct sets cannot have been drawn by the mechanism "
            "that the manifest states",
            "run polyseme verify",
        )


def _stratum(item: PublishedAttribute) -> str:
    """The name of the column that says which stratum of an attribute each record belongs to."""
    return f"\0stratum of {item.name}"


def _kind(name: str) -> str:
    """The name of the column that says of which kind each record is in a column that helps."""
    return f"\0kind of {name}"


def _coarser(cells: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, Ints]:
    """The distinct cells of `by` alone, and which of them each of the sorted cells belongs to."""
    if not by:
        return cells.select([]), np.zeros(max(cells.height, 1), dtype=np.int64)
    coarse = cells.select(by).unique(maintain_order=True)
    return coarse, _match(cells, coarse, by)


def _marks(release: Release, targets: Sequence[PublishedAttribute], using: Sequence[str]) -> dict[str, Mark]:
    """What tells records apart beside the columns of `by`: strata with their own mechanisms, and columns that help."""
    marks: dict[str, Mark] = {_stratum(item): item.strata for item in targets if item.restricted}
    protected = {item.name: item for item in release.manifest.protected}
    untouched = [name for name in using if name not in protected]
    kinds = kinds_of(release.batches(untouched), untouched, MOST_KINDS) if untouched else {}
    for name in using:
        if name in protected:
            (target,) = _wanted(release, [protected[name]])
            marks[_kind(name)] = CandidateKinds.of(target, published_counts(release, name)[0], MOST_KINDS)
        else:
            marks[_kind(name)] = kinds[name]
    return marks


def _wanted(release: Release, items: Sequence[PublishedAttribute]) -> list[Target]:
    """The columns of the release that hold some attributes."""
    long = release.manifest.form == "long"
    return [Target(item.name, item.domain, 1 if long else item.mechanism.l) for item in items if item.mechanism]


def _parts(
    reports: Reports, targets: Sequence[PublishedAttribute], marked: pl.DataFrame, helping: Sequence[Help]
) -> list[Part]:
    """The reports of each combination of strata, in codes of the strata's own mechanisms.

    marked  the stratum of each row, for the attributes that have several
    """
    none = np.zeros(len(reports.counts), dtype=np.int64)
    places = np.column_stack([marked[_stratum(item)].to_numpy() if item.restricted else none for item in targets])
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
            _check_drawn(item, stratum.mechanism, sets)
        distances = tuple(
            distance and distance.among(stratum.allowed) for distance, stratum in zip(reports.distances or (), strata)
        )
        part = replace(
            reports, sets=narrowed, cell=cell, counts=reports.counts[rows], cells=len(cells), distances=distances
        )
        mechanisms = tuple(stratum.mechanism for stratum in strata)
        # A column that decides the stratum is the same for all its records.
        telling = [column.among(rows) for column in helping if len(np.unique(column.kinds[rows])) > 1]
        if helping:
            part = with_help(part, telling, mechanisms)
        parts.append(Part(part, mechanisms, cells, tuple(stratum.allowed for stratum in strata)))
    return parts


def _distance(item: PublishedAttribute) -> Distance | None:
    """The distance of an attribute; intervals and periods without one still stand in their order."""
    domain = item.domain
    if item.attribute.distance is None and domain.cut is not None and domain.missing.action != "category":
        return LineDistance.ranks(domain.size)
    return item.attribute.distance


def _targets(
    release: Release, of: Sequence[str], by: Sequence[str], using: Sequence[str] = ()
) -> list[PublishedAttribute]:
    """The protected attributes asked for; all that is wrong with the question at once."""
    protected = {item.name: item for item in release.manifest.protected}
    untouched = [name for name in release.manifest.names if name not in protected]
    problems = []
    if not of:
        problems.append(Problem("of", "nothing is asked for", f"protected attributes: {', '.join(protected)}"))
    for name in of:
        if name in untouched:
            problems.append(Problem("of", f"'{name}' is published as it is", f"use it as --by {name}"))
        elif name not in protected:
            problems.append(Problem("of", f"no attribute '{name}' in this release", nearest(name, protected)))
    for name in by:
        if name in protected:
            problems.append(Problem("by", f"'{name}' is published as sets", f"ask for it together: --of {name},.."))
        elif name not in untouched:
            problems.append(Problem("by", f"no attribute '{name}' in this release", nearest(name, untouched)))
    for name in using:
        if name in (*of, *by):
            problems.append(Problem("using", f"'{name}' is already asked for", "name it once"))
        elif name not in release.manifest.names:
            hint = nearest(name, release.manifest.names)
            problems.append(Problem("using", f"no attribute '{name}' in this release", hint))
    for place, names in (("of", of), ("by", by), ("using", using)):
        if len(set(names)) != len(names):
            problems.append(Problem(place, "an attribute stands twice"))
        problems += [
            Problem(place, f"'{name}' is also a column of the answer", "rename the attribute before publishing")
            for name in names
            if place != "using" and name in ("estimate", "stderr", "low", "high")
        ]
    if problems:
        raise QuestionError(problems)
    return [protected[name] for name in of]


def _check_help(estimator: str | Estimator | None, long: bool) -> None:
    """Raise unless columns can help in this question."""
    chosen = estimator_given(estimator)
    problems = []
    if chosen is not None and chosen.name != Smooth.name:
        hint = f"leave --estimator out, or take {Smooth.name}"
        problems.append(Problem("using", f"{chosen.name} looks at the published sets only", hint))
    if long:
        problems.append(Problem("using", "in the long form no column can help", "publish the set form"))
    if problems:
        raise QuestionError(problems)


def _group(
    release: Release,
    targets: Sequence[PublishedAttribute],
    by: Sequence[str],
    marks: Mapping[str, Mark] | None = None,
) -> Grouped:
    """Distinct sets within cells of untouched attributes and marks."""
    marks = marks or {}
    deciding = [name for mark in marks.values() for name in mark.columns]
    columns = dict.fromkeys([*by, *deciding, *(item.name for item in targets)])
    batches = release.batches(list(columns))
    return group_sets(
        (_marked(batch, marks) for batch in batches) if marks else batches, _wanted(release, targets), (*by, *marks)
    )


def _marked(batch: pa.RecordBatch, marks: Mapping[str, Mark]) -> pa.RecordBatch:
    for name, mark in marks.items():
        columns = {column: batch.column(column) for column in mark.columns}
        batch = batch.append_column(name, pa.array(mark.places(columns, batch.num_rows)))
    return batch


def published_counts(release: Release, attribute: str, by: str | None = None) -> Floats:
    """How often each value stands among the candidates, as a naive reader would count: (cells, F), cells sorted.

    Counts are divided by l, so that a cell adds up to its number of records.
    """
    item = release.manifest[attribute]
    if item.mechanism is None:
        raise QuestionError(f"'{attribute}' is published as it is")
    grouped = _group(release, [item], (by,) if by else ())
    width = grouped.sets[0].shape[1]
    cells = max(grouped.cells.height, 1)
    place = np.repeat(grouped.cell, width) * item.domain.size + grouped.sets[0].ravel()
    weights = np.repeat(grouped.counts, width).astype(np.float64)
    counts = np.bincount(place, weights, minlength=cells * item.domain.size).reshape(cells, -1)
    return np.asarray(counts * (release.manifest.records / max(float(counts.sum()), 1.0)), dtype=np.float64)


def true_table(
    release: Release,
    source: Source,
    of: Sequence[str],
    cells_by: Mapping[str, Sequence[Any]],
) -> Floats:
    """The cross-tabulation of the original table in the release's domains and cells: (cells, F_1, .., F_q).

    cells_by  the cells of an estimate: for each untouched attribute, its value in every cell
    """
    by, cells = tuple(cells_by), pl.DataFrame(dict(cells_by))
    targets = _targets(release, of, by)
    protected = [item.name for item in release.manifest.protected]
    absent = [name for name in (*protected, *by) if name not in source.schema.names]
    if absent:
        raise TableError(
            Problem(source.name, f"no column '{name}'", "is this the table that was released?") for name in absent
        )
    sizes = {item.name: item.domain.size for item in targets}
    grouped = group_codes(_coded(source, release.manifest, by), sizes, by)
    shape = [item.domain.size for item in targets]
    place = _match(grouped.cells, cells, by, release.manifest.missing_values)[grouped.cell]
    table = np.zeros((max(cells.height, 1), *shape))
    kept = place >= 0
    np.add.at(table, (place[kept], *(codes[kept, 0] for codes in grouped.sets)), grouped.counts[kept])
    if table.sum() != release.manifest.records:
        raise TableError(
            f"{source.name}: {table.sum():,.0f} records fit the release, which has {release.manifest.records:,}",
            "is this the table that was released?",
        )
    return table


def _coded(source: Source, manifest: Manifest, by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The original as codes, without the records that the release left out: those with any missing protected value."""
    protected = manifest.protected
    for batch in source.batches([*by, *(item.name for item in protected)]):
        columns = {name: as_series(batch.column(name)) for name in by}
        columns_of_truth = [
            as_series(batch.column(item.name), manifest.missing_values).alias(item.name) for item in protected
        ]
        codes = [encode(column, item.domain).codes for column, item in zip(columns_of_truth, protected)]
        kept = np.all([column >= 0 for column in codes], axis=0)
        coded = {item.name: pl.Series(column) for item, column in zip(protected, codes)}
        yield pl.DataFrame({**columns, **coded}).filter(pl.Series(kept))


def _match(found: pl.DataFrame, wanted: pl.DataFrame, by: Sequence[str], missing_values: Sequence[str] = ()) -> Ints:
    """Where each cell of the original stands among the release's cells; -1 where it does not."""
    if not by:
        return np.zeros(max(found.height, 1), dtype=np.int64)
    pairs = {name: alike(found[name], wanted[name], missing_values) for name in by}
    left, right = (pl.DataFrame({name: pair[side] for name, pair in pairs.items()}) for side in (0, 1))
    places = right.with_row_index("\0place")
    joined = left.join(places, on=list(by), how="left", nulls_equal=True, maintain_order="left")
    return joined["\0place"].cast(pl.Int64).fill_null(-1).to_numpy()
