"""A table as microdata: the codes of its quasi-identifiers and sensitive attributes, as a grouping method needs them.

The whole table is read twice and held as codes: 4 bytes for each quasi-identifier and sensitive attribute of each
record. Records without a value where the policy says `missing: drop` are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from polyseme.arrays import Bools, Ints
from polyseme.errors import PolicyError, Problem, TableError, numbered
from polyseme.hierarchies import Hierarchy, Rule, Suppression, coverage, fit, values_of
from polyseme.methods.microdata import Ladder, Microdata, Sensitive
from polyseme.policy import Policy
from polyseme.policy.attributes import AttributePolicy
from polyseme.policy.generalizing import without_place
from polyseme.schema import Attribute, Domain, Role, Schema
from polyseme.tables.coding.codes import UNSEEN, as_series, cast_column, encode, label_array
from polyseme.tables.coding.sighting import sighted
from polyseme.tables.coding.strangers import WIDEN
from polyseme.tables.io.dialects import dialect_hint
from polyseme.tables.io.source import Source

__all__ = ["ReadTable", "read_microdata"]


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table as microdata.

    source     the table
    kept       which rows of the table are records of the microdata
    listed     the quasi-identifiers whose hierarchy lists its values, so that they are public
    sensitive  the attributes that are published as they are or by group, with their domains
    """

    source: Source
    data: Microdata
    kept: Bools = field(repr=False)
    listed: frozenset[str] = frozenset()
    sensitive: tuple[Attribute, ...] = ()

    @property
    def dropped(self) -> int:
        """Rows that are left out because a value is missing."""
        return int(len(self.kept) - self.kept.sum())


def read_microdata(policy: Policy, schema: Schema, source: Source) -> ReadTable:
    """The records of a table that will be published, as codes; every problem at once.

    policy  with its attributes in the order of the table's columns
    """
    keys = [item for item in policy.attributes if item.role is Role.QUASI_IDENTIFIER]
    if not keys:
        raise PolicyError(
            "the policy has no quasi-identifier, so there are no classes to form",
            "give the columns by which somebody may be known: role: quasi-identifier",
        )
    secret = [item for item in policy.attributes if item.role.is_secret and not item.protect]
    kept = _kept(policy, source)
    columns = {item.name: _column(policy, source, item, kept) for item in (*keys, *secret)}
    rows = np.flatnonzero(kept)
    hierarchies = _hierarchies(policy, keys, columns, source, rows)
    codes = [hierarchy.codes(columns[item.name]) for item, (hierarchy, _) in zip(keys, hierarchies)]
    ladders = tuple(Ladder.of(item.name, hierarchy) for item, (hierarchy, _) in zip(keys, hierarchies))
    # A missing value that may be anything is the last leaf of its ladder.
    leaves = [np.where(column < 0, ladder.leaves - 1, column) for column, ladder in zip(codes, ladders)]
    described = tuple(_described(item, schema[item.name], columns[item.name], source, rows) for item in secret)
    sensitive = {item.name: _sensitive(item, columns[item.name], source, rows) for item in described}
    data = Microdata(ladders, np.column_stack(leaves).astype(np.int32), sensitive)
    listed = frozenset(item.name for item, (_, rule) in zip(keys, hierarchies) if rule.listed is not None)
    return ReadTable(source, data, kept, listed, described)


def _kept(policy: Policy, source: Source) -> Bools:
    dropping = [item for item in policy.attributes if item.role.is_secret and item.missing.action == "drop"]
    names = [item.name for item in dropping] or source.schema.names[:1]
    words = policy.table.missing_values
    parts = [np.zeros(0, dtype=np.bool_)]
    for batch in source.batches(names):
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        for place in range(len(dropping)):
            kept &= as_series(batch.column(place), words).is_not_null().to_numpy()
        parts.append(kept)
    return np.concatenate(parts)


def _column(policy: Policy, source: Source, item: AttributePolicy, kept: Bools) -> pl.Series:
    """A column as it would be published; one with values that are none of its declared type is refused."""
    pieces, unread = [], pl.Series(item.name, [], dtype=pl.String)
    for batch in source.batches([item.name]):
        series = as_series(batch.column(0), policy.table.missing_values).alias(item.name)
        piece, failures = cast_column(series, item.type) if item.type else (series, 0)
        pieces.append(piece)
        if failures:
            unread = unread.append(series.filter(piece.is_null() & series.is_not_null()).cast(pl.String))
    if len(unread):
        hint = dialect_hint(unread) or "change or remove its type in the policy"
        what = numbered(len(unread), f"values cannot be read as {item.type}")
        raise TableError(Problem(f"column '{item.name}'", what, hint))
    whole = pl.concat(pieces, rechunk=False) if pieces else pl.Series(item.name, [], dtype=pl.String)
    return whole if kept.all() else whole.filter(pl.Series(kept))


def _hierarchies(
    policy: Policy, keys: Sequence[AttributePolicy], columns: dict[str, pl.Series], source: Source, rows: Ints
) -> list[tuple[Hierarchy, Rule]]:
    """The hierarchy of each quasi-identifier; one without can only be suppressed."""
    problems: list[Problem] = []
    found: list[tuple[Hierarchy, Rule]] = []
    for item in keys:
        rule: Rule = Suppression() if item.hierarchy is None else item.hierarchy.open(policy.files)
        values = values_of([columns[item.name]])
        if coverage(rule, values).complete:
            missing = "leaf" if item.hierarchy is None else item.hierarchy.missing
            found.append((fit(rule, values, missing), rule))
        else:
            problems.append(without_place(item, rule, values, source, rows))
    if problems:
        raise TableError(problems)
    return found


def _described(item: AttributePolicy, attribute: Attribute, series: pl.Series, source: Source, rows: Ints) -> Attribute:
    """The attribute with a domain: the declared one, or the values that occur, sorted."""
    if series.null_count() and item.missing.action == "refuse":
        what = numbered(series.null_count(), f"records have no value of '{item.name}'")
        hint = "say what to do with them: missing: drop, or missing: {category: unknown}"
        seen = sighted(series, np.flatnonzero(series.is_null().to_numpy()), rows)
        raise TableError(Problem.in_rows("", what, hint, seen, source.row_numbers))
    if attribute.domain is not None:
        return attribute
    label = (item.missing.label,) if item.missing.action == "category" else ()
    values = tuple(series.drop_nulls().unique().sort().to_list())
    return Attribute(item.name, item.role, Domain((*values, *label), False, None, item.missing))


def _sensitive(attribute: Attribute, series: pl.Series, source: Source, rows: Ints) -> Sensitive:
    if attribute.domain is None:
        raise ValueError("a sensitive attribute has a domain here")
    coded = encode(series, attribute.domain)
    if coded.unseen:
        what = numbered(coded.unseen, f"records have a value of '{attribute.name}' that is not in the declared domain")
        seen = sighted(series, np.flatnonzero(coded.codes == UNSEEN), rows)
        raise TableError(Problem.in_rows("", what, WIDEN, seen, source.row_numbers))
    codes: Ints = coded.codes
    return Sensitive(attribute.name, codes, tuple(label_array(attribute.domain.values).to_pylist()))
