"""`plan`: what a policy comes to, and what it will cost, before any record is touched."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar, cast

from polyseme.kernel.errors import ImpossibleError, Problem, QuestionError, TableError
from polyseme.kernel.work import verb
from polyseme.methods.decoys import mechanism_at
from polyseme.policy import Policy
from polyseme.policy.foreign import population_frame, respelled_columns
from polyseme.policy.resolution import match_columns, require_places
from polyseme.policy.statistics import Statistics, read_statistics
from polyseme.privacy.analysis import Setting, thresholds
from polyseme.privacy.analysis import frontier as settings_grid
from polyseme.privacy.promises import Promises
from polyseme.publishing.cautions import (
    disagreeing,
    few_people,
    refused_values,
    ungeneralized,
    unmet_conditions,
    weighted_classes,
)
from polyseme.publishing.inputs import policy_given, profile_given, with_population
from polyseme.publishing.prospect import Prospect, prospect, set_verdicts
from polyseme.publishing.publication import Drawing, Prepared, planned, prepare, resolved_for, treated_here
from polyseme.publishing.review import refused_models, singled_out
from polyseme.results.method import Alternative, GroupingPlan
from polyseme.results.plan import Plan
from polyseme.schema import Resolved, Schema
from polyseme.scrutiny.attacks.agreement import shared_values
from polyseme.scrutiny.knowledge import Looked, look
from polyseme.scrutiny.learners import with_guessers
from polyseme.strata import Strata
from polyseme.tables.derived import with_joined
from polyseme.tables.io.source import Source
from polyseme.tables.profile import Profile
from polyseme.verbs.prior import with_earlier_releases

__all__ = ["Planner", "frontier", "plan"]

_log = logging.getLogger(__name__)


def plan(
    policy: Policy | str | Path,
    records: int | None = None,
    data: Any = None,
    distribution: Statistics = (),
    population: Any = None,
) -> Plan:
    """What a policy means before any record is touched: feasibility, risk and precision.

    records       the number of records to expect, for the expected error
    data          a table, for domains that the policy leaves open, for the number of records, and for the
                  guesses of attackers who know the distribution of its values
    distribution  files with public statistics of the values, for the same (see `polyseme.policy.statistics`)
    population    people with the same quasi-identifiers as a table, for k-map; in the place of its `reference`
    """
    return Planner(data, records, distribution, population).plan(policy)


class Planner:
    """Plans for one table and many policies; the table is counted once.

    What was counted is kept as long as roles, domains, hierarchies, models and the method stay the same: another l or
    d reads nothing and counts nothing. Its numbers are those of `plan`. It holds values of the table.
    """

    def __init__(
        self, data: Any = None, records: int | None = None, distribution: Statistics = (), population: Any = None
    ) -> None:
        if not (records is None or _is_count(records)):
            raise QuestionError(Problem("records", "expected a whole number above 0"))
        self._data, self._records, self._distribution, self._population = data, records, distribution, population
        self._opened: tuple[Any, Profile] | None = None
        self._counted: list[_Counted] = []

    @classmethod
    def of(
        cls,
        policy: Policy | str | Path,
        data: Any = None,
        records: int | None = None,
        distribution: Statistics = (),
        population: Any = None,
    ) -> Planner:
        """A planner for a table, whose columns are read now; the arguments are those of `plan`."""
        made = cls(data, records, distribution, population)
        made._profile(with_population(policy_given(policy), population))
        return made

    def __repr__(self) -> str:
        return f"<Planner of {'no table' if self._opened is None else self._opened[1].name}>"

    @verb(read=1, mechanisms=1, levels=2, classes=2, guesses=3)
    def plan(self, policy: Policy | str | Path) -> Plan:
        """What `plan` says of a policy for this table."""
        policy = with_earlier_releases(with_population(policy_given(policy), self._population))
        source = self._profile(policy)
        if source is None:
            return _planned(policy, None, self._records, self._distribution)
        records = source.count() if self._records is None else self._records
        return _planned(policy, self._counts(policy, source), records, self._distribution)

    def alternatives(self, policy: Policy | str | Path) -> tuple[Alternative, ...]:
        """Other levels for full-domain: the best ones that show one column in more detail.

        One search for each column that is generalized; those that come to the same levels are one alternative. Columns
        that cannot be shown in more detail have none.
        """
        from polyseme.grouping.base_table import read_microdata  # only where records are grouped

        policy = with_earlier_releases(with_population(policy_given(policy), self._population))
        source, spec = self._profile(policy), policy.grouping
        if source is None:
            raise QuestionError(Problem("alternatives", "levels are searched for a table", "give it: --data TABLE"))
        if spec is None or spec.name != "full-domain":
            hint = "method: {full-domain: {loss: loss, suppression: 0.05}}"
            raise QuestionError(Problem("$.method", "only full-domain has other levels to choose from", hint))
        ready = self._counts(policy, source).ready(policy, None)
        now = ready.decided.applied if ready.decided is not None else None
        found: dict[tuple[int, ...], Alternative] = {}
        read = read_microdata(match_columns(policy, source), ready.resolved.schema, source, True, None).data
        heights = {ladder.name: ladder.height for ladder in read.ladders}
        for name, level in {} if now is None else now.levels.items():
            cut = _cut(spec.parameters.get("levels") or {}, name, level)
            if now is None or cut is None:
                continue
            tried = replace(policy, grouping=replace(spec, parameters={**spec.parameters, "levels": cut}))
            try:
                other = treated_here(tried, ready.resolved, source).applied
            except ImpossibleError:
                continue
            found.setdefault(tuple(other.levels.values()), Alternative.of(now, other, cut, heights, read.records))
        return tuple(sorted(found.values(), key=lambda one: one.loss))

    def _profile(self, policy: Policy) -> Profile | None:
        """The table with the columns of a policy, opened as the policy says."""
        if self._data is None:
            return None
        written = (policy.table, respelled_columns(policy) if policy.table.dialect else ())
        if self._opened is not None and self._opened[0] == written:
            return profile_given(self._opened[1], policy)
        self._counted = []
        self._opened = (written, profile_given(self._data, policy))
        return self._opened[1]

    def _counts(self, policy: Policy, source: Profile) -> _Counted:
        """What is known for policies of this shape; that of the last few shapes is kept."""
        shape, files = _shape(policy), _files(policy)
        for known in self._counted:
            if known.shape == shape and known.files == files and known.population is policy.population:
                return known
        self._counted = [_Counted(shape, files, policy.population, source), *self._counted[: _SHAPES - 1]]
        return self._counted[0]


_SHAPES = 3
"""Shapes of policies whose counts are kept: moving forth and back between two of them costs nothing."""
T = TypeVar("T")


@dataclass(eq=False)
class _Counted:
    """What a table says about policies that differ only in the numbers of their promises.

    shape, files  the policy without these numbers, and the state of the files that it names
    """

    shape: Policy
    files: tuple[tuple[str, int, int], ...]
    population: Any
    source: Profile
    _found: dict[Any, Any] = field(default_factory=dict)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What was found before, or is found now; an input that cannot be used stays unusable."""
        if key not in self._found:
            try:
                self._found[key] = make()
            except (ImpossibleError, TableError) as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, ImpossibleError | TableError):
            raise found
        return cast("T", found)

    def ready(self, policy: Policy, records: int | None) -> Prepared:
        """The policy for the table, with the records in their classes where that was done before."""

        def treat(policy: Policy, resolved: Resolved, source: Source) -> Any:
            return self.once("treated", lambda: treated_here(policy, resolved, source, neighbors=True))

        if policy.joint:
            return prepare(policy, self.source, treat=treat, records=records)
        resolved = self.once("resolved", lambda: resolved_for(policy, self.source))
        promises = {item.name: item.protect for item in match_columns(policy, self.source).attributes}
        attributes = (replace(item, promises=promises[item.name]) for item in resolved.schema.attributes)
        resolved = replace(resolved, schema=Schema(tuple(attributes)))
        return Prepared(policy, self.source, resolved, Drawing(), treat, records)


def _cut(levels: Mapping[str, Any], name: str, level: int) -> dict[str, Any] | None:
    """The allowed levels with one column finer than now; None where it cannot be."""
    low = levels.get(name, 0)
    low = low[0] if isinstance(low, list) else low
    if level <= low:
        return None
    return {**levels, name: low if level - 1 == low else [low, level - 1]}


def _shape(policy: Policy) -> Policy:
    """A policy in which promises have no numbers: all that the table is read and counted for."""

    def bare(promises: Promises) -> Any:
        return (tuple(promises.given()), promises.hides, promises.semantic) if promises else ()

    attributes = tuple(replace(item, protect=bare(item.protect)) for item in policy.attributes)
    joint = tuple(replace(item, protect=bare(item.protect)) for item in policy.joint)
    return replace(policy, attributes=attributes, joint=joint, protect=bare(policy.protect))


def _files(policy: Policy) -> tuple[tuple[str, int, int], ...]:
    """The files that a policy names, with their size and the time of their last change."""
    parts = [(item.distance, item.prior, item.reference, item.hierarchy) for item in policy.attributes]
    names = {name for part in (*parts, *(model.parameters for model in policy.models)) for name in _texts(part)}
    found = []
    for name in sorted(names):
        try:
            state = (policy.folder / name).stat()
        except (OSError, ValueError):
            continue
        found.append((name, state.st_mtime_ns, state.st_size))
    return tuple(found)


def _texts(part: Any) -> Iterator[str]:
    """The texts in a part of a policy, among them the names of its files."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        yield from (text for inner in part.values() for text in _texts(inner))
    elif isinstance(part, list | tuple):
        yield from (text for inner in part for text in _texts(inner))
    elif is_dataclass(part):
        yield from (text for item in fields(part) for text in _texts(getattr(part, item.name)))


def _planned(policy: Policy, counted: _Counted | None, records: int | None, distribution: Statistics) -> Plan:
    ready = None if counted is None else counted.ready(policy, records)
    resolved = resolved_for(policy, None) if ready is None else ready.resolved
    if ready is not None and counted is not None:
        counted.once("places", partial(require_places, policy, ready.table))
    statistics = read_statistics(distribution, resolved.schema)
    made = planned(policy, resolved, records) if ready is None else ready.plan
    _log.info(
        "plan: %d protected attributes, %s records", len(made.attributes), "unknown" if records is None else records
    )
    grouping = _grouped(policy, ready)
    if ready is None or counted is None:
        made = with_guessers(made, policy, resolved, statistics, None)
        remarks = (*made.remarks, *ungeneralized(policy), *weighted_classes(policy))
        return replace(made, remarks=remarks, grouping=grouping)
    reached, words = grouping is None or grouping.feasible, policy.table.missing_values
    refusals: tuple[str, ...] = ()
    if reached and all(item.feasible for item in made.attributes):
        seen, refusals = _looked_at(ready, counted)
        if grouping is not None and grouping.applied is not None and seen is not None:
            grouping = replace(grouping, applied=seen.counted(grouping.applied, ready.job.columns))
    shown = ready.shown if reached else ready.table
    source = counted.once("shown", lambda: with_joined(shown, resolved.schema.attributes, words, hidden=True))

    def known(schema: Schema, strata: Mapping[str, Strata]) -> Looked:
        return counted.once(("look", *sorted(strata)), lambda: look(policy, schema, strata, source))

    made = with_guessers(made, policy, resolved, statistics, source, known)
    made = replace(made, remarks=(*made.remarks, *ungeneralized(policy)), grouping=grouping)
    unmet = counted.once("unmet", lambda: unmet_conditions(source, policy, resolved))
    disagreed = counted.once("disagreed", lambda: disagreeing(source, policy, resolved))
    heard = (
        *counted.once("people", lambda: few_people(source, policy)),
        *unmet.refused,
        *unmet.warnings,
        *counted.once("shared", lambda: shared_values(resolved.schema.attributes, source, words)),
        *disagreed.refused,
        *disagreed.warnings,
    )
    protected = [item.attribute for item in made.attributes]
    refused = counted.once("refused", lambda: refused_values(source, protected, words))
    warned = [f"{found.where}: {found.what}. anonymize will refuse them" for found in refused]
    refusals = (*refusals, *warned, *unmet.refused, *disagreed.refused)
    return replace(
        made, remarks=(*made.remarks, *warned, *heard), refused=refused, refusals=tuple(dict.fromkeys(refusals))
    )


def _looked_at(ready: Prepared, counted: _Counted) -> tuple[Prospect | None, tuple[str, ...]]:
    """The rows that `anonymize` would publish, and what it would refuse about them."""
    job, rows, words = ready.job, ready.source, ready.policy.table.missing_values
    try:
        among = partial(population_frame, ready.policy)
        seen = counted.once("prospect", lambda: prospect(job, rows, ready.models, among))
    except TableError as error:
        return None, tuple(f"{found.where}: {found.what}. anonymize will refuse them" for found in error.problems)
    sets = [verdict for verdict in set_verdicts(job, ready.models) if not verdict.holds]
    broken = refused_models([*seen.broken, *sets], job.columns)
    alone = counted.once("alone", lambda: singled_out(job.columns, rows, words)).refused
    return seen, tuple(f"{found.what}. anonymize will refuse that: {found.hint}" for found in (*broken, *alone))


def _grouped(policy: Policy, ready: Prepared | None) -> GroupingPlan | None:
    """What becomes of the records as a whole, found by doing it."""
    if policy.grouping is None:
        return None
    name = policy.grouping.name
    try:
        decided = None if ready is None else ready.decided
    except ImpossibleError as error:
        return GroupingPlan.impossible(name, error)
    if decided is None:
        return GroupingPlan(name)
    return GroupingPlan(
        name,
        decided.records,
        decided.applied,
        finer=decided.finer,
        left_out=decided.left_out,
        people=decided.all_people,
    )


def _is_count(number: object) -> bool:
    return isinstance(number, Integral) and int(number) > 0


def frontier(made: Plan, largest: int = 6, steps: int = 16) -> dict[str, list[Setting]]:
    """Risk against expected error over (l, d), for each attribute of a plan that has a distance.

    largest  the most candidates to look at
    steps    how many of the distances that occur to look at
    """
    grids = {}
    for item in made.attributes:
        distance, domain = item.attribute.distance, item.attribute.domain
        if distance is None or domain is None:
            continue
        occurring = thresholds(distance)
        distances = sorted({*occurring[:: -(-len(occurring) // steps)], item.choice.d})
        sizes = range(2, min(largest, domain.size) + 1)
        grids[item.name] = settings_grid(
            partial(mechanism_at, item), sizes, distances, made.records, item.attribute.distributions.prior
        )
    return grids
