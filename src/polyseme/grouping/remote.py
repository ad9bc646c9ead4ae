"""Grouping methods where no machine holds the table: decided from counts, applied by batch.

    made = treat_counted(policy, resolved, source)    # source.counted(columns) yields different rows and their counts
    made.columns, made.applied, made.models           # for the job and the manifest, as `treat` gives them
    made.apply(batch)                                 # what a batch shows: in any task, of any rows, in any order
    made.rule.recode(batch)                           # the same, and which of the batch's rows are kept

`treat` of a table on this machine is the same code: it reads the rows that differ and how often each occurs, decides,
and recodes batch by batch. So both decide alike from the same records. `made.rule` is a frozen object of some
kilobytes that can be pickled (`made.apply` is its method); it looks at the columns `made.rule.needs`, replaces those in
`made.recoded`, leaves out records that lack a value or are withheld, and passes every other column through.

    full-domain       from counts of records that are alike; nothing is lost
    mondrian          the same in the strict mode. Where more than `HELD` rows differ and the engine has workers, the
                      table is cut in parts by a sample, and workers finish them: see `polyseme.grouping.division`. What
                      comes of it is the same kind of rule. The relaxed mode is refused
    anatomy, buckets  from counts of sensitive values. Which record is in which group is drawn, and needs two aggregates
                      and a join: `made` is then a `Dealt`, see `polyseme.grouping.groups`
    rules             needs single records, and is refused
"""

from __future__ import annotations

from polyseme.grouping.application import no_levels, treat
from polyseme.grouping.base_table import columns_read
from polyseme.grouping.columns import Treated
from polyseme.grouping.division import Hire, Workers, divide
from polyseme.grouping.groups import Dealt, deal_counted
from polyseme.kernel.errors import ImpossibleError, Problem
from polyseme.kernel.work import Cancellation, current_cancellation, stage
from polyseme.methods import grouping_named
from polyseme.methods.goal import DealingMethod
from polyseme.policy import MethodSpec, Policy
from polyseme.policy.resolution import match_columns
from polyseme.release import Manifest
from polyseme.schema import Resolved
from polyseme.tables.io.source import Source

__all__ = ["HELD", "require_treated", "treat_counted"]

HELD = 20_000_000
"""Rows that differ up to which Mondrian cuts them here. Brought as counts and made into codes, with what the search and
the last check need beside them, two million rows of five columns took 0.9 GB more here than in parts: so many are some
10 GB, and some minutes of one core."""


def treat_counted(
    policy: Policy,
    resolved: Resolved,
    source: Source,
    cancellation: Cancellation | None = None,
    earlier: Manifest | None = None,
    hire: Hire | None = None,
    seed: int | None = None,
) -> Treated | Dealt:
    """Decide from counts what records show.

    Refuses a method that has to look at each record by itself.

    earlier  a release whose levels of generalization are taken over, so that nothing is searched
    hire     finds those who work where the rows are, for tables that are cut in parts
    seed     of the sample by which these are found, for experiments
    """
    spec = policy.grouping
    if spec is None:
        raise ValueError("the policy names no grouping method")
    method = grouping_named(spec.name)
    if isinstance(method, DealingMethod):
        if earlier is not None:
            raise no_levels()
        return deal_counted(policy, resolved, source)
    if not method.counts(spec.parameters):
        raise ImpossibleError(_needs_records(spec))
    if spec.name == "mondrian" and hire is not None and earlier is None and (rows := source.count()) > HELD:
        workers = hire(columns_read(match_columns(policy, source)))
        different = 0 if workers is None else _different(workers)
        if workers is not None and different > HELD:
            _require_one_each(policy, hire, rows)
            return divide(policy, resolved, source, workers, rows, different, seed)
    return treat(policy, resolved, source, None, cancellation or current_cancellation(), earlier)


def _require_one_each(policy: Policy, hire: Hire, rows: int) -> None:
    """Refuse to cut a table in parts where people have several records: each is counted in one place only."""
    workers = None if policy.record_key is None else hire([policy.record_key])
    people = rows if workers is None else _different(workers)
    if people < rows:
        what = f"{rows:,} records are of {people:,} people, who can be counted only where one machine holds the table"
        raise ImpossibleError(
            Problem("$.method.mondrian", what, "publish one record for each person, and remove record-key")
        )


def _different(workers: Workers) -> int:
    with stage("differing", "Counting rows that differ"):
        return workers.different()


def require_treated(made: Treated | Dealt, spec: MethodSpec) -> Treated:
    """Raise for groups formed by workers, where an engine does not support that."""
    if isinstance(made, Dealt):
        what = "who is in which group follows from ranks over all records, which this engine does not work out"
        raise ImpossibleError(Problem(f"$.method.{spec.name}", what, "use --engine local, or full-domain"))
    return made


def _needs_records(spec: MethodSpec) -> Problem:
    """Why a method cannot work on counts, and what can be done."""
    where = f"$.method.{spec.name}"
    local = "run it on one machine with enough memory (--engine local)"
    if spec.name == "mondrian":
        what = "the relaxed mode separates records with equal values by lot, which needs the whole table on one machine"
        return Problem(f"{where}.mode", what, f"use mode: strict, or {local}")
    if spec.name == "rules":
        what = "its actions merge classes and take away values of single records, which needs the whole table"
        return Problem(where, f"{what} on one machine", f"{local}, or use full-domain or mondrian")
    return Problem(where, "it looks at single records, which needs the whole table on one machine", local)
