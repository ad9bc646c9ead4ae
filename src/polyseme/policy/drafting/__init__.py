"""A first policy for an undescribed table: every guess is written down with its reason.

The draft works as it stands, and publishes little rather than much: what it does not know is generalized. It is a
starting point for a person all the same: names and shapes of columns say little about what an attacker knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import polars as pl

from polyseme.kernel.errors import PolicyError, TableError, nearest
from polyseme.policy.drafting.hierarchies import Proposal, propose, weight_line
from polyseme.policy.drafting.observation import Looked, look
from polyseme.policy.drafting.protection import Tried, promise_remark, protecting_lines
from polyseme.policy.drafting.roles import Guess, guess, record_key_of
from polyseme.schema import Role
from polyseme.tables.codes import as_series
from polyseme.tables.io.dataset import FilesSource
from polyseme.tables.io.dialects import WORDS_FOR_MISSING, Dialect, Respelled
from polyseme.tables.io.source import Source
from polyseme.tables.io.text import CsvSource
from polyseme.tables.io.workbooks import WorkbookSource
from polyseme.tables.profile import Profile

__all__ = ["ROLE_WORDS", "Draft", "DraftColumn", "Observed", "Taken", "chosen", "draft", "guesses", "remarks"]

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
_METHOD_REMARK = (
    "# One level for each column; at most {share} of the {units} for it.",
    "# Columns that come out as * lose less with method: {{mondrian: {{}}}}, or with other hierarchies.",
)
ROLE_WORDS: Mapping[str, str] = {
    "identifier": "dropped",
    "quasi-identifier": "others may know it: generalized",
    "sensitive": "a secret: published as a set of candidates",
    "sensitive-qid": "a secret that some may know: published as a set of candidates",
    "insensitive": "published as it is",
    "weight": "a survey weight: published rounded",
}
"""What becomes of a column with each role."""
_NOTHING_SENSITIVE = """\
# No column looks sensitive, neither by its name nor by its values: say which are (role: sensitive, protect: ...)."""


@dataclass(frozen=True)
class DraftColumn:
    """What a draft says of one column.

    role          the guess, and `reason`, why
    alternatives  the other roles that the column can have, the likeliest first
    kind          "number", "date", "text" or "other"
    distinct      how many different values it has; `counted` is false where that is an estimate
    missing       rows without a value
    """

    name: str
    role: str
    reason: str
    alternatives: tuple[str, ...]
    kind: str
    distinct: int
    counted: bool
    missing: int


class Draft(str):
    """The text of a first policy, with guess, reason and alternatives for each column.

    It is the text of the policy and works wherever a text does. `lines` drafts one column in another role.
    """

    _observed: Observed

    @classmethod
    def of(cls, source: Source, single_levels: bool | None = None) -> Draft:
        """Look at a table, and draft a policy for it.

        single_levels  whether each quasi-identifier is shown at one level for all records; None to decide by the
                       number of combinations alone
        """
        return Observed.of(source).draft(single_levels)

    @classmethod
    def _written(cls, text: str, observed: Observed) -> Draft:
        made = cls(text)
        made._observed = observed
        return made

    @property
    def records(self) -> int:
        """Rows of the table."""
        return self._observed.columns[0].rows

    @property
    def record_key(self) -> str | None:
        """The column that says whose each row is; None where no column looks like it."""
        return self._observed.record_key

    @cached_property
    def columns(self) -> tuple[DraftColumn, ...]:
        """The columns in the order of the table."""
        found = zip(self._observed.columns, self._observed.guesses, strict=True)
        return tuple(_column(column, guessed) for column, guessed in found)

    def lines(self, column: str, role: str) -> tuple[str, ...]:
        """The lines of a policy for a column in a role, its name first, indented as in the draft."""
        return tuple(self._observed.lines(column, role))

    def examples(self, column: str, most: int = 3) -> tuple[str, ...]:
        """Some values of a column, in their order; they are values of the table."""
        looked, _ = self._observed.found(column)
        numeric = looked.numeric and looked.finite
        ordered = sorted(looked.values, key=lambda value: (float(value) if numeric else 0.0, str(value)))
        return tuple(str(value) for value in ordered[:most])

    def to_dict(self) -> dict[str, Any]:
        """The draft and what it says of each column, ready for JSON; what `init --json` prints."""
        each = [asdict(column) | {"alternatives": list(column.alternatives)} for column in self.columns]
        return {"policy": str(self), "records": self.records, "record_key": self.record_key, "columns": each}

    def _repr_html_(self) -> str:
        from html import escape

        from polyseme.results.views.html import titled_table

        head = (("column", False), ("role", False), ("reason", False), ("or", False))
        rows = [(item.name, item.role, item.reason, ", ".join(item.alternatives)) for item in self.columns]
        note = "Every role is a guess: check it before use."
        table = titled_table(f"Draft for {self.records:,} records", head, rows, [note])
        return f"{table}<details><summary>Policy</summary><pre>{escape(str(self))}</pre></details>"


def _column(column: Looked, guessed: Guess) -> DraftColumn:
    kind = "number" if column.numeric and column.present else "date" if column.dates and column.present else "text"
    return DraftColumn(
        column.name,
        guessed.role,
        guessed.why,
        _alternatives(column, guessed.role),
        "other" if column.opaque else kind,
        column.distinct,
        column.counted,
        column.missing,
    )


def _alternatives(column: Looked, role: str) -> tuple[str, ...]:
    """Roles that a column could have instead; those that publish most come last."""
    if column.opaque:
        return ()
    order = ["quasi-identifier", "sensitive", "sensitive-qid", "identifier", "insensitive"]
    if role in ("sensitive", "sensitive-qid"):
        order = ["sensitive", "sensitive-qid", "quasi-identifier", "identifier", "insensitive"]
    if _may_weigh(column):
        order.append("weight")
    return tuple(other for other in order if other != role)


def _may_weigh(column: Looked) -> bool:
    return column.numeric and column.finite and column.present > 0 and column.low >= 0.0


@dataclass(frozen=True)
class Observed:
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
    def of(cls, source: Source) -> Observed:
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

    def draft(self, single_levels: bool | None = None) -> Draft:
        """The draft of a policy; see `Draft.of`."""
        return Draft._written(self.policy(self.searchable if single_levels is None else single_levels), self)

    def found(self, name: str) -> tuple[Looked, Guess]:
        """A column of the table, and its guess."""
        for column, guessed in zip(self.columns, self.guesses, strict=True):
            if column.name == name:
                return column, guessed
        names = [column.name for column in self.columns]
        raise TableError(f"{self.source.name}: no column '{name}'", nearest(name, names))

    def lines(self, name: str, role: str) -> list[str]:
        """The entry of a column in a role."""
        column, guessed = self.found(name)
        if role == guessed.role:
            return self._attribute_lines(column, guessed)
        if role not in ROLE_WORDS:
            raise PolicyError(f"no role '{role}'", nearest(role, ROLE_WORDS))
        if column.opaque:
            raise PolicyError(f"column '{name}' holds lists, records or bytes", "its role can only be identifier")
        if role == "weight" and not _may_weigh(column):
            raise PolicyError(f"column '{name}' is not a survey weight", "weights are numbers, none of them below 0")
        return self._attribute_lines(column, Guess(role, chosen(guessed.role)))

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
        if Role(found.role).is_secret:
            return [*lines, *protecting_lines(column, self.tried)]
        if found.role == "weight":
            return [*lines, weight_line(column)]
        if found.role != "quasi-identifier":
            return lines
        proposal = self.proposals.get(column.name) or propose(column)
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
            told = _method_remark(_SUPPRESSION, self.record_key is not None)
            return [*lines, *told, f"method: {{full-domain: {{loss: loss, suppression: {_SUPPRESSION}}}}}"]
        why = f"# Ranges that differ from class to class: one level for each of {len(self.proposals)} columns would"
        other = "# leave little. With fewer quasi-identifiers try method: {full-domain: {suppression: 0.05}}."
        return [*lines, why, other, "method: {mondrian: {}}"]

    def _key_lines(self) -> list[str]:
        """What classes count: people where a column says whose each row is, and rows otherwise."""
        told = list(_key_remark(_K, self.record_key is not None))
        if self.record_key is None:
            return told
        return [*_REPEATS, *told, f"record-key: {_name(self.record_key)}"]


def _key_remark(k: int, people: bool) -> tuple[str, ...]:
    if people:
        return (f"# {k} people, not rows, share the values that others may know. More is safer and coarser.",)
    return (
        f"# An attacker who knows the quasi-identifiers of a person finds at least {k} rows. More is safer and",
        "# coarser. These are rows, not people: if people have several, say which column names them, with",
        "# record-key: COLUMN.",
    )


def _method_remark(share: float, people: bool) -> tuple[str, ...]:
    units = "people lose a row" if people else "rows are left out"
    return tuple(line.format(share=f"{100 * share:.12g}%", units=units) for line in _METHOD_REMARK)


def chosen(role: str) -> str:
    """What stands beside a role that a person has chosen.

    role  what the draft said
    """
    return f"your choice; the draft said {role}"


def remarks(document: Any) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The remarks of a draft that repeat what a policy says, by the place that they are about.

    One line for the place of a key, which stands beside its value; for `()`, `models` and `method` whole lines.
    """
    given = document if isinstance(document, Mapping) else {}
    people = "record-key" in given
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    k = _asked_k(given.get("models"))
    if k is not None:
        head = _HEAD.format(name="", rows=0, k=k, units="people" if people else "rows").split("\n")
        found[()] = (head[1],)
        found["models",] = _key_remark(k, people)
    method = given.get("method")
    levels = method.get("full-domain") if isinstance(method, Mapping) else None
    share = levels.get("suppression", 0) if isinstance(levels, Mapping) else None
    if isinstance(share, int | float) and not isinstance(share, bool):
        found["method",] = _method_remark(share, people)
    attributes = given.get("attributes")
    for name, entry in attributes.items() if isinstance(attributes, Mapping) else ():
        remark = promise_remark(entry) if isinstance(entry, Mapping) else None
        if remark is not None:
            found["attributes", str(name), "protect"] = (remark,)
    return found


def _asked_k(models: Any) -> int | None:
    """The k of k-anonymity, where one is asked for."""
    for entry in models if isinstance(models, list) else ():
        asked = entry.get("k-anonymity") if isinstance(entry, Mapping) else None
        if isinstance(asked, Mapping) and isinstance(asked.get("k"), int):
            return int(asked["k"])
    return None


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
    made = Observed.of(source)
    found = zip(made.columns, made.guesses, strict=True)
    return tuple(Taken(column.name, each.role, each.why.partition(";")[0]) for column, each in found)


def draft(source: Source) -> Draft:
    """A commented policy, in YAML, for a table; nothing is tried out."""
    return Draft.of(source)


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
