"""To which stratum a record belongs: what its open columns say, looked up column by column.

What is known after some columns is a *state*, first 0. A column's code has a *class*, and the next state is
`next[state][class]`; after the last column `strata[state]` is the number of the stratum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyseme.device.fields import Fields

__all__ = ["Placing", "Step"]


@dataclass(frozen=True)
class Step:
    """What one open column says.

    classes  of its codes
    following  the next state by state and class (`next` in the document)
    """

    column: str
    classes: Sequence[int]
    following: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Placing:
    """How records find their stratum."""

    steps: Sequence[Step] = ()
    strata: Sequence[int] = (0,)

    @classmethod
    def read(cls, fields: Fields, sizes: Mapping[str, int], count: int) -> Placing:
        """Check it.

        sizes  how many codes each open column has
        count  how many strata there are
        """
        fields.only("steps", "strata")
        steps, states = list[Step](), 1
        for inner in fields.objects("steps"):
            step = _read_step(inner, sizes, states)
            steps.append(step)
            states = max((state for row in step.following for state in row), default=0) + 1
        strata = fields.integers("strata", 0, count - 1, states)
        return cls(tuple(steps), strata)

    def stratum(self, codes: Mapping[str, int]) -> int:
        """The number of the stratum of a record with these codes in its open columns."""
        state = 0
        for step in self.steps:
            state = step.following[state][step.classes[codes[step.column]]]
        return self.strata[state]


def _read_step(fields: Fields, sizes: Mapping[str, int], states: int) -> Step:
    fields.only("column", "classes", "next")
    column = fields.text("column")
    if column and column not in sizes:
        fields.wrong("column", "not an open column of this campaign")
    classes = fields.integers("classes", 0, 1 << 20, sizes.get(column))
    rows = fields.given.get("next")
    inner = Fields({f"[{number}]": row for number, row in enumerate(rows)} if isinstance(rows, list) else None, "")
    inner.where, inner.problems = fields.place("next"), fields.problems
    following = [inner.integers(key, 0, 1 << 20, max(classes, default=0) + 1) for key in inner.given]
    if len(following) != states:
        fields.wrong("next", f"expected {states:,} rows, one for each state")
    return Step(column, classes, following)
