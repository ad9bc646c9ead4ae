"""Sampling documents: the integers from which Python and JavaScript draw the same sets.

    {"kind": ..., "l": ..., "p53": ..., and the fields of the kind in their order}

`p53` is the truth probability in units of 2^-53. Where it is below one, a coin is drawn first: a number below 2^53 that
is less than `p53` says that the set is drawn given that it holds the true value; otherwise it is drawn blindly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from polyseme.device.chain import KeyStream
from polyseme.device.fields import MOST_CANDIDATES, Fields, Workload
from polyseme.device.kinds import Circle, Clusters, Line, Listed, Table
from polyseme.kernel.errors import nearest

__all__ = ["KINDS", "ONE", "Kind", "Sampling"]

ONE = 1 << 53
"""The truth probability of sets that always hold the true value."""


class Kind(Protocol):
    """How the sets of one kind of document are drawn; codes are those of the document."""

    l: int
    size: int

    def given(self, code: int, stream: KeyStream) -> list[int]:
        """A set that holds this value, ascending."""
        ...

    def blind(self, stream: KeyStream) -> list[int]:
        """Any set, ascending."""
        ...

    def inclusion(self) -> list[float]:
        """The probability that each value is in a blind set."""
        ...

    def lightest(self, cost: Sequence[float]) -> list[float]:
        """For each value, the least total cost of a set that holds it."""
        ...

    def partners(self, values: Sequence[float]) -> list[float]:
        """For each value, the largest of the positive `values` of those that share a set with it.

        0 where none does.
        """
        ...


KINDS: Mapping[str, Any] = {"clusters": Clusters, "line": Line, "circle": Circle, "listed": Listed, "table": Table}
"""The kinds of documents; the fields of each are in the order in which they are written."""


@dataclass(frozen=True, eq=False)
class Sampling:
    """A sampling document that was checked.

    document  as it was read, its fields in their order
    """

    document: Mapping[str, Any] = field(repr=False)
    kind: Kind
    p53: int

    @classmethod
    def read(
        cls, document: object, where: str = "", workload: Workload | None = None, declared: bool = False
    ) -> Sampling:
        """Check every number; raises `CampaignError` with all that is wrong.

        workload  what the campaign may still ask of a device; a whole allowance where it stands alone
        declared  whether a prior is declared for its values
        """
        fields = Fields(document, where, workload=workload)
        name = fields.given.get("kind")
        if not isinstance(name, str) or name not in KINDS:
            hint = nearest(name, KINDS) if isinstance(name, str) else f"one of: {', '.join(KINDS)}"
            fields.wrong("kind", "unknown kind of sampling", hint)
            fields.done()
        known = ("kind", "l", "p53", *KINDS[str(name)].fields)
        fields.only(*known)
        known_so_far = len(fields.problems)
        l = fields.integer("l", 1, MOST_CANDIDATES)
        if len(fields.problems) > known_so_far:
            fields.done()
        p53 = fields.integer("p53", 0, ONE)
        made = KINDS[str(name)].read(fields, l, declared)
        return cls({key: fields.given[key] for key in known if key in fields.given}, made, p53)

    @property
    def l(self) -> int:  # noqa: E743 - the field's own letter
        """How many candidates a set holds."""
        return self.kind.l

    @property
    def size(self) -> int:
        """F, the number of values."""
        return self.kind.size

    @cached_property
    def inclusion(self) -> list[float]:
        """The probability that each value is in a blind set."""
        return self.kind.inclusion()

    @property
    def p(self) -> float:
        """The truth probability."""
        return self.p53 / ONE

    def draw(self, code: int, subkey: bytes) -> tuple[int, ...]:
        """The set for a true value, ascending."""
        if not 0 <= code < self.size:
            raise ValueError(f"codes go from 0 to below {self.size:,}")
        stream = KeyStream(subkey)
        truthful = self.p53 == ONE or stream.below(ONE) < self.p53
        return tuple(self.kind.given(code, stream) if truthful else self.kind.blind(stream))
