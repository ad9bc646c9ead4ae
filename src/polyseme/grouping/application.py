"""A table is put into classes or groups before publishing, as its policy's method decides.

What was decided is checked by the models themselves, on the rows that will be published, before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polyseme.grouping.base_table import ReadTable, read_dealt, read_microdata
from polyseme.grouping.columns import Treated, generalized, grouped
from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import ImpossibleError, InternalError, Problem, QuestionError, TableError
from polyseme.kernel.randomness import StreamKey
from polyseme.kernel.work import Cancellation
from polyseme.methods import grouping_named
from polyseme.methods.bucketization import Grouping
from polyseme.methods.goal import DealingMethod, Goal, GroupingMethod, Task
from polyseme.methods.microdata import Recoding
from polyseme.models import MODELS, Verdict, background_of, is_about
from polyseme.policy import MethodSpec, Policy
from polyseme.policy.foreign import models_of, population_frame, population_of
from polyseme.policy.resolution import match_columns
from polyseme.release import Grouped, Manifest
from polyseme.release.classes import looked_at, model_verdicts, spread
from polyseme.schema import Attribute, Resolved
from polyseme.tables.derived import RecodedSource
from polyseme.tables.io.source import Source

__all__ = ["no_levels", "promised", "required_of_classes", "shared_groups", "treat", "unreached"]

_LEVELLED = "full-domain"
_TOGETHER = 1 << 15
"""Groups that are checked at a time."""


def treat(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    seed: int | None,
    cancellation: Cancellation,
    earlier: Manifest | None = None,
    neighbors: bool = False,
) -> Treated:
    """Group the records of a table as the policy says.

    Refuses, with the reason, what cannot be reached.

    earlier     a release whose levels of generalization are taken over, so that nothing is searched
    neighbors  whether to find out, for the owner of the table, why no quasi-identifier is shown in more detail
    """
    spec = policy.grouping
    if spec is None:
        raise ValueError("the policy names no grouping method")
    method = grouping_named(spec.name)
    distinct = method.counts(spec.parameters)
    mapped = any(model.name == "k-map" for model in policy.models)
    population = population_of(policy) if mapped else None
    read = _read(match_columns(policy, source), resolved, source, method, distinct, population)
    if not read.data.records:
        raise TableError(f"{source.name}: no records to publish")
    if isinstance(method, DealingMethod) and read.data.people is not None:
        raise shared_groups(spec, read.data.records, read.data.units)
    sensitive = {item.name: item for item in read.sensitive}
    models = promised(policy, method, spec, sensitive)
    stream = (StreamKey.fresh() if seed is None else StreamKey.seeded(f"{seed} groups")).derive(0)
    goal = Goal.of(required_of_classes(policy, resolved), read.data, background_of(read.sensitive))
    found: Recoding | Grouping
    if earlier is None:
        found = method.group(Task(read.data, goal, sensitive, spec.parameters, stream, cancellation))
    else:
        found = _at_levels(read, goal, _levels_of(earlier, spec, read), float(spec.parameters["suppression"]))
    made = generalized(read, found, goal, spec) if isinstance(found, Recoding) else grouped(read, found, spec)
    drawn = {item.name for item in resolved.schema.protected}
    about = [model for model in models if not _about_any(model, drawn)]
    if isinstance(found, Recoding):
        _require_people(found, read, about, spec)
        about = [model for model in about if "k-map" not in model]
    reference = population_frame(policy) if mapped else None
    if isinstance(found, Grouping):
        _require_groups(made, about, reference)
    else:
        rows, counts, people = _rows(made, read)
        for whose in (None,) if people is None else (None, people):
            _require_reached(made, about, rows, counts, whose, reference)
    finer = _finer(read, goal, found) if neighbors and isinstance(found, Recoding) else {}
    return replace(made, models=models, finer=finer, all_people=None if read.data.people is None else read.data.units)


def _read(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    method: GroupingMethod,
    distinct: bool,
    population: Source | None,
) -> ReadTable:
    """The table as a method needs it.

    What deals records to groups does not look at quasi-identifiers.
    """
    if isinstance(method, DealingMethod) and population is None:
        return read_dealt(policy, resolved.schema, source)
    return read_microdata(policy, resolved.schema, source, distinct, population)


def promised(
    policy: Policy, method: GroupingMethod, spec: MethodSpec, sensitive: Mapping[str, Attribute]
) -> tuple[Mapping[str, Any], ...]:
    """The policy's models and the method's own.

    Refuses a sensitive attribute that none of them is about.
    """
    own = method.models(spec.parameters, sensitive)
    models = (*models_of(policy), *own)
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


def required_of_classes(policy: Policy, resolved: Resolved) -> list[dict[str, dict[str, Any]]]:
    """The models that classes must reach; not those about values that are published as sets."""
    drawn = {item.name for item in resolved.schema.protected}
    models = [{model.name: dict(model.parameters)} for model in policy.models]
    return [spec for spec in models if not _about_any(spec, drawn)]


def _about_any(model: Mapping[str, Any], names: Set[str]) -> bool:
    return any(parameters.get("attribute") in names for parameters in model.values())


# -- taken over ----------------------------------------------------------------------------------------------------


def _levels_of(earlier: Manifest, spec: MethodSpec, read: ReadTable) -> list[int]:
    """The level of each quasi-identifier in an earlier release; refused if one is missing."""
    applied = earlier.applied
    if spec.name != _LEVELLED or applied is None or not applied.levels:
        raise no_levels()
    heights = {ladder.name: ladder.height for ladder in read.data.ladders}
    if heights.keys() != applied.levels.keys() or any(level > heights[name] for name, level in applied.levels.items()):
        raise QuestionError(
            Problem("apply", "the release generalizes other columns, or by other hierarchies, than the policy")
        )
    return [applied.levels[name] for name in read.data.names]


def no_levels() -> QuestionError:
    """Said of a release, or a method, without levels of generalization."""
    what = "only levels of generalization can be taken over, and this has none"
    return QuestionError(Problem("apply", what, "method: full-domain"))


def _at_levels(read: ReadTable, goal: Goal, levels: list[int], limit: float) -> Recoding:
    """All records at given levels; suppresses the violating ones, if these are few enough."""
    whole = Recoding.of_levels(read.data, levels, np.zeros(read.data.rows, dtype=np.bool_), None, None)
    kept = goal.kept(*goal.counted(whole.classes, len(whole.shown)), whole.people(read.data))
    suppressed = ~kept[whole.classes]
    lost, units = read.data.units_of(suppressed), read.data.units
    what = "records" if read.data.people is None else "people have records that"
    if lost > limit * units:
        raise ImpossibleError(
            Problem(
                "apply",
                f"at these levels {lost:,} of {units:,} {what} would break what is "
                f"promised, more than the policy lets be suppressed ({limit:.2%})",
                "wait for more records, allow more suppression, or search levels for this table",
            )
        )
    return Recoding.of_levels(read.data, levels, suppressed, None, None)


def _finer(read: ReadTable, goal: Goal, found: Recoding) -> dict[str, int]:
    """How many records (or people) would violate if one quasi-identifier were finer."""
    none, violating = np.zeros(read.data.rows, dtype=np.bool_), {}
    for place, (name, level) in enumerate(zip(read.data.names, found.levels)):
        if level:
            levels = [*found.levels[:place], level - 1, *found.levels[place + 1 :]]
            made = Recoding.of_levels(read.data, levels, none, None, None)
            kept = goal.kept(*goal.counted(made.classes, len(made.shown)), made.people(read.data))
            violating[name] = read.data.units_of(~kept[made.classes])
    return violating


def _require_people(found: Recoding, read: ReadTable, models: Sequence[Mapping[str, Any]], spec: MethodSpec) -> None:
    """Refuse classes that too few people of the population fit; suppressed records fit everyone."""
    people = found.people(read.data)
    if people is None or not len(people):
        return
    for model in models:
        required = model.get("k-map", {}).get("k", 0)
        if people.min() < required:
            what = f"a class fits {people.min():,} people of the population, and k-map asks for {required:,}"
            raise ImpossibleError(
                Problem(f"$.method.{spec.name}", what, "use method: full-domain, which counts people")
            )


def _require_reached(
    made: Treated,
    models: Sequence[Mapping[str, Any]],
    rows: pl.DataFrame,
    counts: Ints | None,
    people: Ints | None,
    reference: pl.DataFrame | None = None,
) -> None:
    """Refuse classes on which a model fails, which is our fault.

    counts     records per row
    people     their owners
    reference  the population, where people of it are counted
    """
    verdicts = model_verdicts(rows, list(made.columns.values()), models, counts, people, reference)
    broken = [verdict for verdict in verdicts if not verdict.holds]
    if broken:
        named = ", ".join(f"{verdict.model} ({verdict.note or verdict.worst})" for verdict in broken)
        raise InternalError(f"{made.applied.name} did not reach what it was asked to: {named}")


def _require_groups(made: Treated, models: Sequence[Mapping[str, Any]], reference: pl.DataFrame | None) -> None:
    """Refuse groups, and quasi-identifiers as they are, on which a model fails.

    Some groups are looked at at a time, and what they show is not repeated for each record. A model that compares
    groups with the whole table is checked on all of them at once.
    """
    columns, broken = list(made.columns.values()), list[Verdict]()
    groups = {column.name: column for column in columns if isinstance(column, Grouped)}
    for spec in spread(models, columns):
        ((name, parameters),) = spec.items()
        column = groups.get(parameters.get("attribute", ""))
        if column is None:
            wanted = looked_at(columns, [spec])
            batches = made.source.batches([item.name for item in wanted])
            rows = pl.concat([pl.DataFrame(pl.from_arrow(batch)) for batch in batches])
            verdicts = model_verdicts(rows, wanted, [spec], None, None, reference)
        else:
            verdicts = _in_groups(made, column, spec, made.applied.classes if MODELS[name].relative else _TOGETHER)
        broken += [verdict for verdict in verdicts if not verdict.holds]
    if broken:
        raise unreached(made.applied.name, broken)


def _in_groups(made: Treated, column: Grouped, spec: Mapping[str, Any], together: int) -> tuple[Verdict, ...]:
    """A model on the groups, so many at a time; on all of them where it does not hold."""
    wanted = looked_at(list(made.columns.values()), [spec], keys=False)
    if not isinstance(made.source, RecodedSource):
        raise TypeError("groups are shown by a source of their own")
    shown = {name: made.source.values(name) for name in (column.group, column.name)}
    count, verdicts = len(shown[column.group]), tuple[Verdict, ...]()
    for start in range(0, count, max(together, 1)):
        frame = pl.DataFrame({name: pl.from_arrow(values[start : start + together]) for name, values in shown.items()})
        verdicts = model_verdicts(frame, wanted, [spec])
        if together < count and not all(verdict.holds for verdict in verdicts):
            return _in_groups(made, column, spec, count)
    return verdicts


def shared_groups(spec: MethodSpec, records: int, people: int) -> ImpossibleError:
    """Refuses groups for people with several records: the values of their groups intersect."""
    what = (
        f"{records:,} records belong to {people:,} people: an attacker who knows the records of a person can intersect "
        "the values of their groups"
    )
    hint = "publish one record for each person, or use full-domain or mondrian, which count people"
    return ImpossibleError(Problem(f"$.method.{spec.name}", what, hint))


def _rows(made: Treated, read: ReadTable) -> tuple[pl.DataFrame, Ints | None, Ints | None]:
    """The rows to publish without the columns drawn as sets, their counts and their people."""
    if made.rule is None:
        batches = [pl.DataFrame(pl.from_arrow(batch)) for batch in made.source.batches(list(made.columns))]
        return pl.concat(batches), None, made.people
    kept, columns = made.rule.shown(read.data.codes, {name: item.codes for name, item in read.data.sensitive.items()})
    frame = pl.DataFrame({name: pl.Series(pl.from_arrow(array)) for name, array in columns.items()})
    return frame, read.data.each[kept], None if read.data.people is None else read.data.people[kept]


def unreached(method: str, broken: Sequence[Verdict]) -> ImpossibleError:
    """Models that a method cannot reach which forms groups.

    Whether they hold depends on the table.
    """
    return ImpossibleError(
        Problem(
            f"$.method.{method}",
            f"it leaves the quasi-identifiers as they are, and cannot reach {verdict.model} "
            f"({verdict.note or f'the worst class has {verdict.worst:.4g}, required is {verdict.bound:.4g}'})",
            "remove the model, or use full-domain or mondrian",
        )
        for verdict in broken
    )
