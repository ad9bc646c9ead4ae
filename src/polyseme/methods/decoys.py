"""Decoys: a set of candidates for each protected value, drawn by a calibrated mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from polyseme.designs.balanced import proper_prior
from polyseme.designs.base import Design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import ImpossibleError, InvalidInput, PolicyError, Problem
from polyseme.kernel.spelling import Label
from polyseme.kernel.work import tracked
from polyseme.methods import Method
from polyseme.privacy.analysis import Facts, facts, nearest_settings, worst_of
from polyseme.privacy.analysis.success_limit import Calibration
from polyseme.privacy.calibration import UNBALANCED, Choice, choose, choose_within, mechanism_for, promised_posterior
from polyseme.privacy.promises import Spacing
from polyseme.release import AsIs, Column, Sets
from polyseme.results.plan import AttributePlan, Plan, StratumPlan, Traded
from polyseme.schema import Attribute, Distributions, Resolved
from polyseme.strata import Key, Placing, Strata, Stratum

__all__ = ["METHOD", "Decoys", "mechanism_at", "sets_of"]


@dataclass(frozen=True)
class Decoys:
    """Sets for the attributes that are protected; everything else is published as it is."""

    name: ClassVar[str] = "decoys"

    def plan(self, resolved: Resolved, records: int | None = None) -> Plan:
        return Plan(_planned(resolved, records), records, resolved.from_data, resolved.remarks)

    def columns(self, resolved: Resolved, plan: Plan) -> tuple[Column, ...]:
        _require_feasible(plan)
        planned = {item.name: item for item in plan.attributes}
        return tuple(
            sets_of(planned[attribute.name], attribute.name in resolved.from_data)
            if attribute.name in planned
            else AsIs(attribute)
            for attribute in resolved.schema.attributes
            if attribute.role.is_published
        )


METHOD: Method = Decoys()

_FALLBACK = "least-risk"
"""The design for groups of people with a prior for which no balanced one exists."""


def _planned(resolved: Resolved, records: int | None) -> tuple[AttributePlan, ...]:
    """What each attribute's promises come to; all that is invalid at once."""
    problems: list[Problem] = []
    plans = []
    for attribute in tracked(resolved.schema.protected, "mechanisms", "Choosing mechanisms"):
        where = f"$.attributes.{attribute.name}"
        # Values found in the table or in a file must not appear in a message.
        spoken = attribute.domain is not None and attribute.name not in resolved.unspoken
        labels = attribute.domain.values if spoken and attribute.domain else None
        if attribute.name in resolved.from_data and _is_constant(attribute):
            helpless = " and ".join(promise.name for promise in attribute.promises.limiting)
            same = f"all records have the same value, and it would be published: {helpless} cannot hide that"
            problems.append(Problem(f"{where}.protect", same, "declare the values that are possible: domain: [...]"))
            continue
        try:
            plans.append(_plan_attribute(attribute, records, labels))
        except PolicyError as error:
            problems += _within(error, where)
    if problems:
        raise PolicyError(problems)
    return tuple(plans)


def _within(error: InvalidInput, where: str) -> list[Problem]:
    """The problems of an error from a lower room, with this place before theirs."""
    return [
        Problem(f"{where}.{found.where}" if found.where else where, found.what, found.hint) for found in error.problems
    ]


def _is_constant(attribute: Attribute) -> bool:
    """Whether a promise about what can be learned is made for a column that has one value."""
    return attribute.domain is not None and attribute.domain.size == 1 and bool(attribute.promises.limiting)


def _plan_attribute(attribute: Attribute, records: int | None, labels: Sequence[Label] | None) -> AttributePlan:
    """The plan of an attribute; raises `PolicyError`, with places relative to it, if invalid."""
    if attribute.domain is None:
        raise ValueError("a protected attribute has a domain")
    domain, expected = attribute.domain, attribute.distributions
    try:
        choice = choose(domain.size, attribute.distance, attribute.promises, expected.reference, expected.prior, labels)
    except InvalidInput as error:
        raise PolicyError(_within(error, "protect")) from None
    nearest: tuple[tuple[int, float], ...] = ()
    try:
        mechanism = _made(choice, bool(attribute.conditional), labels)
    except ImpossibleError as error:
        return AttributePlan.of(attribute, choice, None, None, str(error), _nearest(attribute, choice))
    except InvalidInput as error:
        raise PolicyError(_within(error, "prior")) from None
    strata, calibrations = _plan_strata(attribute, choice, records)
    own = facts(mechanism, _taken(attribute, expected), records)
    found = worst_of([own, *(item.facts for item in strata if item.facts is not None)])
    found = _weighted(attribute, strata, found)
    choice = _explained(attribute, choice, calibrations)
    concentrated = [item for item in (own, *(item.facts for item in strata)) if item and item.design != choice.design]
    choice = replace(choice, warnings=(*choice.warnings, *_concentrated(choice, concentrated, len(strata) + 1)))
    obstacle = "; ".join(f"{item.where}: {item.obstacle}" for item in strata if item.obstacle)
    # Where no set is truthful no other l and d would help.
    if found.identifiable is False and choice.p > 0.0 and not strata:
        nearest = _nearest(attribute, choice)
    traded = _traded(mechanism, expected.prior, records)
    return AttributePlan.of(attribute, choice, mechanism, found, obstacle, nearest, strata, traded)


def _made(choice: Choice, conditional: bool, labels: Sequence[Label] | None = None) -> Mechanism:
    """The mechanism of a choice; for many priors, least-risk where no balanced one exists.

    Of the designs that were tried at (2, 2) on the three of ten groups of the demo's people for which there is no
    balanced one, it comes within 0.01 of the least success of a learner that truthful sets allow, and is the only one
    whose worst posterior stays below 0.66; others have 0.9 and more at the same expected error.
    """
    try:
        return mechanism_for(choice, labels)
    except ImpossibleError:
        if not conditional or choice.obstacle is not None or choice.design in UNBALANCED:
            raise
        return mechanism_for(replace(choice, design=_FALLBACK))


def _strata(attribute: Attribute) -> tuple[Key, ...]:
    """Those of the records to which some constraint or condition applies."""
    try:
        return Placing.of(attribute.constraints, [item.condition for item in attribute.conditional]).keys[1:]
    except ImpossibleError as error:
        where = f"$.attributes.{attribute.name}.prior" if attribute.conditional else "$.impossible"
        raise ImpossibleError(Problem(where, item.what, item.hint) for item in error.problems) from None


def _plan_strata(
    attribute: Attribute, choice: Choice, records: int | None
) -> tuple[tuple[StratumPlan, ...], list[Calibration | None]]:
    """Plans of strata; those with the same possible values and prior share a mechanism."""
    made: dict[tuple[tuple[int, ...], tuple[bytes | None, ...]], tuple[StratumPlan, Calibration | None]] = {}
    plans, calibrations = [], []
    for key in _strata(attribute):
        expected = attribute.expected(key.condition)
        shares = tuple(None if found is None else found.tobytes() for found in (expected.prior, expected.reference))
        if (key.excluded, shares) not in made:
            made[key.excluded, shares] = _plan_stratum(attribute, choice, key, records)
        planned, calibration = made[key.excluded, shares]
        plans.append(planned.placed(key, _declared(attribute, key)))
        calibrations.append(calibration)
    return tuple(plans), calibrations


def _concentrated(choice: Choice, concentrated: Sequence[Facts], groups: int) -> list[str]:
    """What is said of groups for which 1/l cannot be had."""
    if not concentrated:
        return []
    worst = max(item.worst_posterior or 1.0 for item in concentrated)
    return [
        f"in {len(concentrated)} of {groups} groups more than 1/{choice.l} of the people have values that are mutually "
        f"too close: nothing gives 1/{choice.l} there, and the {_FALLBACK} design is used, with a posterior of up to "
        f"{worst:.3g} for an attacker who has the prior of the group"
    ]


def _taken(attribute: Attribute, expected: Distributions) -> Floats | None:
    """The assumed knowledge of the attacker, and the assumed distribution of true values."""
    return expected.prior if attribute.promises.learner is None else expected.known


def _weighted(attribute: Attribute, strata: Sequence[StratumPlan], found: Facts) -> Facts:
    """The facts with expected errors of all records, where the strata's sizes are known."""
    shares = [item.share for item in attribute.conditional]
    each = [stratum.facts for stratum in strata]
    if attribute.constraints or not shares or None in shares or None in each or not found.records:
        return found
    weights = np.array(shares, dtype=np.float64)

    def summed(error: Callable[[Facts], float | None]) -> float | None:
        errors = [error(item) for item in each if item is not None]
        return None if None in errors else float(weights @ np.array(errors, dtype=np.float64))

    return replace(
        found,
        mse_inverse=summed(lambda item: item.mse_inverse),
        mse_paper=summed(lambda item: item.mse_paper),
        mse_limit=summed(lambda item: item.mse_limit),
    )


def _explained(attribute: Attribute, choice: Choice, strata: Sequence[Calibration | None]) -> Choice:
    """The choice with what a promise about learners comes to over all strata."""
    if choice.calibration is None:
        return choice
    known = [found for found in strata if found is not None]
    shares = [item.share for item in attribute.conditional]
    if known and len(known) == len(shares) == len(strata) and None not in shares:
        together = Calibration.together(known, np.array(shares, dtype=np.float64))
    else:
        together = Calibration.together([choice.calibration, *known], np.ones(1 + len(known)))
    return replace(choice, lines=(*choice.lines, *together.lines()))


def _plan_stratum(
    attribute: Attribute, choice: Choice, key: Key, records: int | None
) -> tuple[StratumPlan, Calibration | None]:
    """The attribute's promises for the records of a stratum."""
    if attribute.domain is None:
        raise ValueError("a protected attribute has a domain")
    allowed = np.delete(np.arange(choice.size), list(key.excluded))
    expected = attribute.expected(key.condition).among(allowed)
    try:
        within = choose_within(
            choice, attribute.promises, allowed, attribute.distance, expected.reference, expected.prior
        )
        mechanism = _made(within, bool(key.condition))
    except InvalidInput as error:
        left = f"no believable decoys among the remaining values ({len(allowed):,} of {choice.size:,})"
        left = left if key.excluded else "no such sets for a prior of this group"
        return StratumPlan.of(attribute, key, None, None, f"{left}: {error}"), None
    known = _taken(attribute, expected)
    found = facts(mechanism, known, records if key.condition and not key.excluded else None)
    confounded = tuple(tuple(allowed[list(group)].tolist()) for group in found.confounded)
    traded = _traded(mechanism, expected.prior, records)
    planned = StratumPlan.of(attribute, key, mechanism, replace(found, confounded=confounded), traded=traded)
    return planned, within.calibration


def _declared(attribute: Attribute, key: Key) -> str:
    """The places in the policy that make a stratum."""
    declaring = [item.where for item in attribute.constraints if set(item.excluded) <= set(key.excluded)]
    conditional = [f"$.attributes.{attribute.name}.prior"] if key.condition else []
    return " with ".join(dict.fromkeys([*declaring, *conditional]))


def mechanism_at(item: AttributePlan, l: int, d: float) -> Mechanism:
    """The mechanism with other sets that still keeps the attribute's promises about truth."""
    if item.attribute.domain is None:
        raise ValueError("a protected attribute has a domain")
    domain, expected = item.attribute.domain, item.attribute.distributions
    promises = item.attribute.promises.respaced(l, Spacing(d, item.choice.design))
    return mechanism_for(choose(domain.size, item.attribute.distance, promises, expected.reference, expected.prior))


def _nearest(attribute: Attribute, choice: Choice) -> tuple[tuple[int, float], ...]:
    if attribute.distance is None or attribute.domain is None:
        return ()
    fixed = attribute.promises.fixed_size
    least, _ = attribute.promises.unspaced.least_size(choice.size)
    sizes = fixed[:1] if fixed is not None else range(max(least, 2), choice.l + 2)
    found = nearest_settings(
        attribute.distance, choice.l, choice.d, choice.design, attribute.distributions.prior, sizes
    )
    return tuple(found)


def _require_feasible(plan: Plan) -> None:
    """Refuse a plan with a promise that cannot be kept."""
    impossible = [
        Problem(f"$.attributes.{item.name}.protect", item.obstacle, item.hint)
        for item in plan.attributes
        if item.mechanism is None
    ]
    impossible += [
        Problem(stratum.where, stratum.obstacle, _relax(stratum))
        for item in plan.attributes
        for stratum in item.strata
        if stratum.mechanism is None
    ]
    if impossible:
        raise ImpossibleError(impossible)


def _relax(stratum: StratumPlan) -> str:
    if stratum.key.condition:
        return "declare fewer values impossible, or a more even prior, or promise less"
    return "declare fewer values impossible, or promise less"


def sets_of(item: AttributePlan, from_data: bool = False) -> Sets:
    """How a planned attribute will be published.

    Some stratum may have no mechanism, and is then left out.
    """
    mechanisms = [(Key(), item.mechanism), *((stratum.key, stratum.mechanism) for stratum in item.strata)]
    members = tuple(Stratum.of(item.attribute, key, made) for key, made in mechanisms if made is not None)
    return Sets(
        item.attribute,
        Strata(item.attribute.constraints, members),
        threshold=item.choice.d if item.attribute.distance is not None else None,
        domain_from_data=from_data,
        posterior=_promised_posterior(item),
    )


def _promised_posterior(item: AttributePlan) -> float:
    reached = item.facts.worst_posterior if item.facts else None
    if item.attribute.promises.learner is not None:
        # 1/l is for those who expect what the sets are balanced for; who knows the declared distribution may be surer
        # of a single set, and is bounded on average.
        return math.inf
    made = {
        mechanism.design.name for mechanism in (item.mechanism, *(each.mechanism for each in item.strata)) if mechanism
    }
    return promised_posterior(_FALLBACK if _FALLBACK in made else item.choice.design, item.choice.l, reached)


def _traded(mechanism: Mechanism, prior: Floats | None, records: int | None) -> Traded | None:
    """The choices behind a least-risk design; None for others and where a balanced one exists."""
    design, p = mechanism.design, mechanism.p
    if design.trade is None:
        return None
    pi = proper_prior(prior, design.size)

    def error(of: Design) -> float | None:
        trace = of.least_error(pi, p) if records else None
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
