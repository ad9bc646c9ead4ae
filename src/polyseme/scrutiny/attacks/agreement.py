"""Columns that reveal what another one hides, and groups of records that share a value.

A column may reveal another: a copy under another name, a code, a treatment that only one illness has. Decoys hide a
value in its own column. Where another column says the same, published as it is or with decoys of its own, they hide
little. Some records are checked for this before anything is published.

Records that belong together may have the same value: a household one income, a patient one diagnosis. Of a group with n
records, n_v of them with the value v, the share of its pairs that agree is

    a = sum over v of n_v (n_v - 1) / (n (n - 1))

On average over the groups of two or more it would be c = sum over v of p_v^2 if groups had nothing to do with values.
(a - c) / (1 - c) is 0 then, and 1 where all members agree (Cohen's kappa).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from polyseme.kernel.arrays import Ints, arrow
from polyseme.release import AsIs, Column, Grouped, Sets
from polyseme.schema import Attribute
from polyseme.tables.codes import as_series, encode
from polyseme.tables.io.source import Source
from polyseme.tables.readings import plain_text

__all__ = ["Agreement", "agreement", "giveaways", "grouping", "proposal", "shared_values"]

_COPY_ROWS, _EACH = 2_000, 5
"""Records that are looked at, and how many of them must share a value on average for it to tell something."""
_TELLING, _COMMON = 0.95, 0.8
"""The share of records whose value another column tells, and the share of the most frequent value beyond which that
is no news."""


def giveaways(columns: Sequence[Column], source: Source, missing_values: Sequence[str]) -> list[str]:
    """A warning for each column that tells the values of a protected one."""
    batch = source.head([item.name for item in columns])
    if batch is None:
        return []
    rows = np.unique(np.linspace(0, batch.num_rows - 1, min(batch.num_rows, _COPY_ROWS)).astype(np.int64))
    codes = _copy_codes(columns, batch.take(arrow(rows)), missing_values)
    found = []
    for item in columns:
        if not isinstance(item, Sets):
            continue
        # What stands for a group is not the value of a record.
        for other in (other for other in columns if not isinstance(other, Grouped)):
            share = _revealed_share(codes[item.name], codes[other.name]) if other is not item else 0.0
            if share >= _TELLING:
                found.append(_copy_warning(item, other, share))
    return found


def _copy_codes(columns: Sequence[Column], batch: pa.RecordBatch, missing_values: Sequence[str]) -> Mapping[str, Ints]:
    codes = {}
    for index, item in enumerate(columns):
        series = as_series(batch.column(index), missing_values)
        found = pl.Series(encode(series, item.domain).codes) if isinstance(item, Sets) else plain_text(series)
        # Dense, so that few values have small codes; what is missing is a value, too.
        codes[item.name] = found.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    return codes


def _revealed_share(secret: Ints, other: Ints) -> float:
    """The share of records with the most frequent value among those equal in the other column.

    0 where nothing can be said: hardly two records have the same value, or nearly all have the same secret.
    """
    width = int(secret.max()) + 1
    pairs, count = np.unique(other * width + secret, return_counts=True)
    groups = np.concatenate([[True], np.diff(pairs // width) > 0])
    if len(secret) < _EACH * np.count_nonzero(groups) or np.bincount(secret).max() > _COMMON * len(secret):
        return 0.0
    return float(np.maximum.reduceat(count, np.flatnonzero(groups)).sum() / len(secret))


def _copy_warning(item: Sets, other: Column, share: float) -> str:
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


_FEWEST = 10
"""Groups of two or more records below which nothing is said; a judgment."""
_LARGEST = 50.0
"""Records in such a group on average beyond which it is no household, but a part of the population; a judgment."""
_ALIKE = 0.5
"""Kappa from which on members count as sharing a value; a judgment."""
_SURE = 4.0
"""Standard deviations of chance."""
_WORK = 20_000_000
"""Cells that are compared at the most, so that wide tables are looked at in a second or two."""
_ROWS = 2_000
"""Records that are looked at in any case."""
_COMBINATION = "combination of "
_NAMED = 3
"""Columns that a warning names."""


@dataclass(frozen=True)
class Agreement:
    """How far groups share a value.

    groups  with two or more records, and `records` in them
    whole   groups in which all members agree
    alike   the share of pairs that agree, on average over the groups; `chance`, what it would be by chance
    """

    groups: int
    records: int
    whole: int
    alike: float
    chance: float

    @property
    def kappa(self) -> float:
        return (self.alike - self.chance) / (1.0 - self.chance) if self.chance < 1.0 else 0.0

    @property
    def telling(self) -> bool:
        """Whether groups are like households, and share a value far beyond chance."""
        if self.groups < _FEWEST or self.records > _LARGEST * self.groups or self.kappa < _ALIKE:
            return False
        spread = np.sqrt(self.chance * (1.0 - self.chance) / self.groups)
        return bool(self.alike - self.chance > _SURE * spread)


def agreement(groups: Ints, codes: Ints) -> Agreement:
    """How far groups share their values; records without a value (-1) are left out.

    >>> agreement(np.array([0, 0, 1, 1, 2]), np.array([3, 3, 1, 2, 2]))
    Agreement(groups=2, records=4, whole=1, alike=0.5, chance=0.36)
    """
    groups, codes = groups[codes >= 0], codes[codes >= 0]
    if not len(codes):
        return Agreement(0, 0, 0, 0.0, 1.0)
    shares = np.bincount(codes) / len(codes)
    width = len(shares)
    cells, count = np.unique(groups * width + codes, return_counts=True)
    starts = np.flatnonzero(np.diff(cells // width, prepend=-1))
    members, pairs = np.add.reduceat(count, starts), np.add.reduceat(count * (count - 1), starts)
    several = members > 1
    share = pairs[several] / (members[several] * (members[several] - 1))
    return Agreement(
        int(several.sum()),
        int(members[several].sum()),
        int(np.count_nonzero(share == 1.0)),
        float(share.mean()) if len(share) else 0.0,
        round(float(shares @ shares), 12),
    )


def grouping(codes: Ints) -> bool:
    """Whether a column puts records into groups like households: enough of them, and small ones."""
    members = np.bincount(codes)
    several = members[members > 1]
    return bool(len(several) >= _FEWEST and several.sum() <= _LARGEST * len(several))


def shared_values(
    attributes: Sequence[Attribute], source: Source, missing_values: Sequence[str], one_draw: str | None = None
) -> list[str]:
    """A warning for each attribute with one set for every record, though records share a value.

    attributes  of the columns that will be published; the table may have others, which are dropped
    one_draw    the column whose records have one set for one value anyway: the record key, where decoys are sticky
    """
    drawn_alone = [item for item in attributes if item.protected and not item.shared_by]
    names = list(dict.fromkeys([*source.schema.names, *(item.name for item in drawn_alone)]))
    batch = source.head(names) if drawn_alone else None
    if batch is None:
        return []
    # The first rows: members of a group mostly stand next to each other.
    batch = batch.slice(0, max(_WORK // (batch.num_columns * len(drawn_alone)), _ROWS))
    groups = dict(_groups(batch, attributes, one_draw, missing_values))
    found = []
    for item in drawn_alone:
        codes = _codes(item, batch, missing_values)
        agreements = {by: agreement(rows, codes) for by, rows in groups.items()}
        telling = {by: one for by, one in agreements.items() if one.telling}
        if telling:
            found.append(_warning(item, attributes, telling))
    return found


def _codes(item: Attribute, batch: pa.RecordBatch, missing_values: Sequence[str]) -> Ints:
    if item.domain is None:
        return np.full(batch.num_rows, -1)
    series = as_series(batch.column(item.name), missing_values).alias(item.name)
    return encode(series, item.domain).codes.astype(np.int64)


def _shown(attributes: Sequence[Attribute]) -> list[str]:
    return [item.name for item in attributes if item.role.is_published and not item.role.is_secret]


def _groups(
    batch: pa.RecordBatch, attributes: Sequence[Attribute], one_draw: str | None, missing_values: Sequence[str]
) -> Iterator[tuple[str, Ints]]:
    """The columns, and the combination of the published ones, by which records can be joined."""
    hidden = [item for item in attributes if item.role.is_secret]
    secret = {*(item.name for item in hidden), *(part.name for item in hidden for part in item.members)}
    texts = {
        field.name: plain_text(as_series(batch.column(field.name)), missing_values)
        for field in batch.schema
        if field.name not in (*secret, one_draw) and not pa.types.is_nested(field.type)
    }
    shown = [name for name in _shown(attributes) if name in texts]
    alone = False
    for name, series in texts.items():
        codes = series.rank("dense").fill_null(0).to_numpy().astype(np.int64)
        if grouping(codes):
            alone |= name in shown
            yield name, codes
    # Where one of them tells groups by itself, the others would only split these.
    if len(shown) > 1 and not alone:
        prints = pl.DataFrame({str(place): texts[name] for place, name in enumerate(shown)}).hash_rows().to_numpy()
        codes = np.unique(prints, return_inverse=True)[1].astype(np.int64)
        if grouping(codes):
            yield f"{_COMBINATION}{', '.join(shown)}", codes


def _warning(item: Attribute, attributes: Sequence[Attribute], telling: Mapping[str, Agreement]) -> str:
    shown = _shown(attributes)
    # First what everybody can see, then what agrees most.
    names = sorted(telling, key=lambda by: (not (by in shown or by.startswith(_COMBINATION)), -telling[by].kappa))
    first = telling[names[0]]
    others = f" (as do those with the same {' or '.join(names[1:_NAMED])})" if len(names) > 1 else ""
    seen = names[0] in shown or names[0].startswith(_COMBINATION)
    who = "A reader of the release" if seen else "An attacker who knows which records belong together"
    return (
        f"records with the same {names[0]} share their value of '{item.name}'{others}: in {first.whole:,} of "
        f"{first.groups:,} groups of two or more records that were looked at, all agree. {who} can intersect their "
        f"sets until the truth is left. Draw one set for each group, and drop the column that tells it (role: "
        f"identifier): attributes: {{{item.name}: {{..., shared-by: {_proposed(telling)}}}}}"
    )


def _proposed(telling: Mapping[str, Agreement]) -> str:
    """The column whose groups agree most."""
    single = [by for by in telling if not by.startswith(_COMBINATION)]
    return max(single, key=lambda by: telling[by].kappa) if single else "COLUMN"
