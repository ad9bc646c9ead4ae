"""What two engines have to agree on: the rows of a release as a set, what its manifest says, verdicts."""

from __future__ import annotations

from typing import Any

import polars as pl

import polyseme as ps

__all__ = ["described", "rows_of", "verdicts"]


def rows_of(release: ps.Release) -> pl.DataFrame:
    """The rows as a set: in one order, candidates in one order."""
    frame = release.to_polars()
    lists = [name for name in frame.columns if isinstance(frame.schema[name], pl.List)]
    frame = frame.with_columns(pl.col(name).list.eval(pl.element().cast(pl.String)).list.sort() for name in lists)
    texts = frame.with_columns(pl.col(name).list.join("\0") for name in lists)
    return texts.with_columns(pl.all().cast(pl.String)).sort(pl.all(), nulls_last=True)


def described(release: ps.Release) -> Any:
    """What the manifest says of the columns."""
    return release.manifest.to_dict()["attributes"]


def verdicts(found: Any) -> Any:
    """All that is said but for the places and the order of rows: rows that are counted have neither."""
    said = found.to_dict()["verdicts"]
    for verdict in said:
        for item in verdict["worst_classes"]:
            item.pop("row")
        for name in ("blocks_p_value", "neighbors_p_value"):
            verdict["parameters"].pop(name, None)
        verdict["note"] = verdict["note"].replace("; another engine counted the rows: their order was not tested", "")
    return said
