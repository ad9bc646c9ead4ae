"""From attributes that are protected as one to one attribute of their combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

import numpy as np

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.documents import Reader
from polyseme.kernel.errors import PolicyError, Problem
from polyseme.kernel.spelling import spellings, written
from polyseme.policy import Exclusion, Policy
from polyseme.policy.attributes import JointPolicy
from polyseme.policy.priors import matching, read_shares
from polyseme.schema import Attribute, Constraint, Distributions, Domain, Member, Missing, Role, Schema
from polyseme.semantics.distances import Distance
from polyseme.semantics.distances.joint import RULES, DiscreteDistance, JointDistance

__all__ = ["COMBINATIONS", "between_members", "joined_name", "unweighted", "with_joints"]

COMBINATIONS = 70_000
"""Most combinations of one joint attribute: as many values as the largest classifications have."""
_BETWEEN = " & "
"""What stands between the values in the label of a combination."""


def between_members(policy: Policy) -> frozenset[int]:
    """The places of the exclusions that are about members of one joint attribute only."""
    joint = {name: item.name for item in policy.joint for name in item.attributes}
    return frozenset(
        number
        for number, item in enumerate(policy.exclusions)
        if item.attribute in joint and {joint.get(name) for name in item.when} == {joint[item.attribute]}
    )


def joined_name(name: str, policy: Policy) -> str:
    """The name of the joint attribute that an attribute became part of, or its own."""
    return next((item.name for item in policy.joint if name in item.attributes), name)


def unweighted(policy: Policy) -> list[str]:
    """Remarks on joint attributes whose decoys are combinations that hardly any person has."""
    return [
        f"$.joint[{number}]: no prior for the combinations of '{joint.name}', so that rare ones are drawn as often "
        "as usual ones: an attacker who knows which values go together recognizes such decoys. Give prior: {...} by "
        "combination, from public statistics or an earlier release, and declare impossible ones."
        for number, joint in enumerate(policy.joint)
        if joint.prior is None
    ]


def with_joints(schema: Schema, policy: Policy, unspoken: Sequence[str]) -> Schema:
    """The schema with each joint attribute in the place of the first of its members.

    All problems at once.
    """
    problems: list[Problem] = []
    made = {
        joint.attributes[0]: _joined(joint, schema, policy, unspoken, Reader(None, f"$.joint[{number}]", problems))
        for number, joint in enumerate(policy.joint)
    }
    if problems:
        raise PolicyError(problems)
    members = {name for joint in policy.joint for name in joint.attributes}
    first = [name for name in schema.by_name if name in members]
    places = {next(name for name in first if name in joint.attributes): joint.attributes[0] for joint in policy.joint}
    found = [made[places[item.name]] if item.name in places else item for item in schema.attributes]
    return Schema(tuple(item for item in found if item is not None and item.name not in members))


def _joined(
    joint: JointPolicy, schema: Schema, policy: Policy, unspoken: Sequence[str], reader: Reader
) -> Attribute | None:
    if joint.name in schema.by_name:
        reader.at("name", None).problem(f"the table has a column '{joint.name}'", "choose another name")
        return None
    parts = [schema[name] for name in joint.attributes]
    domains = [part.domain for part in parts if part.domain is not None]
    count = prod(domain.size for domain in domains)
    if count > COMBINATIONS:
        sizes = " x ".join(f"{domain.size:,}" for domain in domains)
        what = f"{sizes} = {count:,} combinations are too many (limit {COMBINATIONS:,})"
        reader.at("attributes", None).problem(what, "join attributes with fewer, or coarser, values")
        return None
    grid = np.indices([domain.size for domain in domains]).reshape(len(domains), -1)
    kept = _possible(joint, domains, grid, policy, reader)
    members = tuple(
        Member(part.name, domain, tuple(row)) for part, domain, row in zip(parts, domains, grid[:, kept].tolist())
    )
    labels = _labels(members)
    if len(set(labels)) < len(labels):
        reader.at("attributes", None).problem(
            f"combinations cannot be told apart by their labels: some values hold '{_BETWEEN}'", "rename such values"
        )
    domain = Domain(labels, missing=_missing(domains))
    spoken = not any(part.name in unspoken for part in parts)
    role = Role.SENSITIVE if any(part.role is Role.SENSITIVE for part in parts) else Role.SENSITIVE_QID
    return Attribute(
        joint.name,
        role,
        domain,
        _distance(joint, parts, members) if joint.protect.semantic else None,
        joint.protect,
        tuple(item for part, member in zip(parts, members) for item in _constraints(part, member)),
        _distributions(joint, parts, members, domain, policy, reader, spoken),
        members=members,
        shared_by=parts[0].shared_by,
    )


def _labels(members: Sequence[Member]) -> tuple[str, ...]:
    texts = [[written(member.domain.values[code]) for code in member.codes] for member in members]
    return tuple(_BETWEEN.join(row) for row in zip(*texts))


def _missing(domains: Sequence[Domain]) -> Missing:
    """The rule for missing combinations: refused if any member refuses missing values."""
    actions = {domain.missing.action for domain in domains}
    return Missing("drop") if "drop" in actions and "refuse" not in actions else Missing()


def _possible(joint: JointPolicy, domains: Sequence[Domain], grid: Ints, policy: Policy, reader: Reader) -> Bools:
    """Which combinations no exclusion rules out."""
    kept = np.ones(grid.shape[1], dtype=bool)
    for number in sorted(between_members(policy)):
        item = policy.exclusions[number]
        if item.attribute in joint.attributes:
            place = Reader(None, f"$.impossible[{number}]", reader.problems)
            kept &= ~_ruled_out(item, dict(zip(joint.attributes, domains)), dict(zip(joint.attributes, grid)), place)
    if not kept.any():
        reader.at("attributes", None).problem("every combination is impossible")
        return np.ones_like(kept)
    return kept


def _ruled_out(item: Exclusion, domains: Mapping[str, Domain], codes: Mapping[str, Ints], reader: Reader) -> Bools:
    excluded = {**item.when, item.attribute: item.values}
    hits = []
    for name, values in excluded.items():
        labels = {label: code for code, label in enumerate(spellings(domains[name].values))}
        found = [matching(value, labels) for value in values]
        for value, places in zip(values, found):
            if not places:
                reader.problem(f"'{value}' is not in the domain of '{name}'")
        hits.append(np.isin(codes[name], [code for places in found for code in places]))
    return np.asarray(np.logical_and.reduce(hits))


def _distance(joint: JointPolicy, parts: Sequence[Attribute], members: Sequence[Member]) -> Distance:
    """The distance of the policy's rule; without any distance, members count as 1 apart."""
    counted = [
        (part.distance, member)
        for part, member in zip(parts, members)
        if (joint.distance in RULES and part.distance is not None) or joint.distance == part.name
    ]
    if not any(distance for distance, _ in counted):
        counted = counted or [(None, member) for member in members]
    rule = joint.distance if joint.distance in RULES else "min"
    distances = [distance or DiscreteDistance(member.domain.size) for distance, member in counted]
    return JointDistance(rule, distances, [np.array(member.codes) for _, member in counted])


def _constraints(part: Attribute, member: Member) -> list[Constraint]:
    """What is impossible for a member rules out every combination with it."""
    codes = np.array(member.codes)
    return [
        replace(item, excluded=tuple(np.flatnonzero(np.isin(codes, item.excluded)).tolist()))
        for item in part.constraints
    ]


def _distributions(
    joint: JointPolicy,
    parts: Sequence[Attribute],
    members: Sequence[Member],
    domain: Domain,
    policy: Policy,
    reader: Reader,
    spoken: bool,
) -> Distributions:
    """The given distributions of combinations; otherwise those of independent members."""
    prior, reference = (
        read_shares(given, domain, policy, reader.at(key, given), spoken)
        for key, given in (("prior", joint.prior), ("reference", joint.reference))
    )
    if joint.prior is None:
        prior = _product([part.distributions.prior for part in parts], members)
    if joint.reference is None:
        reference = _product([part.distributions.reference for part in parts], members)
    return Distributions(prior, reference)


def _product(shares: Sequence[Floats | None], members: Sequence[Member]) -> Floats | None:
    """Members without a distribution count as even; None where none has one."""
    if all(found is None for found in shares):
        return None
    factors = [
        np.ones(len(member.codes)) if found is None else found[list(member.codes)]
        for found, member in zip(shares, members)
    ]
    weights = np.asarray(reduce(np.multiply, factors), dtype=np.float64)
    return np.asarray(weights / weights.sum())
