"""Strata: records that can have the same values of a protected attribute, and the mechanism made for them.

A policy can declare that some values are impossible where untouched attributes have certain values. The values that
are impossible for a record are those of every constraint that applies to it; records with the same impossible values
form a *stratum*, and each stratum has a mechanism over the values that are left. So no decoy gives itself away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.distances.structure import Bools, Ints
from polyseme.errors import ImpossibleError, InternalError, Problem
from polyseme.mechanism import Mechanism
from polyseme.schema import Constraint
from polyseme.tables.codes import as_series, label_text

__all__ = ["STRATA_LIMIT", "Strata", "Stratum", "as_text", "possible_exclusions", "texts_of"]

STRATA_LIMIT = 64
"""Most strata of one attribute: each has a mechanism of its own to fit and to publish."""

_STATES = STRATA_LIMIT**2


def as_text(series: pl.Series) -> pl.Series:
    """A column as conditions see it: text, whole numbers without a decimal point, whatever file they came from.

    >>> as_text(pl.Series([30.0, 1.5])).to_list(), as_text(pl.Series([True])).to_list()
    (['30', '1.5'], ['true'])
    """
    return series.cast(pl.String).str.replace(r"^(-?\d+)\.0$", "$1")


def texts_of(values: Iterable[Any]) -> list[str]:
    """Declared values as the texts that `as_text` gives.

    >>> texts_of([30, 30.0, True, "O80"])
    ['30', '30', 'true', 'O80']
    """
    return as_text(pl.Series([label_text(value) for value in values], dtype=pl.String)).to_list()


def possible_exclusions(constraints: Sequence[Constraint]) -> tuple[tuple[int, ...], ...]:
    """Every set of impossible values that a record can have; first the empty one, then by size and code.

    Constraints that can never apply together (another value of the same attribute) are not united.

    >>> male, female = Constraint({"sex": ("m",)}, (0, 1)), Constraint({"sex": ("f",)}, (4,))
    >>> possible_exclusions([male, female, Constraint({"age": ("0-9",)}, (1, 2))])
    ((), (4,), (0, 1), (1, 2), (0, 1, 2), (1, 2, 4))
    """
    everything = frozenset(range(len(constraints)))
    # Which constraints may still apply, given what the attributes looked at so far have been.
    states = {everything}
    for name in dict.fromkeys(name for constraint in constraints for name in constraint.when):
        silent = {index for index in everything if name not in constraints[index].when}
        texts = {text for constraint in constraints for text in constraint.when.get(name, ())}
        # A text that nobody mentions leaves only those that do not ask for this attribute.
        patterns = {frozenset(silent)} | {
            frozenset(silent | {index for index in everything - silent if text in constraints[index].when[name]})
            for text in texts
        }
        states = {state & pattern for state in states for pattern in patterns}
        if len(states) > _STATES:
            break
    unions = {tuple(sorted({code for index in state for code in constraints[index].excluded})) for state in states}
    if len(states) > _STATES or len(unions) > STRATA_LIMIT:
        raise ImpossibleError(
            Problem(
                "$.impossible",
                f"more than {STRATA_LIMIT} combinations of impossible values can occur",
                "each of them needs a mechanism of its own: declare fewer or coarser ones",
            )
        )
    return tuple(sorted(unions, key=lambda union: (len(union), union)))


@dataclass(frozen=True, eq=False)
class Stratum:
    """Records for which the same values are impossible.

    excluded   codes of the impossible values, ascending
    size       F, the number of values of the whole domain
    mechanism  over the values that are left, in the order of the domain
    """

    excluded: tuple[int, ...]
    size: int
    mechanism: Mechanism

    @cached_property
    def allowed(self) -> Ints:
        """The codes in the domain of the values that are left."""
        return np.delete(np.arange(self.size), list(self.excluded))

    @cached_property
    def forbids(self) -> Bools:
        """Whether each value of the domain is impossible: (F,)."""
        forbidden = np.zeros(self.size, dtype=bool)
        forbidden[list(self.excluded)] = True
        return forbidden

    def narrow(self, codes: Ints) -> Ints:
        """Codes of the domain as codes of the stratum's mechanism."""
        if not self.excluded:
            return codes
        if self.forbids[codes].any():
            raise InternalError("a value that is impossible for its record reached a mechanism")
        return np.searchsorted(self.allowed, codes)

    def widen(self, codes: Ints) -> Ints:
        """Codes of the stratum's mechanism as codes of the domain."""
        return self.allowed[codes] if self.excluded else codes


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of one attribute; the first is that of records to which no constraint applies."""

    constraints: tuple[Constraint, ...]
    members: tuple[Stratum, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The untouched attributes that decide."""
        return tuple(dict.fromkeys(name for constraint in self.constraints for name in constraint.when))

    def places(self, columns: Mapping[str, pa.Array | pl.Series], rows: int) -> Ints:
        """Which member each record belongs to: (rows,)."""
        place = np.zeros(rows, dtype=np.int64)
        if not self.constraints:
            return place
        texts = {name: as_text(_series(columns[name])) for name in self.columns}
        unions: list[frozenset[int]] = [frozenset()]
        for constraint in self.constraints:
            here = np.ones(rows, dtype=bool)
            for name, wanted in constraint.when.items():
                matches = texts[name].is_in(pl.Series(wanted, dtype=pl.String).implode()).fill_null(False)
                here &= matches.to_numpy()
            step = np.arange(len(unions))
            for before in np.unique(place[here]).tolist():
                union = unions[before].union(constraint.excluded)
                if union not in unions:
                    unions.append(union)
                step[before] = unions.index(union)
            place = np.where(here, step[place], place)
        index = {frozenset(member.excluded): number for number, member in enumerate(self.members)}
        return np.array([index.get(union, -1) for union in unions], dtype=np.int64)[place]

    def impossible(self, codes: Ints, places: Ints) -> int:
        """How many of the true values (negative ones are missing) are impossible for their records."""
        found = 0
        for number, member in enumerate(self.members):
            if member.excluded:
                here = codes[(places == number) & (codes >= 0)]
                found += int(member.forbids[here].sum())
        return found

    def sample(self, places: Ints, draw: Callable[[Stratum, Ints], Ints]) -> Ints:
        """Sets in codes of the domain, stratum by stratum: `draw` gives those of some rows in codes of the stratum."""
        if len(self.members) == 1:
            return draw(self.members[0], np.arange(len(places)))
        sets = np.empty((len(places), self.members[0].mechanism.l), dtype=np.int64)
        for number, member in enumerate(self.members):
            rows = np.flatnonzero(places == number)
            if len(rows):
                sets[rows] = member.widen(draw(member, rows))
        return sets


def _series(column: pa.Array | pl.Series) -> pl.Series:
    return column if isinstance(column, pl.Series) else as_series(column)
