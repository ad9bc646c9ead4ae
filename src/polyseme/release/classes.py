"""The models of a release, checked on its rows: in classes of quasi-identifiers, or groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.models import MODELS, Verdict, background_of, check_models, read_spec
from polyseme.release.columns import AsIs, Column, Generalized, Grouped
from polyseme.release.release import Release
from polyseme.schema import Role
from polyseme.tables.codes import without_words
from polyseme.tables.distinct import frame_of
from polyseme.tables.people import Meaning

__all__ = ["counted_frame", "looked_at", "model_verdicts", "spread", "verdicts_on"]

Spec = Mapping[str, Mapping[str, Any]]


def model_verdicts(
    frame: pl.DataFrame,
    columns: Sequence[Column],
    models: Sequence[Spec],
    counts: Ints | None = None,
    people: Ints | None = None,
    reference: pl.DataFrame | None = None,
) -> tuple[Verdict, ...]:
    """Every model on the published rows; in groups for an attribute that is published by group.

    counts     how many records each row stands for; None for one
    people     whose each row is; None where that is not known. Groups are of different people wherever they are formed
    reference  a table of the population, for k-map
    """
    attributes = [column.attribute for column in columns]
    secret = _secret(columns)
    keys = [item.name for item in attributes if item.role.tells_apart]
    grouped = {column.name: column for column in columns if isinstance(column, Grouped)}
    background = replace(background_of(attributes), reference=reference, meanings=_meanings(columns))
    linked = [item.name for item in attributes if item.role is Role.QUASI_IDENTIFIER]
    verdicts: list[Verdict] = []
    for spec in spread(models, columns) if grouped else models:
        ((name, parameters),) = spec.items()
        column = grouped.get(parameters.get("attribute", ""))
        if column is None:
            known = linked if name == "k-map" else keys
            verdicts += check_models(
                frame, known, [spec], sensitive=secret, background=background, counts=counts, people=people
            )
        else:
            values = _values(frame, column)
            each = None if counts is None else np.ones(values.height, dtype=np.int64)
            verdicts += check_models(
                values, [column.group], [spec], sensitive=[column.name], background=background, counts=each
            )
    return tuple(verdicts)


def _meanings(columns: Sequence[Column]) -> dict[str, Meaning]:
    return {column.name: column.stands_for for column in columns if isinstance(column, Generalized)}


def verdicts_on(release: Release, models: Sequence[Spec], reference: pl.DataFrame | None = None) -> tuple[Verdict, ...]:
    """Models on the rows of a release; only columns that some model needs are read.

    Models about groups are looked at by themselves: with quasi-identifiers beside them, hardly two rows would be alike.
    """
    columns = list(release.manifest.columns)
    grouped = {column.name for column in columns if isinstance(column, Grouped)}
    specs = spread(models, columns) if grouped else list(models)
    about = [next(iter(spec.values())).get("attribute") in grouped for spec in specs]
    found: dict[int, tuple[Verdict, ...]] = {}
    for these in (True, False):
        numbers = [number for number, those in enumerate(about) if those is these]
        if numbers:
            wanted = looked_at(columns, [specs[number] for number in numbers], keys=not these)
            frame, counts = counted_frame(release, [item.name for item in wanted])
            frame = _without_words(frame, release)
            found |= {
                number: model_verdicts(frame, wanted, [specs[number]], counts, None, reference) for number in numbers
            }
    return tuple(verdict for number in sorted(found) for verdict in found[number])


def counted_frame(release: Release, names: Sequence[str]) -> tuple[pl.DataFrame, Ints | None]:
    """These columns, and how many records each row stands for; None for one."""
    return frame_of(release.counted(names), names)


def _without_words(frame: pl.DataFrame, release: Release) -> pl.DataFrame:
    """With every word for a missing value as one, in the columns that form classes."""
    words = release.manifest.missing_values
    return frame.with_columns(without_words(frame[name], words) for name in release.manifest.links if name in frame)


def looked_at(columns: Sequence[Column], models: Sequence[Spec], keys: bool = True) -> Sequence[Column]:
    """The columns that models are about, and those that form classes where `keys`.

    Any where there is none.
    """
    secret = _secret(columns)
    named = {column.name for column in columns if keys and column.attribute.role.tells_apart}
    for spec in models:
        parsed = read_spec(spec)
        if parsed.model.about:
            named.update(secret if parsed.attribute is None else [parsed.attribute])
        named.update(name for rule in parsed.parameters.get("rules", ()) for name in rule.attributes)
    named.update(column.group for column in columns if isinstance(column, Grouped) and column.name in named)
    return [column for column in columns if column.name in named] or columns


def _secret(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns if column.attribute.protected or _bare(column)]


def _bare(column: Column) -> bool:
    return column.attribute.role.is_secret and isinstance(column, AsIs | Grouped)


def spread(models: Sequence[Spec], columns: Sequence[Column]) -> list[Spec]:
    """A model that names no attribute, for each sensitive one."""
    found: list[Spec] = []
    secret = _secret(columns)
    for spec in models:
        ((name, parameters),) = spec.items()
        if MODELS[name].about and "attribute" not in parameters:
            found += [{name: {**parameters, "attribute": attribute}} for attribute in secret]
        else:
            found.append(spec)
    return found


def _values(frame: pl.DataFrame, column: Grouped) -> pl.DataFrame:
    """One row for each record of each group: the group and one of its values."""
    groups = frame.select(column.group, column.name).unique(column.group, keep="first", maintain_order=True)
    return groups.explode(column.name) if isinstance(groups.schema[column.name], pl.List) else groups
