"""`plan`: what a policy comes to, and what it will cost, before any record is touched."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.analysis import Setting, thresholds
from polyseme.analysis import frontier as settings_grid
from polyseme.attacks.agreement import shared_values
from polyseme.errors import ImpossibleError, Problem, QuestionError, TableError
from polyseme.kernel.work import current_cancellation, verb
from polyseme.methods import method_named
from polyseme.methods.decoys import mechanism_at
from polyseme.policy import Policy
from polyseme.policy.generalizing import require_places
from polyseme.policy.reference import population_frame
from polyseme.policy.resolving import resolve
from polyseme.policy.statistics import Statistics, read_statistics
from polyseme.results.grouping import GroupingPlan
from polyseme.results.plan import Plan
from polyseme.schema import Resolved
from polyseme.tables.io.source import Source
from polyseme.tables.joined import with_joined
from polyseme.verbs.anonymize import make_job
from polyseme.verbs.cautions import (
    disagreeing,
    few_people,
    require_protection,
    ungeneralized,
    unmet_conditions,
    weighted_classes,
)
from polyseme.verbs.inputs import policy_given, source_given, with_population
from polyseme.verbs.learners import with_guessers
from polyseme.verbs.prior import with_earlier_releases
from polyseme.verbs.prospect import Prospect, prospect, set_verdicts
from polyseme.verbs.publishing import models_of
from polyseme.verbs.reviewing import refused_models
from polyseme.verbs.singled_out import singled_out
from polyseme.verbs.strangers import refused_values

if TYPE_CHECKING:
    from polyseme.verbs.treating import Treated

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
    """What a policy comes to before any record is touched: possible? estimable? how risky? how precise?

    records       the number of records to expect, for the expected error
    data          a table, for domains that the policy leaves open, for the number of records, and for the
                  guesses of attackers who know the distribution of its values
    distribution  files with public statistics of the values, for the same (see `polyseme.policy.statistics`)
    population    people with the same quasi-identifiers as a table, for k-map; in the place of its `reference`
    """
    policy = with_population(policy_given(policy), population)
    if not (records is None or _is_count(records)):
        raise QuestionError(Problem("records", "expected a whole number above 0"))
    source = source_given(data, policy) if data is not None else None
    if records is None and source is not None:
        records = source.count()
    resolved = resolve(with_earlier_releases(policy), source)
    require_protection(resolved, policy.grouping is not None, policy.protect_all_but is not None)
    if source is not None:
        require_places(policy, source)
    statistics = read_statistics(distribution, resolved.schema)
    made = method_named(policy.method.name).plan(resolved, records)
    _log.info(
        "plan: %d protected attributes, %s records", len(made.attributes), "unknown" if records is None else records
    )
    table = source
    grouping, source, treated = _grouped(policy, resolved, source)
    reached = grouping is None or grouping.feasible
    possible = reached and all(item.feasible for item in made.attributes)
    refusals: tuple[str, ...] = ()
    if table is not None and possible:
        seen, refusals = _looked_at(policy, resolved, table, treated)
        if grouping is not None and treated is not None and seen is not None:
            grouping = replace(grouping, applied=seen.counted(treated).applied)
    if source is not None:
        source = with_joined(source, resolved.schema.attributes, policy.table.missing_values, hidden=True)
    made = with_guessers(made, policy, resolved, statistics, source)
    told_later = weighted_classes(policy) if table is None else []
    made = replace(made, remarks=(*made.remarks, *ungeneralized(policy), *told_later), grouping=grouping)
    if source is None:
        return made
    unmet = unmet_conditions(source, policy, resolved)
    disagreed = disagreeing(source, policy, resolved)
    heard = (
        *few_people(source, policy),
        *unmet.refused,
        *unmet.told,
        *shared_values(resolved.schema.attributes, source, policy.table.missing_values),
        *disagreed.refused,
        *disagreed.told,
    )
    protected = [item.attribute for item in made.attributes]
    refused = refused_values(source, protected, policy.table.missing_values)
    told = [f"{found.where}: {found.what}. anonymize will refuse them" for found in refused]
    refusals = (*refusals, *told, *unmet.refused, *disagreed.refused)
    return replace(
        made, remarks=(*made.remarks, *told, *heard), refused=refused, refusals=tuple(dict.fromkeys(refusals))
    )


def _looked_at(
    policy: Policy, resolved: Resolved, source: Source, treated: Treated | None
) -> tuple[Prospect | None, tuple[str, ...]]:
    """The rows that `anonymize` would publish, and what it would refuse about them."""
    job, _ = make_job(source, policy, "set", None, None, resolved=resolved, treated=treated)
    rows = source if treated is None else treated.source
    rows = with_joined(rows, (item.attribute for item in job.columns), policy.table.missing_values)
    models = models_of(policy) if treated is None else treated.models
    try:
        seen = prospect(job, rows, models, partial(population_frame, policy))
    except TableError as error:
        return None, tuple(f"{found.where}: {found.what}. anonymize will refuse them" for found in error.problems)
    sets = [verdict for verdict in set_verdicts(job, models) if not verdict.holds]
    broken = refused_models([*seen.broken, *sets], job.columns)
    alone = singled_out(job.columns, rows, policy.table.missing_values).refused
    return seen, tuple(f"{found.what}. anonymize will refuse that: {found.hint}" for found in (*broken, *alone))


def _grouped(
    policy: Policy, resolved: Resolved, source: Source | None
) -> tuple[GroupingPlan | None, Source | None, Treated | None]:
    """What becomes of the records as a whole, found by doing it, and the table as others will see it."""
    if policy.grouping is None:
        return None, source, None
    name = policy.grouping.name
    if source is None:
        return GroupingPlan(name), None, None
    from polyseme.verbs.recoding import treat

    try:
        treated = treat(policy, resolved, source, None, current_cancellation(), neighbours=True)
    except ImpossibleError as error:
        return GroupingPlan.impossible(name, error), source, None
    plan = GroupingPlan(
        name,
        treated.records,
        treated.applied,
        finer=treated.finer,
        left_out=treated.left_out,
        people=treated.all_people,
    )
    # Where columns are new, groups of records, the others are as they were.
    return plan, treated.source if treated.source.schema.names == source.schema.names else source, treated


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
        asked = sorted({*occurring[:: -(-len(occurring) // steps)], item.choice.d})
        sizes = range(2, min(largest, domain.size) + 1)
        grids[item.name] = settings_grid(
            partial(mechanism_at, item), sizes, asked, made.records, item.attribute.distributions.prior
        )
    return grids
