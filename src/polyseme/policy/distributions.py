"""Public distributions that a policy names: priors for designs, references for closeness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import polars as pl

from polyseme.arrays import Floats, Ints
from polyseme.errors import PolicyError, nearest
from polyseme.files.delimited import read_rows, without_remarks
from polyseme.policy import Policy
from polyseme.policy.attributes import FROM_DATA, Shares
from polyseme.policy.reading import Reader
from polyseme.schema import Distributions, Domain, Schema
from polyseme.spelling import spellings
from polyseme.tables.coding.codes import as_series, encode
from polyseme.tables.io.source import Source

__all__ = ["kept_columns", "read_shares", "with_references"]


def read_shares(
    shares: Shares | None, domain: Domain, policy: Policy, reader: Reader, declared: bool = True
) -> Floats | None:
    """A declared distribution in the order of the domain, adding up to one.

    declared  whether the values are, in the policy: those of a table or of a file must not appear in a message
    """
    if shares is None or shares == FROM_DATA:
        return None
    if isinstance(shares, str):
        known = len(reader.problems)
        shares = _shares_file(shares, policy, reader)
        if len(reader.problems) > known:
            return None
    if isinstance(shares, Mapping):
        labels, given = spellings(domain.values), spellings(shares)
        shares = dict(zip(given, shares.values()))
        if len(shares) < len(given):
            reader.problem(f"{len(given) - len(shares):,} of the {len(given):,} values are listed more than once")
            return None
        unknown = [name for name in shares if name not in labels]
        if unknown:
            reader.problem(f"{_names(len(unknown))} not in the domain", nearest(unknown[0], labels) if declared else "")
            return None
        shares = tuple(shares.get(label, 0.0) for label in labels)
    weights = np.asarray(shares, dtype=np.float64)
    if len(weights) != domain.size:
        reader.problem(f"expected {domain.size:,} numbers, one for each value, found {len(weights):,}")
        return None
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        reader.problem("a distribution needs finite numbers that are not negative")
        return None
    without = int(np.count_nonzero(weights == 0.0))
    if without:
        # A prior of zero for a value stays zero whatever the set, so that sets of such values have no posterior.
        reader.problem(
            f"{without:,} of the {domain.size:,} values have no share",
            "remove values that no person can have from the domain, and give rare ones a small number",
        )
        return None
    shares_of_one: Floats = weights / weights.sum()
    return shares_of_one


def _names(count: int) -> str:
    return "1 name is" if count == 1 else f"{count:,} names are"


def _shares_file(name: str, policy: Policy, reader: Reader) -> Shares:
    """A CSV file of two columns: the value, and its number or share."""
    try:
        file = policy.files.file(name)
        rows = without_remarks(read_rows(file))
    except PolicyError as error:
        reader.adopt(error)
        return ()
    # A first line whose second field is no number is a header.
    body = rows[1:] if rows and len(rows[0][1]) > 1 and _number(rows[0][1][1]) is None else rows
    wrong = [line for line, cells in body if len(cells) < 2 or _number(cells[1]) is None]
    if wrong or not body:
        where = f", line {wrong[0]}" if wrong else ""
        reader.problem(
            f"no distribution in the file '{file.name}'{where}: expected a value and a number", "two columns"
        )
        return ()
    pairs = [(cells[0], float(cells[1])) for _, cells in body]
    repeated = len(pairs) - len(dict(pairs))
    if repeated:
        reader.problem(f"{repeated:,} of the values are in the file '{file.name}' more than once")
    return dict(pairs)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def kept_columns(
    policy: Policy, source: Source, names: Sequence[str], as_written: bool = False, one_by_one: bool = False
) -> Iterator[tuple[Mapping[str, pl.Series], Ints | None]]:
    """These columns, batch by batch, of the records that will be published: one that is dropped must not speak.

    With them comes how many records each row stands for; None for one.

    as_written  whether words for "missing" stay what they are, as in columns that are published as they are
    one_by_one  whether each record has a row of its own, for those who look at single ones
    """
    if not names:
        return
    dropping = [item.name for item in policy.attributes if item.protect and item.missing.action == "drop"]
    wanted = list(dict.fromkeys((*names, *dropping)))
    rows = ((batch, None) for batch in source.batches(wanted)) if one_by_one else source.counted(wanted)
    for batch, counts in rows:
        columns = {
            name: as_series(batch.column(index), policy.table.missing_values) for index, name in enumerate(wanted)
        }
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        for name in dropping:
            kept &= columns[name].is_not_null().to_numpy()
        if as_written:
            columns = {name: as_series(batch.column(wanted.index(name))) for name in names}
        if not kept.all():
            columns = {name: columns[name].filter(pl.Series(kept)) for name in names}
            counts = None if counts is None else counts[kept]
        yield {name: columns[name] for name in names}, counts


def with_references(schema: Schema, policy: Policy, source: Source | None, reader: Reader) -> Schema:
    """References that the policy asks to take from the table, counted in one pass. They are published."""
    asked = [item for item in policy.attributes if item.reference == FROM_DATA and schema[item.name].domain is not None]
    if not asked:
        return schema
    if source is None:
        for item in asked:
            reader.at(item.name, None).at("reference", None).problem("needs the table", "give it with --data")
        return schema
    counts: dict[str, Floats] = {item.name: np.zeros(cast("Domain", schema[item.name].domain).size) for item in asked}
    for columns, number in kept_columns(policy, source, list(counts)):
        for name, found in counts.items():
            codes = encode(columns[name], cast("Domain", schema[name].domain)).codes
            known = codes >= 0
            found += np.bincount(codes[known], None if number is None else number[known], minlength=len(found))
    for name, found in counts.items():
        if not found.any():
            reader.at(name, None).at("reference", None).problem("there are no records to take it from")
    return Schema(
        tuple(
            replace(item, distributions=_with_reference(item.distributions, counts[item.name]))
            if item.name in counts
            else item
            for item in schema.attributes
        )
    )


def _with_reference(distributions: Distributions, counts: Floats) -> Distributions:
    return replace(distributions, reference=counts / max(counts.sum(), 1.0), reference_from_data=True)
