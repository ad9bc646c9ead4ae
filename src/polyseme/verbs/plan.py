"""`plan`: what a policy comes to, and what it will cost, before any record is touched."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

from polyseme.kernel.errors import ImpossibleError, Problem, QuestionError, TableError
from polyseme.kernel.work import verb
from polyseme.methods.decoys import mechanism_at
from polyseme.policy import Policy
from polyseme.policy.foreign import population_frame
from polyseme.policy.resolution import require_places
from polyseme.policy.statistics import Statistics, read_statistics
from polyseme.privacy.analysis import Setting, thresholds
from polyseme.privacy.analysis import frontier as settings_grid
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
from polyseme.publishing.publication import Prepared, planned, prepare, resolved_for, treated_here
from polyseme.publishing.review import refused_models, singled_out
from polyseme.results.method import GroupingPlan
from polyseme.results.plan import Plan
from polyseme.scrutiny.attacks.agreement import shared_values
from polyseme.scrutiny.learners import with_guessers
from polyseme.tables.derived import with_joined
from polyseme.tables.io.source import Source
from polyseme.verbs.prior import with_earlier_releases

__all__ = ["frontier", "plan"]

_log = logging.getLogger(__name__)


@verb(read=1, mechanisms=1, levels=2, classes=2, guesses=3)
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
    policy = with_population(policy_given(policy), population)
    if not (records is None or _is_count(records)):
        raise QuestionError(Problem("records", "expected a whole number above 0"))
    source: Source | None = profile_given(data, policy) if data is not None else None
    if records is None and source is not None:
        records = source.count()
    policy = with_earlier_releases(policy)
    treat = partial(treated_here, neighbors=True)
    ready = None if source is None else prepare(policy, source, treat=treat, records=records)
    resolved = resolved_for(policy, None) if ready is None else ready.resolved
    if source is not None:
        require_places(policy, source)
    statistics = read_statistics(distribution, resolved.schema)
    made = planned(policy, resolved, records) if ready is None else ready.plan
    _log.info(
        "plan: %d protected attributes, %s records", len(made.attributes), "unknown" if records is None else records
    )
    grouping = _grouped(policy, ready)
    reached = grouping is None or grouping.feasible
    refusals: tuple[str, ...] = ()
    if ready is not None:
        if reached and all(item.feasible for item in made.attributes):
            seen, refusals = _looked_at(ready)
            if grouping is not None and grouping.applied is not None and seen is not None:
                grouping = replace(grouping, applied=seen.counted(grouping.applied, ready.job.columns))
        source = ready.shown if reached else ready.table
        source = with_joined(source, resolved.schema.attributes, policy.table.missing_values, hidden=True)
    made = with_guessers(made, policy, resolved, statistics, source)
    later = weighted_classes(policy) if source is None else []
    made = replace(made, remarks=(*made.remarks, *ungeneralized(policy), *later), grouping=grouping)
    if source is None:
        return made
    unmet = unmet_conditions(source, policy, resolved)
    disagreed = disagreeing(source, policy, resolved)
    heard = (
        *few_people(source, policy),
        *unmet.refused,
        *unmet.warnings,
        *shared_values(resolved.schema.attributes, source, policy.table.missing_values),
        *disagreed.refused,
        *disagreed.warnings,
    )
    protected = [item.attribute for item in made.attributes]
    refused = refused_values(source, protected, policy.table.missing_values)
    refused_texts = [f"{found.where}: {found.what}. anonymize will refuse them" for found in refused]
    refusals = (*refusals, *refused_texts, *unmet.refused, *disagreed.refused)
    return replace(
        made, remarks=(*made.remarks, *refused_texts, *heard), refused=refused, refusals=tuple(dict.fromkeys(refusals))
    )


def _looked_at(ready: Prepared) -> tuple[Prospect | None, tuple[str, ...]]:
    """The rows that `anonymize` would publish, and what it would refuse about them."""
    job, rows, words = ready.job, ready.source, ready.policy.table.missing_values
    try:
        seen = prospect(job, rows, ready.models, partial(population_frame, ready.policy))
    except TableError as error:
        return None, tuple(f"{found.where}: {found.what}. anonymize will refuse them" for found in error.problems)
    sets = [verdict for verdict in set_verdicts(job, ready.models) if not verdict.holds]
    broken = refused_models([*seen.broken, *sets], job.columns)
    alone = singled_out(job.columns, rows, words).refused
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
