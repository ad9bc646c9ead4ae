"""Small tables as the papers print them: columns by name, and what classes of them hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["Record", "classes", "effective", "smallest_distinct"]

Record: TypeAlias = tuple[str, ...]


def classes(records: Sequence[Record], by: Sequence[int]) -> list[list[Record]]:
    """Records that agree in some columns.

    >>> len(classes([("a", "1"), ("a", "2"), ("b", "1")], [0]))
    2
    """
    found: dict[Record, list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record[place] for place in by), []).append(record)
    return list(found.values())


def smallest_distinct(found: Sequence[Sequence[Record]], column: int) -> int:
    """The fewest different values that a class has."""
    return min(len({record[column] for record in held}) for held in found)


def effective(held: Sequence[Record], column: int) -> float:
    """The exponential of the entropy of a class: entropy l-diversity asks for l at least."""
    counts = Counter(record[column] for record in held)
    shares = [many / len(held) for many in counts.values()]
    return math.exp(-sum(share * math.log(share) for share in shares))
