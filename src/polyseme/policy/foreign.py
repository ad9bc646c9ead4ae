"""Tables of other tools as the privacy models see them, and the reference population.

Tables are opened as a policy says that they are stored and written. A reference population holds the people among whom
a person of the table may be any.

- A quasi-identifier of a text file stays text: 0130 and 130 are two codes. Only where a model looks at the values of
  an attribute does a column of nothing but numbers become numbers, so that order means size.
- A `*` among sensitive values says nothing: it is no value of the domain, and no reason to read numbers as text.
- Suppressed rows are in no class: their values are not in a domain found in the table, nor a reason to read numbers as
  text.
- Bins and periods that the policy declares are applied, unless the table already holds their labels; so is a type.
- Values are found in the domain by their spelling, whatever type the table and the policy have for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.errors import PolicyError, Problem
from polyseme.kernel.spelling import spelled, written
from polyseme.models import Background
from polyseme.policy import Policy, TableFormat
from polyseme.policy.attributes import AttributePolicy
from polyseme.policy.resolution import resolve
from polyseme.privacy.promises import Promises
from polyseme.schema import Attribute, Domain, Missing, Role
from polyseme.semantics.hierarchies import Dates, Intervals
from polyseme.tables.codes import cast_column, encode
from polyseme.tables.distinct import all_counts, frame_of
from polyseme.tables.equivalence_classes import SUPPRESSED, MissingAs, kept_rows
from polyseme.tables.io.columnar import CountedFrame
from polyseme.tables.io.dialects import Respelled
from polyseme.tables.io.readers import open_table
from polyseme.tables.io.source import CountedRows, Source
from polyseme.tables.profile import Profile
from polyseme.tables.readings import KeyReader, numbered_people

__all__ = [
    "ForeignTable",
    "models_of",
    "open_for",
    "population_frame",
    "population_of",
    "read_foreign",
    "read_undescribed",
    "respelled_columns",
]


def open_for(data: Any, policy: Policy) -> Source:
    """A source for a path or an object; one that is open already is taken as it is."""
    if isinstance(data, Source):
        return data
    form = policy.table
    source = open_table(data, form.separator, form.encoding, sheet=form.sheet, by_policy=True)
    if not form.dialect:
        return source
    return Respelled(source, form.dialect, *respelled_columns(policy), form.missing_values)


def respelled_columns(policy: Policy) -> tuple[list[str], list[str]]:
    """The columns that hold numbers, and those that hold dates, as the policy describes them."""
    numbers = [item.name for item in policy.attributes if _holds_numbers(item)]
    return numbers, [item.name for item in policy.attributes if _holds_dates(item)]


def _holds_numbers(item: AttributePolicy) -> bool:
    labels = any(isinstance(value, int | float) and not isinstance(value, bool) for value in item.values or ())
    cut = item.edges is not None or item.bins is not None
    intervals = item.hierarchy is not None and isinstance(item.hierarchy.rule, Intervals)
    return item.type in ("integer", "number") or item.role is Role.WEIGHT or labels or cut or intervals


def _holds_dates(item: AttributePolicy) -> bool:
    levels = item.hierarchy is not None and isinstance(item.hierarchy.rule, Dates)
    return item.type in ("date", "datetime") or item.periods is not None or levels


def population_of(policy: Policy) -> Source | None:
    """The table of the population that was given beside the policy, or that k-map names.

    None without one.
    """
    if policy.population is not None:
        return open_for(policy.population, policy)
    given = {name for model in policy.models if isinstance(name := model.parameters.get("reference"), str)}
    if len(given) > 1:
        raise PolicyError(Problem("$.models", "more than one reference table", "write one policy for each"))
    if not given:
        return None
    try:
        path = policy.files.file(given.pop())
    except PolicyError as error:
        raise PolicyError(Problem("$.models", found.what, found.hint) for found in error.problems) from None
    return open_for(path, policy)


def population_frame(policy: Policy, names: Sequence[str] | None = None) -> pl.DataFrame | None:
    """Its columns, or these of them that it has, one row for each person."""
    table = population_of(policy)
    if table is None:
        return None
    wanted = [name for name in table.schema.names if names is None or name in names]
    rows = ((batch, None) for batch in table.batches(wanted))
    return frame_of(rows, wanted, policy.table.missing_values)[0]


def models_of(policy: Policy) -> tuple[Mapping[str, Any], ...]:
    """The models that a release promises; the place of the population is not published."""
    return tuple(
        {model.name: {name: value for name, value in model.parameters.items() if name != "reference"}}
        for model in policy.models
    )


_KEYS = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QID, Role.WEIGHT)


@dataclass(frozen=True, eq=False)
class ForeignTable:
    """The rows, the attributes by role, and what is known beside the table.

    counts  how many records each row stands for; None for one
    people  whose each row is, numbered from 0; None where that is not known
    first   the row of the table in which each row occurs first, ascending; None where rows are as they were read,
            or only counted
    """

    frame: pl.DataFrame
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    background: Background
    counts: Ints | None = None
    people: Ints | None = None
    first: Ints | None = None


def read_foreign(source: Source, policy: Policy, distinct: bool = True) -> ForeignTable:
    """The whole table with the policy's domains, distances, missing values and reference table.

    distinct  whether equal rows may be counted together; rules look at them one by one
    """
    ruled = any(model.name == "semantic-rules" for model in policy.models)
    names = list(source.schema.names) if ruled else _looked_at(source.schema.names, policy)
    person = policy.record_key if policy.record_key in source.schema.names else None
    read = _rows(source, names, policy.table.missing_values, person, distinct and not ruled)
    frame, counts = read.frame, read.counts
    described = _described(frame, counts, policy, source.name)
    judged = {item.name for item in policy.attributes if item.role.is_secret}
    judged |= {name for model in policy.models if isinstance(name := model.parameters.get("attribute"), str)}
    keys = tuple(item.name for item in policy.attributes if item.role in _KEYS)
    kept = pl.Series(kept_rows(frame, [key for key in keys if key in frame.columns]))
    types = {item.name: item.type for item in policy.attributes}
    columns = []
    for series in frame.get_columns():
        known = described.get(series.name)
        if known is not None and known.domain is not None:
            columns.append(_in_domain(_as_declared(series, types.get(series.name), series.name in keys), known.domain))
        elif not source.typed and series.name in judged:
            columns.append(_as_numbers(series, None if series.name in keys else kept))
        else:
            columns.append(series)
    frame = pl.DataFrame(columns)
    return ForeignTable(
        frame,
        keys,
        tuple(item.name for item in policy.attributes if item.role.is_secret),
        _background(policy, described),
        counts,
        read.people,
        read.first,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Columns of a table, the records and the first row of each row, and the person."""

    frame: pl.DataFrame
    counts: Ints | None
    people: Ints | None = None
    first: Ints | None = None


def _rows(
    source: Source, names: Sequence[str], missing_values: Sequence[str], person: str | None, distinct: bool
) -> _Rows:
    """Columns of a table; equal rows are counted while they come, where they may be."""
    known = source if isinstance(source, Profile) else Profile(source, 0)
    if person is None and distinct and not known.inner.aggregates:
        return _distinct_rows(known, names, missing_values)
    if person is None:
        return _Rows(*frame_of(source.counted(names), names, missing_values))
    keys, prints = KeyReader(person, missing_values), [np.zeros(0, dtype=np.int64)]

    def rows() -> Iterator[CountedRows]:
        for batch, counts in source.counted(list(dict.fromkeys([*names, person]))):
            prints.append(keys.read(batch.column(person), None, counts))
            yield batch.select(list(names)), counts

    frame, counts = frame_of(rows(), names, missing_values)
    keys.refuse()
    return _Rows(frame, counts, numbered_people(np.concatenate(prints)))


def _distinct_rows(source: Profile, names: Sequence[str], missing_values: Sequence[str]) -> _Rows:
    numbers, first = list[tuple[int, Ints | None]](), [np.zeros(0, dtype=np.int64)]

    def rows() -> Iterator[CountedRows]:
        for found in source.distinct(names):
            numbers.append((len(found.first), found.counts))
            first.append(found.first)
            yield found.rows, found.counts

    frame, _ = frame_of(rows(), names, missing_values)
    counts = all_counts(numbers)
    if counts is None or counts.max(initial=1) == 1:
        return _Rows(frame, None)
    return _Rows(frame, counts, first=np.concatenate(first))


def _looked_at(names: Sequence[str], policy: Policy) -> list[str]:
    """The columns that some model may look at: fewer of them have fewer different rows."""
    named = {name for model in policy.models if isinstance(name := model.parameters.get("attribute"), str)}
    named |= {item.name for item in policy.attributes if item.role is not Role.IDENTIFIER and not _unused(item)}
    return [name for name in names if name in named] or list(names[:1])


def _unused(item: AttributePolicy) -> bool:
    """Whether nothing is said of an attribute that no model looks at."""
    return item == AttributePolicy(item.name, Role.INSENSITIVE)


def read_undescribed(
    source: Source, quasi_identifiers: Sequence[str], sensitive: Sequence[str], person: str | None = None
) -> ForeignTable:
    """The named columns of a table without a policy, read by their roles alone.

    What to do without a sensitive value is not declared: a missing one is taken as one more.

    person  the column that says whose each record is, where there is one
    """
    # Without a name, any column says how many rows there are.
    names = list(dict.fromkeys([*quasi_identifiers, *sensitive])) or source.schema.names[:1]
    read = _rows(source, names, TableFormat().missing_values, person, distinct=True)
    frame = read.frame
    if not source.typed and sensitive:
        kept = pl.Series(kept_rows(frame, quasi_identifiers))
        keys = set(quasi_identifiers)
        frame = frame.with_columns(_as_numbers(frame[name], None if name in keys else kept) for name in sensitive)
    background = Background(missing="category")
    return ForeignTable(
        frame, tuple(quasi_identifiers), tuple(sensitive), background, read.counts, read.people, read.first
    )


def _described(frame: pl.DataFrame, counts: Ints | None, policy: Policy, name: str) -> Mapping[str, Attribute]:
    """Attributes with a domain that was declared, or that a distance needs."""
    # Records without a value are dropped from a table to publish; this one is judged with all the rows it has.
    present = tuple(
        replace(item, missing=Missing()) if item.missing.action == "drop" else item
        for item in policy.attributes
        if item.name in frame.columns
    )
    silent = replace(policy.table, missing_values=(*policy.table.missing_values, SUPPRESSED))
    columns = tuple(frame.columns)
    readable = replace(
        policy, attributes=present, table=silent, protect_all_but=columns, protect=Promises(), exclusions=()
    )
    resolved = resolve(readable, CountedFrame(_in_classes(frame, present).to_arrow(), counts, name))
    return {
        item.name: item
        for item in resolved.schema.attributes
        if item.domain is not None and (item.distance is not None or item.name not in resolved.from_data)
    }


def _in_classes(frame: pl.DataFrame, attributes: Sequence[AttributePolicy]) -> pl.DataFrame:
    """The secret columns without suppressed rows; each is judged in the classes of other keys."""
    keys = [item.name for item in attributes if item.role in _KEYS]
    columns = []
    for item in attributes:
        if item.role.is_secret and (item.distance is not None or item.bins is not None or item.periods is not None):
            kept = kept_rows(frame, [key for key in keys if key != item.name])
            columns.append(pl.when(pl.Series(kept)).then(pl.col(item.name)).alias(item.name))
    return frame.with_columns(columns)


def _in_domain(series: pl.Series, domain: Domain) -> pl.Series:
    """A column in the labels of its domain; other values stay as they are, for the models."""
    category = domain.missing.action == "category"
    if domain.cut is None:
        return series.cast(pl.String).fill_null(domain.missing.label) if category else series
    codes = encode(series, domain).codes
    labels = pl.Series([written(value) for value in domain.values], dtype=pl.String).gather(np.maximum(codes, 0))
    return (
        pl.select(pl.when(pl.Series(codes >= 0)).then(labels).otherwise(series.cast(pl.String)))
        .to_series()
        .alias(series.name)
    )


def _as_declared(series: pl.Series, kind: str | None, key: bool) -> pl.Series:
    """A column as the type that the policy declares; what cannot be read as that stays as it is.

    A key is read so only if no two of its values become one.
    """
    if kind is None:
        return series
    read, _ = cast_column(series, kind)
    whole = spelled(read).fill_null(series.cast(pl.String))
    return series if key and whole.n_unique() != series.n_unique() else whole.alias(series.name)


def _as_numbers(series: pl.Series, kept: pl.Series | None) -> pl.Series:
    """A text column as numbers, if kept rows have nothing else and 007 and 7 do not both occur.

    A key has rows of every kind (None), and its values are those that are written differently.
    """
    said = series if kept is None else series.set((series == SUPPRESSED).fill_null(False), None)
    numbers, _ = cast_column(said, "number")
    unread = numbers.is_null() & said.is_not_null()
    words = unread if kept is None else unread & kept
    different = said if kept is None else spelled(said.set(unread, None))
    if words.any() or said.null_count() == len(said) or numbers.n_unique() != different.n_unique():
        return series
    return numbers.fill_nan(None)


def _background(policy: Policy, described: Mapping[str, Attribute]) -> Background:
    missing: dict[str, MissingAs] = {
        item.name: "category"
        for item in policy.attributes
        if item.missing.action == "category" and item.name not in described
    }
    return Background(
        domains={name: item.domain.values for name, item in described.items() if item.domain is not None},
        distances={name: item.distance for name, item in described.items() if item.distance is not None},
        reference=population_frame(policy) if _mapped(policy) else None,
        meanings=_meanings(policy) if _mapped(policy) else {},
        missing=missing,
        wildcard=policy.table.wildcard,
    )


def _mapped(policy: Policy) -> bool:
    """Whether people of a population are counted."""
    return any(model.name == "k-map" for model in policy.models)


def _meanings(policy: Policy) -> dict[str, dict[str, list[str]]]:
    """What the labels of hierarchies that list their values stand for."""
    found: dict[str, dict[str, list[str]]] = {}
    for item in policy.attributes:
        rule = None if item.hierarchy is None else item.hierarchy.open(policy.files)
        if rule is None or rule.listed is None:
            continue
        leaves, meaning = pl.Series(rule.listed, dtype=pl.String), found.setdefault(item.name, {})
        for labels in rule.labels(leaves):
            for label, leaf in zip(labels.to_list(), rule.listed):
                if label is not None:
                    meaning.setdefault(label, []).append(leaf)
    return found
