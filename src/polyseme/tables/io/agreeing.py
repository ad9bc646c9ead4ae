"""What several files that are one table must have in common, and what may differ between them.

Columns may stand in another order. A text is a text whether a file keeps it as a dictionary or plainly, with short or
long offsets; whole numbers may be wider in one file than in another; a column of which a file has no values has the
type that it has in the others. Everything else that differs is told at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from polyseme.errors import Problem, TableError, numbered

__all__ = ["agreed_schema"]

_SHOWN = 12
"""Files that differ and are named."""
_HINT = (
    "all files of a table must have the same columns; name those that belong together, as in 'folder/part-*.parquet'"
)


def agreed_schema(schemas: Mapping[str, pa.Schema], quoted: bool = True) -> pa.Schema:
    """The schema of all files, by their names; columns are in the order of the first.

    quoted  whether names of columns may be told; the first line of a text may be a record
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
