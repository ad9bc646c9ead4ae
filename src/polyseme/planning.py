"""From a schema to mechanisms, and what they will cost: before any record is touched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyseme.designs.balanced import proper_prior
from polyseme.designs.entropy import MaximumEntropy
from polyseme.designs.information import least_error
from polyseme.distances.structure import Floats
from polyseme.errors import ImpossibleError, InvalidInput, PolicyError, Problem
from polyseme.facts import Facts, facts, nearest_settings, worst_of
from polyseme.mechanism import Mechanism
from polyseme.policy.reading import Reader
from polyseme.policy.resolving import Resolved
from polyseme.recipes import Choice, choose, choose_within, mechanism_for
from polyseme.recipes.headline import promised_posterior
from polyseme.recipes.promises import read_promises
from polyseme.release import PublishedAttribute
from polyseme.schema import Attribute
from polyseme.strata import Stratum, possible_exclusions

__all__ = ["AttributePlan", "Plan", "StratumPlan", "make_plan", "mechanism_at", "published_attributes"]


@dataclass(frozen=True)
class Traded:
    """How far a least-risk design stepped back from the least worst posterior, and what that bought.

    step                   the step; 0 is the least worst posterior, 1 the plain design
    floor                  no mechanism with p = 1 has a lower worst posterior; None at p < 1
    least_worst_posterior  at the smallest risk that was tried
    least_mse              the expected error there; None without a number of records or where it is not computed
    worst_posterior, mse   the same for the design that is used
    """

    step: float
    floor: float | None
    least_worst_posterior: float
    least_mse: float | None
    worst_posterior: float
    mse: float | None

    def to_dict(self) -> dict[str, Any]:
        """The entry `least_risk` of `plan --json`."""
        return {
            "step": self.step,
            "floor": self.floor,
            "least_worst_posterior": self.least_worst_posterior,
            "least_expected_mse": _finite(self.least_mse),
            "worst_posterior": self.worst_posterior,
            "expected_mse": _finite(self.mse),
        }


def _traded(mechanism: Mechanism, prior: Floats | None, records: int | None) -> Traded | None:
    """What a least-risk design was chosen from; None for other designs and where a balanced one exists."""
    design, p = mechanism.design, mechanism.p
    if not isinstance(design, MaximumEntropy) or design.trade is None:
        return None
    pi = proper_prior(prior, design.size)

    def error(of: MaximumEntropy) -> float | None:
        trace = least_error(of, pi, p) if records else None
        return trace / (of.size * records) if trace is not None and records else None

    trade = design.trade
    return Traded(
        trade.step,
        trade.floor if p == 1.0 else None,
        trade.least.worst_posterior(pi, p),
        error(trade.least),
        design.worst_posterior(pi, p),
        error(design),
    )


@dataclass(frozen=True)
class StratumPlan:
    """What the promises come to for records that cannot have some of the values.

    excluded   codes of these values
    where      the places in the policy that declare them
    mechanism  over the values that are left; None when there is none that keeps the promises
    facts      as for the attribute, with codes of the whole domain; None without a mechanism
    obstacle   why there is no mechanism
    traded     of a least-risk design
    """

    excluded: tuple[int, ...]
    where: str
    mechanism: Mechanism | None
    facts: Facts | None
    obstacle: str = ""
    traded: Traded | None = None

    def to_dict(self, attribute: Attribute) -> dict[str, Any]:
        """An entry under `strata` of `plan --json`."""
        found = self.facts
        values = attribute.domain.values if attribute.domain is not None else ()
        return {
            "excluded": [values[code] for code in self.excluded],
            "p": self.mechanism.p if self.mechanism else None,
            "feasible": self.mechanism is not None,
            "identifiable": found is not None and found.identifiable is not False,
            "worst_posterior": found.worst_posterior if found else None,
            "epsilon": _finite(found.epsilon) if found else None,
            "obstacle": self.obstacle,
            "least_risk": self.traded.to_dict() if self.traded else None,
        }


@dataclass(frozen=True)
class AttributePlan:
    """What one attribute's promises come to.

    choice     the parameters that keep every promise
    mechanism  how its sets are drawn; None when no mechanism can keep the promises
    facts      what an attacker and an analyst can expect, the worst over all strata; None without a mechanism
    obstacle   why there is no mechanism
    nearest    the nearest (l, d) that can be had and estimated
    strata     the mechanisms of records that cannot have some of the values
    traded     of a least-risk design that is not balanced: what its step cost and bought
    """

    attribute: Attribute
    choice: Choice
    mechanism: Mechanism | None
    facts: Facts | None
    obstacle: str = ""
    nearest: tuple[tuple[int, float], ...] = ()
    strata: tuple[StratumPlan, ...] = ()
    traded: Traded | None = None

    @property
    def name(self) -> str:
        return self.attribute.name

    @property
    def feasible(self) -> bool:
        """Whether every record can be given a believable set that keeps the promises."""
        return self.mechanism is not None and all(stratum.mechanism is not None for stratum in self.strata)

    @property
    def identifiable(self) -> bool:
        """False only when it is known that some values cannot be told apart, or there is no mechanism."""
        return self.facts is not None and self.facts.identifiable is not False

    @property
    def usable(self) -> bool:
        return self.feasible and self.identifiable

    def to_dict(self) -> dict[str, Any]:
        """The entry of `plan --json`; an infinite epsilon is null."""
        found = self.facts
        return {
            "mechanism": self.choice.design,
            "l": self.choice.l,
            "d": self.choice.d,
            "p": self.choice.p,
            "feasible": self.feasible,
            "identifiable": self.identifiable,
            "worst_posterior": found.worst_posterior if found else None,
            "epsilon": _finite(found.epsilon) if found else None,
            "expected_mse": _finite(found.expected_mse) if found else None,
            "mse_inverse": _finite(found.mse_inverse) if found else None,
            "mse_paper": _finite(found.mse_paper) if found else None,
            "mse_limit": _finite(found.mse_limit) if found else None,
            "average_posterior": found.average_posterior if found else None,
            "prior_vulnerability": found.prior_vulnerability if found else None,
            "condition": _finite(found.condition) if found else None,
            "confounded": [list(group) for group in self.confounded],
            "reasoning": list(self.choice.lines),
            "warnings": [*self.published(), *self.choice.warnings, *(found.notes if found else ())],
            "obstacle": self.obstacle,
            "nearest": [{"l": l, "d": d} for l, d in self.nearest],
            "strata": [stratum.to_dict(self.attribute) for stratum in self.strata],
            "least_risk": self.traded.to_dict() if self.traded else None,
        }

    def published(self) -> list[str]:
        """What is published although it comes from the records, and what can be done with it."""
        domain = self.attribute.domain
        if domain is None or domain.reference is None or self.mechanism is None:
            return []
        said = []
        if domain.reference_from_data:
            said.append("the reference distribution is that of the records, and is published with the release")
        guess = self.mechanism.worst_posterior(domain.reference)
        if self.facts is not None and self.facts.worst_posterior is not None and guess > self.facts.worst_posterior:
            said.append(f"who expects the reference distribution guesses right with probability up to {guess:.3g}")
        return said

    @property
    def confounded(self) -> tuple[tuple[Any, ...], ...]:
        """Groups of values that no estimator can tell apart."""
        if self.facts is None or self.attribute.domain is None:
            return ()
        values = self.attribute.domain.values
        return tuple(tuple(values[code] for code in group) for group in self.facts.confounded)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


@dataclass(frozen=True)
class Plan:
    """What a policy comes to, attribute by attribute."""

    attributes: tuple[AttributePlan, ...]
    records: int | None
    from_data: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether every promise can be kept and every distribution recovered."""
        return all(item.usable for item in self.attributes)

    def warnings(self) -> list[str]:
        """What would be regretted after publishing: columns in clear, and distributions that nobody can recover."""
        names: dict[str, list[str]] = {}
        for item in self.attributes:
            for warning in (*item.published(), *item.choice.warnings):
                names.setdefault(warning, []).append(item.name)
        found = [f"{', '.join(where)}: {warning}" for warning, where in names.items()]
        return [*self.remarks, *found] + [
            f"{item.name}: some of its values cannot be told apart afterwards, whatever the number of records. "
            + _hint(item)
            for item in self.attributes
            if item.feasible and not item.identifiable and item.choice.estimable
        ]

    def __getitem__(self, name: str) -> AttributePlan:
        return next(item for item in self.attributes if item.name == name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "usable": self.usable,
            "remarks": list(self.remarks),
            "attributes": {item.name: item.to_dict() for item in self.attributes},
        }

    def __repr__(self) -> str:
        parts = [
            f"{item.name}: {item.choice.design} l={item.choice.l} d={item.choice.d:g} p={item.choice.p:.4g} "
            + ("ok" if item.usable else "not estimable" if item.feasible else "impossible")
            for item in self.attributes
        ]
        return f"<Plan {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        from polyseme.reports.html import plan_table

        return plan_table(self)


def make_plan(resolved: Resolved, records: int | None = None) -> Plan:
    """The plan of a schema; a promise that cannot be kept is part of the plan, an invalid one is an error."""
    problems: list[Problem] = []
    plans = []
    for attribute in resolved.schema.protected:
        reader = Reader(None, f"$.attributes.{attribute.name}", problems)
        # Values found in the table or in a file must not stand in a message.
        spoken = attribute.domain is not None and attribute.name not in resolved.unspoken
        labels = attribute.domain.values if spoken and attribute.domain else None
        if attribute.name in resolved.from_data and _is_constant(attribute):
            reader.at("protect", None).problem(
                "all records have the same value, and it would be published: closeness and ldp cannot hide that",
                "declare the values that are possible: domain: [..]",
            )
            continue
        planned = _plan_attribute(attribute, records, reader, labels)
        if planned is not None:
            plans.append(planned)
    if problems:
        raise PolicyError(problems)
    return Plan(tuple(plans), records, resolved.from_data, resolved.remarks)


def _is_constant(attribute: Attribute) -> bool:
    """Whether a promise about what can be learnt is made for a column that has one value."""
    models = attribute.protection.models if attribute.protection is not None else {}
    return attribute.domain is not None and attribute.domain.size == 1 and not {"closeness", "ldp"}.isdisjoint(models)


def _plan_attribute(
    attribute: Attribute, records: int | None, reader: Reader, labels: Sequence[Any] | None
) -> AttributePlan | None:
    if attribute.domain is None or attribute.protection is None:
        raise ValueError("a protected attribute has a domain")
    promises = attribute.protection.models
    try:
        choice = choose(
            attribute.domain.size, attribute.distance, promises, attribute.domain.reference, attribute.domain.prior
        )
    except InvalidInput as error:
        reader.at("protect", None).adopt(error)
        return None
    nearest: tuple[tuple[int, float], ...] = ()
    try:
        mechanism = mechanism_for(choice, labels)
    except ImpossibleError as error:
        return AttributePlan(attribute, choice, None, None, str(error), _nearest(attribute, choice))
    except InvalidInput as error:
        reader.at("prior", None).adopt(error)
        return None
    strata = tuple(
        _plan_stratum(attribute, choice, excluded, records)
        for excluded in possible_exclusions(attribute.constraints)[1:]
    )
    found = worst_of(
        [facts(mechanism, attribute.domain.prior, records), *(item.facts for item in strata if item.facts is not None)]
    )
    obstacle = "; ".join(f"{item.where}: {item.obstacle}" for item in strata if item.obstacle)
    # Where nothing is told truthfully no other l and d would help.
    if found.identifiable is False and choice.p > 0.0 and not strata:
        nearest = _nearest(attribute, choice)
    traded = _traded(mechanism, attribute.domain.prior, records)
    return AttributePlan(attribute, choice, mechanism, found, obstacle, nearest, strata, traded)


def _plan_stratum(attribute: Attribute, choice: Choice, excluded: tuple[int, ...], records: int | None) -> StratumPlan:
    """The attribute's promises for records that cannot have the excluded values."""
    if attribute.domain is None or attribute.protection is None:
        raise ValueError("a protected attribute has a domain")
    domain, promises = attribute.domain, attribute.protection.models
    declaring = [item for item in attribute.constraints if set(item.excluded) <= set(excluded)]
    where = " with ".join(dict.fromkeys(item.where for item in declaring))
    allowed = np.delete(np.arange(choice.size), list(excluded))
    try:
        mechanism = mechanism_for(choose_within(choice, promises, allowed, domain.reference))
    except InvalidInput as error:
        left = f"no believable decoys among the values that are left ({len(allowed):,} of {choice.size:,})"
        return StratumPlan(excluded, where, None, None, f"{left}: {error}")
    prior = None if domain.prior is None else domain.prior[allowed]
    found = facts(mechanism, prior)
    confounded = tuple(tuple(allowed[list(group)].tolist()) for group in found.confounded)
    traded = _traded(mechanism, prior, records)
    return StratumPlan(excluded, where, mechanism, replace(found, confounded=confounded), traded=traded)


def mechanism_at(item: AttributePlan, l: int, d: float) -> Mechanism:
    """The mechanism with other sets that still keeps the attribute's promises about truth."""
    if item.attribute.domain is None or item.attribute.protection is None:
        raise ValueError("a protected attribute has a domain")
    domain, promised = item.attribute.domain, item.attribute.protection.models
    limits = {
        name: {key: value for key, value in promised[name].items() if key != "size"}
        for name in ("closeness", "ldp")
        if name in promised
    }
    sets = {"semantic-diversity": {"l": l, "d": d, "mechanism": item.choice.design}}
    return mechanism_for(
        choose(domain.size, item.attribute.distance, {**sets, **limits}, domain.reference, domain.prior)
    )


def _nearest(attribute: Attribute, choice: Choice) -> tuple[tuple[int, float], ...]:
    if attribute.distance is None or attribute.domain is None or attribute.protection is None:
        return ()
    promises = read_promises(attribute.protection.models, choice.size, has_distance=True)
    least = max((item.l for item in promises.diversities), default=2)
    sizes = list(promises.fixed_sizes.values())[:1] or range(max(least, 2), choice.l + 2)
    found = nearest_settings(attribute.distance, choice.l, choice.d, choice.design, attribute.domain.prior, sizes)
    return tuple(found)


def published_attributes(resolved: Resolved, plan: Plan) -> tuple[PublishedAttribute, ...]:
    """How every column will be published; refuses a plan with a promise that cannot be kept."""
    impossible = [
        Problem(f"$.attributes.{item.name}.protect", item.obstacle, _hint(item))
        for item in plan.attributes
        if item.mechanism is None
    ]
    impossible += [
        Problem(stratum.where, stratum.obstacle, "declare fewer values impossible, or promise less")
        for item in plan.attributes
        for stratum in item.strata
        if stratum.mechanism is None
    ]
    if impossible:
        raise ImpossibleError(impossible)
    planned: Mapping[str, AttributePlan] = {item.name: item for item in plan.attributes}
    return tuple(
        PublishedAttribute(
            attribute,
            planned[attribute.name].mechanism,
            planned[attribute.name].choice.d if attribute.distance is not None else None,
            attribute.name in resolved.from_data,
            tuple(
                Stratum(stratum.excluded, stratum.mechanism.size + len(stratum.excluded), stratum.mechanism)
                for stratum in planned[attribute.name].strata
                if stratum.mechanism is not None
            ),
            posterior=_promised_posterior(planned[attribute.name]),
        )
        if attribute.name in planned
        else PublishedAttribute(attribute)
        for attribute in resolved.schema.attributes
    )


def _promised_posterior(item: AttributePlan) -> float:
    return promised_posterior(item.choice.design, item.choice.l, item.facts.worst_posterior if item.facts else None)


def _hint(item: AttributePlan) -> str:
    if not item.nearest:
        return ""
    return "nearest settings that work: " + ", ".join(f"(l={l}, d={d:g})" for l, d in item.nearest[:4])
