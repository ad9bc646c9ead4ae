"""What the adversaries found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self, overload

from polyseme.results.base import Result, restored, written

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Finding", "Findings"]


@dataclass(frozen=True)
class Finding:
    """One adversary's success on one attribute.

    attack     the adversary
    attribute  what it wants to learn; None for identities
    success    how often, or how surely, it is right
    bound      what was promised; None when nothing was
    baseline   how often one is right who only knows the public distribution
    exceeded   whether the promise is broken
    knows      what the adversary knows
    gains      what it learns
    helps      what would help against it
    detail     further numbers by name
    """

    attack: str
    attribute: str | None
    success: float
    bound: float | None
    baseline: float
    exceeded: bool
    knows: str
    gains: str
    helps: str
    detail: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """An entry under `findings` of `attack --json`."""
        return written({**asdict(self), "detail": written(self.detail)})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote, read back."""
        found = restored(document)
        return cls(**{**found, "detail": restored(found["detail"])})

    def _repr_html_(self) -> str:
        from polyseme.results.views.html import finding_table

        return finding_table((self,))


@dataclass(frozen=True, eq=False, repr=False)
class Findings(Result, Sequence[Finding]):
    """What every adversary that applies found, in the order in which they were run."""

    items: tuple[Finding, ...]

    @property
    def exceeded(self) -> tuple[Finding, ...]:
        """Those that got further than was promised."""
        return tuple(finding for finding in self.items if finding.exceeded)

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> Findings: ...
    def __getitem__(self, place: int | slice) -> Finding | Findings:
        return Findings(self.items[place]) if isinstance(place, slice) else self.items[place]

    def __len__(self) -> int:
        return len(self.items)

    def to_dict(self) -> dict[str, Any]:
        """The document of `attack --json`."""
        return {"findings": [finding.to_dict() for finding in self.items]}

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        return cls(tuple(Finding.from_dict(entry) for entry in document["findings"]))

    def __repr__(self) -> str:
        broken = len(self.exceeded)
        found = f"{broken} above the bound" if broken else "none above its bound"
        return f"<Findings of {len(self)} attacks: {found}>"

    def __rich__(self) -> RenderableType:
        return self.view()

    def view(self, explain: bool = False) -> RenderableType:
        """The tables for a terminal; with `explain` also what each row means."""
        from polyseme.results.views.terminal import findings_view

        return findings_view(self.items, explain=explain)

    def _repr_html_(self) -> str:
        from polyseme.results.views.html import finding_table

        return finding_table(self.items)
