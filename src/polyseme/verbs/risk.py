"""`risk`: what k, l and t a table has, without a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

import pyarrow as pa

from polyseme.kernel.errors import Problem, TableError, nearest
from polyseme.kernel.work import verb
from polyseme.policy.drafting import Taken, guesses
from polyseme.policy.foreign import read_undescribed
from polyseme.publishing.inputs import names_given, table_given
from polyseme.results.risk import Choice, Risk
from polyseme.scrutiny.metrics.risk import measure
from polyseme.tables.io.source import Source, TableOptions
from polyseme.tables.profile import Profile

__all__ = ["risk"]

_HELD = 128 << 20
"""Bytes of a table that are held in memory while its columns are looked at; the rest waits in a temporary file."""


@verb(read=1, exposure=2)
def risk(
    data: Any,
    qi: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] = (),
    person: str | None = None,
    **written: Unpack[TableOptions],
) -> Risk:
    """The risks of a table's records: class sizes, what classes reveal, which columns matter.

    data       a path, or a polars, pandas or pyarrow table, made by whatever tool
    qi         the columns that an attacker may know; when None, those that `init` chooses, and `choices` says why
    sensitive  the columns that must stay secret
    person     the column that says whose each record is: then people are counted, a person once in each class
    """
    # Where the columns are named, the table is gone through once and nothing of it is held.
    source = Profile(table_given(data, **written), _HELD if qi is None else 0)
    judged = _distinct(sensitive)
    choices = _choices(source, judged, person) if qi is None else ()
    known = tuple(choice.name for choice in choices if choice.taken) if qi is None else _distinct(qi)
    whose = () if person is None else (person,)
    _require_usable(source, tuple(dict.fromkeys((*known, *judged, *whose))))
    table = read_undescribed(source, known, judged, person)
    return replace(measure(table.frame, known, judged, table.counts, table.people), choices=choices)


def _distinct(names: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names_given(names)))


def _choices(source: Source, sensitive: Sequence[str], person: str | None) -> tuple[Choice, ...]:
    """The role of every column; named sensitive columns and the person column are not guessed."""
    found = tuple(_choice(guess, sensitive, person) for guess in guesses(source))
    if not any(choice.taken for choice in found) and source.count():
        raise TableError(
            f"{source.name}: no column looks like something that others may know",
            "name those that they do, as in --qi age,sex",
        )
    return found


def _choice(guess: Taken, sensitive: Sequence[str], person: str | None) -> Choice:
    if guess.name == person:
        return Choice(guess.name, "identifier", "says whose each record is")
    if guess.name in sensitive:
        return Choice(guess.name, "sensitive", "as asked for")
    return Choice(guess.name, guess.role, guess.why)


def _require_usable(source: Source, names: Sequence[str]) -> None:
    problems = list(_problems(source, names))
    if problems:
        raise TableError(problems)


def _problems(source: Source, names: Sequence[str]) -> Iterator[Problem]:
    for name in names:
        if name not in source.schema.names:
            yield Problem(name, "the table has no such column", nearest(name, source.schema.names))
        elif _opaque(source.schema.field(name).type):
            hint = "leave the column out; candidates of a release are checked by `polyseme verify RELEASE`"
            yield Problem(name, "holds lists, records or bytes, which form no classes", hint)


def _opaque(kind: pa.DataType) -> bool:
    types = pa.types
    nested = types.is_nested(kind)
    return bool(nested or types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))
