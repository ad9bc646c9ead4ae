"""Columns that are called insensitive and single out records: a telephone number belongs to one person.

What is published as it is can be known to others, whatever the policy calls it. A column that alone tells nearly every
record from all others is refused; one that does so with some of them is warned of by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from polyseme.errors import Problem, RiskError
from polyseme.release import AsIs, Column, Generalized
from polyseme.schema import Role
from polyseme.tables.io.source import CountedRows, Source
from polyseme.verbs.reviewing import Exposure

__all__ = ["SingledOut", "singled_out"]

_REFUSED = 0.95
"""The share of records with a value of their own from which on a column identifies them."""
_FEWEST = 100
"""Records from which on that is no accident."""
_WARNED, _TELLING = 0.05, 20
"""The share from which on a column is warned of, in a table of at least so many records; a judgment."""
_HELD = 500_000
"""Fingerprints of a column that are held (4 MB); of longer tables, a share of the values is looked at."""
_ADVICE = "Drop it (role: identifier), or let it count as what others know (role: quasi-identifier)."
_HINT = "drop it: role: identifier; --accept-risk publishes it all the same"


@dataclass(frozen=True)
class SingledOut:
    """Insensitive columns that single out records: why they are refused, and what is told of others."""

    refused: tuple[Problem, ...] = ()
    told: tuple[str, ...] = ()

    def require_accepted(self, accept_risk: bool) -> list[str]:
        """Warnings for the data holder; `RiskError` for columns that were not accepted."""
        if self.refused and not accept_risk:
            raise RiskError(self.refused)
        accepted = (f"{found.what}. It is published all the same, as --accept-risk says." for found in self.refused)
        return [*accepted, *self.told]


def singled_out(columns: Sequence[Column], source: Source, missing_values: tuple[str, ...]) -> SingledOut:
    """The columns of a table that would be published as insensitive, each looked at by itself."""
    names = [item.name for item in columns if _insensitive(item)]
    head = source.head(names) if names else None
    if head is None:
        return SingledOut()
    refused: list[Problem] = []
    told: list[str] = []
    first = _alone(names, missing_values, [(head, None)])
    # Further rows only make values less rare: where few are alone in the first ones, nothing else is read.
    telling = [name for name, alone in first.items() if alone.share >= _WARNED]
    for name, alone in _alone(telling, missing_values, source.counted(telling) if telling else ()).items():
        if alone.identifying:
            refused.append(Problem(f"$.attributes.{name}.role", alone.in_words(name), _HINT))
        elif alone.share >= _WARNED and alone.exposure.rows >= _TELLING:
            told.append(f"{alone.in_words(name)}. {_ADVICE}")
    return SingledOut(tuple(refused), tuple(told))


def _insensitive(column: Column) -> bool:
    return column.attribute.role is Role.INSENSITIVE and isinstance(column, AsIs | Generalized)


@dataclass(frozen=True)
class _Alone:
    """Records that are the only one with their value of a column."""

    exposure: Exposure

    @property
    def share(self) -> float:
        return self.exposure.records_in_classes_below(2) / max(self.exposure.rows, 1)

    @property
    def identifying(self) -> bool:
        return self.exposure.rows >= _FEWEST and self.share >= _REFUSED

    def in_words(self, name: str) -> str:
        about = "about " if self.exposure.sampled else ""
        return (
            f"'{name}' is published as it is (role: insensitive), and {about}{min(self.share, 1.0):.1%} of "
            f"{self.exposure.rows:,} records have a unique value in it: an attacker who knows it finds the record"
        )


def _alone(names: Sequence[str], missing_values: tuple[str, ...], rows: Iterable[CountedRows]) -> dict[str, _Alone]:
    """Each of the columns by itself, all in one reading."""
    found = {name: _Alone(Exposure((name,), missing_values, _HELD)) for name in names}
    for batch, counts in rows:
        for name, alone in found.items():
            alone.exposure.add(pa.Table.from_batches([batch.select([name])]), counts)
    return found
