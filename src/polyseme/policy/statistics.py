"""Public statistics beside a policy: files with the distribution of an attribute's values.

    sex,age,income,number
    F,20,<1M,310
    F,20,1-2M,540

The last column is a number of people or a share, the one before it the value, and those before are untouched columns
that tell groups apart; there may be none. A first line that does not end in a number is a header. Only a file without
groups can do without one.

For which attribute a file is, its name says in front (`income=FILE`), or else the header of the column of values. Where
the policy protects one attribute, it is for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from polyseme.kernel.delimited import Row, read_rows, without_remarks
from polyseme.kernel.errors import PolicyError, Problem, nearest
from polyseme.kernel.spelling import spellings
from polyseme.schema import Attribute, Role, Schema
from polyseme.strata.stratum import Groups

__all__ = ["Statistics", "read_statistics"]

Statistics: TypeAlias = str | Path | Sequence[str | Path] | Mapping[str, str | Path]
"""Files with distributions: `FILE` or `NAME=FILE`, several of them, or by name."""


def read_statistics(given: Statistics, schema: Schema) -> Mapping[str, Groups]:
    """The distribution of each attribute for which there is a file. All problems at once.

    No message quotes a file.
    """
    problems: list[Problem] = []
    found: dict[str, Groups] = {}
    for name, file in _named(given, schema):
        try:
            attribute, groups = _read(name, file, schema)
        except PolicyError as error:
            problems += error.problems
            continue
        if attribute.name in found:
            problems.append(Problem(_place(file), f"a second distribution of '{attribute.name}'", "one file each"))
        found[attribute.name] = groups
    if problems:
        raise PolicyError(problems)
    return found


def _named(given: Statistics, schema: Schema) -> list[tuple[str | None, Path]]:
    """Each file, and the attribute it is said to be for."""
    if isinstance(given, Mapping):
        return [(name, Path(file)) for name, file in given.items()]
    several = [given] if isinstance(given, str | Path) else list(given)
    named: list[tuple[str | None, Path]] = []
    for item in several:
        name, mark, rest = str(item).partition("=")
        # A path may hold the sign, too: what stands before it must be an attribute.
        named.append((name, Path(rest)) if mark and name in schema.by_name else (None, Path(item)))
    return named


def _place(file: Path) -> str:
    return f"distribution '{file.name}'"


def _read(name: str | None, file: Path, schema: Schema) -> tuple[Attribute, Groups]:
    rows = without_remarks(read_rows(file))
    header = [cell.strip() for cell in rows[0][1]] if rows and not _is_number(rows[0][1][-1]) else None
    body = rows[1:] if header is not None else rows
    width = len(header) if header is not None else 2
    wrong = [line for line, cells in body if len(cells) != width or not _is_number(cells[-1])]
    if wrong or not body or width < 2:
        where = f", line {wrong[0]}" if wrong else ""
        hint = "a line holds columns that tell groups apart, a value and a number from 0; a header names the columns"
        raise PolicyError(Problem(_place(file), f"no distribution{where}", hint))
    attribute = _attribute(name, header, schema, file)
    by = header[:-2] if header is not None else []
    _check_columns(by, attribute, schema, file)
    return attribute, _groups(by, body, attribute, file)


def _attribute(name: str | None, header: Sequence[str] | None, schema: Schema, file: Path) -> Attribute:
    protected = {item.name: item for item in schema.protected}
    if name is None and header is not None and header[-2] in protected:
        name = header[-2]
    if name is None and len(protected) == 1:
        name = next(iter(protected))
    if name in protected and name is not None:
        return protected[name]
    known = ", ".join(protected)
    what = "it does not say for which attribute it is" if name is None else f"'{name}' is not protected"
    hint = f"write NAME={file.name}, or head the column of values with NAME; protected: {known}"
    raise PolicyError(Problem(_place(file), what, hint))


def _check_columns(by: Sequence[str], attribute: Attribute, schema: Schema, file: Path) -> None:
    untouched = [item.name for item in schema.attributes if not item.protected and item.role is not Role.IDENTIFIER]
    problems = [
        Problem(_place(file), f"'{name}' is no column that is published as it is", nearest(name, untouched))
        for name in by
        if name not in untouched
    ]
    if len(set(by)) < len(by):
        problems.append(Problem(_place(file), "a column is named twice in the header"))
    if problems:
        raise PolicyError(problems)


def _groups(by: Sequence[str], rows: Sequence[Row], attribute: Attribute, file: Path) -> Groups:
    if attribute.domain is None:
        raise ValueError("a protected attribute has a domain")
    codes = {text: code for code, text in enumerate(spellings(attribute.domain.values))}
    *cells, values, numbers = zip(*(cells for _, cells in rows))
    texts = [spellings(column) for column in cells]
    value = np.array([codes.get(text, -1) for text in spellings(values)])
    combinations = list(zip(*texts)) if by else [()] * len(rows)
    place = {combination: number for number, combination in enumerate(dict.fromkeys(combinations))}
    group = np.array([place[combination] for combination in combinations])
    pairs = group * len(codes) + value
    problems = []
    if (value < 0).any():
        what = f"{int((value < 0).sum()):,} of the {len(rows):,} lines are about values that are not in the domain"
        problems.append(Problem(_place(file), what))
    elif len(np.unique(pairs)) < len(pairs):
        repeated = len(pairs) - len(np.unique(pairs))
        what = f"{repeated:,} of the {len(rows):,} lines repeat a group and its value"
        problems.append(Problem(_place(file), what))
    counts = np.array([float(number) for number in numbers])
    if not counts.sum() > 0.0:
        problems.append(Problem(_place(file), "all numbers are 0"))
    if problems:
        raise PolicyError(problems)
    table = np.zeros(len(place) * len(codes))
    table[pairs] = counts
    frame = pl.DataFrame({name: [row[index] for row in place] for index, name in enumerate(by)})
    return Groups(table.reshape(len(place), len(codes)), frame)


def _is_number(text: str) -> bool:
    try:
        return 0.0 <= float(text) < np.inf
    except ValueError:
        return False
