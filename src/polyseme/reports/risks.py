"""The three risks that matter, each beside its promise, and the provenance of a page.

The provenance says which data a page is about, whose, of when, and made by what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.version import __version__
from polyseme.release import Manifest
from polyseme.release.facts import flaw_of

__all__ = ["Provenance", "Reidentification", "ValueRisk", "provenance_of", "require_facts", "worst"]


@dataclass(frozen=True)
class Provenance:
    """Where a release comes from; empty where it was not stated, and then the page says so.

    title      the name of the data set
    publisher  who answers for the release
    version    of the policy
    released   the day of the release, and `reported` that of the page, as 2026-11-17
    program    the version of the program that wrote the release, and `reporter` that of the one that wrote the page
    format     of the manifest
    checksum   of the manifest, and through it of the data
    """

    title: str = ""
    publisher: str = ""
    version: str = ""
    released: str = ""
    reported: str = ""
    program: str = ""
    reporter: str = ""
    format: int | None = None
    checksum: str = ""


def require_facts(**given: str | None) -> None:
    """Raise unless every fact that a caller hands in can stand at the head of a page."""
    wrong = [(name, flaw) for name, text in given.items() if text is not None and (flaw := flaw_of(name, text))]
    if wrong:
        raise QuestionError(Problem(f"--{name}", flaw) for name, flaw in wrong)


def provenance_of(
    manifest: Manifest, title: str = "", publisher: str | None = None, today: date | None = None
) -> Provenance:
    """What the manifest says, but for the title and the publisher if they are given."""
    return Provenance(
        title=title or manifest.about.title,
        publisher=publisher or manifest.about.publisher,
        version=manifest.about.version,
        released=manifest.about.date,
        reported=(today or date.today()).isoformat(),
        program=manifest.program,
        reporter=__version__,
        format=manifest.format,
        checksum=manifest.checksum,
    )


_SLACK = 1e-9
"""Rounding that does not count as exceeding a promise."""


@dataclass(frozen=True)
class Reidentification:
    """Whether an attacker who knows the quasi-identifiers of a person finds the record.

    columns   the quasi-identifiers that the release shows
    raw       those of them that are published as they are
    smallest  how many records share a combination of them at the least; None where that was not counted
    unique    the share of records whose combination no other record has
    promised  how many records were promised to share one (k); None where nothing was
    people    whether `smallest` is a number of people, which the publisher claims
    others    columns that are called insensitive and published all the same: `smallest` and `unique` count them
    """

    columns: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    smallest: int | None = None
    unique: float | None = None
    promised: int | None = None
    people: bool = False
    others: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """All columns by which a person may be found."""
        return (*self.columns, *self.others)

    @property
    def measured(self) -> bool:
        """Whether the risk is known; without quasi-identifiers there is none to measure."""
        return not self.known or (self.smallest is not None and self.unique is not None)


@dataclass(frozen=True)
class ValueRisk:
    """How often a protected value of a person is guessed right.

    unit      what stands for the value: "set", "class" or "group"
    promised  against an attacker who knows only the method; None where nothing was promised
    method    what that attacker reaches at most; None where it is not known, as with all that follows
    learner   promised against an attacker who also learns the distribution of the values from the release
    learnt    what that attacker reaches on average, with the interval `low` to `high` where it is estimated
    surpassed whether that is more than was promised, beyond chance
    before    what he reaches without the release
    unknown   what may be reached at most by learning, where that is not known; None where it is
    """

    attribute: str
    unit: str = "set"
    promised: float | None = None
    method: float | None = None
    learner: float | None = None
    learnt: float | None = None
    low: float | None = None
    high: float | None = None
    surpassed: bool = False
    before: float | None = None
    unknown: float | None = None

    @property
    def exceeded(self) -> bool:
        """Whether the method itself gives away more than was promised."""
        return self.promised is not None and self.method is not None and self.method > self.promised + _SLACK

    @property
    def verdict(self) -> str:
        """What became of the promise, in a word or two."""
        if self.exceeded:
            return "broken"
        if self.surpassed:
            return "surpassed by learning"
        if self.method is None or not self.learning_is_known:
            return "not known"
        if self.promised is None and self.learner is None:
            return "none made"
        above = self.learner is not None and self.reached is not None and self.reached > self.learner + _SLACK
        return "kept, within chance" if above else "kept"

    @property
    def learning_is_known(self) -> bool:
        """Whether it is known what can be learned.

        The records of a class look alike, so there it is nothing more.
        """
        return self.unit == "class" or (self.learnt is not None and self.unknown is None)

    @property
    def reached(self) -> float | None:
        """The most that an attacker who learns reaches."""
        return self.method if self.unit == "class" else self.learnt


def worst(risks: Sequence[ValueRisk], learning: bool) -> ValueRisk | None:
    """The attribute at highest risk: furthest above its promise, else guessed right most often."""

    def order(risk: ValueRisk) -> tuple[float, float]:
        reached, promised = (risk.reached, risk.learner) if learning else (risk.method, risk.promised)
        above = risk.surpassed if learning else risk.exceeded
        return (reached or 0.0) - (promised or 0.0) if above else -1.0, reached or 0.0

    known = [risk for risk in risks if (risk.reached if learning else risk.method) is not None]
    return max(known, key=order, default=None)
