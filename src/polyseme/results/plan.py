"""What a policy means, before any record is touched, and the trade-off of its settings.

A plan that was just made also has the mechanisms that it describes. They are not stored: a plan that was read from a
document says and shows everything, but nothing can be published, and no grid of settings computed, from it.

The trade-off is what a learner's success costs in precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import Problem, QuestionError
from polyseme.privacy.analysis import Facts
from polyseme.privacy.calibration import Choice
from polyseme.results.attackers import Guessers
from polyseme.results.base import Result, restored, written
from polyseme.results.method import GroupingPlan
from polyseme.schema import Attribute
from polyseme.strata import Key
from polyseme.strata.stratum import Groups

__all__ = ["Advice", "AttributePlan", "Chosen", "Plan", "StratumPlan", "Traded", "Tried", "marked"]


@dataclass(frozen=True)
class Tried:
    """One setting: candidates, distance, strength of the prior, truth probability.

    alpha, p   the strength of the prior and the truth probability; None where strata have their own
    success    of an attacker who knows the distribution, on average; `worst` in the worst stratum
    floor      the lower bound for truthful sets of this l and d
    error      expected root mean squared error of a share; None without a number of records, or where not computed
    dominated  whether another setting of at least this distance has both a lower success and a lower error
    chosen     whether it is what the policy asks for
    """

    l: int
    d: float
    alpha: float | None
    p: float | None
    success: float
    worst: float
    floor: float
    error: float | None
    dominated: bool = False
    chosen: bool = False

    def to_dict(self) -> dict[str, Any]:
        """An entry under `tradeoff` of `plan --json --frontier`."""
        return written(asdict(self))

    def beaten_by(self, other: Tried) -> bool:
        if self.error is None or other.error is None or other.d < self.d:
            return False
        better = other.success < self.success or other.error < self.error
        return better and other.success <= self.success and other.error <= self.error


def marked(tried: Sequence[Tried]) -> list[Tried]:
    """The settings, each saying whether another one is better both ways.

    A smaller distance is no better setting: it gives up what distance protects from, guesses of a range.
    """
    return [replace(one, dominated=any(one.beaten_by(other) for other in tried)) for one in tried]


@dataclass(frozen=True)
class Advice:
    """The setting with the least expected error that keeps a learner's success.

    policy   lines to paste below the attribute
    lines    the reasoning, for people
    success  reached on average, `error` the expected root mean squared error of a share
    """

    attribute: str
    l: int
    d: float
    policy: tuple[str, ...]
    lines: tuple[str, ...]
    success: float
    worst: float
    error: float | None

    def to_dict(self) -> dict[str, Any]:
        """An entry under `advice` of `plan --json --advise`."""
        return written({**asdict(self), "policy": list(self.policy), "lines": list(self.lines)})


if TYPE_CHECKING:
    from rich.console import RenderableType


_NAMED = 4
"""Nearest settings that a hint names; more would not help to choose."""


@dataclass(frozen=True)
class Traded:
    """How far a least-risk design stepped back from the least worst posterior; its benefit.

    step                   the step; 0 is the least worst posterior, 1 the plain design
    floor                  no mechanism with p = 1 has a lower worst posterior; None at p < 1
    least_worst_posterior  at the smallest risk that was tried
    least_expected_mse     the expected error there; None without a number of records or where it is not computed
    worst_posterior        of the design that is used
    expected_mse           of the design that is used
    """

    step: float
    floor: float | None
    least_worst_posterior: float
    least_expected_mse: float | None
    worst_posterior: float
    expected_mse: float | None

    def to_dict(self) -> dict[str, Any]:
        """The entry `least_risk` of `plan --json`."""
        return written(asdict(self))


@dataclass(frozen=True)
class Chosen:
    """The parameters that keep every promise of an attribute.

    size       the number of its values
    binding    the promise that decided
    lines      the reasoning, for people
    warnings   what the reader must not miss
    estimable  whether the sets say anything about the values at all; the design may still hide some of them
    """

    design: str
    l: int
    d: float
    p: float
    size: int
    binding: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    estimable: bool

    @classmethod
    def of(cls, choice: Choice) -> Self:
        return cls(
            choice.design,
            choice.l,
            choice.d,
            choice.p,
            choice.size,
            choice.binding,
            choice.lines,
            choice.warnings,
            choice.estimable,
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        found = restored(document)
        return cls(**{**found, "lines": tuple(found["lines"]), "warnings": tuple(found["warnings"])})


@dataclass(frozen=True, eq=False)
class _Drawing:
    """How a stratum's sets are drawn; the attribute itself stands for all other records."""

    attribute: Attribute
    key: Key
    mechanism: Mechanism | None


@dataclass(frozen=True)
class StratumPlan:
    """What the promises come to for the records of a stratum.

    when       its condition: for each column the texts that fulfill it
    excluded   the values that are impossible
    where      the places in the policy that declare them
    facts      as for the attribute, with codes of the whole domain; None where no mechanism keeps the promises
    obstacle   why there is no mechanism
    traded     of a least-risk design
    """

    when: Mapping[str, tuple[str, ...]]
    excluded: tuple[Any, ...]
    where: str
    facts: Facts | None
    obstacle: str = ""
    traded: Traded | None = None
    drawing: _Drawing | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        attribute: Attribute,
        key: Key,
        mechanism: Mechanism | None,
        facts: Facts | None,
        obstacle: str = "",
        traded: Traded | None = None,
    ) -> Self:
        """Of the records with this key; `mechanism` is over the values that are left."""
        drawing = _Drawing(attribute, key, mechanism)
        when = {name: tuple(texts) for name, texts in key.condition.when.items()}
        return cls(when, _labels(attribute, key.excluded), "", facts, obstacle, traded, drawing)

    def placed(self, key: Key, where: str) -> Self:
        """The same for the records with another key, which are drawn alike."""
        drawing = replace(_given(self.drawing), key=key)
        when = {name: tuple(texts) for name, texts in key.condition.when.items()}
        excluded = _labels(drawing.attribute, key.excluded)
        return replace(self, when=when, excluded=excluded, where=where, drawing=drawing)

    @property
    def key(self) -> Key:
        """Its condition, and the codes of the values that are impossible."""
        return _given(self.drawing).key

    @property
    def mechanism(self) -> Mechanism | None:
        """Over the values that are left; None when there is none that keeps the promises."""
        return _given(self.drawing).mechanism

    @property
    def feasible(self) -> bool:
        return self.facts is not None

    def to_dict(self) -> dict[str, Any]:
        """An entry under `strata` of `plan --json`."""
        found = self.facts
        return written(
            {
                "when": {name: list(texts) for name, texts in self.when.items()},
                "excluded": list(self.excluded),
                "where": self.where,
                "p": found.p if found else None,
                "feasible": self.feasible,
                "identifiable": found is not None and found.identifiable is not False,
                "worst_posterior": found.worst_posterior if found else None,
                "epsilon": found.epsilon if found else None,
                "obstacle": self.obstacle,
                "least_risk": self.traded.to_dict() if self.traded else None,
                "facts": _write_facts(found),
            }
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            {name: tuple(texts) for name, texts in document["when"].items()},
            tuple(document["excluded"]),
            document["where"],
            _read_facts(document["facts"]),
            document["obstacle"],
            _read_traded(document["least_risk"]),
        )


@dataclass(frozen=True)
class AttributePlan:
    """What one attribute's promises come to.

    choice      the parameters that keep every promise
    facts       what an attacker and an analyst can expect, the worst over all strata; None where no mechanism keeps
                the promises
    obstacle    why there is no mechanism
    nearest     the nearest (l, d) that can be had and estimated
    strata      the others, whose records have impossible values or distributions of their own
    traded      of a least-risk design that is not balanced: what its step cost and bought
    confounded  groups of values that no estimator can tell apart
    published   what is published although it comes from the records, and what can be done with it
    learner     how often three attackers with more and more knowledge guess right; None if not computed
    groups      what they know; it is not stored, and may come from the records
    """

    name: str
    choice: Chosen
    facts: Facts | None
    obstacle: str = ""
    nearest: tuple[tuple[int, float], ...] = ()
    strata: tuple[StratumPlan, ...] = ()
    traded: Traded | None = None
    confounded: tuple[tuple[Any, ...], ...] = ()
    published: tuple[str, ...] = ()
    learner: Guessers | None = None
    groups: Groups | None = field(default=None, compare=False, repr=False)
    drawing: _Drawing | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        attribute: Attribute,
        choice: Choice,
        mechanism: Mechanism | None,
        facts: Facts | None,
        obstacle: str = "",
        nearest: tuple[tuple[int, float], ...] = (),
        strata: tuple[StratumPlan, ...] = (),
        traded: Traded | None = None,
    ) -> Self:
        """Of an attribute with this mechanism, or without one."""
        return cls(
            attribute.name,
            Chosen.of(choice),
            facts,
            obstacle,
            nearest,
            strata,
            traded,
            tuple(_labels(attribute, group) for group in facts.confounded) if facts else (),
            tuple(_published(attribute, mechanism, facts)) if facts and mechanism else (),
            drawing=_Drawing(attribute, Key(), mechanism),
        )

    @property
    def attribute(self) -> Attribute:
        return _given(self.drawing).attribute

    @property
    def mechanism(self) -> Mechanism | None:
        """How its sets are drawn; None when no mechanism can keep the promises."""
        return _given(self.drawing).mechanism

    @property
    def feasible(self) -> bool:
        """Whether every record can be given a believable set that keeps the promises."""
        return self.facts is not None and all(stratum.feasible for stratum in self.strata)

    @property
    def identifiable(self) -> bool:
        """False only when some values certainly cannot be distinguished, or without a mechanism."""
        return self.facts is not None and self.facts.identifiable is not False

    @property
    def kept(self) -> bool:
        """False only when another attribute's sets certainly break a promise on learners."""
        return self.learner is None or not self.learner.broken

    @property
    def usable(self) -> bool:
        return self.feasible and self.identifiable and self.kept

    @property
    def hint(self) -> str:
        """The nearest settings that work, in words; empty where there are none."""
        if not self.nearest:
            return ""
        return "nearest settings that work: " + ", ".join(f"(l={l}, d={d:g})" for l, d in self.nearest[:_NAMED])

    def to_dict(self) -> dict[str, Any]:
        """The entry of `plan --json`."""
        found, choice = self.facts, self.choice
        return written(
            {
                "mechanism": choice.design,
                "l": choice.l,
                "d": choice.d,
                "p": choice.p,
                "feasible": self.feasible,
                "identifiable": self.identifiable,
                "worst_posterior": found.worst_posterior if found else None,
                "epsilon": found.epsilon if found else None,
                "expected_mse": found.expected_mse if found else None,
                "mse_inverse": found.mse_inverse if found else None,
                "mse_paper": found.mse_paper if found else None,
                "mse_limit": found.mse_limit if found else None,
                "average_posterior": found.average_posterior if found else None,
                "prior_vulnerability": found.prior_vulnerability if found else None,
                "condition": found.condition if found else None,
                "confounded": [list(group) for group in self.confounded],
                "reasoning": list(choice.lines),
                "warnings": [
                    *self.published,
                    *choice.warnings,
                    *(found.notes if found else ()),
                    *(self.learner.warnings if self.learner else ()),
                ],
                "obstacle": self.obstacle,
                "nearest": [{"l": l, "d": d} for l, d in self.nearest],
                "strata": [stratum.to_dict() for stratum in self.strata],
                "least_risk": self.traded.to_dict() if self.traded else None,
                "choice": written({**asdict(choice), "lines": list(choice.lines), "warnings": list(choice.warnings)}),
                "facts": _write_facts(found),
                "published": list(self.published),
                "learner": self.learner.to_dict() if self.learner else None,
            }
        )

    @classmethod
    def from_dict(cls, name: str, document: Mapping[str, Any]) -> Self:
        """The entry of this name, read back."""
        return cls(
            name,
            Chosen.from_dict(document["choice"]),
            _read_facts(document["facts"]),
            document["obstacle"],
            tuple((item["l"], item["d"]) for item in document["nearest"]),
            tuple(StratumPlan.from_dict(entry) for entry in document["strata"]),
            _read_traded(document["least_risk"]),
            tuple(tuple(group) for group in document["confounded"]),
            tuple(document["published"]),
            Guessers.from_dict(document["learner"]) if document.get("learner") else None,
        )

    def _repr_html_(self) -> str:
        return Plan((self,), None, ())._repr_html_()


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Result):
    """What a policy comes to, attribute by attribute.

    from_data  the attributes whose values, or bins, were looked up in a table
    grouping   what becomes of the records as a whole, where the policy names a method for that
    refused    values of the table that could not be published, as the remarks say; it is not stored
    refusals   why `anonymize` would refuse to publish the table, though every promise about its sets can be kept
    """

    attributes: tuple[AttributePlan, ...]
    records: int | None
    from_data: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    grouping: GroupingPlan | None = None
    refused: tuple[Problem, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether every promise can be kept and every distribution recovered."""
        reached = self.grouping is None or self.grouping.feasible
        return reached and all(item.usable for item in self.attributes)

    def warnings(self) -> list[str]:
        """Columns published as they are, and distributions that cannot be recovered."""
        names: dict[str, list[str]] = {}
        for item in self.attributes:
            for warning in (*item.published, *item.choice.warnings):
                names.setdefault(warning, []).append(item.name)
        found = [f"{', '.join(where)}: {warning}" for warning, where in names.items()]
        return [*self.remarks, *found] + [
            f"{item.name}: some of its values cannot be distinguished afterwards, however many records there are. "
            + item.hint
            for item in self.attributes
            if item.feasible and not item.identifiable and item.choice.estimable
        ]

    def __getitem__(self, name: str) -> AttributePlan:
        return next(item for item in self.attributes if item.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The document of `plan --json`."""
        document = {
            "records": self.records,
            "usable": self.usable,
            "remarks": list(self.remarks),
            "refusals": list(self.refusals),
            "from_data": list(self.from_data),
            "attributes": {item.name: item.to_dict() for item in self.attributes},
        }
        return document if self.grouping is None else {**document, "method": self.grouping.to_dict()}

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            tuple(AttributePlan.from_dict(name, entry) for name, entry in document["attributes"].items()),
            document["records"],
            tuple(document["from_data"]),
            tuple(document["remarks"]),
            GroupingPlan.from_dict(document["method"]) if "method" in document else None,
            refusals=tuple(document.get("refusals", ())),
        )

    def __repr__(self) -> str:
        parts = [
            f"{item.name}: {item.choice.design} l={item.choice.l} d={item.choice.d:g} p={item.choice.p:.4g} "
            + _standing(item)
            for item in self.attributes
        ]
        parts += [] if self.grouping is None else self.grouping.lines()[:1]
        return f"<Plan {'; '.join(parts)}>"

    def __rich__(self) -> RenderableType:
        return self.view()

    def view(self, explain: bool = False) -> RenderableType:
        """The tables for a terminal; with `explain` also what each row means."""
        from polyseme.results.views.terminal import plan_view

        return plan_view(self, explain=explain)

    def _repr_html_(self) -> str:
        from polyseme.results.views.html import plan_table

        return plan_table(self)


def _standing(item: AttributePlan) -> str:
    """What became of an attribute, in a word or two."""
    if not item.feasible:
        return "impossible"
    return "not estimable" if not item.identifiable else "ok" if item.kept else "promise broken"


def _given(drawing: _Drawing | None) -> _Drawing:
    if drawing is None:
        raise QuestionError("this plan was read from a document, which holds no mechanisms", "plan the policy again")
    return drawing


def _labels(attribute: Attribute, codes: Sequence[int]) -> tuple[Any, ...]:
    values = attribute.domain.values if attribute.domain is not None else ()
    return tuple(values[code] for code in codes)


def _published(attribute: Attribute, mechanism: Mechanism, facts: Facts) -> list[str]:
    """What is published although it comes from the records, and what can be done with it."""
    expected, said = attribute.distributions, []
    if expected.reference is None:
        return []
    if expected.reference_from_data:
        said.append("the reference distribution is that of the records, and is published with the release")
    guess = mechanism.worst_posterior(expected.reference)
    if facts.worst_posterior is not None and guess > facts.worst_posterior:
        said.append(f"an attacker with the reference distribution guesses right with probability up to {guess:.3g}")
    return said


def _write_facts(facts: Facts | None) -> dict[str, Any] | None:
    if facts is None:
        return None
    groups = [list(group) for group in facts.confounded]
    return written({**asdict(facts), "confounded": groups, "notes": list(facts.notes)})


def _read_facts(document: Mapping[str, Any] | None) -> Facts | None:
    if document is None:
        return None
    found = restored(document)
    groups = tuple(tuple(group) for group in found["confounded"])
    return Facts(**{**found, "confounded": groups, "notes": tuple(found["notes"])})


def _read_traded(document: Mapping[str, Any] | None) -> Traded | None:
    return None if document is None else Traded(**restored(document))
