"""From a policy to a schema: every protected attribute gets its final domain and distance.

What the policy leaves open is looked up in the table (the values that occur, the ends of a range). Such a domain is
published with the release although it comes from the records; the schema therefore says where each domain came from.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, cast

import numpy as np
import polars as pl

from polyseme.arrays import Bools, Floats, Ints
from polyseme.distances import Distance, LineDistance, distance_from_policy
from polyseme.distances.implied import policy_file, policy_values
from polyseme.errors import InvalidInput, PolicyError, Problem, TableError, nearest
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy, AutomaticBins, ConditionalShares, PeriodRange
from polyseme.policy.binning import FEWEST, equal_width_edges, quantile_edges
from polyseme.policy.conditional import with_conditional_priors
from polyseme.policy.distributions import kept_columns, read_shares, with_references
from polyseme.policy.generalizing import hierarchy_problems
from polyseme.policy.impossible import with_constraints
from polyseme.policy.joining import between_members, joined_name, unweighted, with_joints
from polyseme.policy.reading import Reader
from polyseme.schema import Attribute, Bins, Distributions, Domain, Periods, Resolved, Role, Schema
from polyseme.spelling import Label, different, spelling, spellings
from polyseme.tables.coding.codes import missing_label, numbers, period_labels, require_labels
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source

__all__ = ["declared_domain", "match_columns", "resolve"]

_SAMPLE = 1_000_000
"""Numbers kept for finding bins (8 MB): the share below a quantile of so many has a standard error of 0.0005."""
_DOMAIN_LIMIT = 1_000_000
"""A judgement: more different values are no domain but names or measurements."""
_LEAST_BINS = 3
"""With fewer, an open end has no neighbour whose width it could take."""


def resolve(policy: Policy, source: Source | None = None) -> Resolved:
    """The schema of a policy; `source` is read only for what the policy leaves open."""
    if source is not None:
        policy = match_columns(policy, source)
    else:
        policy = replace(policy, attributes=tuple(_with_default(policy, item) for item in policy.attributes))
    problems = [*_file_problems(policy), *hierarchy_problems(policy)]
    if problems:
        raise PolicyError(problems)
    seen = _look(policy, source) if source is not None else {}
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
    open_names = tuple(item.name for item in policy.attributes if _described(item) and _open(item, policy))
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
            policy_values(item.distance if _described(item) else None, policy.files)
        except PolicyError as error:
            reader.at(next(iter(item.distance or {})), None).adopt(error)
    return problems


def match_columns(policy: Policy, source: Source) -> Policy:
    """The policy with its attributes in the order of the table's columns; both sides must name each other."""
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
                    f"add it under attributes, for instance {name}: {{role: insensitive}}",
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


def _described(attribute: AttributePolicy) -> bool:
    """Whether an attribute needs a domain: it is protected, or its values have a distance or an order to be checked."""
    declared = attribute.distance is not None or attribute.values is not None or attribute.edges is not None
    if attribute.periods is not None:
        declared = declared or None not in (attribute.periods.first, attribute.periods.last)
    return bool(attribute.protect) or (declared and attribute.role.is_secret)


def _open(attribute: AttributePolicy, policy: Policy) -> bool:
    """Whether the domain has to be looked up in the data."""
    if attribute.values is not None or attribute.edges is not None:
        return False
    if attribute.periods is not None:
        return attribute.periods.first is None or attribute.periods.last is None
    return attribute.bins is not None or policy_values(attribute.distance, policy.files) is None


def _spoken(attribute: AttributePolicy, policy: Policy) -> bool:
    """Whether messages may name the values: those that the policy itself spells out."""
    declared = (attribute.values, attribute.edges, attribute.periods)
    from_file = policy_file(attribute.distance) is not None and all(part is None for part in declared)
    return not from_file and not _open(attribute, policy)


@dataclass
class _Seen:
    """What one pass over a column found."""

    labels: set[Any]
    sample: list[np.ndarray[tuple[int], np.dtype[np.float64]]]
    stride: int = 1
    unreadable: int = 0
    hint: str = ""

    def add(self, values: Floats, counts: Ints | None) -> None:
        """Numbers of some records; of too many, only every so manyth is kept."""
        while counts is not None and counts.sum() > _SAMPLE * self.stride:
            self._thin()
        if len(values):
            self.sample.append(_every(values, counts, self.stride))
        if sum(map(len, self.sample)) > _SAMPLE:
            self._thin()

    def _thin(self) -> None:
        self.sample = [np.concatenate(self.sample)[::2]] if self.sample else []
        self.stride *= 2


def _every(values: Floats, counts: Ints | None, stride: int) -> Floats:
    """The value of every so manyth record."""
    if counts is None:
        return values[::stride]
    ends = np.cumsum(counts)
    return np.asarray(values[np.searchsorted(ends, np.arange(0, int(ends[-1]), stride), side="right")])


def _records(which: Bools, counts: Ints | None) -> int:
    return int(np.count_nonzero(which) if counts is None else counts[which].sum())


def _look(policy: Policy, source: Source) -> Mapping[str, _Seen]:
    """One pass over the columns whose domain the policy leaves open."""
    wanted = [attribute for attribute in policy.attributes if _described(attribute) and _open(attribute, policy)]
    seen = {attribute.name: _Seen(set(), []) for attribute in wanted}
    for columns, counts in kept_columns(policy, source, list(seen)):
        for attribute in wanted:
            _note(seen[attribute.name], attribute, columns[attribute.name], counts)
    return seen


def _note(seen: _Seen, attribute: AttributePolicy, series: pl.Series, counts: Ints | None) -> None:
    """What a piece of a column adds; `counts` says how many records each of its values stands for."""
    if attribute.bins is not None:
        values, marks = numbers(series)
        # A date is no number, although it can be counted in days.
        unread = marks != -1 if series.dtype.is_temporal() else (marks == -2) | np.isnan(values)
        seen.unreadable += _records(unread, counts)
        seen.hint = seen.hint or dialect_hint(series.filter(pl.Series(unread)))
        inside = (marks == 0) & np.isfinite(values)
        seen.add(values[inside], None if counts is None else counts[inside])
    elif attribute.periods is not None:
        labels = period_labels(series, "day")
        seen.unreadable += _records((labels.is_null() & series.is_not_null()).to_numpy(), counts)
        seen.hint = seen.hint or dialect_hint(series.filter(labels.is_null()))
        seen.labels.update(label for label in (labels.min(), labels.max()) if label is not None)
    elif len(seen.labels) <= _DOMAIN_LIMIT:
        require_labels(series.alias(attribute.name))
        seen.labels.update(_labels(series))


def _resolve_attribute(
    attribute: AttributePolicy, seen: Mapping[str, _Seen], policy: Policy, reader: Reader
) -> Attribute:
    if not _described(attribute):
        return Attribute(attribute.name, attribute.role, weighting=attribute.weighting)
    if _open(attribute, policy) and attribute.name not in seen:
        reader.problem(
            "the values of this attribute are not declared", "add domain: [..], or give the table with --data"
        )
        return Attribute(attribute.name, attribute.role)
    domain = _domain(attribute, seen.get(attribute.name), policy, reader)
    distance = _distance(attribute, domain, policy, reader) if domain.size else None
    declared = _spoken(attribute, policy)
    distributions = Distributions(
        None
        if isinstance(attribute.prior, ConditionalShares)
        else read_shares(attribute.prior, domain, policy, reader.at("prior", attribute.prior), declared),
        read_shares(attribute.reference, domain, policy, reader.at("reference", attribute.reference), declared),
    )
    return Attribute(attribute.name, attribute.role, domain, distance, attribute.protect, distributions=distributions)


def _domain(attribute: AttributePolicy, seen: _Seen | None, policy: Policy, reader: Reader) -> Domain:
    extra = missing_label(attribute.missing)
    if attribute.edges is not None:
        return _bin_domain(attribute, attribute.edges)
    if seen is not None and seen.unreadable:
        kind, hint = ("numbers", "dates are cut with periods: month") if attribute.bins else ("dates", "")
        reader.problem(f"{seen.unreadable:,} values cannot be read as {kind}", seen.hint or hint)
    if attribute.bins is not None and seen is not None:
        return _automatic_bins(attribute, attribute.bins, seen, reader)
    if attribute.periods is not None:
        return _period_domain(attribute, attribute.periods, seen, reader)
    values: Iterable[Label] | None = attribute.values or policy_values(attribute.distance, policy.files)
    if values is None and seen is not None:
        if len(seen.labels) > _DOMAIN_LIMIT:
            reader.problem(f"more than {_DOMAIN_LIMIT:,} different values", "cut a numeric column with bins: ..")
        values = _different(seen.labels)
        if not values and not extra:
            reader.problem("there are no values to form a domain from", "declare them with domain: [..]")
    if extra and spelling(extra[0]) in spellings(values or ()):
        reader.at("missing", None).problem(
            f"'{extra[0]}' is a value of the domain already", "choose another label for missing values"
        )
        extra = ()
    ordered = attribute.distance is not None and next(iter(attribute.distance)) in ("line", "circle")
    return Domain((*(values or ()), *extra), ordered, None, attribute.missing)


def declared_domain(attribute: AttributePolicy, policy: Policy, reader: Reader) -> Domain | None:
    """The values that the policy declares for an attribute, protected or not; None where it leaves them open."""
    if _open(attribute, policy):
        return None
    return _domain(attribute, None, policy, reader)


def _different(labels: Iterable[Label]) -> list[Label]:
    """One label for each value, in their order: the one that is its own spelling where the table has it."""
    found = different(sorted(labels, key=_natural))
    return [found[name] for name in sorted(found, key=_natural)]


def _natural(label: Label) -> tuple[bool, float, str]:
    """Numbers by size, also when they are written as text, then everything else by the alphabet.

    The order must not depend on anything but the labels ("1" and "1.0" too): codes follow from it, and sticky decoys
    from the codes.
    """
    try:
        number = float(label)
    except ValueError:
        return (True, 0.0, str(label))
    return (False, number, str(label)) if math.isfinite(number) else (True, 0.0, str(label))


def _labels(series: pl.Series) -> list[Label]:
    """The different values of a column, as labels: dates and the like by how they are written."""
    plain = series.dtype in (pl.String, pl.Boolean) or series.dtype.is_integer() or series.dtype.is_float()
    return (series if plain else series.cast(pl.String)).drop_nulls().unique().to_list()


def _bin_domain(attribute: AttributePolicy, edges: tuple[float, ...]) -> Domain:
    labels = [f"[{_short(low)}, {_short(high)})" for low, high in itertools.pairwise(edges)]
    labels[-1] = labels[-1][:-1] + "]"
    return Domain((*labels, *missing_label(attribute.missing)), True, Bins(edges), attribute.missing)


def _short(edge: float) -> str:
    return f"{edge:.12g}"


def _automatic_bins(attribute: AttributePolicy, bins: AutomaticBins, seen: _Seen, reader: Reader) -> Domain:
    if not seen.sample:
        return _only_missing(attribute, "numbers to form bins", reader)
    find = quantile_edges if bins.method == "quantile" else equal_width_edges
    # Of a large table only a part is looked at: what is enough there is enough in the whole.
    edges = find(np.concatenate(seen.sample), bins.count)
    if len(edges) == 2 and bins.count > 1 and attribute.protect.hides:
        reader.at("bins", None).problem(
            f"too few different numbers in the table for two bins of at least {FEWEST} records",
            "declare the edges with bins: [..]",
        )
    return _bin_domain(attribute, edges)


def _fewer_bins(policy: Policy, schema: Schema) -> tuple[str, ...]:
    """Remarks on columns that could not be cut into as many bins as the policy asks for."""
    remarks = []
    for item in policy.attributes:
        domain = schema[item.name].domain
        if item.bins is not None and domain is not None and isinstance(domain.cut, Bins):
            made = len(domain.cut.edges) - 1
            if made < item.bins.count:
                remarks.append(
                    f"$.attributes.{item.name}.bins: {_bin_count(made)}, not {item.bins.count:,}: edges taken from the "
                    f"table are round numbers, and leave at least {FEWEST} records in every bin"
                )
    return tuple(remarks)


def _other_spellings(policy: Policy, seen: Mapping[str, _Seen]) -> Iterator[str]:
    """Remarks on domains from the table in which values that are written differently became one."""
    for item in policy.attributes:
        found = seen[item.name].labels if item.name in seen and item.periods is None else ()
        more = len(found) - len(set(spellings(found)))
        if more:
            yield (
                f"$.attributes.{item.name}: {more:,} of the {len(found):,} values in the table are other "
                "spellings of the rest (30 and 30.0, true and True) and count as the same value"
            )


def _bin_count(count: int) -> str:
    return "1 bin" if count == 1 else f"{count:,} bins"


def _period_domain(attribute: AttributePolicy, periods: PeriodRange, seen: _Seen | None, reader: Reader) -> Domain:
    days = sorted(seen.labels) if seen is not None else []
    place = reader.at("periods", None)
    wrong = [end for end in (periods.first, periods.last) if end is not None and _day(end) is None]
    for end in wrong:
        place.problem(f"'{end}' is no date of the calendar", "{every: month, from: 2020-01-01, to: 2020-12-31}")
    if wrong:
        return Domain(())
    first, last = _day(periods.first or (days[0] if days else "")), _day(periods.last or (days[-1] if days else ""))
    if first is None or last is None:
        return _only_missing(attribute, "dates to form periods", reader)
    steps = pl.Series([first + timedelta(days=step) for step in range((last - first).days + 1)], dtype=pl.Date)
    labels = period_labels(steps, periods.every).unique(maintain_order=True).to_list()
    if not labels:
        reader.problem("the last period comes before the first")
    return Domain(
        (*labels, *missing_label(attribute.missing)), True, Periods(cast("Any", periods.every)), attribute.missing
    )


def _only_missing(attribute: AttributePolicy, what: str, reader: Reader) -> Domain:
    """The domain of a column in which every value is missing: the label for those, if the policy gives one."""
    if not missing_label(attribute.missing):
        reader.problem(f"there are no {what} from")
    return Domain(missing_label(attribute.missing), False, None, attribute.missing)


def _day(text: str) -> date | None:
    """A day, or the first of a month or year; None where the calendar has none of this name."""
    try:
        return date.fromisoformat(text + "-01" * (2 - text.count("-")))
    except ValueError:
        return None


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
            f"{_bin_count(domain.size)} with open ends have no position in the units of the column",
            "declare the edges with bins: [..], or use distance: {line: rank}",
        )
        return None
    try:
        if spec.get("line") in ("value", "values"):
            return LineDistance(_positions(domain))
        return distance_from_policy(spec, domain.values, policy.files)
    except InvalidInput as error:
        if _open(attribute, policy):
            # The domain came from the table, so the problems may name values of it.
            inner.problem(
                "some values of the table are not covered by this distance",
                "declare the values with domain: [..] and this message can list them",
            )
        else:
            inner.adopt(error)
        return None


def _positions(domain: Domain) -> list[float]:
    """Numeric labels themselves, or the middles of bins; an open end takes the width of its neighbour."""
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
    return [(low + high) / 2 for low, high in itertools.pairwise(edges)]
