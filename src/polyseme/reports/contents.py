"""What a page says, as values; how it looks is the business of the renderers.

It has the three risks that matter, each beside its promise. The provenance says which data a page is about, whose, of
when, and made by what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum

from polyseme.kernel.errors import Problem, QuestionError
from polyseme.kernel.version import __version__
from polyseme.models.base import Verdict
from polyseme.release import Manifest
from polyseme.release.facts import Collected, flaw_of
from polyseme.results.attackers import Guessers
from polyseme.results.drawing.distribution import TOP, ClassSizes, Distribution, shown_values

__all__ = [
    "TOP",
    "AttributeLine",
    "ClassSizes",
    "Distribution",
    "FactLine",
    "FindingLine",
    "Outcome",
    "Page",
    "PromiseLine",
    "Provenance",
    "RecodedLine",
    "Reidentification",
    "Treatment",
    "ValueRisk",
    "provenance_of",
    "require_facts",
    "shown_values",
    "worst",
]


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
    learned    what that attacker reaches on average, with the interval `low` to `high` where it is estimated
    surpassed whether that is more than was promised, beyond chance
    before    what he reaches without the release
    unknown   what may be reached at most by learning, where that is not known; None where it is
    """

    attribute: str
    unit: str = "set"
    promised: float | None = None
    method: float | None = None
    learner: float | None = None
    learned: float | None = None
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
        return self.unit == "class" or (self.learned is not None and self.unknown is None)

    @property
    def reached(self) -> float | None:
        """The most that an attacker who learns reaches."""
        return self.method if self.unit == "class" else self.learned


def worst(risks: Sequence[ValueRisk], learning: bool) -> ValueRisk | None:
    """The attribute at highest risk: furthest above its promise, else guessed right most often."""

    def order(risk: ValueRisk) -> tuple[float, float]:
        reached, promised = (risk.reached, risk.learner) if learning else (risk.method, risk.promised)
        above = risk.surpassed if learning else risk.exceeded
        return (reached or 0.0) - (promised or 0.0) if above else -1.0, reached or 0.0

    known = [risk for risk in risks if (risk.reached if learning else risk.method) is not None]
    return max(known, key=order, default=None)


_SLACK = 1e-9
"""Rounding that does not count as exceeding a bound."""


@dataclass(frozen=True)
class PromiseLine:
    """What was promised for one attribute: in plain words, and the models in the policy's words."""

    attribute: str
    text: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class AttributeLine:
    """One column of the release: its role and how it is published.

    For example "sets of 3, at least 2 apart" or "as it is".

    known  whether it shows what an attacker may know about a person; what was generalized shows less, and the number
           of a group is not known to an attacker
    """

    name: str
    role: str
    published: str
    protected: bool = False
    domain_from_data: bool = False
    known: bool = True


@dataclass(frozen=True)
class RecodedLine:
    """What was done to one quasi-identifier: words, number of labels, most frequent labels."""

    name: str
    done: str
    labels: int
    examples: str


@dataclass(frozen=True)
class Treatment:
    """What a method that looks at the whole table did to the records.

    method  its name, in the policy's words
    text    what it does, in a sentence or two
    unit    what records were put into: "class" or "group"
    facts   further facts, each with its name
    lines   the quasi-identifiers
    sizes   of the classes; None where all are of one size
    """

    method: str
    text: str
    unit: str
    facts: tuple[tuple[str, str], ...] = ()
    lines: tuple[RecodedLine, ...] = ()
    sizes: ClassSizes | None = None


@dataclass(frozen=True)
class FactLine:
    """How one protected attribute was made, and what follows from that.

    design           the name of the design the sets are drawn from
    size             F, the number of values of the domain
    l, d, p          candidates in a set, least distance (None without one), truth probability
    p_most           the truth probability where it is highest; `p` is then that where it is lowest
    promised         the bound on the posterior that was promised, 1/l at p = 1; None where there is none
    worst_posterior  the best that an attacker who knows the method, and the prior it was made for, can do
    epsilon          of local differential privacy; infinite where sets rule values out
    identifiable     whether the true distribution can be recovered
    expected_mse     expected squared error of the estimated share of one value

    What is not known is None.
    """

    attribute: str
    design: str
    size: int
    l: int
    d: float | None
    p: float
    promised: float | None
    worst_posterior: float | None
    epsilon: float | None
    identifiable: bool | None
    expected_mse: float | None = None
    p_most: float | None = None

    @property
    def kept(self) -> bool | None:
        """Whether the method gives no more away than was promised; None when that is not known."""
        if self.promised is None or self.worst_posterior is None or math.isnan(self.worst_posterior):
            return None
        return self.worst_posterior <= self.promised + _SLACK

    @property
    def exceeded(self) -> bool:
        """Whether the method is known to give more away than was promised."""
        return self.kept is False


@dataclass(frozen=True)
class FindingLine:
    """What one attack reached, against the promised bound.

    baseline  what guessing from the public distribution alone reaches
    knows     what the attacker knows
    helps     what would help against it
    """

    attack: str
    attribute: str | None
    success: float
    bound: float | None
    exceeded: bool
    baseline: float | None = None
    knows: str = ""
    helps: str = ""


class Outcome(Enum):
    """What the page says at its head."""

    HOLDS = "holds"
    EXCEEDED = "exceeded"
    VIOLATED = "violated"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, eq=False)
class Page:
    """Everything on the page.

    dropped          records left out: for missing values, or by a collector because too few share their open values
    form             "set" or "long"
    for_publication  False after a seeded run
    sticky           whether the decoys of a record stay the same when it is published again
    checks           the verdicts on the release
    metrics          what was lost, by question ("income", "income by sex") and metric; None without the original
    findings         what the attacks reached; None when none was run
    learners         by attribute, what people can guess who know more than the promise reckons with
    sets             whether sets of candidates stand in the place of some values
    treatment        what was done to the table as a whole before; None where nothing was
    original         whether the original table was looked at: the page is then for internal use only
    accepted         models that did not hold when it was published all the same
    collected        how devices sent what they had drawn; None where a table was anonymized
    drawn_here       whether it is known how the decoys were drawn; it is not for a table that another program made
    """

    title: str
    records: int
    promises: tuple[PromiseLine, ...]
    attributes: tuple[AttributeLine, ...]
    checks: tuple[Verdict, ...] = ()
    facts: tuple[FactLine, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    metrics: Mapping[str, Mapping[str, float]] | None = None
    findings: tuple[FindingLine, ...] | None = None
    notes: tuple[str, ...] = ()
    dropped: int = 0
    form: str = "set"
    for_publication: bool = True
    sticky: bool = False
    learners: Mapping[str, Guessers] = field(default_factory=dict)
    sets: bool = True
    treatment: Treatment | None = None
    provenance: Provenance = field(default_factory=Provenance)
    reidentification: Reidentification = field(default_factory=Reidentification)
    original: bool = False
    accepted: tuple[str, ...] = ()
    drawn_here: bool = True
    collected: Collected | None = None

    @property
    def internal(self) -> bool:
        """Whether something on it comes from the original table."""
        shown = any(item.original is not None for item in self.distributions)
        return self.original or shown or self.metrics is not None

    @property
    def above(self) -> bool:
        """Whether an attacker who has learned the distribution exceeds some attribute's promise."""
        return any(attackers.above for attackers in self.learners.values()) or bool(self.learned_in_groups)

    @property
    def learned_in_groups(self) -> tuple[tuple[str, float, float], ...]:
        """Attributes in groups for which an attacker who learns from all groups exceeds the promise.

        Each with what is promised against an attacker who knows only the group, and what is reached.
        """
        promised = {item.attribute: item.bound for item in self.findings or () if item.attack == "homogeneity"}
        return tuple(
            (item.attribute, bound, item.success)
            for item in self.findings or ()
            if item.attack == "definetti" and item.attribute is not None and item.attribute not in self.learners
            if (bound := promised.get(item.attribute)) is not None and item.success > bound + self._chance(bound)
        )

    def _chance(self, share: float) -> float:
        """Three standard errors of a share, with twice the variance, as a margin of chance.

        Twice, because the parts of a release that judge each other learned from one another.
        """
        return 3.0 * math.sqrt(2.0 * share * (1.0 - share) / max(self.records, 1))

    @property
    def outcome(self) -> Outcome:
        """Fails closed: a page without checks does not say that anything holds."""
        if not self.checks:
            return Outcome.UNCHECKED
        if not all(verdict.holds for verdict in self.checks):
            return Outcome.VIOLATED
        too_much = any(fact.exceeded for fact in self.facts) or any(item.exceeded for item in self.findings or ())
        return Outcome.EXCEEDED if too_much else Outcome.HOLDS

    @property
    def as_they_are(self) -> tuple[AttributeLine, ...]:
        """The columns that are published untouched."""
        shown = (line for line in self.attributes if not line.protected and line.known)
        return tuple(line for line in shown if line.role != "identifier")
