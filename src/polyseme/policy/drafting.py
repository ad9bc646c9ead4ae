"""A first policy for a table nobody has described yet: every guess is written down with its reason.

The draft loads as it stands. It is a starting point for a person: names and shapes of columns say little about what
an attacker knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from polyseme.errors import TableError
from polyseme.spelling import different
from polyseme.tables.coding.codes import as_series, cast_column
from polyseme.tables.io.dialects import WORDS_FOR_MISSING, Dialect
from polyseme.tables.io.respelled import Respelled
from polyseme.tables.io.source import CsvSource, Source, WorkbookSource

__all__ = ["Guess", "draft", "guesses"]

_TELLING = 20
"""Rows from which on it is no accident that all values differ; a judgement."""
_BINS = 14
"""Bins that a draft proposes: as many as the papers' income classes. A judgement."""
_NARROW = 1e-9
"""A range that is a smaller share than this of its numbers cannot be cut by edges of twelve digits."""
_TRACKED = 2_000
"""Different values that are remembered of a column: enough to tell a list of codes from free text."""
_MANY = 60
"""A judgement: with more different numbers a column reads as a measurement, to be cut into bins, not as a code."""
_IDENTIFIER = re.compile(
    r"id|uuid|guid|names?|firstname|lastname|surname|email|phone|telephone|mobile|ssn|passport|account|iban|address|street"
)
_SENSITIVE = re.compile(
    r"(diseas|diagnos|illness|condition|symptom|icd|medic|drug|hiv|income|salar|wage|earning|debt|credit|religio|politic"
    r"|party|sexual|orientation|crime|convict|occupation|job).*"
)
_QUASI = re.compile(
    r"(age|birth|born|sex|gender|zip|postcode|postal|city|county|region|state|country|race|ethnic|nationality|marital"
    r"|education|school|workclass|employer|household|language).*"
)


@dataclass
class _Column:
    """What one pass over a column found."""

    name: str
    rows: int = 0
    missing: int = 0
    values: set[Any] = field(default_factory=set)
    opaque: bool = False
    numeric: bool = True
    integer: bool = True
    dates: bool = True
    low: float = np.inf
    high: float = -np.inf
    low_day: str = ""
    high_day: str = ""

    @property
    def many(self) -> bool:
        return len(self.values) > _TRACKED

    @property
    def wide(self) -> bool:
        """Whether edges of twelve digits can cut the range."""
        largest = max(abs(self.low), abs(self.high))
        return bool(np.isfinite(self.high - self.low) and self.high - self.low > max(_NARROW * largest, 1e-300))

    @property
    def present(self) -> int:
        return self.rows - self.missing


@dataclass(frozen=True)
class Guess:
    """What a column is taken for, and why."""

    name: str
    role: str
    why: str


def guesses(source: Source) -> tuple[Guess, ...]:
    """The roles that a draft gives the columns of a table; what it says of their treatment is left out."""
    columns = _look(source, _words_for_missing(source))
    if not source.typed:
        _refuse_missing_header(columns, source)
    roles = [(column.name, *_role(column)) for column in columns]
    return tuple(Guess(name, role, why.partition(";")[0]) for name, role, why in roles)


def draft(source: Source) -> str:
    """A commented policy, in YAML, for a table."""
    words = _words_for_missing(source)
    columns = _look(source, words)
    if not columns or columns[0].rows == 0:
        raise TableError(f"{source.name}: the table has no rows", "a policy is drafted from a table with records")
    if not source.typed:
        _refuse_missing_header(columns, source)
    lines = [
        f"# Drafted from {source.name} ({columns[0].rows:,} rows). Every line is a guess: check it before use.",
        "# Roles: identifier (dropped), quasi-identifier (published as it is), sensitive, sensitive-qid, insensitive.",
        "",
    ]
    lines += _table_lines(source, words)
    lines.append("attributes:")
    for column in columns:
        lines += _attribute_lines(column, source)
    if not any("role: sensitive" in line for line in lines[2:]):
        lines.insert(
            2, "# No column looks sensitive by its name: say which are, and protect them. Nothing is hidden yet."
        )
    return "\n".join(lines) + "\n"


def _refuse_missing_header(columns: Sequence[_Column], source: Source) -> None:
    """In a table without a header the "names" are the first record: they stand among the values of their columns."""
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
    if isinstance(source, Respelled):
        dialect, source = source.dialect, source.source
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


def _look(source: Source, words: Sequence[str]) -> list[_Column]:
    columns = [_Column(name) for name in source.schema.names]
    for batch in source.batches():
        for index, column in enumerate(columns):
            _note(column, as_series(batch.column(index), words))
    return columns


def _note(column: _Column, series: pl.Series) -> None:
    column.rows += len(series)
    column.missing += series.null_count()
    present = series.drop_nulls()
    column.opaque = series.dtype.is_nested() or series.dtype == pl.Binary
    if column.opaque:
        return
    if not column.many:
        column.values.update(present.unique().head(_TRACKED + 1).to_list())
    if not len(present):
        return
    if column.numeric and present.dtype != pl.Boolean and not present.dtype.is_temporal():
        numbers, failures = cast_column(present, "number")
        column.numeric = failures == 0
        if column.numeric:
            found = numbers.to_numpy()
            column.low, column.high = min(column.low, float(found.min())), max(column.high, float(found.max()))
            # "007" and "1.0" would come back as 7 and 1: such columns stay text.
            whole, failures = cast_column(present, "integer")
            same = present.dtype != pl.String or bool((whole.cast(pl.String) == present).all())
            column.integer = column.integer and failures == 0 and same and not present.dtype.is_float()
    else:
        column.numeric = False
    if column.dates and (present.dtype == pl.String or present.dtype.is_temporal()):
        days, failures = cast_column(present, "date")
        column.dates = failures == 0
        if column.dates:
            low, high = str(days.min()), str(days.max())
            column.low_day = min(column.low_day or low, low)
            column.high_day = max(column.high_day, high)
    else:
        column.dates = False


def _attribute_lines(column: _Column, source: Source) -> list[str]:
    name = json.dumps(column.name, ensure_ascii=False) if _needs_quotes(column.name) else column.name
    role, why = _role(column)
    lines = [f"  {name}:", f"    role: {role}   # {why}"]
    if role == "sensitive":
        return [*lines, *_sensitive_lines(column)]
    if not source.typed and role != "identifier" and column.numeric and column.integer and not column.missing:
        lines.append("    type: integer   # every value is read back as written")
    return lines


def _needs_quotes(name: str) -> bool:
    return not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name) or name.lower() in (
        "yes",
        "no",
        "true",
        "false",
        "null",
        "on",
        "off",
        "y",
        "n",
    )


def _role(column: _Column) -> tuple[str, str]:
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", column.name).lower())
    distinct = f"{len(column.values):,}{' or more' if column.many else ''} different values"
    if column.present == 0:
        return "insensitive", "no value in any row"
    if column.opaque:
        return "identifier", "lists, records or bytes, which a policy cannot describe; identifiers are dropped"
    if any(map(_SENSITIVE.fullmatch, words)):
        return "sensitive", f"by its name; {distinct}"
    if any(map(_IDENTIFIER.fullmatch, words)):
        return "identifier", f"by its name; {distinct}; identifiers are dropped"
    if any(map(_QUASI.fullmatch, words)):
        return "quasi-identifier", f"by its name; {distinct}; published as it is"
    alone = column.many or len(column.values) == column.present
    whole = column.numeric and column.integer
    if column.present > _TELLING and whole and alone and column.high - column.low + 1 == column.present:
        return "identifier", "numbers the rows; identifiers are dropped"
    text = not column.numeric and not column.dates
    if column.present > _TELLING and text and (column.many or len(column.values) == column.present):
        return "identifier", f"almost every row has a value of its own ({distinct}); identifiers are dropped"
    return "quasi-identifier", f"the safe guess for something that others may know; {distinct}; published as it is"


def _sensitive_lines(column: _Column) -> list[str]:
    lines: list[str] = []
    if column.missing:
        lines.append(f"    missing: drop   # {column.missing:,} rows have none; or missing: {{category: unknown}}")
    if column.numeric and column.wide and len(column.values) > _MANY:
        return lines + _numeric_lines(column)
    if column.dates and not column.numeric:
        return [
            *lines,
            f"    periods: {{every: year, from: {column.low_day}, to: {column.high_day}}}",
            *_protect_lines(int(column.high_day[:4]) - int(column.low_day[:4]) + 1, ordered=True),
        ]
    ordered = sorted(column.values, key=lambda value: (float(value) if column.numeric else 0.0, str(value)))
    values = list(different(ordered).values())
    if column.many or (column.numeric and not np.isfinite([column.low, column.high]).all()):
        lines.append("    # Values that cannot be listed here: the domain comes from the table, and is published.")
        return lines + _protect_lines(len(values), ordered=False)
    labels = json.dumps(values, ensure_ascii=False, default=str)
    lines.append("    # The values in the table; add those that can occur but did not.")
    lines.append(f"    domain: {labels}")
    return lines + _protect_lines(len(values), ordered=column.numeric)


def _numeric_lines(column: _Column) -> list[str]:
    edges = _round_edges(column.low, column.high)
    return [
        f"    bins: {json.dumps(edges)}   # the table's range in round steps; distance is measured between middles",
        *_protect_lines(len(edges) - 1, ordered=True, step=edges[1] - edges[0]),
    ]


def _round_edges(low: float, high: float, wanted: int = _BINS) -> list[float]:
    """Round edges that cover a range in about `wanted` steps."""
    raw = (high - low) / wanted or 1.0
    scale = 10.0 ** np.floor(np.log10(raw))
    step = float(min((mark * scale for mark in (1, 2, 2.5, 5, 10)), key=lambda mark: abs(mark - raw)))
    first, last = np.floor(low / step), np.floor(high / step) + 1
    edges = [float(f"{index * step:.12g}") for index in np.arange(first, last + 1)]
    return [int(edge) if edge == int(edge) else edge for edge in edges]


def _protect_lines(size: int, ordered: bool, step: float = 1) -> list[str]:
    """A promise that the domain can carry: feasible, and estimable afterwards."""
    if size < 2:
        return [
            "    # A single value: there is nothing to hide it among. Left unprotected until there are more.",
            *_unprotected(),
        ]
    if size < 4:
        return ["    protect: {ldp: {epsilon: 1.0, size: 1}}   # too few values for sets: randomized response"]
    if not ordered or size < 8:
        return [
            f"    protect: {{diversity: {{l: {min(3, size - 1)}}}}}   # add a distance to keep candidates far apart"
        ]
    distance = "value" if step != 1 else "rank"
    d = step * 2
    return [
        f"    distance: {{line: {distance}}}",
        f"    protect: {{semantic-diversity: {{l: 3, d: {d:.12g}}}}}   # three candidates, at least {d:.12g} apart",
    ]


def _unprotected() -> list[str]:
    return ["    protect: {diversity: {l: 1}}"]
