"""The models of a release, checked on its rows: in classes of equal quasi-identifiers, or in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polyseme.models import MODELS, Verdict, background_of, check_models
from polyseme.release.columns import AsIs, Column, Grouped
from polyseme.release.release import Release
from polyseme.tables.coding.codes import as_series

__all__ = ["model_verdicts", "verdicts_on"]

Spec = Mapping[str, Mapping[str, Any]]


def model_verdicts(frame: pl.DataFrame, columns: Sequence[Column], models: Sequence[Spec]) -> tuple[Verdict, ...]:
    """Every model on the published rows; in groups for an attribute that is published by group."""
    attributes = [column.attribute for column in columns]
    secret = [column.name for column in columns if column.attribute.protected or _bare(column)]
    keys = [item.name for item in attributes if item.role.tells_apart]
    grouped = {column.name: column for column in columns if isinstance(column, Grouped)}
    background = background_of(attributes)
    verdicts: list[Verdict] = []
    for spec in _spread(models, secret) if grouped else models:
        ((_, parameters),) = spec.items()
        column = grouped.get(parameters.get("attribute", ""))
        if column is None:
            verdicts += check_models(frame, keys, [spec], sensitive=secret, background=background)
        else:
            values = _values(frame, column)
            verdicts += check_models(values, [column.group], [spec], sensitive=[column.name], background=background)
    return tuple(verdicts)


def verdicts_on(release: Release, models: Sequence[Spec]) -> tuple[Verdict, ...]:
    """Models on the rows of a release; where only k-anonymity is asked for, only quasi-identifiers are read."""
    columns = list(release.manifest.columns)
    if all(name == "k-anonymity" for spec in models for name in spec):
        columns = [item for item in columns if item.attribute.role.tells_apart] or columns
    names = [item.name for item in columns]
    batches = [
        pl.DataFrame({name: as_series(batch.column(name)) for name in names}) for batch in release.batches(names)
    ]
    frame = pl.concat(batches) if batches else pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    return model_verdicts(frame, columns, models)


def _bare(column: Column) -> bool:
    return column.attribute.role.is_secret and isinstance(column, AsIs | Grouped)


def _spread(models: Sequence[Spec], secret: Sequence[str]) -> list[Spec]:
    """A model that names no attribute, for each sensitive one."""
    found: list[Spec] = []
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
