"""The column that says whose each row is, where one repeats like an identifier: 929 values in 1,858 rows.

A column is proposed that looks like the number of a person, has a value in every row, and repeats; and within whose
values what does not change about a person does not change: sex and date of birth, and most quasi-identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from polyseme.policy.drafting.looking import Looked
from polyseme.policy.drafting.roles import Guess
from polyseme.tables.coding.codes import as_series
from polyseme.tables.io.source import Source

__all__ = ["record_key_of"]

_PEOPLE = 20
"""Different values from which on a column may name people; a judgment."""
_MANY_ROWS = 20
"""Rows for each value beyond which a column is a group rather than a person; a judgment."""
_REPEATS = 0.95
"""Different values for each row from which on hardly any person has several."""
_CONSTANT = 0.9
"""The share of people with several rows who have one value in all of them, for it to be theirs; a judgment."""
_DENSE = 1.5
"""Whole numbers that are given one after the other lie in a range that is at most so many times their number."""
_PERSON = re.compile(
    r"p?id|ids|uuid|guid|key|code|number|no|nr|num|mrn|nhs|ssn|person|persons|patient|patients|subject|participant|client"
    r"|customer|member|respondent|user|pupil|student|employee|case|pseudonym"
)
_LASTING = re.compile(r"(sex|gender|birth|born|dob).*")


def record_key_of(
    source: Source, words: Sequence[str], columns: Sequence[Looked], guesses: Sequence[Guess]
) -> str | None:
    """The name of the column; None where no column, or more than one, looks like it."""
    candidates = [column.name for column in columns if _repeats(column) and _names_people(column)]
    known = [
        column.name
        for column, found in zip(columns, guesses, strict=True)
        if found.role == "quasi-identifier" and column.distinct > 1 and not column.opaque
    ]
    fitting = [name for name in candidates if _lasts(source, words, name, [other for other in known if other != name])]
    return fitting[0] if len(fitting) == 1 else None


def _repeats(column: Looked) -> bool:
    """Whether most people could have several rows, and none of them very many."""
    some = not column.missing and not column.opaque and column.distinct >= _PEOPLE
    return some and column.own <= _REPEATS and column.rows <= _MANY_ROWS * column.distinct


def _names_people(column: Looked) -> bool:
    """Whether it reads like numbers or codes of people, by its name or by what is in it."""
    if column.dates or not (column.text or (column.numeric and column.integer)):
        return False
    if any(map(_PERSON.fullmatch, _words(column.name))):
        return True
    return (
        column.numeric and column.high - column.low + 1 <= _DENSE * column.distinct and column.distinct >= 5 * _PEOPLE
    )


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def _lasts(source: Source, words: Sequence[str], name: str, others: Sequence[str]) -> bool:
    """Whether rows with the same value agree in what does not change about a person."""
    if not others:
        return True
    rows = pl.concat(
        [
            pl.DataFrame({other: as_series(batch.column(other), words) for other in (name, *others)})
            for batch in source.batches([name, *others])
        ]
    )
    each = rows.group_by(name).agg(pl.len().alias("\0rows"), *(pl.col(other).n_unique() for other in others))
    several = each.filter(pl.col("\0rows") > 1)
    constant = {other: (several[other] == 1).sum() >= _CONSTANT * several.height for other in others}
    lasting = [other for other in others if any(map(_LASTING.fullmatch, _words(other)))]
    return all(constant[other] for other in lasting) and 2 * sum(constant.values()) >= len(constant)
