"""A first policy for an undescribed table: every guess is written down with its reason.

The draft works as it stands, and publishes little rather than much: what it does not know is generalized. It is a
starting point for a person all the same: names and shapes of columns say little about what an attacker knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import polars as pl

from polyseme.kernel.errors import TableError
from polyseme.policy.drafting.hierarchies import Proposal, propose
from polyseme.policy.drafting.observation import Looked, look
from polyseme.policy.drafting.protection import Tried, protecting_lines
from polyseme.policy.drafting.roles import Guess, guess, record_key_of
from polyseme.tables.codes import as_series
from polyseme.tables.io.dataset import FilesSource
from polyseme.tables.io.dialects import WORDS_FOR_MISSING, Dialect, Respelled
from polyseme.tables.io.source import Source
from polyseme.tables.io.text import CsvSource
from polyseme.tables.io.workbooks import WorkbookSource
from polyseme.tables.profile import Profile

__all__ = ["Draft", "Taken", "draft", "guesses"]

_K = 5
_SUPPRESSION = 0.05
_LATTICE = 1_000_000
"""Combinations of levels up to which a search for the best one is proposed."""
_TRUTH_WORDS = ("yes", "no", "true", "false", "null", "on", "off", "y", "n")
_HEAD = """\
# Drafted from {name} ({rows:,} rows). Every line is a guess: check it before use.
# Roles: identifier (dropped), quasi-identifier (others may know it: generalized until {k} {units} share it),
# sensitive (a secret: published as a set of candidates), sensitive-qid (both), insensitive (published as it is).
# This file reveals parts of the table where it says so: ranges, and values of sensitive columns.
# For the head of a report, and for readers of the release: about: {{title: ..., publisher: ..., version: 1}}"""
_REPEATS = (
    "# This column repeats like the number of a person: people are counted, not rows. Remove the line if the column",
    "# is something else.",
)
_NOTHING_SENSITIVE = """\
# No column looks sensitive, neither by its name nor by its values: say which are (role: sensitive, protect: ...)."""


@dataclass(frozen=True)
class Draft:
    """What was found out about a table, from which a policy is written.

    words      those that stand for "no value"
    guesses    the role of each column
    proposals  the hierarchy of each quasi-identifier, by name
    record_key the column that says whose each row is; None where no column looks like it
    tried      promises that were planned while the policy was written
    """

    source: Source
    words: tuple[str, ...]
    columns: tuple[Looked, ...]
    guesses: tuple[Guess, ...]
    proposals: dict[str, Proposal]
    record_key: str | None = None
    tried: Tried = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, source: Source) -> Draft:
        """Look at a table, several times: a profile of it is read once."""
        words = _words_for_missing(source)
        columns = look(source, words)
        if not columns or columns[0].rows == 0:
            raise TableError(f"{source.name}: the table has no rows", "a policy is drafted from a table with records")
        if not source.typed:
            _refuse_missing_header(columns, source)
        guesses = tuple(map(guess, columns))
        person = record_key_of(source, words, columns, guesses)
        guesses = tuple(
            _person(column) if column.name == person else found for column, found in zip(columns, guesses, strict=True)
        )
        quasi = [column for column, found in zip(columns, guesses) if found.role == "quasi-identifier"]
        return cls(source, words, tuple(columns), guesses, {column.name: propose(column) for column in quasi}, person)

    @property
    def searchable(self) -> bool:
        """Whether the best combination of levels may be looked for."""
        return prod(proposal.levels for proposal in self.proposals.values()) <= _LATTICE

    def policy(self, single_levels: bool) -> str:
        """The policy, in YAML.

        single_levels  whether each quasi-identifier is shown at one level for all records, or as each class allows
        """
        units = "rows" if self.record_key is None else "people"
        lines = _HEAD.format(name=self.source.name, rows=self.columns[0].rows, k=_K, units=units).split("\n")
        if not any(found.role == "sensitive" for found in self.guesses):
            lines.append(_NOTHING_SENSITIVE)
        lines += ["", *_table_lines(self.source, self.words), "attributes:"]
        for column, found in zip(self.columns, self.guesses):
            lines += self._attribute_lines(column, found)
        return "\n".join([*lines, *self._method_lines(single_levels)]) + "\n"

    def _attribute_lines(self, column: Looked, found: Guess) -> list[str]:
        lines = [f"  {_name(column.name)}:", f"    role: {found.role}   # {found.why}"]
        if found.role == "sensitive":
            return [*lines, *protecting_lines(column, self.tried)]
        if column.name not in self.proposals:
            return lines
        proposal = self.proposals[column.name]
        if not self.source.typed and column.numeric and column.integer and not column.missing:
            lines.append("    type: integer   # every value is read back as written")
        return [*lines, f"    hierarchy: {proposal.hierarchy}   # {proposal.why}"]

    def _method_lines(self, single_levels: bool) -> list[str]:
        if not self.proposals:
            return [] if self.record_key is None else ["", *_REPEATS, f"record-key: {_name(self.record_key)}"]
        few = self.columns[0].rows < _K
        lines = [
            "",
            *self._key_lines(),
            *([f"# The table has fewer than {_K} records: nothing can be published like this."] if few else []),
            f"models: [{{k-anonymity: {{k: {_K}}}}}]",
        ]
        if single_levels:
            units = "rows are left out" if self.record_key is None else "people lose a row"
            why = f"# One level for each column; at most {_SUPPRESSION:.0%} of the {units} for it."
            other = "# Columns that come out as * lose less with method: {mondrian: {}}, or with other hierarchies."
            return [*lines, why, other, f"method: {{full-domain: {{suppression: {_SUPPRESSION}}}}}"]
        why = f"# Ranges that differ from class to class: one level for each of {len(self.proposals)} columns would"
        other = "# leave little. With fewer quasi-identifiers try method: {full-domain: {suppression: 0.05}}."
        return [*lines, why, other, "method: {mondrian: {}}"]

    def _key_lines(self) -> list[str]:
        """What classes count: people where a column says whose each row is, and rows otherwise."""
        if self.record_key is not None:
            return [
                *_REPEATS,
                f"# {_K} people, not rows, share the values that others may know. More is safer and coarser.",
                f"record-key: {_name(self.record_key)}",
            ]
        return [
            f"# An attacker who knows the quasi-identifiers of a person finds at least {_K} rows. More is safer and",
            "# coarser. These are rows, not people: if people have several, say which column names them, with",
            "# record-key: COLUMN.",
        ]


def _person(column: Looked) -> Guess:
    said = f"{'' if column.counted else 'about '}{column.distinct:,} values in {column.rows:,} rows"
    return Guess("identifier", f"seems to say whose each row is: {said}; dropped")


@dataclass(frozen=True)
class Taken:
    """What a column is taken for, and why; what a draft says of its treatment is left out."""

    name: str
    role: str
    why: str


def guesses(source: Source) -> tuple[Taken, ...]:
    """The roles that a draft gives the columns of a table."""
    made = Draft.of(source)
    found = zip(made.columns, made.guesses, strict=True)
    return tuple(Taken(column.name, each.role, each.why.partition(";")[0]) for column, each in found)


def draft(source: Source) -> str:
    """A commented policy, in YAML, for a table; nothing is tried out."""
    made = Draft.of(source)
    return made.policy(made.searchable)


def _refuse_missing_header(columns: Sequence[Looked], source: Source) -> None:
    """Refuse a table without a header: its "names" also occur as values of their columns."""
    alike = sum(column.name in column.values for column in columns)
    if 2 * alike > len(columns):
        raise TableError(
            f"{source.name}: the first line looks like a record, not like column names "
            f"({alike} of {len(columns)} occur again among the values below them)",
            "put a line with the names of the columns first",
        )


def _words_for_missing(source: Source) -> tuple[str, ...]:
    if source.typed:
        return ("",)
    found: set[str] = set()
    options = pl.Series(WORDS_FOR_MISSING).implode()
    for batch in source.batches():
        for index in range(batch.num_columns):
            series = as_series(batch.column(index))
            found.update(series.filter(series.str.strip_chars().is_in(options)).unique().to_list())
    # As they are written: some tables have a blank after every separator.
    return ("", *sorted(found, key=lambda word: (WORDS_FOR_MISSING.index(word.strip()), word)))


def _table_lines(source: Source, words: Sequence[str]) -> list[str]:
    dialect = Dialect()
    source = source.inner if isinstance(source, Profile) else source
    if isinstance(source, Respelled):
        dialect, source = source.dialect, source.inner
    if isinstance(source, FilesSource):
        source = source.first
    if isinstance(source, WorkbookSource) and source.sheet is not None:
        return ["table:", f"  sheet: {json.dumps(source.sheet, ensure_ascii=False)}", ""]
    if not isinstance(source, CsvSource):
        return []
    separator = json.dumps(source.separator)
    lines = ["table:", f"  separator: {separator}"]
    if source.encoding != "utf-8":
        lines.append(f"  encoding: {source.encoding}")
    if dialect.decimal != "point":
        lines.append(f"  decimal: {dialect.decimal}")
    if dialect.dates is not None:
        lines.append(f"  dates: {dialect.dates}")
    lines.append(f'  missing-values: {json.dumps(list(words))}   # words that stand for "no value"')
    return [*lines, ""]


def _name(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name) and name.lower() not in _TRUTH_WORDS
    return name if plain else json.dumps(name, ensure_ascii=False)
