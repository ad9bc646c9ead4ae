"""What `anonymize` refuses, and warnings for the data holder before and after publishing.

A plan names the values of a table that `anonymize` would refuse.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import polars as pl

from polyseme.engines.batch import Job
from polyseme.engines.checks import Fulfilled, Problems, absent_values, unfulfilled
from polyseme.engines.run import Outcome
from polyseme.kernel.errors import PolicyError, Problem, TableError, numbered
from polyseme.kernel.marks import MISSING
from polyseme.policy import PROTECT_HINT, Policy
from polyseme.policy.priors import kept_columns
from polyseme.policy.resolution import match_columns
from polyseme.results.method import LeftOut
from polyseme.schema import Attribute, Domain, Resolved, Role
from polyseme.strata import Placing
from polyseme.tables.codes import as_series, cast_column, encode, without_words
from polyseme.tables.distinct import Tallied, Tally, fingerprints, headed, mixed
from polyseme.tables.io.source import Source
from polyseme.tables.people import AGREEMENT_HINT, CHANGED, MOST_DIFFERING, differing, people_of, too_few_people
from polyseme.tables.readings import key_texts, sighted, strangers

__all__ = [
    "changed_sets",
    "differing_groups",
    "disagreeing",
    "few_people",
    "left_out_cautions",
    "refused_values",
    "repeated_records",
    "require_protection",
    "ungeneralized",
    "unmet_conditions",
    "warnings",
    "weighted_classes",
]


def refused_values(
    source: Source, attributes: Iterable[Attribute], missing_values: Sequence[str]
) -> tuple[Problem, ...]:
    """What is wrong with the values of protected attributes; every problem knows its rows."""
    checked = [item for item in attributes if item.domain is not None and item.name in source.schema.names]
    problems, done = Problems(), 0
    for batch in source.batches([item.name for item in checked]) if checked else ():
        rows = np.arange(done, done + batch.num_rows)
        done += batch.num_rows
        for item in checked:
            domain = item.domain
            if domain is None:
                continue
            series = as_series(batch.column(item.name), missing_values).alias(item.name)
            coded = encode(series, domain)
            for (what, hint), places in strangers(series, coded, domain).items():
                problems.add(item.name, len(places), what, hint, sighted(series, places, rows))
            absent = np.flatnonzero(coded.codes == MISSING) if domain.missing.action == "refuse" else rows[:0]
            problems.add(item.name, len(absent), "values are missing", "", sighted(series, absent, rows))
    try:
        problems.raise_any(source)
    except TableError as error:
        return error.problems
    return ()


_NAMED = 6
"""Attributes that a warning names; the rest is meant by two dots."""


def left_out_cautions(left_out: Iterable[LeftOut]) -> tuple[str, ...]:
    """That people who are left out give themselves away, with what can be done about it."""
    return tuple(f"{item.in_words}. {item.remedy}." for item in left_out if item.exceeded)


def require_protection(resolved: Resolved, grouped: bool = False, unnamed: bool = False) -> None:
    """Refuse to publish a sensitive attribute as it is; a policy that only verifies may.

    grouped  whether records are put into classes or groups, which protect what is not drawn as sets
    """
    bare = [
        Problem(f"$.attributes.{item.name}", f"{item.role.value}, but nothing protects it", PROTECT_HINT)
        for item in resolved.schema.attributes
        if item.role.is_secret and not item.protected and not (grouped and item.role is Role.SENSITIVE)
    ]
    if bare:
        raise PolicyError(bare)
    if not resolved.schema.protected and not grouped:
        raise PolicyError(
            "the policy protects no attribute that it names" if unnamed else "the policy protects no attribute",
            "the other columns are only known from the table: give it with --data"
            if unnamed
            else "give a sensitive attribute a promise: protect: {diversity: {l: 3}}",
        )


def warnings(policy: Policy, from_data: Sequence[str], keyed: bool, seeded: bool, drawn: bool = True) -> list[str]:
    """What the data holder should hear before publishing.

    from_data  the attributes whose values, or bins, were looked up in the table
    drawn      whether anything is published as sets
    """
    found = []
    if from_data:
        names = f"{', '.join(from_data[:_NAMED])}{', ...' if len(from_data) > _NAMED else ''}"
        found.append(
            f"the values or bins of {names} are taken from the table, and published: readers learn that a rare "
            "value occurs, whatever is promised. Declare them with domain: [...] or bins: [...]."
        )
        if keyed:
            found.append(f"when the values of {names} change, sticky decoys change with them.")
    if policy.record_key is not None and not keyed and drawn:
        found.append(
            f"the policy names the record-key '{policy.record_key}', but no key was given: several records of one "
            "person get sets of their own, which can be intersected. Use --key-file."
        )
    if policy.repeats and not keyed:
        found.append(
            "the policy says that releases are repeated; without a key, two releases of the same people can be "
            "intersected. Make a key (polyseme key new FILE), name the record-key in the policy, and use --key-file."
        )
    if seeded:
        found.append(
            "with a seed anyone who guesses it can tell decoys from truth: this release is not for publication."
        )
    return found


def ungeneralized(policy: Policy) -> list[str]:
    """Columns with a hierarchy that no method uses: users must not take them for generalized."""
    names = [item.name for item in policy.attributes if item.hierarchy is not None]
    if not names or policy.grouping is not None:
        return []
    shown = f"{', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''}"
    return [
        f"the policy gives a hierarchy for {shown}, but names no method that generalizes: "
        f"{'this column is' if len(names) == 1 else 'these columns are'} published as in the table, value by value. "
        "Add method: {full-domain: {}} and models: [{k-anonymity: {k: 5}}]."
    ]


def weighted_classes(policy: Policy) -> list[str]:
    """A warning where survey weights distinguish records of a class; `anonymize` counts them."""
    weight = next((item.name for item in policy.attributes if item.role is Role.WEIGHT), None)
    if weight is None or not policy.models:
        return []
    return [
        f"the survey weight '{weight}' tells records of one class apart, and is not looked at here: `anonymize` counts "
        "it, and refuses where a model then does not hold. Coarser weights (round: ..., trim: ...) help."
    ]


def few_people(source: Source, policy: Policy) -> list[str]:
    """A record key that `anonymize` would refuse with a key, looked at before."""
    if policy.record_key is None:
        return []
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        people = people_of(source, policy.record_key, policy.table.missing_values, Path(folder))
    what, hint = too_few_people(people.total, people.distinct)
    return [f"$.record-key: {people.total:,} {what}, and is refused with --key-file; {hint}."] if what else []


class Foreseen(NamedTuple):
    """What `anonymize` will refuse, and what else should be heard."""

    refused: list[str]
    warnings: list[str]


def unmet_conditions(source: Source, policy: Policy, resolved: Resolved) -> Foreseen:
    """Conditions that `anonymize` would refuse because no record meets them, looked at before."""
    constrained = [item for item in resolved.schema.attributes if item.constraints]
    found = Fulfilled()
    for columns in _condition_columns(source, match_columns(policy, source), constrained):
        rows = len(next(iter(columns.values())))
        for item in constrained:
            placing = Placing.of(item.constraints)
            found += Fulfilled.of(item.name, placing, placing.find(columns, rows), np.arange(rows))
    refused = [
        f"{problem.where}: {problem.what}, which anonymize refuses; {problem.hint}"
        for problem in unfulfilled(constrained, found)
    ]
    return Foreseen(refused, list(absent_values(constrained, found)))


def _condition_columns(
    source: Source, policy: Policy, constrained: Sequence[Attribute]
) -> Iterator[Mapping[str, pl.Series]]:
    """The columns that conditions are about, as they would be published."""
    names = {
        name: None for item in constrained for constraint in item.constraints for name in constraint.condition.when
    }
    types = {name: policy.by_name[name].type for name in names}
    for columns, _ in kept_columns(policy, source, list(names), as_written=True):
        words = policy.table.missing_values
        yield {name: _cast(series, types[name], words) for name, series in columns.items()}


def disagreeing(source: Source, policy: Policy, resolved: Resolved) -> Foreseen:
    """Groups whose members differ in what they should share, counted before anything is drawn."""
    found = Foreseen([], [])
    for item in resolved.schema.protected:
        if item.shared_by:
            groups = _agreement(source, policy, item)
            what, many = differing(item.shared_by, groups), groups.several > MOST_DIFFERING * groups.heads
            then = f"which anonymize refuses; {AGREEMENT_HINT}" if many else "each value then has a set of its own"
            if what:
                heard = found.refused if many else found.warnings
                heard.append(f"$.attributes.{item.name}.shared-by: {what}, {then}.")
    return found


def _agreement(source: Source, policy: Policy, item: Attribute) -> Tallied:
    """How many groups there are, and in how many members differ in value or stratum."""
    placing = Placing.of(item.constraints, [other.condition for other in item.conditional])
    names = list(dict.fromkeys([item.shared_by, item.name, *placing.columns]))
    words, matched = policy.table.missing_values, match_columns(policy, source)
    with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
        tally = Tally(Path(folder))
        for columns, counts in kept_columns(matched, source, names, as_written=True):
            keys = without_words(key_texts(columns[item.shared_by].alias(item.shared_by)), words)
            codes = encode(without_words(columns[item.name], words).alias(item.name), cast("Domain", item.domain)).codes
            typed = {name: _cast(columns[name], matched.by_name[name].type, words) for name in placing.columns}
            places = placing.of_records(typed, len(codes))
            tails = mixed(np.zeros(len(codes), dtype=np.uint64), np.column_stack([codes, places]))
            known = keys.is_not_null().to_numpy() & (codes >= 0)
            prints = headed(fingerprints(keys.to_frame()), tails)[known]
            tally.add(prints, None if counts is None else counts[known])
        return tally.count()


def _cast(series: pl.Series, kind: str | None, words: Sequence[str]) -> pl.Series:
    """A column as it would be published."""
    return cast_column(without_words(series, words), kind)[0] if kind else series


def repeated_records(job: Job, outcome: Outcome) -> list[str]:
    """People with several records, when each record has decoys of its own."""
    if not outcome.repeated or job.key is not None or all(item.shared_by == job.record_key for item in job.sets):
        return []
    return [
        f"{numbered(outcome.repeated, 'records share a record key with another')}: an attacker who knows which belong "
        "together can intersect their sets. Use --key-file, or publish one record for each person."
    ]


def differing_groups(job: Job, outcome: Outcome) -> list[str]:
    """Groups that do not share what they are to share."""
    remarks = ((item.name, differing(item.shared_by, outcome.shared[item.name])) for item in job.shared)
    return [
        f"{name}: {what}: members who agree share a set, the others have sets of their own."
        for name, what in remarks
        if what
    ]


def changed_sets(outcome: Outcome) -> list[str]:
    """People whose sets differ from record to record, where that was accepted."""
    return [f"{name}: {count:,} {CHANGED}." for name, count in outcome.changed.items()]
