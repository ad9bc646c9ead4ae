"""The part of a policy that protects several attributes as one.

    joint:
      - name: illness
        attributes: [disease, treatment]
        protect: {semantic-diversity: {l: 3, d: 1}}

Candidates are combinations of values. By default (`distance: min`) two of them are as far apart as the member in which
they are closest, so that all candidates of a set differ in every member, and each member by itself keeps the promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyseme.distances.joint import RULES
from polyseme.errors import nearest
from polyseme.policy.attributes import (
    FROM_DATA,
    AttributePolicy,
    ConditionalShares,
    Shares,
    read_protect,
    read_shares_of,
)
from polyseme.policy.reading import Reader
from polyseme.promises import Promises

__all__ = ["JointPolicy", "joined_attributes", "read_joints"]

_KEYS = ("name", "attributes", "protect", "distance", "prior", "reference")
_EXAMPLE = "{name: illness, attributes: [disease, treatment], protect: {semantic-diversity: {l: 3, d: 1}}}"


@dataclass(frozen=True)
class JointPolicy:
    """Attributes that are protected as one.

    distance  one of `RULES`, or the name of the member that counts
    """

    name: str
    attributes: tuple[str, ...]
    protect: Promises = field(default_factory=Promises)
    distance: str = "min"
    prior: Shares | None = None
    reference: Shares | None = None


def read_joints(reader: Reader) -> tuple[JointPolicy, ...]:
    """The entries under `joint`."""
    return tuple(found for element in reader.elements() if (found := _read(element)) is not None)


def _read(reader: Reader) -> JointPolicy | None:
    given = reader.mapping(_KEYS)
    missing = [key for key in ("name", "attributes", "protect") if key not in given]
    if missing:
        if isinstance(reader.value, Mapping):
            reader.problem(f"no {', '.join(missing)}", _EXAMPLE)
        return None
    names = tuple(element.text() for element in reader.at("attributes", given["attributes"]).elements())
    protect = read_protect(reader.at("protect", given["protect"]))
    _check_promises(protect, reader.at("protect", None))
    distance = reader.at("distance", given.get("distance", "min")).choice([*RULES, *names], "min")
    shares = {key: _shares(reader.at(key, given[key])) for key in ("prior", "reference") if key in given}
    return JointPolicy(reader.at("name", given["name"]).text(), names, protect, distance, **shares)


def _check_promises(protect: Promises, reader: Reader) -> None:
    """Candidates that differ as combinations may agree in the very member that is to be hidden."""
    blind = [promise.name for promise in protect if promise.hides and not protect.semantic]
    if blind:
        reader.problem(
            f"with {blind[0]} alone all candidates may have the same value of one attribute",
            "semantic-diversity: {l: 3, d: 1}: candidates then differ in every attribute",
        )


def _shares(reader: Reader) -> Shares | None:
    if reader.value == FROM_DATA:
        reader.problem(
            "that of the records is not known for combinations", "give it by combination, or for each member"
        )
        return None
    return read_shares_of(reader)


def joined_attributes(
    attributes: Sequence[AttributePolicy], joints: Sequence[JointPolicy], reader: Reader
) -> tuple[AttributePolicy, ...]:
    """The attributes with what protects those that are joined; every problem of the names at once."""
    by_name = {item.name: item for item in attributes}
    taken: dict[str, str] = {}
    for number, joint in enumerate(joints):
        inner = reader.at(number, None)
        if joint.name in by_name or joint.name in [other.name for other in joints[:number]]:
            inner.at("name", None).problem(f"there is an attribute '{joint.name}' already", "choose another name")
        if len(set(joint.attributes)) < 2 or len(set(joint.attributes)) < len(joint.attributes):
            inner.at("attributes", None).problem("expected two or more attributes, each of them once")
        for place, name in enumerate(joint.attributes):
            _check_member(name, by_name, taken.get(name), inner.at("attributes", None).at(place, None))
            taken[name] = joint.name
    protecting = {name: joint for joint in joints for name in joint.attributes}
    return tuple(
        replace(item, protect=protecting[item.name].protect, joined=protecting[item.name].name)
        if item.name in protecting
        else item
        for item in attributes
    )


def _check_member(name: str, by_name: Mapping[str, AttributePolicy], taken: str | None, reader: Reader) -> None:
    item = by_name.get(name)
    if item is None:
        reader.problem(f"no attribute '{name}'", nearest(name, by_name))
        return
    if taken is not None:
        reader.problem(f"'{name}' is a part of '{taken}' already", "an attribute is published once")
    if not item.role.is_secret:
        reader.problem(f"'{name}' has the role {item.role.value}", "only what is sensitive or sensitive-qid is joined")
    if item.protect:
        reader.problem(f"'{name}' is protected twice", f"remove $.attributes.{name}.protect")
    if isinstance(item.prior, ConditionalShares):
        reader.problem(f"'{name}' has a prior by other attributes", "give the joint attribute a prior of its own")
    if item.reference == FROM_DATA:
        reader.problem(f"'{name}' has the reference of the records", "give the joint attribute one of its own")
