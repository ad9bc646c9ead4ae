"""A table that is stored in several files: its rows are those of one file after the other.

Columns may stand in another order. A text is a text whether a file keeps it as a dictionary or plainly, with short or
long offsets; whole numbers may be wider in one file than in another; a column of which a file has no values has the
type that it has in the others. Everything else that differs is reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from polyseme.kernel.arrays import arrow
from polyseme.kernel.errors import Problem, TableError, numbered
from polyseme.tables.io.locations import Listed, Place
from polyseme.tables.io.source import Part, RowIn, Source

__all__ = ["CHANGED", "FilesSource", "Opener", "agreed_schema"]

_SHOWN = 12
"""Files that differ and are named."""
_HINT = (
    "all files of a table must have the same columns; name those that belong together, as in 'folder/part-*.parquet'"
)


def agreed_schema(schemas: Mapping[str, pa.Schema], quoted: bool = True) -> pa.Schema:
    """The schema of all files, by their names; columns are in the order of the first.

    quoted  whether names of columns may be shown; the first line of a text may be a record
    """
    (reference, first), *_ = schemas.items()
    fields: dict[str, pa.DataType] = {field.name: field.type for field in first}
    problems: dict[str, str] = {}
    for file, schema in schemas.items():
        flaws = _columns_flaw(first, schema, quoted) if schema.names != first.names else []
        for field in schema if not flaws else ():
            both = _common(fields[field.name], field.type)
            if both is None:
                flaws.append(f"column '{field.name}' is {field.type}, not {fields[field.name]}")
            else:
                fields[field.name] = both
        if flaws:
            problems[file] = "; ".join(flaws)
    if problems:
        raise _disagreement(problems, reference)
    return pa.schema([pa.field(name, kind) for name, kind in fields.items()])


def _disagreement(problems: Mapping[str, str], reference: str) -> TableError:
    differ = f"its columns differ from those of {reference}"
    shown = [Problem(file, f"{differ}: {what}", "") for file, what in problems.items()][:_SHOWN]
    more = len(problems) - len(shown)
    last = Problem("", f"{numbered(len(problems), 'files')} in all", _HINT) if more else None
    return TableError([*shown, last] if last else [*shown[:-1], Problem(shown[-1].where, shown[-1].what, _HINT)])


def _columns_flaw(first: pa.Schema, schema: pa.Schema, quoted: bool) -> list[str]:
    absent = [name for name in first.names if name not in schema.names]
    new = [name for name in schema.names if name not in first.names]
    if quoted:
        return [f"no column '{name}'" for name in absent] + [f"an extra column '{name}'" for name in new]
    if not absent and not new:
        return []
    if len(first) != len(schema):
        return [f"{numbered(len(schema), 'columns')}, not {len(first)}"]
    places = [str(place) for place, name in enumerate(schema.names, 1) if name in new]
    return [f"a different name for {'column' if len(places) == 1 else 'columns'} {_listed(places)}"]


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _common(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both without a change; None where there is none."""
    if one == two or pa.types.is_null(two):
        return one
    if pa.types.is_null(one):
        return two
    if pa.types.is_dictionary(one) and pa.types.is_dictionary(two) and one.ordered == two.ordered:
        inside = _common(one.value_type, two.value_type)
        return None if inside is None else pa.dictionary(pa.int32(), inside, one.ordered)
    if pa.types.is_dictionary(one) or pa.types.is_dictionary(two):
        return _common(_plain(one), _plain(two))
    for family in _FAMILIES:
        if one in family and two in family:
            return max(one, two, key=family.index)
    if _is_list(one) and _is_list(two):
        inside = _common(one.value_type, two.value_type)
        return None if inside is None else pa.large_list(inside)
    return _common_struct(one, two) if pa.types.is_struct(one) and pa.types.is_struct(two) else None


def _common_struct(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    if [field.name for field in one] != [field.name for field in two]:
        return None
    inside = [_common(mine.type, other.type) for mine, other in zip(one, two)]
    return None if None in inside else pa.struct([(field.name, kind) for field, kind in zip(one, inside)])


_FAMILIES: tuple[tuple[pa.DataType, ...], ...] = (
    (pa.string(), pa.string_view(), pa.large_string()),
    (pa.binary(), pa.binary_view(), pa.large_binary()),
    (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
)
"""Types of the same values, from the narrowest."""


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


Opener = Callable[[Any], Source]
"""Opens one file; it must be possible to pickle it, since other processes read parts of a table too."""

CHANGED = "the file was changed while the table was read"
_WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class _File:
    """What is kept of a file after it was looked at: little, since there may be many thousands.

    values  one for each column that the names of folders make
    """

    path: Place
    relative: str
    values: tuple[str | int | None, ...]
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int | None:
        known = [part.rows for part in self.parts if part.rows is not None]
        return sum(known) if len(known) == len(self.parts) else None


class FilesSource(Source):
    """The files of a folder or of a pattern as one table.

    Folders such as `year=2024` are a column `year`.

    first  the table in the first of the files

    A column that the files have themselves is taken from them, whatever the folders are called.
    """

    def __init__(self, name: str, files: Sequence[Listed], opener: Opener) -> None:
        self.name, self._opener = name, opener
        opened = [(item, opener(item.path)) for item in files]
        self.first = opened[0][1]
        self.typed = self.first.typed
        self._stored = agreed_schema({item.relative: source.schema for item, source in opened}, self.typed)
        added = _partition_columns(files, set(self._stored.names), self.typed)
        self._added = {key: column.type for key, column in added.items()}
        self._files = tuple(
            _File(item.path, item.relative, values, tuple(source.parts()))
            for (item, source), values in zip(opened, _by_file(added, len(files)))
        )
        self.check()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self._stored, *(pa.field(name, kind) for name, kind in self._added.items())])

    @cached_property
    def rows(self) -> int | None:
        known = [file.rows for file in self._files if file.rows is not None]
        return sum(known) if len(known) == len(self._files) else None

    def about(self) -> int | None:
        if self.rows is not None:
            return self.rows
        about = [self._opener(file.path).about() for file in self._files]
        known = [rows for rows in about if rows is not None]
        return sum(known) if len(known) == len(about) else None

    def parts(self) -> list[Part]:
        return [part for file in self._files for part in file.parts]

    @cached_property
    def _by_path(self) -> Mapping[str, _File]:
        return {part.file: file for file in self._files for part in file.parts}

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            source = self._opened(file)
            for part in file.parts:
                yield from self._of_file(file, source, part, columns)

    def _read_part(self, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        file = self._by_path[part.file]
        yield from self._of_file(file, self._opened(file), part, columns)

    def _opened(self, file: _File) -> Source:
        source = self._opener(file.path)
        if tuple(source.parts()) != file.parts or set(source.schema.names) != set(self._stored.names):
            raise TableError(f"{file.path}: {CHANGED}", "run it again when nothing writes to the table")
        return source

    def _of_file(self, file: _File, source: Source, part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Something must be read for the rows to come in batches.
        stored = [name for name in columns if name not in self._added] or source.schema.names[:1]
        values = dict(zip(self._added, file.values))
        for batch in source.read_part(part, stored):
            made = [
                _repeated(values[name], self._added[name], batch.num_rows)
                if name in values
                else _as_type(batch.column(name), source.schema.field(name).type, self._stored.field(name).type)
                for name in columns or stored
            ]
            yield pa.RecordBatch.from_arrays(made, names=list(columns or stored))

    def row_numbers(self, rows: Sequence[int]) -> tuple[str, list[int]]:
        """The rows as each file counts them, with the name of the file."""
        unit, numbers, left, before = "row", list[int](), list(rows), 0
        for file in self._files:
            if not left:
                break
            source = self._opener(file.path)
            ends = before + source.count()
            inside = [row - before for row in left if row < ends]
            if inside:
                unit, found = source.row_numbers(inside)
                numbers += [RowIn(number, file.relative) for number in found]
            left, before = left[len(inside) :], ends
        return unit, numbers


def _as_type(column: pa.Array, stored: pa.DataType, kind: pa.DataType) -> pa.Array:
    """A column of a file in the type of all files; a dictionary column stays one."""
    if stored == kind:
        return column
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    return column.cast(kind)


def _repeated(value: str | int | None, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, kind) if value is None else pa.repeat(arrow([value], kind)[0], rows)


@dataclass(frozen=True)
class _Partitioned:
    """A column that the names of folders make: its value in each file."""

    type: pa.DataType
    values: tuple[str | int | None, ...]


def _partition_columns(files: Sequence[Listed], stored: set[str], typed: bool) -> dict[str, _Partitioned]:
    keys = [dict(item.partitions) for item in files]
    wrong = [
        item.relative
        for item, found in zip(files, keys)
        if list(found) != list(keys[0]) or len(found) < len(item.partitions)
    ]
    if wrong:
        raise TableError(
            f"the folders do not make the same columns for all files: {wrong[0]} is not partitioned like "
            f"{files[0].relative} ({numbered(len(wrong), 'files')})",
            "every file must be in folders with the same names before the =, in the same order",
        )
    return {key: _partitioned([found[key] for found in keys], typed) for key in keys[0] if key not in stored}


def _partitioned(texts: Sequence[str | None], typed: bool) -> _Partitioned:
    """Integers where all values are and stay distinct; in a text table, all columns are text."""
    there = {text for text in texts if text is not None}
    whole = (
        typed and bool(there) and all(map(_WHOLE.fullmatch, there)) and len({int(text) for text in there}) == len(there)
    )
    if not whole:
        return _Partitioned(pa.string(), tuple(texts))
    return _Partitioned(pa.int64(), tuple(None if text is None else int(text) for text in texts))


def _by_file(columns: Mapping[str, _Partitioned], files: int) -> list[tuple[str | int | None, ...]]:
    return list(zip(*(column.values for column in columns.values()))) or [()] * files
