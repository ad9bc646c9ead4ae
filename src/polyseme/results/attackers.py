"""Attackers who guess at a protected value, how often each is right, and attack findings.

    reference    shares the prior that the sets were made for: a balanced design promises 1/l here
    marginal     knows how the values are distributed among all people
    conditional  knows how they are distributed given untouched columns
    combined     knows also how they go with the values of other protected attributes, and reads all sets of a record

Every attacker knows the mechanism and sees the set. Learning is the purpose of a release, so attackers who have learned
need no other source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self, overload

from polyseme.results.base import Result, restored, written

__all__ = ["Finding", "Findings", "Guesser", "Guessers", "RangeGuess"]


@dataclass(frozen=True)
class RangeGuess:
    """How often an attacker names the right range: values closer than the promised distance.

    before, after, worst_group  as for the value itself
    """

    before: float
    after: float
    worst_group: float

    def at_least(self, before: float, after: float | None, worst_group: float | None) -> RangeGuess:
        """The same, at least as often right as a guess of the value: a range around it is right too."""
        return RangeGuess(
            max(self.before, before),
            max(self.after, after or 0.0),
            max(self.worst_group, worst_group or 0.0),
        )

    def to_dict(self) -> dict[str, Any]:
        return written(asdict(self))


@dataclass(frozen=True)
class Guesser:
    """How often one person's best guess is right.

    before       without the release, on average
    after        with it; None where that is not known: it may be as high as `high`, or anything
    worst_group  with it, in the group where the guess is right most often
    floor        on average, what no mechanism can undercut whose sets always hold the true value
    crowd        why the floor is not lower, in words: in the group where it is highest
    group        the group of `worst_group`, in words; empty where everybody is one group
    ranges       the same for ranges, never below that for values; None where the values have no distance, or it is
                 not computed
    low, high    between which the true `after` lies in 95% of all releases, where it is estimated. Where the table is
                 at hand there is no `low`, and `high` is for an attacker who knows the exact composition of groups
    """

    before: float
    after: float | None
    worst_group: float | None
    floor: float | None
    crowd: str = ""
    group: str = ""
    ranges: RangeGuess | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.ranges is not None:
            object.__setattr__(self, "ranges", self.ranges.at_least(self.before, self.after, self.worst_group))

    @property
    def surely(self) -> float | None:
        """With the release, at least so often, as far as that is known."""
        return self.after if self.low is None else self.low

    @property
    def known(self) -> bool:
        """Whether `after` is known, or estimated so that its limits say something."""
        return self.after is not None and (self.low is None or self.high is None or self.high - self.low <= _SPAN)

    @property
    def between(self) -> str:
        """The interval in words, with a comma in front; empty where the number is exact."""
        return "" if self.low is None or self.high is None else f", between {self.low:.1%} and {self.high:.1%},"

    @property
    def beyond(self) -> str:
        """What more an attacker reaches who knows the composition of groups, in words.

        Empty where that is no more.
        """
        more = self.low is None and self.high is not None and self.after is not None and self.high > self.after + _SHOWN
        return f" ({self.high:.1%} knowing the exact composition of each group)" if more else ""

    def to_dict(self) -> dict[str, Any]:
        ranges = self.ranges.to_dict() if self.ranges is not None else None
        plain = {key: value for key, value in asdict(self).items() if key != "ranges"}
        return written({**plain, "range": ranges})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        found = restored(document)
        ranges = found.pop("range")
        return cls(**found, ranges=RangeGuess(**restored(ranges)) if ranges is not None else None)


@dataclass(frozen=True)
class Guessers:
    """The attackers, where their distributions are known.

    source     where the distribution comes from, in words; empty where none is known
    by         the untouched columns that tell the groups apart
    groups     how many groups there are
    columns    those that the conditional attacker takes one by one, where he then knows more than by group; else empty
    warnings   what the reader must not miss
    promised   the limit for an attacker with the reference prior; None where nothing was promised
    learner    the limit for an attacker who knows the distribution; None where nothing was promised
    combined   None where no other attribute is published as sets
    read       the other attributes whose sets surely tell more about this one; empty where none does
    broken     whether what was promised about learners is surely exceeded because of these
    """

    reference: Guesser
    marginal: Guesser | None = None
    conditional: Guesser | None = None
    source: str = ""
    by: tuple[str, ...] = ()
    groups: int = 0
    warnings: tuple[str, ...] = ()
    promised: float | None = None
    learner: float | None = None
    combined: Guesser | None = None
    read: tuple[str, ...] = ()
    broken: bool = False
    columns: tuple[str, ...] = ()

    @property
    def people(self) -> Mapping[str, Guesser | None]:
        """By the names that documents have for them."""
        return {
            "reference": self.reference,
            "marginal": self.marginal,
            "conditional": self.conditional,
            "combined": self.combined,
        }

    @property
    def learned(self) -> Guesser | None:
        """The attacker who knows most, of those whose success is known."""
        return self.combined if self.read else self.alone

    @property
    def alone(self) -> Guesser | None:
        """The same, of those who read only the sets of this attribute."""
        conditional = self.conditional
        return conditional if conditional is not None and conditional.after is not None else self.marginal

    @property
    def unknown(self) -> float | None:
        """How often an attacker may be right at most where that is not known; None where it is."""
        one = self.conditional
        return None if one is None or one.known else 1.0 if one.high is None else one.high

    @property
    def above(self) -> bool:
        """Whether an attacker who learned the distribution exceeds every promise, beyond chance."""
        promised = [number for number in (self.promised, self.learner) if number is not None]
        if self.learned is None or self.learned.surely is None or not promised:
            return False
        return self.learned.surely > max(promised) + _ROUNDING

    def sentence(self) -> str:
        """What was promised against the first attacker and what the others reach, always together."""
        learned, promised = self.learned, ""
        if self.promised is not None:
            promised = f"{self.promised:.1%} is for an attacker with the public prior; "
        if learned is None or learned.after is None:
            ask = "" if self.source else ": give a distribution"
            most = "" if self.unknown is None else f"; it may be as high as {self.unknown:.1%}"
            who = "an attacker who knows the distribution of the values"
            return f"{promised}how often {who} guesses right is not known{most}{ask}"
        known = self._given if learned is not self.marginal else ""
        group = f", in {learned.worst_group:.1%} in the worst group ({learned.group})" if learned.group else ""
        return (
            f"{promised}{self._who}knows the distribution of the values{known} is right in {learned.after:.1%}"
            f"{learned.between} of all cases{learned.beyond}{group}, {self._without}and in {learned.before:.1%} "
            f"without the release (from {self.source}){self._missing}"
        )

    @property
    def _given(self) -> str:
        """What the attacker knows the distribution given, in words."""
        if self.columns:
            return f" given each of {' and '.join(self.columns)}"
        return f" given {' and '.join(self.by)}" if self.by else ""

    @property
    def _missing(self) -> str:
        """What is not known about the last attacker, in words."""
        given = self._given or " given other columns"
        most = 1.0 if self.conditional is None else self.unknown
        return "" if most is None else f"; for an attacker who knows it{given}: not known; may be as high as {most:.1%}"

    @property
    def _who(self) -> str:
        also = f"also reads the sets of {' and '.join(self.read)} and "
        return f"an attacker who {also if self.read else ''}"

    @property
    def _without(self) -> str:
        """The success without the sets of other attributes, as text; empty where these add nothing."""
        alone = None if self.alone is None or not self.read else self.alone.after
        return "" if alone is None else f"in {alone:.1%} without these sets, "

    def to_dict(self) -> dict[str, Any]:
        """The entry `learner` of an attribute."""
        people = {name: None if one is None else one.to_dict() for name, one in self.people.items()}
        return written(
            {
                **people,
                "sentence": self.sentence(),
                "above": self.above,
                "source": self.source,
                "by": list(self.by),
                "groups": self.groups,
                "warnings": list(self.warnings),
                "promised": self.promised,
                "promised_to_learners": self.learner,
                "combined_reads": list(self.read),
                "combined_above": self.broken,
                "columns": list(self.columns),
            }
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The entry, read back."""

        def person(name: str) -> Guesser | None:
            return None if document.get(name) is None else Guesser.from_dict(document[name])

        return cls(
            Guesser.from_dict(document["reference"]),
            person("marginal"),
            person("conditional"),
            document["source"],
            tuple(document["by"]),
            document["groups"],
            tuple(document["warnings"]),
            document["promised"],
            document["promised_to_learners"],
            person("combined"),
            tuple(document.get("combined_reads", ())),
            document.get("combined_above", False),
            tuple(document.get("columns", ())),
        )


_SPAN = 0.5
"""Distance of the limits from which on they say nothing."""
_SHOWN = 5e-4
"""Differences that a percentage with one decimal shows."""
_ROUNDING = 1e-9
"""What a success may be above a promise by rounding."""


if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Finding:
    """One attacker's success on one attribute.

    attack     the attacker
    attribute  what it wants to learn; None for identities
    success    how often, or how surely, it is right
    bound      what was promised; None when nothing was
    baseline   how often one is right who only knows the public distribution
    exceeded   whether the promise is broken
    knows      what the attacker knows
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
    """What every attacker that applies found, in the order in which they were run."""

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
