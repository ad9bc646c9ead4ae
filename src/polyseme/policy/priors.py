"""Public distributions of a policy: priors, references, conditional priors, impossibilities.

Priors are for designs, references for closeness. A prior can depend on untouched attributes, with one distribution for
every combination that a file lists:

    income:
      prior: {by: [sex, age-band], file: income-by-sex-age.csv}

The file has a column for each attribute of `by`, in this order, then the value and a number: `f,30-39,low,120`. Lines
that begin with `#` are remarks. `release: EARLIER` takes the numbers from the estimate of an earlier release.

Records whose combination is not listed have the prior of all that are listed together, the *margin*. A combination in
which some values have no number, or 0, is too thin to say how rare they are. Where k of them are missing, k times the
smallest number of the combination is added to it, spread like the margin: a few people say little, many say much.

Combinations that are declared impossible are constraints of the attributes they are about.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.delimited import Row, read_rows, without_remarks
from polyseme.kernel.documents import Reader, kind_of
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.spelling import spelling, spellings
from polyseme.policy import Exclusion, Policy
from polyseme.policy.attributes import FROM_DATA, ConditionalShares, Shares
from polyseme.schema import Attribute, Condition, Conditional, Constraint, Distributions, Domain, Role, Schema
from polyseme.tables.codes import as_series, encode
from polyseme.tables.io.source import Source

__all__ = ["kept_columns", "matching", "read_shares", "with_conditional_priors", "with_constraints", "with_references"]


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
    """These columns, batch by batch, of the records that will be published.

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
    """References that the policy asks to take from the table, counted in one pass.

    They are published.
    """
    from_data = [
        item for item in policy.attributes if item.reference == FROM_DATA and schema[item.name].domain is not None
    ]
    if not from_data:
        return schema
    if source is None:
        for item in from_data:
            reader.at(item.name, None).at("reference", None).problem("needs the table", "give it with --data")
        return schema
    counts: dict[str, Floats] = {
        item.name: np.zeros(cast("Domain", schema[item.name].domain).size) for item in from_data
    }
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


def with_conditional_priors(schema: Schema, policy: Policy, reader: Reader) -> Schema:
    """The schema with the priors that the policy gives by other attributes."""
    declared = {item.name: item.prior for item in policy.attributes if isinstance(item.prior, ConditionalShares)}
    return Schema(
        tuple(
            _with_priors(item, declared[item.name], schema, policy, reader.at(item.name, None).at("prior", None))
            if item.name in declared and item.domain is not None
            else item
            for item in schema.attributes
        )
    )


def _with_priors(
    attribute: Attribute, prior: ConditionalShares, schema: Schema, policy: Policy, reader: Reader
) -> Attribute:
    known = len(reader.problems)
    _check_columns(prior.by, schema, reader.at("by", None))
    numbers = _numbers(prior, attribute, policy, reader.at("release" if prior.release else "file", None))
    if len(reader.problems) > known:
        return attribute
    expected, everyone = attribute.distributions, sum(numbers.values(), np.zeros(1))
    return replace(
        attribute,
        distributions=replace(expected, prior=_shares(everyone)),
        conditional=tuple(
            Conditional(
                Condition({name: (text,) for name, text in zip(prior.by, texts)}),
                Distributions(_shares(found), expected.reference, expected.reference_from_data),
                float(found.sum() / everyone.sum()),
            )
            for texts, found in sorted(numbers.items())
        ),
    )


def _shares(numbers: Floats) -> Floats:
    shares: Floats = numbers / numbers.sum()
    return shares


def _check_columns(by: Sequence[str], schema: Schema, reader: Reader) -> None:
    """Refuse columns that are not published unchanged: analysts could not see the strata."""
    untouched = [item.name for item in schema.attributes if not item.protected and item.role is not Role.IDENTIFIER]
    for name in by:
        if name not in schema.by_name:
            reader.problem(f"no attribute '{name}'", nearest(name, untouched))
        elif name not in untouched:
            reader.problem(f"'{name}' is not published as it is", f"a prior can depend on: {', '.join(untouched)}")


def _numbers(
    prior: ConditionalShares, attribute: Attribute, policy: Policy, reader: Reader
) -> Mapping[tuple[str, ...], Floats]:
    """The numbers of all values for each combination of `by`; no message quotes the file."""
    if prior.rows is not None:
        looked_up = [(number, list(cells)) for number, cells in enumerate(prior.rows, start=1)]
        return _collected(looked_up, attribute.domain, reader) if attribute.domain is not None else {}
    try:
        file = policy.files.file(prior.file)
        rows = without_remarks(read_rows(file))
    except PolicyError as error:
        reader.adopt(error)
        return {}
    width = len(prior.by) + 2
    # A first line that does not end in a number is a header.
    body = rows[1:] if rows and not _is_number(rows[0][1][-1]) else rows
    wrong = [line for line, cells in body if len(cells) != width or not _is_number(cells[-1])]
    if wrong or not body:
        where = f", line {wrong[0]}" if wrong else ""
        columns = f"{', '.join(prior.by)}, a value and a number from 0"
        reader.problem(f"no priors in the file '{file.name}'{where}", f"a line holds {columns}")
        return {}
    return _collected(body, attribute.domain, reader) if attribute.domain is not None else {}


def _collected(rows: Sequence[Row], domain: Domain, reader: Reader) -> Mapping[tuple[str, ...], Floats]:
    codes = {text: code for code, text in enumerate(spellings(domain.values))}
    found: dict[tuple[str, ...], Floats] = {}
    unknown, repeated = 0, 0
    *by, values, numbers = zip(*(cells for _, cells in rows))
    for combination, value, number in zip(zip(*map(spellings, by)), spellings(values), numbers):
        if value not in codes:
            unknown += 1
            continue
        shares = found.setdefault(combination, np.full(domain.size, np.nan))
        repeated += not np.isnan(shares[codes[value]])
        shares[codes[value]] = float(number)
    found = {combination: np.nan_to_num(shares) for combination, shares in found.items()}
    if unknown:
        reader.problem(f"{unknown:,} of the {len(rows):,} lines are about values that are not in the domain")
    if repeated:
        reader.problem(f"{repeated:,} of the {len(rows):,} lines repeat a combination and its value")
    whole = sum(found.values(), np.zeros(domain.size))
    # A prior of zero for a value stays zero whatever the set, so that sets of such values have no posterior.
    without = int(np.count_nonzero(whole <= 0.0))
    if without:
        hint = "leave values that no person can have out of the domain, and give rare ones a small number somewhere"
        reader.problem(f"{without:,} of the {domain.size:,} values have no share in any combination", hint)
        return found
    return {texts: _filled(shares, whole / whole.sum()) for texts, shares in found.items() if shares.any()}


def _filled(numbers: Floats, margin: Floats) -> Floats:
    """The numbers of a combination, with something of the margin where values are missing.

    >>> _filled(np.array([3.0, 1.0, 0.0, 0.0]), np.array([0.25, 0.25, 0.25, 0.25]))
    array([3.5, 1.5, 0.5, 0.5])
    """
    missing = int(np.count_nonzero(numbers == 0.0))
    filled: Floats = numbers + missing * numbers[numbers > 0.0].min() * margin
    return filled


def _is_number(text: str) -> bool:
    try:
        return 0.0 <= float(text) < np.inf
    except ValueError:
        return False


def with_constraints(
    schema: Schema,
    exclusions: Sequence[Exclusion],
    from_data: Sequence[str],
    unspoken: Sequence[str] = (),
    elsewhere: Container[int] = (),
) -> tuple[Schema, tuple[str, ...]]:
    """The schema with its constraints, and remarks.

    Every problem of the policy's `impossible` at once.

    from_data  attributes whose domain was found in the table: a value that does not occur there needs no exclusion, but
               may be one that is written otherwise
    unspoken   attributes whose values must not appear in a message
    elsewhere  the places of exclusions that are no constraints on records
    """
    if not exclusions:
        return schema, ()
    problems: list[Problem] = []
    remarks: list[str] = []
    found: dict[str, list[Constraint]] = {}
    for index, exclusion in enumerate(exclusions):
        if index in elsewhere:
            continue
        reader = Reader(None, f"$.impossible[{index}]", problems)
        when = _when(exclusion, schema, reader.at("when", None))
        excluded = _excluded(exclusion, schema, exclusion.attribute in from_data, reader, remarks, unspoken)
        if excluded:
            constraint = Constraint(when, excluded, reader.where, exclusion.may_be_empty)
            found.setdefault(exclusion.attribute, []).append(constraint)
    if problems:
        raise PolicyError(problems)
    constrained = Schema(
        tuple(replace(item, constraints=tuple(found.get(item.name, ()))) for item in schema.attributes)
    )
    return constrained, tuple(remarks)


def _when(exclusion: Exclusion, schema: Schema, reader: Reader) -> Condition:
    """The condition as texts, over columns published unchanged: strata must be visible."""
    for name, values in exclusion.when.items():
        inner = reader.at(name, None)
        attribute = schema.by_name.get(name)
        if attribute is None:
            inner.problem(f"no attribute '{name}'", nearest(name, _untouched(schema)))
        elif attribute.protected or attribute.role is Role.IDENTIFIER:
            published = "published as sets" if attribute.protected else "not published"
            inner.problem(f"'{name}' is {published}", f"conditions are about: {', '.join(_untouched(schema))}")
        if not values:
            inner.problem("no values")
        for value in values:
            if value is None or isinstance(value, list | dict):
                inner.problem(f"expected a value, found {kind_of(value)}")
    return Condition({name: tuple(dict.fromkeys(spellings(values))) for name, values in exclusion.when.items()})


def _untouched(schema: Schema) -> list[str]:
    return [item.name for item in schema.attributes if not item.protected and item.role is not Role.IDENTIFIER]


def _excluded(
    exclusion: Exclusion,
    schema: Schema,
    from_data: bool,
    reader: Reader,
    remarks: list[str],
    unspoken: Sequence[str],
) -> tuple[int, ...]:
    attribute = schema.by_name.get(exclusion.attribute)
    protected = [item.name for item in schema.protected]
    if attribute is None or attribute.domain is None or not attribute.protected:
        what = f"no attribute '{exclusion.attribute}'" if attribute is None else "published as it is: it has no decoys"
        hint = nearest(exclusion.attribute, protected) if protected else "give the table with --data"
        reader.at("attribute", None).problem(what, hint)
        return ()
    labels = {label: code for code, label in enumerate(spellings(attribute.domain.values))}
    codes: set[int] = set()
    for index, value in enumerate(exclusion.values):
        found_codes = matching(value, labels)
        codes.update(found_codes)
        inner = reader.at("values", None).at(index, None)
        if not found_codes and from_data:
            remarks.append(f"{inner.where}: '{value}' does not occur in the table; check its spelling there")
        elif not found_codes:
            hint = nearest(str(value), labels) if attribute.name not in unspoken else ""
            inner.problem(f"'{value}' is not in the domain of '{attribute.name}'", hint)
    if len(codes) == attribute.domain.size:
        reader.at("values", None).problem("every value of the domain is impossible")
    return tuple(sorted(codes))


def matching(value: Any, labels: Mapping[str, int]) -> list[int]:
    """The code of a value, or the codes of all that begin with it when it ends in a star: `O8*`."""
    text = spelling(value)
    if text in labels:
        return [labels[text]]
    return [code for label, code in labels.items() if label.startswith(text[:-1])] if text.endswith("*") else []
