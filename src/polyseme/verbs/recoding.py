"""A table is put into classes or groups before it is published: what a policy's grouping method decides, applied.

What was decided is checked by the models themselves, on the rows that will be published, before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Bools, Ints
from polyseme.cancellation import Cancellation
from polyseme.errors import ImpossibleError, InternalError, Problem, QuestionError, TableError
from polyseme.hierarchies import TOP
from polyseme.methods import grouping_named
from polyseme.methods.bucketization import Grouping
from polyseme.methods.goal import Goal
from polyseme.methods.grouping import GroupingMethod, Task, grouped_attribute
from polyseme.methods.microdata import BLANK, Cells, Recoding, Sensitive
from polyseme.models import background_of, is_about
from polyseme.policy import MethodSpec, Policy
from polyseme.policy.microdata import ReadTable, read_microdata
from polyseme.policy.resolving import match_columns
from polyseme.randomness import StreamKey
from polyseme.release import Applied, AsIs, Column, Generalized, Grouped, Manifest
from polyseme.release.classes import model_verdicts
from polyseme.results.explanation import Explanation
from polyseme.schema import Attribute, Domain, Resolved, Role
from polyseme.tables.coding.codes import label_array
from polyseme.tables.io.source import Source
from polyseme.tables.recoded import Recoded, RecodedSource

__all__ = ["Treated", "treat"]

_GROUP = "group"
_LEVELLED = "full-domain"
_LISTED = 10_000
"""Declared values of a quasi-identifier up to which the manifest lists what its labels may stand for (some 200 kB)."""


@dataclass(frozen=True, eq=False)
class Treated:
    """A table after a grouping method.

    source   the rows as they go on to be published
    columns  how the columns are published that are not drawn as sets, by name; a column of groups is the last
    applied  what was done
    records  before any was suppressed
    recoded  the columns that are shown otherwise than in the table
    dropped  rows that were left out because a value was missing
    finer    for each quasi-identifier that is generalized to a level, how many records would be in classes that violate
             a model if it were one level finer, where that was asked for; it tells of the table
    models   what is promised: the policy's models, and what the method promises by itself
    explanation  why, class by class, for the owner of the table only
    """

    source: Source
    columns: Mapping[str, Column]
    applied: Applied
    records: int
    recoded: frozenset[str]
    dropped: int
    models: tuple[Mapping[str, Any], ...] = ()
    finer: Mapping[str, int] = field(default_factory=dict)
    explanation: Explanation | None = field(default=None, repr=False)

    def arranged(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """All columns, in the table's order."""
        there = {column.name for column in columns}
        new = [column for name, column in self.columns.items() if name not in there]
        return (*(self.columns.get(column.name, column) for column in columns), *new)


def treat(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    seed: int | None,
    cancellation: Cancellation,
    earlier: Manifest | None = None,
    neighbours: bool = False,
) -> Treated:
    """Group the records of a table as the policy says; refuses, with the reason, what cannot be reached.

    earlier     a release whose levels of generalization are taken over, so that nothing is searched
    neighbours  whether to find out, for the owner of the table, why no quasi-identifier is shown in more detail
    """
    spec = policy.grouping
    if spec is None:
        raise ValueError("the policy names no grouping method")
    method = grouping_named(spec.name)
    read = read_microdata(match_columns(policy, source), resolved.schema, source)
    if not read.data.records:
        raise TableError(f"{source.name}: no records to publish")
    sensitive = {item.name: item for item in read.sensitive}
    models = _models(policy, method, spec, sensitive)
    stream = (StreamKey.fresh() if seed is None else StreamKey.seeded(f"{seed} groups")).derive(0)
    goal = _goal(policy, resolved, read)
    found: Recoding | Grouping
    if earlier is None:
        found = method.group(Task(read.data, goal, sensitive, spec.parameters, stream, cancellation))
    else:
        found = _at_levels(read, goal, _levels_of(earlier, spec, read), float(spec.parameters["suppression"]))
    made = _generalized(read, found, goal, spec) if isinstance(found, Recoding) else _grouped(read, found, spec)
    drawn = {item.name for item in resolved.schema.protected}
    _require_reached(made, [model for model in models if not _about_any(model, drawn)], _rows(made))
    finer = _finer(read, goal, found) if neighbours and isinstance(found, Recoding) else {}
    return replace(made, models=models, finer=finer)


def _models(
    policy: Policy, method: GroupingMethod, spec: MethodSpec, sensitive: Mapping[str, Attribute]
) -> tuple[Mapping[str, Any], ...]:
    """The policy's models and the method's own; refuses a sensitive attribute that none of them is about."""
    own = method.models(spec.parameters, sensitive)
    models = (*({model.name: model.parameters} for model in policy.models), *own)
    bare = [
        Problem(
            f"$.attributes.{name}",
            "sensitive, and published with its class, but no model limits what a class tells about it",
            f"add a model: {{distinct-diversity: {{l: 3, attribute: {name}}}}}, or protect: {{diversity: {{l: 3}}}}",
        )
        for name in sensitive
        if not any(is_about(model, name) for model in models)
    ]
    if bare:
        raise ImpossibleError(bare)
    return models


def _goal(policy: Policy, resolved: Resolved, read: ReadTable) -> Goal:
    """The models that classes must reach: those about values that are published as sets are none of theirs."""
    drawn = {item.name for item in resolved.schema.protected}
    asked = [{model.name: dict(model.parameters)} for model in policy.models]
    specs = [spec for spec in asked if not _about_any(spec, drawn)]
    return Goal.of(specs, read.data, background_of(read.sensitive))


def _about_any(model: Mapping[str, Any], names: Set[str]) -> bool:
    return any(parameters.get("attribute") in names for parameters in model.values())


# -- taken over ----------------------------------------------------------------------------------------------------


def _levels_of(earlier: Manifest, spec: MethodSpec, read: ReadTable) -> list[int]:
    """The level of each quasi-identifier in an earlier release; refuses a release that has none for each."""
    applied = earlier.applied
    if spec.name != _LEVELLED or applied is None or not applied.levels:
        raise QuestionError(
            Problem(
                "apply", "only levels of generalization can be taken over, and this has none", "method: full-domain"
            )
        )
    heights = {ladder.name: ladder.height for ladder in read.data.ladders}
    if heights.keys() != applied.levels.keys() or any(level > heights[name] for name, level in applied.levels.items()):
        raise QuestionError(
            Problem("apply", "the release generalizes other columns, or by other hierarchies, than the policy")
        )
    return [applied.levels[name] for name in read.data.names]


def _at_levels(read: ReadTable, goal: Goal, levels: list[int], limit: float) -> Recoding:
    """All records at given levels; those that would break a promise are suppressed, if they are few enough."""
    whole = Recoding.of_levels(read.data, levels, np.zeros(read.data.records, dtype=np.bool_), None, None)
    kept = goal.kept(*goal.counted(whole.classes, len(whole.shown)))
    suppressed = ~kept[whole.classes]
    if suppressed.sum() > limit * read.data.records:
        raise ImpossibleError(
            Problem(
                "apply",
                f"at these levels {int(suppressed.sum()):,} of {read.data.records:,} records would break what is "
                f"promised, more than the policy lets be suppressed ({limit:.2%})",
                "wait for more records, allow more suppression, or search levels for this table",
            )
        )
    return Recoding.of_levels(read.data, levels, suppressed, None, None)


def _finer(read: ReadTable, goal: Goal, found: Recoding) -> dict[str, int]:
    """How many records would violate if one quasi-identifier were one level finer."""
    nobody, violating = np.zeros(read.data.records, dtype=np.bool_), {}
    for place, (name, level) in enumerate(zip(read.data.names, found.levels)):
        if level:
            levels = [*found.levels[:place], level - 1, *found.levels[place + 1 :]]
            made = Recoding.of_levels(read.data, levels, nobody, None, None)
            kept = goal.kept(*goal.counted(made.classes, len(made.shown)))
            violating[name] = int(np.count_nonzero(~kept[made.classes]))
    return violating


# -- generalized ---------------------------------------------------------------------------------------------------


def _generalized(read: ReadTable, found: Recoding, goal: Goal, spec: MethodSpec) -> Treated:
    withheld = bool(found.suppressed.any()) and not _fine_together(read, found, goal)
    kept = ~found.suppressed if withheld else np.ones(read.data.records, dtype=np.bool_)
    columns: dict[str, Column] = {}
    shown: dict[str, Recoded] = {}
    for place, (ladder, cells) in enumerate(zip(read.data.ladders, found.cells, strict=True)):
        shown[ladder.name] = _shown(found, place, cells, kept)
        level = found.levels[place] if found.levels else None
        stands_for = _stands_for(ladder.labels[0], cells) if ladder.name in read.listed else {}
        columns[ladder.name] = Generalized(Attribute(ladder.name, Role.QUASI_IDENTIFIER), level, stands_for)
    for item in read.sensitive:
        replaced = found.replaced.get(item.name)
        shown[item.name] = _values(read, item, kept) if replaced is None else _replaced(replaced, kept)
        columns[item.name] = AsIs(item if replaced is None else _with_values(item, replaced))
    applied = Applied(
        spec.name,
        spec.parameters,
        classes=len(found.shown),
        suppressed=int(found.suppressed.sum()),
        withheld=withheld,
        levels=dict(zip(read.data.names, found.levels)),
        loss=found.loss,
        gap=found.gap,
        actions=found.actions,
    )
    return replace(_treated(read, kept, shown, columns, applied), explanation=found.explanation)


def _fine_together(read: ReadTable, found: Recoding, goal: Goal) -> bool:
    """Whether the suppressed records, as one class in which nothing is shown, reach the goal themselves.

    That is not known where values were replaced, nor where a class is compared with the rest of the table, to which
    they do not belong.
    """
    if goal.relative or found.replaced:
        return False
    rows = np.flatnonzero(found.suppressed)
    return bool(goal.fine(*goal.counted(np.zeros(len(rows), dtype=np.int64), 1, rows)).all())


def _shown(found: Recoding, place: int, cells: Cells, kept: Bools) -> Recoded:
    """One quasi-identifier of the records that are kept; `*` for suppressed ones."""
    codes = np.append(found.shown[:, place], len(cells.labels))[found.classes[kept]]
    return Recoded(codes, pa.array([*cells.labels, TOP], type=pa.string()))


def _stands_for(leaves: Sequence[str | None], cells: Cells) -> dict[str, tuple[str, ...]]:
    if len(leaves) > _LISTED:
        return {}
    listed = {
        label: tuple(text for leaf in codes.tolist() if (text := leaves[leaf]) is not None)
        for label, codes in zip(cells.labels, cells.leaves, strict=True)
        if label is not None
    }
    return {} if all(texts == (label,) for label, texts in listed.items()) else listed


def _values(read: ReadTable, item: Attribute, kept: Bools) -> Recoded:
    """A sensitive column as its domain has it."""
    values = item.domain.values if item.domain is not None else ()
    return Recoded(read.data.sensitive[item.name].codes[kept], label_array(values))


def _replaced(values: Sensitive, kept: Bools) -> Recoded:
    """A sensitive column in which some values are not shown, or others are."""
    codes = np.where(values.codes == BLANK, len(values.labels), values.codes)[kept]
    labels = label_array(values.labels)
    return Recoded(codes, pa.concat_arrays([labels, pa.nulls(1, labels.type)]))


def _with_values(item: Attribute, values: Sensitive) -> Attribute:
    """An attribute with the values that it is shown with."""
    domain = item.domain or Domain(())
    return replace(item, domain=replace(domain, values=tuple(values.labels)))


# -- grouped -------------------------------------------------------------------------------------------------------


def _grouped(read: ReadTable, found: Grouping, spec: MethodSpec) -> Treated:
    kept = ~found.suppressed
    name = grouped_attribute(spec.name, spec.parameters, {item.name: item for item in read.sensitive}).name
    group = _free_name(name, read.source.schema.names)
    columns: dict[str, Column] = {key: AsIs(Attribute(key, Role.QUASI_IDENTIFIER)) for key in read.data.names}
    shown: dict[str, Recoded] = {}
    for item in read.sensitive:
        if item.name == name:
            shown[name] = Recoded(found.groups[kept], _lists(read, item, found, kept))
            columns[name] = Grouped(item, group)
        else:
            shown[item.name] = _values(read, item, kept)
            columns[item.name] = AsIs(item)
    shown[group] = Recoded(found.groups[kept], pa.array(np.arange(1, found.count + 1)))
    columns[group] = AsIs(Attribute(group, Role.INSENSITIVE))
    applied = Applied(
        spec.name,
        spec.parameters,
        classes=found.count,
        suppressed=int(found.suppressed.sum()),
        withheld=bool(found.suppressed.any()),
        loss=float(found.suppressed.sum()),
        gap=found.gap,
    )
    return _treated(read, kept, shown, columns, applied)


def _free_name(attribute: str, taken: Sequence[str]) -> str:
    """What the column of groups is called."""
    names = [_GROUP, f"{attribute} {_GROUP}", *(f"{_GROUP} {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _lists(read: ReadTable, item: Attribute, found: Grouping, kept: Bools) -> pa.Array:
    """The values of each group, in the order of the domain."""
    codes, groups = read.data.sensitive[item.name].codes[kept], found.groups[kept]
    order = np.lexsort((codes, groups))
    values = item.domain.values if item.domain is not None else ()
    flat = label_array(values).take(pa.array(codes[order]))
    bounds: Ints = np.searchsorted(groups[order], np.arange(found.count + 1))
    return pa.ListArray.from_arrays(pa.array(bounds, type=pa.int32()), flat)


# -- both ----------------------------------------------------------------------------------------------------------


def _treated(
    read: ReadTable, kept: Bools, shown: Mapping[str, Recoded], columns: Mapping[str, Column], applied: Applied
) -> Treated:
    rows = read.kept.copy()
    rows[rows] = kept
    return Treated(
        RecodedSource(read.source, shown, rows), columns, applied, read.data.records, frozenset(shown), read.dropped
    )


def _require_reached(made: Treated, models: Sequence[Mapping[str, Any]], rows: pl.DataFrame) -> None:
    """Refuse rows on which a model does not hold.

    A method that forms classes must reach what it was asked to, or it is our fault. One that forms groups leaves the
    quasi-identifiers as they are, so that it depends on the table whether models about them hold.
    """
    verdicts = model_verdicts(rows, list(made.columns.values()), models)
    broken = [verdict for verdict in verdicts if not verdict.holds]
    if broken and any(isinstance(column, Grouped) for column in made.columns.values()):
        raise ImpossibleError(
            Problem(
                f"$.method.{made.applied.name}",
                f"it leaves the quasi-identifiers as they are, and cannot reach {verdict.model} "
                f"({verdict.note or f'the worst class has {verdict.worst:.4g}, asked for is {verdict.bound:.4g}'})",
                "remove the model, or use full-domain or mondrian",
            )
            for verdict in broken
        )
    if broken:
        named = ", ".join(f"{verdict.model} ({verdict.note or verdict.worst})" for verdict in broken)
        raise InternalError(f"{made.applied.name} did not reach what it was asked to: {named}")


def _rows(made: Treated) -> pl.DataFrame:
    """The rows as they will be published, without the columns that are drawn as sets."""
    batches = [pl.DataFrame(pl.from_arrow(batch)) for batch in made.source.batches(list(made.columns))]
    return pl.concat(batches)
