"""From a policy to a schema: final domains, distances and hierarchies of its attributes.

What the policy leaves open is looked up in the table (the values that occur, the ends of a range). Such a domain is
published with the release although it comes from the records; the schema therefore says where each domain came from.

Hierarchies are checked: whether their files can be used, and whether they have a place for every value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.kernel.arrays import Ints
from polyseme.kernel.documents import Reader
from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, TableError, nearest
from polyseme.kernel.spelling import spellings
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy, ConditionalShares
from polyseme.policy.domains import FEWEST, Seen, bin_count, domain_of, is_described, is_open, look
from polyseme.policy.joint import between_members, joined_name, unweighted, with_joints
from polyseme.policy.priors import read_shares, with_conditional_priors, with_constraints, with_references
from polyseme.schema import Attribute, Bins, Distributions, Domain, Resolved, Role, Schema
from polyseme.semantics.distances import Distance, LineDistance, distance_from_policy
from polyseme.semantics.distances.declaration import policy_file, policy_values
from polyseme.semantics.hierarchies import ColumnValues, Dates, Intervals, Rule, coverage, values_of
from polyseme.semantics.hierarchies.leaves import missing_from
from polyseme.semantics.taxonomies import named
from polyseme.tables.codes import as_series, cast_column, missing_label
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source

__all__ = ["column_values", "hierarchy_problems", "match_columns", "require_places", "resolve", "without_place"]

_HINT = "add the values to the hierarchy; count them with: polyseme hierarchy check"


def hierarchy_problems(policy: Policy) -> list[Problem]:
    """What is wrong with the hierarchies as far as that shows without a table."""
    problems: list[Problem] = []
    for item in policy.attributes:
        reader = Reader(None, f"$.attributes.{item.name}.hierarchy", problems)
        if item.hierarchy is None:
            continue
        if item.protect:  # by the rule for all sensitive columns
            reader.problem("a hierarchy generalizes columns that are not published as sets", "remove the hierarchy")
        try:
            rule = item.hierarchy.open(policy.files)
        except InvalidInput as error:
            reader.adopt(error)
        else:
            _check_declared(rule, item, reader)
    return problems


def _check_declared(rule: Rule, item: AttributePolicy, reader: Reader) -> None:
    """Declared values may be named, those of a table only counted."""
    leaves = pl.Series(spellings(item.values or ()), dtype=pl.String)
    lacking = leaves.filter(~rule.known(leaves)).to_list()
    if lacking:
        what = f"{len(lacking):,} of {len(leaves):,} declared values have no place in the hierarchy, which wants"
        reader.problem(f"{what} {rule.wants}: {named(lacking)}", "add them to the hierarchy")


def require_places(policy: Policy, source: Source) -> None:
    """Refuse hierarchies that lack values of the table; every one of them is reported."""
    problems = []
    for item in policy.attributes:
        if item.hierarchy is None:
            continue
        rule = item.hierarchy.open(policy.files)
        column = (source, item.name, policy.table.missing_values, item.type)
        if not coverage(rule, values_of(distinct_values(*column))).complete:
            # Something is wrong: look again, now row by row, so that the message can name the place.
            problems.append(without_place(item, rule, values_of(column_values(*column)), source))
    if problems:
        raise PolicyError(problems)


def without_place(
    item: AttributePolicy,
    rule: Rule,
    values: ColumnValues,
    source: Source,
    rows: Ints | None = None,
    located: bool = True,
) -> Problem:
    """What to say of values that have no place in the hierarchy of an attribute.

    rows     of the table that the values come from, where some were left out
    located  whether it is known in which rows they stand
    """
    hint = dialect_hint(values.leaves) if isinstance(rule, Intervals | Dates) else ""
    what, seen = missing_from(coverage(rule, values), rule), values.strangers(rule, rows) if located else None
    return Problem.in_rows(f"$.attributes.{item.name}.hierarchy", what, hint or _HINT, seen, source.row_numbers)


def column_values(
    source: Source, name: str, missing_values: tuple[str, ...] = ("",), kind: str | None = None
) -> Iterator[pl.Series]:
    """A column, piece by piece, as it would be published."""
    for batch in source.batches([name]):
        yield _as_published(batch, missing_values, kind)


def distinct_values(
    source: Source, name: str, missing_values: tuple[str, ...] = ("",), kind: str | None = None
) -> Iterator[pl.Series]:
    """The same for callers who need only which values there are, not counts or order."""
    for batch, _ in source.counted([name]):
        yield _as_published(batch, missing_values, kind)


def _as_published(batch: pa.RecordBatch, missing_values: tuple[str, ...], kind: str | None) -> pl.Series:
    series = as_series(batch.column(0), missing_values)
    return cast_column(series, kind)[0] if kind else series


_LEAST_BINS = 3
"""With fewer, an open end has no neighbor whose width it could take."""


def resolve(policy: Policy, source: Source | None = None) -> Resolved:
    """The schema of a policy; `source` is read only for what the policy leaves open."""
    if source is not None:
        policy = match_columns(policy, source)
    else:
        policy = replace(policy, attributes=tuple(_with_default(policy, item) for item in policy.attributes))
    problems = [*_file_problems(policy), *hierarchy_problems(policy)]
    if problems:
        raise PolicyError(problems)
    seen = look(policy, source) if source is not None else {}
    attributes = []
    for attribute in policy.attributes:
        reader = Reader(None, f"$.attributes.{attribute.name}", problems)
        attributes.append(_resolve_attribute(attribute, seen, policy, reader))
    schema = Schema(tuple(attributes))
    if not problems:
        schema = with_references(schema, policy, source, Reader(None, "$.attributes", problems))
        schema = with_conditional_priors(schema, policy, Reader(None, "$.attributes", problems))
    if problems:
        raise PolicyError(problems)
    open_names = tuple(item.name for item in policy.attributes if is_described(item) and is_open(item, policy))
    unspoken = tuple(item.name for item in policy.attributes if not _spoken(item, policy))
    schema, remarks = with_constraints(schema, policy.exclusions, open_names, unspoken, between_members(policy))
    remarks = (*_fewer_bins(policy, schema), *_other_spellings(policy, seen), *remarks)
    schema, remarks = with_joints(schema, policy, unspoken), (*remarks, *unweighted(policy))
    open_names, unspoken = (
        tuple(dict.fromkeys(joined_name(name, policy) for name in names)) for names in (open_names, unspoken)
    )
    return Resolved(schema, open_names, remarks, unspoken)


def _file_problems(policy: Policy) -> list[Problem]:
    """What is wrong with the files that domains come from."""
    problems: list[Problem] = []
    for item in policy.attributes:
        reader = Reader(None, f"$.attributes.{item.name}.distance", problems)
        try:
            policy_values(item.distance if is_described(item) else None, policy.files)
        except PolicyError as error:
            reader.at(next(iter(item.distance or {})), None).adopt(error)
    return problems


def match_columns(policy: Policy, source: Source) -> Policy:
    """The policy with its attributes in the order of the table's columns.

    Both sides must name each other.
    """
    columns = source.schema.names
    named = {*policy.by_name, *(policy.protect_all_but or ())}
    if not source.typed and 2 * len(named & set(columns)) < len(named):
        # The first line may be a record: its values must not appear in messages as if they were names.
        few = "few" if named & set(columns) else "none"
        raise TableError(
            f"{source.name}: {few} of the policy's attributes {'are' if few == 'few' else 'is'} in the first line",
            "is this the right table, and does its first line hold the names of the columns?",
        )
    problems = [
        Problem(f"$.attributes.{name}", f"no such column in {source.name}", nearest(name, columns))
        for name in policy.by_name
        if name not in columns
    ]
    problems += [
        Problem("$.protect-all-but", f"no column '{name}' in {source.name}", nearest(name, columns))
        for name in policy.protect_all_but or ()
        if name not in columns
    ]
    attributes = []
    for name in columns:
        if name in policy.by_name:
            attributes.append(_with_default(policy, policy.by_name[name]))
        elif policy.protect_all_but is not None:
            role = Role.QUASI_IDENTIFIER if name in policy.protect_all_but else Role.SENSITIVE_QID
            attributes.append(_with_default(policy, AttributePolicy(name, role)))
        else:
            problems.append(
                Problem(
                    f"{source.name}, column '{name}'",
                    "the policy does not mention this column",
                    f"add it under attributes; {name}: {{role: identifier}} drops it",
                )
            )
    if problems:
        raise TableError(problems)
    return replace(policy, attributes=tuple(attributes))


def _with_default(policy: Policy, attribute: AttributePolicy) -> AttributePolicy:
    """The policy's general `protect` rule, for a sensitive attribute that has none of its own."""
    spared = policy.protect_all_but is not None and attribute.name in policy.protect_all_but
    if not policy.protect or attribute.protect or spared or not attribute.role.is_secret:
        return attribute
    return replace(attribute, protect=policy.protect)


def _spoken(attribute: AttributePolicy, policy: Policy) -> bool:
    """Whether messages may name the values: those that the policy itself spells out."""
    declared = (attribute.values, attribute.edges, attribute.periods)
    from_file = policy_file(attribute.distance) is not None and all(part is None for part in declared)
    return not from_file and not is_open(attribute, policy)


def _resolve_attribute(
    attribute: AttributePolicy, seen: Mapping[str, Seen], policy: Policy, reader: Reader
) -> Attribute:
    if not is_described(attribute):
        return Attribute(attribute.name, attribute.role, weighting=attribute.weighting)
    if is_open(attribute, policy) and attribute.name not in seen:
        reader.problem(
            "the values of this attribute are not declared", "add domain: [...], or give the table with --data"
        )
        return Attribute(attribute.name, attribute.role)
    domain = domain_of(attribute, seen.get(attribute.name), policy, reader)
    distance = _distance(attribute, domain, policy, reader) if domain.size else None
    declared = _spoken(attribute, policy)
    distributions = Distributions(
        None
        if isinstance(attribute.prior, ConditionalShares)
        else read_shares(attribute.prior, domain, policy, reader.at("prior", attribute.prior), declared),
        read_shares(attribute.reference, domain, policy, reader.at("reference", attribute.reference), declared),
    )
    return Attribute(
        attribute.name,
        attribute.role,
        domain,
        distance,
        attribute.protect,
        distributions=distributions,
        shared_by=attribute.shared_by,
    )


def _fewer_bins(policy: Policy, schema: Schema) -> tuple[str, ...]:
    """Remarks on columns that could not be cut into as many bins as the policy asks for."""
    remarks = []
    for item in policy.attributes:
        domain = schema[item.name].domain
        if item.bins is not None and domain is not None and isinstance(domain.cut, Bins):
            made = len(domain.cut.edges) - 1
            if made < item.bins.count:
                remarks.append(
                    f"$.attributes.{item.name}.bins: {bin_count(made)}, not {item.bins.count:,}: edges taken from the "
                    f"table are round numbers, and leave at least {FEWEST} records in every bin"
                )
    return tuple(remarks)


def _other_spellings(policy: Policy, seen: Mapping[str, Seen]) -> Iterator[str]:
    """Remarks on domains from the table in which values that are written differently became one."""
    for item in policy.attributes:
        found = seen[item.name].labels if item.name in seen and item.periods is None else ()
        more = len(found) - len(set(spellings(found)))
        if more:
            yield (
                f"$.attributes.{item.name}: {more:,} of the {len(found):,} values in the table are other "
                "spellings of the rest (30 and 30.0, true and True) and count as the same value"
            )


def _distance(attribute: AttributePolicy, domain: Domain, policy: Policy, reader: Reader) -> Distance | None:
    spec = attribute.distance
    cut = domain.cut
    if spec is None and missing_label(domain.missing) and not attribute.protect.semantic:
        return None  # periods and bins stand in a line, and a missing value nowhere on it
    if spec is None and cut is not None:
        # Without a promise about distances an open end needs no position.
        spec = {"line": "value"} if isinstance(cut, Bins) and attribute.protect.semantic else {"line": "rank"}
    if spec is None:
        return None
    inner = reader.at("distance", spec)
    if missing_label(domain.missing) and next(iter(spec)) in ("line", "circle"):
        inner.problem(
            "a missing value has no position on a line or circle", "missing: drop, or a tree or matrix distance"
        )
        return None
    if attribute.bins is not None and spec.get("line") in ("value", "values") and domain.size < _LEAST_BINS:
        inner.problem(
            f"{bin_count(domain.size)} with open ends have no position in the units of the column",
            "declare the edges with bins: [...], or use distance: {line: rank}",
        )
        return None
    try:
        if spec.get("line") in ("value", "values"):
            return LineDistance(_positions(domain))
        return distance_from_policy(spec, domain.values, policy.files)
    except InvalidInput as error:
        if is_open(attribute, policy):
            # The domain came from the table, so the problems may name values of it.
            inner.problem(
                "some values of the table are not covered by this distance",
                "declare the values with domain: [...] and this message can list them",
            )
        else:
            inner.adopt(error)
        return None


def _positions(domain: Domain) -> list[float]:
    """Numeric labels themselves, or the middles of bins; an open end gets its neighbor's width."""
    if not isinstance(domain.cut, Bins):
        try:
            return [float(value) for value in domain.values]
        except ValueError:
            raise PolicyError("the values are not numbers", "line: rank, or one position for each value") from None
    edges = list(domain.cut.edges)
    if len(edges) > _LEAST_BINS:
        if edges[0] == -np.inf:
            edges[0] = 2 * edges[1] - edges[2]
        if edges[-1] == np.inf:
            edges[-1] = 2 * edges[-2] - edges[-3]
    return [(low + high) / 2 for low, high in pairwise(edges)]
