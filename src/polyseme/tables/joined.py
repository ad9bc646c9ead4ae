"""Tables with columns of combinations: what several columns say together, as one label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from polyseme.arrays import Ints, arrow
from polyseme.marks import MISSING
from polyseme.schema import Attribute, Domain
from polyseme.tables.coding.codes import as_series, encode
from polyseme.tables.io.source import Source, Wrapped

__all__ = ["JoinedSource", "with_joined"]

_OTHER = "\0"
"""What stands for a combination that is not in the domain."""


def with_joined(
    source: Source, attributes: Iterable[Attribute], missing_values: Sequence[str], hidden: bool = False
) -> Source:
    """The table with a column for each joint attribute; the same table where there is none.

    hidden  whether the schema leaves them out, for those who compare it with a policy
    """
    joint = {item.name: item for item in attributes if item.members}
    return JoinedSource(source, joint, missing_values, hidden) if joint else source


class JoinedSource(Wrapped):
    """A table, and beside its columns those of its joint attributes, made when they are read."""

    def __init__(
        self, source: Source, joint: Mapping[str, Attribute], missing_values: Sequence[str], hidden: bool
    ) -> None:
        super().__init__(source)
        self._joint, self._missing_values, self._hidden = joint, missing_values, hidden

    @property
    def schema(self) -> pa.Schema:
        there = self.inner.schema
        whole = [name for name, item in self._joint.items() if {part.name for part in item.members} <= set(there.names)]
        more = [] if self._hidden else [pa.field(name, pa.string()) for name in whole]
        return pa.schema([*there, *more])

    def _needed(self, columns: Sequence[str]) -> list[str]:
        needed = [
            part
            for name in columns
            for part in ([item.name for item in self._joint[name].members] if name in self._joint else [name])
        ]
        return list(dict.fromkeys(needed))

    def _made(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        made = [
            self._joined(self._joint[name], batch) if name in self._joint else batch.column(name) for name in columns
        ]
        return pa.RecordBatch.from_arrays(made, names=list(columns))

    def _joined(self, item: Attribute, batch: pa.RecordBatch) -> pa.Array:
        codes = [
            encode(as_series(batch.column(part.name), self._missing_values).alias(part.name), part.domain).codes
            for part in item.members
        ]
        return combined(item, codes)


def combined(item: Attribute, codes: Sequence[Ints]) -> pa.Array:
    """The labels of the combinations that some records have; null where a value is missing."""
    sizes = [part.domain.size for part in item.members]
    place = np.full(int(np.prod(sizes)) + 1, -1, dtype=np.int64)
    place[np.ravel_multi_index([np.array(part.codes) for part in item.members], sizes)] = np.arange(_size(item.domain))
    known = np.all([column >= 0 for column in codes], axis=0)
    missing = np.any([column == MISSING for column in codes], axis=0)
    flat = np.ravel_multi_index([np.where(known, column, 0) for column in codes], sizes)
    found = np.where(known, place[flat], -1)
    labels = np.array([*(item.domain.values if item.domain is not None else ()), _OTHER], dtype=object)
    shown = labels[found]
    shown[missing] = None
    return arrow(shown.tolist(), pa.string())


def _size(domain: Domain | None) -> int:
    return domain.size if domain is not None else 0
