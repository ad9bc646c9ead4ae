"""Priors that depend on untouched attributes: one for every combination of theirs that a file lists.

    income:
      prior: {by: [sex, age-band], file: income-by-sex-age.csv}

The file has a column for each attribute of `by`, in this order, then the value and a number: `f,30-39,low,120`. Lines
that begin with `#` are remarks. `release: EARLIER` takes the numbers from the estimate of an earlier release.

Records whose combination is not listed have the prior of all that are listed together, the *margin*. A combination in
which some values have no number, or 0, is too thin to say how rare they are. Where k of them are missing, k times the
smallest number of the combination is added to it, spread like the margin: a few people say little, many say much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyseme.arrays import Floats
from polyseme.errors import PolicyError, nearest
from polyseme.files.delimited import Row, read_rows, without_remarks
from polyseme.policy import Policy
from polyseme.policy.attributes import ConditionalShares
from polyseme.policy.reading import Reader
from polyseme.schema import Attribute, Condition, Conditional, Distributions, Domain, Role, Schema
from polyseme.spelling import spellings

__all__ = ["with_conditional_priors"]


def with_conditional_priors(schema: Schema, policy: Policy, reader: Reader) -> Schema:
    """The schema with the priors that the policy gives by other attributes."""
    asked = {item.name: item.prior for item in policy.attributes if isinstance(item.prior, ConditionalShares)}
    return Schema(
        tuple(
            _with_priors(item, asked[item.name], schema, policy, reader.at(item.name, None).at("prior", None))
            if item.name in asked and item.domain is not None
            else item
            for item in schema.attributes
        )
    )


def _with_priors(
    attribute: Attribute, asked: ConditionalShares, schema: Schema, policy: Policy, reader: Reader
) -> Attribute:
    known = len(reader.problems)
    _check_columns(asked.by, schema, reader.at("by", None))
    numbers = _numbers(asked, attribute, policy, reader.at("release" if asked.release else "file", None))
    if len(reader.problems) > known:
        return attribute
    expected, everybody = attribute.distributions, sum(numbers.values(), np.zeros(1))
    return replace(
        attribute,
        distributions=replace(expected, prior=_shares(everybody)),
        conditional=tuple(
            Conditional(
                Condition({name: (text,) for name, text in zip(asked.by, texts)}),
                Distributions(_shares(found), expected.reference, expected.reference_from_data),
                float(found.sum() / everybody.sum()),
            )
            for texts, found in sorted(numbers.items())
        ),
    )


def _shares(numbers: Floats) -> Floats:
    shares: Floats = numbers / numbers.sum()
    return shares


def _check_columns(by: Sequence[str], schema: Schema, reader: Reader) -> None:
    """Refuse columns that are not published as they are: analysts could not tell the strata apart."""
    untouched = [item.name for item in schema.attributes if not item.protected and item.role is not Role.IDENTIFIER]
    for name in by:
        if name not in schema.by_name:
            reader.problem(f"no attribute '{name}'", nearest(name, untouched))
        elif name not in untouched:
            reader.problem(f"'{name}' is not published as it is", f"a prior can depend on: {', '.join(untouched)}")


def _numbers(
    asked: ConditionalShares, attribute: Attribute, policy: Policy, reader: Reader
) -> Mapping[tuple[str, ...], Floats]:
    """The numbers of all values, for each combination of the attributes of `by`; no message quotes the file."""
    if asked.rows is not None:
        looked_up = [(number, list(cells)) for number, cells in enumerate(asked.rows, start=1)]
        return _collected(looked_up, attribute.domain, reader) if attribute.domain is not None else {}
    try:
        file = policy.files.file(asked.file)
        rows = without_remarks(read_rows(file))
    except PolicyError as error:
        reader.adopt(error)
        return {}
    width = len(asked.by) + 2
    # A first line that does not end in a number is a header.
    body = rows[1:] if rows and not _is_number(rows[0][1][-1]) else rows
    wrong = [line for line, cells in body if len(cells) != width or not _is_number(cells[-1])]
    if wrong or not body:
        where = f", line {wrong[0]}" if wrong else ""
        columns = f"{', '.join(asked.by)}, a value and a number from 0"
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
