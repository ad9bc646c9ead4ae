"""Numbers and colors of charts, and the kinds of pictures, without the drawing libraries."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import QuestionError

__all__ = ["COLORS", "TOP", "ClassSizes", "Distribution", "drawable", "highest_share", "picture_kind", "shown_values"]


TOP: Final = 40
"""How many values of a large domain a chart or a table shows."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """One attribute's distribution, in records, of the whole table or of one group.

    labels     the values, in the order of the domain
    published  how often each value stands among the candidates, divided by l; None where that is not shown
    estimate   the estimated true numbers
    low, high  their interval; nan where there is none
    original   the true numbers, when they are known
    ordered    whether the order of the domain means something
    group      which records: None for all of them, else words such as "sex = F"
    level      coverage of the intervals
    records    how many there are; the sum of `published` unless given
    unit       what the numbers count
    """

    attribute: str
    labels: Sequence[str]
    published: Floats | None
    estimate: Floats
    low: Floats
    high: Floats
    original: Floats | None = None
    ordered: bool = False
    group: str | None = None
    level: float = 0.95
    records: float | None = None
    unit: str = "records"

    def __post_init__(self) -> None:
        columns = [self.estimate, self.low, self.high, *(x for x in (self.published, self.original) if x is not None)]
        if not self.labels or any(len(column) != len(self.labels) for column in columns):
            raise ValueError(f"'{self.attribute}': every column needs one number for each of {len(self.labels)} labels")

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def total(self) -> float:
        """How many records there are."""
        if self.records is not None or self.published is None:
            return float(self.estimate.sum() if self.records is None else self.records)
        return float(self.published.sum())


def shown_values(distribution: Distribution, top: int = TOP) -> Ints:
    """Which values are shown, in what order: the largest `top`, ordered domains in order."""
    order = np.argsort(-distribution.estimate, kind="stable")[:top]
    return np.sort(order) if distribution.ordered else order


def highest_share(distribution: Distribution) -> float:
    """The largest share in the chart of a group, in percent and rounded up, for its scale."""
    columns = [distribution.estimate, distribution.high]
    columns += [one for one in (distribution.published, distribution.original) if one is not None]
    finite = np.concatenate([column[np.isfinite(column)] for column in columns])
    total = distribution.total
    highest = 100.0 * float(finite.max(initial=0.0)) / total if total > 0 else 0.0
    # Tiny groups have intervals far beyond the whole group; they would flatten every other chart.
    return min(5.0 * math.ceil(max(highest, 1.0) / 5.0), 100.0)


COLORS: Final = {
    "ink": "#1b222c",
    "muted": "#5b6572",
    "rule": "#e3e6ea",
    "original": "#ccd2da",
    "published": "#b8560f",
    "estimate": "#14609e",
    "wash": "#d6e5f3",
}


_UNDRAWABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML has no way to write: a picture with such a letter would end the process."""


def drawable(part: Any) -> Any:
    """A part of a chart in which every name and label can be drawn.

    Different ones stay different.
    """
    if isinstance(part, str):
        return _UNDRAWABLE.sub(lambda found: f"‹{ord(found[0]):02x}›", part)
    if isinstance(part, Mapping):
        return {drawable(key): drawable(value) for key, value in part.items()}
    return [drawable(item) for item in part] if isinstance(part, list) else part


@dataclass(frozen=True)
class ClassSizes:
    """How many classes have how many records, by size or by range of sizes.

    labels   "7" or "8–15"
    classes  with so many records
    records  in all of these classes
    """

    labels: tuple[str, ...]
    classes: tuple[int, ...]
    records: tuple[int, ...]


_PICTURE_KINDS = (".png", ".svg", ".pdf")


def picture_kind(path: Path) -> str:
    """The suffix of a picture; raises unless it is one that can be drawn.

    >>> picture_kind(Path("income.PDF"))
    '.pdf'
    """
    suffix = path.suffix.lower()
    if suffix not in _PICTURE_KINDS:
        what = f"'{suffix}'" if suffix else "a file without a suffix"
        raise QuestionError(f"{path.name}: a chart is saved as .png, .svg or .pdf, not as {what}")
    return suffix
