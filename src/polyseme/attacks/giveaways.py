"""Columns that tell what another one hides: a copy under another name, a code, a treatment that only one illness has.

Decoys hide a value in its own column. Where another column says the same, published as it is or with decoys of its own,
they hide little. Some records are looked at, before anything is published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.arrays import Ints, arrow
from polyseme.release import AsIs, Column, Grouped, Sets
from polyseme.tables.coding.codes import as_series, encode
from polyseme.tables.coding.readings import plain_text
from polyseme.tables.io.source import Source

__all__ = ["giveaways", "proposal"]

_ROWS, _EACH = 2_000, 5
"""Records that are looked at, and how many of them must share a value on average for it to tell something."""
_TELLING, _COMMON = 0.95, 0.8
"""The share of records whose value another column tells, and the share of the most frequent value beyond which that
is no news."""


def giveaways(columns: Sequence[Column], source: Source, missing_values: Sequence[str]) -> list[str]:
    """A warning for each column that tells the values of a protected one."""
    batch = source.head([item.name for item in columns])
    if batch is None:
        return []
    rows = np.unique(np.linspace(0, batch.num_rows - 1, min(batch.num_rows, _ROWS)).astype(np.int64))
    codes = _codes(columns, batch.take(arrow(rows)), missing_values)
    found = []
    for item in columns:
        if not isinstance(item, Sets):
            continue
        # What stands for a group is not the value of a record.
        for other in (other for other in columns if not isinstance(other, Grouped)):
            share = _told(codes[item.name], codes[other.name]) if other is not item else 0.0
            if share >= _TELLING:
                found.append(_warning(item, other, share))
    return found


def _codes(columns: Sequence[Column], batch: pa.RecordBatch, missing_values: Sequence[str]) -> Mapping[str, Ints]:
    codes = {}
    for index, item in enumerate(columns):
        series = as_series(batch.column(index), missing_values)
        found = pl.Series(encode(series, item.domain).codes) if isinstance(item, Sets) else plain_text(series)
        # Dense, so that few values have small codes; what is missing is a value, too.
        codes[item.name] = found.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return codes


def _told(secret: Ints, other: Ints) -> float:
    """The share of records whose value is the most frequent one among those with the same value of the other column.

    0 where nothing can be said: hardly two records have the same value, or nearly all have the same secret.
    """
    width = int(secret.max()) + 1
    pairs, count = np.unique(other * width + secret, return_counts=True)
    groups = np.concatenate([[True], np.diff(pairs // width) > 0])
    if len(secret) < _EACH * np.count_nonzero(groups) or np.bincount(secret).max() > _COMMON * len(secret):
        return 0.0
    return float(np.maximum.reduceat(count, np.flatnonzero(groups)).sum() / len(secret))


def _warning(item: Sets, other: Column, share: float) -> str:
    how = "is published as it is and" if isinstance(other, AsIs) else "has decoys of its own, but"
    return (
        f"'{other.name}' {how} reveals the value of '{item.name}' for {share:.0%} of the records sampled: decoys of "
        f"'{item.name}' then hide little. Drop one of the two, or protect both as one, in the place of what protects "
        f"them now:\n{proposal(item, other)}"
    )


def proposal(item: Sets, other: Column) -> str:
    """What a policy says to protect two attributes as one, so that candidates differ in both."""
    first, second = sorted((item.name, other.name))
    names = f"{json.dumps(first, ensure_ascii=False)}, {json.dumps(second, ensure_ascii=False)}"
    name = json.dumps(f"{first} and {second}", ensure_ascii=False)
    apart = 1 if item.threshold is None else item.threshold
    learner = item.attribute.promises.learner
    promised: dict[str, dict[str, object]] = {
        "semantic-diversity": {"l": item.l, "d": int(apart) if apart == int(apart) else apart}
    }
    promised |= {} if learner is None else {learner.name: dict(learner.given())}
    return "\n".join(
        [
            "joint:",
            f"  - name: {name}",
            f"    attributes: [{names}]",
            "    protect:",
            *(f"      {promise}: {json.dumps(values)}" for promise, values in promised.items()),
            "    # prior: FILE.csv   a number for each combination",
        ]
    )
