"""Columns as entries of the manifest, and back.

A manifest is not trusted: every number is checked here before anything is computed from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from polyseme.designs import design_from, restrict
from polyseme.designs.base import LEAST_SHARE
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.arrays import Floats
from polyseme.kernel.errors import InvalidInput, Problem, ReleaseError
from polyseme.kernel.spelling import Label, spelling, written
from polyseme.privacy.promises import stored_promises
from polyseme.release.columns import AsIs, Column, Generalized, Grouped, Sets
from polyseme.release.data import DAMAGED, MANIFEST
from polyseme.schema import (
    Attribute,
    Bins,
    Condition,
    Conditional,
    Constraint,
    Distributions,
    Domain,
    Member,
    Missing,
    Periods,
    Role,
    Weighting,
)
from polyseme.semantics.distances import Distance, distance_from
from polyseme.semantics.distances.base import Clusters, Structure
from polyseme.semantics.distances.registry import stored_floats, stored_ints
from polyseme.strata import Key, Placing, Strata, Stratum

__all__ = ["column_from", "columns_from", "entry_of"]


def entry_of(column: Column) -> dict[str, Any]:
    """The manifest's entry for a column."""
    entry: dict[str, Any] = {"name": column.name, "role": column.attribute.role.value}
    if isinstance(column, Sets):
        return {**entry, "published": "sets", **_sets_entry(column)}
    if isinstance(column, Generalized):
        stands_for = {"stands_for": {label: list(texts) for label, texts in column.stands_for.items()}}
        return {**entry, "published": "generalized", "level": column.level, **(stands_for if column.stands_for else {})}
    if isinstance(column, Grouped):
        return {**entry, "published": "grouped", "group": column.group, **_meaning_entry(column.attribute)}
    return {**entry, "published": "as-is", **_meaning_entry(column.attribute)}


def _meaning_entry(attribute: Attribute) -> dict[str, Any]:
    """The domain and distance of an attribute that classes or groups protect, for its models."""
    if attribute.weighting is not None:
        return {key: value for key, value in asdict(attribute.weighting).items() if value is not None}
    if attribute.domain is None:
        return {}
    # Such a column shows its values anyway, so that listing them reveals nothing.
    entry = {"domain": _domain_to_dict(attribute.domain, False)}
    return entry if attribute.distance is None else {**entry, "distance": dict(attribute.distance.parameters())}


def _sets_entry(column: Sets) -> dict[str, Any]:
    attribute = column.attribute
    entry: dict[str, Any] = {
        "domain": {
            **_domain_to_dict(column.domain, column.domain_from_data),
            **_distributions_to_dict(attribute.distributions),
        },
        "promises": attribute.promises.given(),
        "mechanism": _mechanism_to_dict(column.mechanism, column.threshold),
    }
    if column.posterior is not None:
        entry["posterior"] = column.posterior if math.isfinite(column.posterior) else None
    if attribute.distance is not None:
        entry["distance"] = dict(attribute.distance.parameters())
    if attribute.shared_by:
        entry["shared_by"] = {"column": attribute.shared_by, "differing": column.differing}
    if attribute.members:
        entry["members"] = [_member_to_dict(item) for item in attribute.members]
    return {**entry, **_strata_entry(column)} if attribute.constraints or attribute.conditional else entry


def _member_to_dict(member: Member) -> dict[str, Any]:
    return {"name": member.name, "domain": _domain_to_dict(member.domain, False), "codes": list(member.codes)}


def _members_from(entry: Mapping[str, Any], size: int) -> tuple[Member, ...]:
    """The columns that a joint attribute is made of; every combination is another one."""
    members = tuple(_member_from_dict(item, size, place) for place, item in enumerate(entry.get("members", ())))
    if members and len(set(zip(*(item.codes for item in members)))) < size:
        raise ReleaseError("a combination is listed more than once")
    if len({item.name for item in members}) < len(members):
        raise ReleaseError("a member is listed more than once")
    return members


def _member_from_dict(entry: Mapping[str, Any], size: int, place: int) -> Member:
    domain = _domain_from_dict(entry["domain"])
    codes = stored_ints(entry["codes"], f"[{place}].codes", 0, domain.size, size)
    return Member(entry["name"], domain, tuple(codes.tolist()))


def _strata_entry(column: Sets) -> dict[str, Any]:
    def labels(codes: Sequence[int]) -> list[Label]:
        return [column.domain.values[code] for code in codes]

    def stratum(item: Stratum) -> dict[str, Any]:
        made = {"excluded": labels(item.excluded), "mechanism": _mechanism_to_dict(item.mechanism, column.threshold)}
        return {"when": _condition_to_dict(item.condition), **made} if item.condition else made

    attribute = column.attribute
    impossible = [
        {"when": _condition_to_dict(item.condition), "values": labels(item.excluded)} for item in attribute.constraints
    ]
    conditional = [
        {"when": _condition_to_dict(item.condition), **_distributions_to_dict(item.distributions)}
        for item in attribute.conditional
    ]
    return {
        **({"impossible": impossible} if impossible else {}),
        **({"conditional": conditional} if conditional else {}),
        "strata": [stratum(item) for item in column.strata.members[1:]],
    }


def _condition_to_dict(condition: Condition) -> dict[str, list[str]]:
    return {name: list(texts) for name, texts in condition.when.items()}


def _condition_from_dict(when: Mapping[str, Sequence[str]]) -> Condition:
    return Condition({name: tuple(map(spelling, texts)) for name, texts in when.items()})


def columns_from(entries: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """All columns of a manifest, or all that is wrong with them."""
    columns: list[Column] = []
    problems: list[Problem] = []
    untouched = {entry["name"] for entry in entries if entry["published"] in ("as-is", "generalized")}
    for number, entry in enumerate(entries):
        where = f"$.attributes[{number}]"
        try:
            columns.append(column_from(entry, where))
        except ReleaseError as error:
            problems += error.problems
        for key in ("impossible", "conditional"):
            if not untouched.issuperset(name for item in entry.get(key, ()) for name in item["when"]):
                what = "a condition on an attribute that does not show one value for each record"
                problems.append(Problem(f"{MANIFEST}: {where}.{key}", what, DAMAGED))
    if problems:
        raise ReleaseError(problems)
    return tuple(columns)


def column_from(entry: Mapping[str, Any], where: str = "$") -> Column:
    """The inverse of `entry_of`; `where` is the entry's place in the manifest."""
    role = Role(entry["role"])
    if entry["published"] == "generalized":
        stands_for = {label: tuple(texts) for label, texts in entry.get("stands_for", {}).items()}
        return Generalized(Attribute(entry["name"], role), entry["level"], stands_for)
    if entry["published"] in ("as-is", "grouped"):
        attribute = _meaning_from(entry, role, where)
        return AsIs(attribute) if entry["published"] == "as-is" else Grouped(attribute, entry["group"])
    with _reading(f"{where}.domain"):
        domain = _domain_from_dict(entry["domain"])
        distributions = _distributions_from_dict(entry["domain"], domain.size)
    with _reading(f"{where}.distance"):
        distance = distance_from(entry["distance"], domain.size) if "distance" in entry else None
    made = entry["mechanism"]
    with _reading(f"{where}.mechanism"):
        _check_alike(made, entry)
        structure = _structure_of(distance, made["d"], domain.size)
        mechanism = _mechanism_from_dict(made, structure)
    with _reading(f"{where}.impossible"):
        constraints = tuple(
            Constraint(_condition_from_dict(item["when"]), _codes(item["values"], domain))
            for item in entry.get("impossible", ())
        )
    conditional = tuple(
        _conditional_from_dict(item, domain, f"{where}.conditional[{number}]")
        for number, item in enumerate(entry.get("conditional", ()))
    )
    with _reading(f"{where}.members"):
        members = _members_from(entry, domain.size)
    promises = stored_promises(entry["promises"])
    attribute = Attribute(
        entry["name"],
        role,
        domain,
        distance,
        promises,
        constraints,
        distributions,
        conditional,
        members,
        shared_by=entry.get("shared_by", {}).get("column", ""),
    )
    return Sets(
        attribute,
        _strata_from(entry, attribute, mechanism, structure, where),
        threshold=made["d"],
        domain_from_data=entry["domain"]["source"] == "data",
        repeats=entry.get("repeats", 1.0),
        posterior=_posterior(entry),
        differing=entry.get("shared_by", {}).get("differing", 0.0),
    )


def _meaning_from(entry: Mapping[str, Any], role: Role, where: str) -> Attribute:
    if role is Role.WEIGHT:
        return Attribute(entry["name"], role, weighting=Weighting(entry.get("round"), entry.get("trim")))
    if "domain" not in entry:
        return Attribute(entry["name"], role)
    with _reading(f"{where}.domain"):
        domain = _domain_from_dict(entry["domain"])
    with _reading(f"{where}.distance"):
        distance = distance_from(entry["distance"], domain.size) if "distance" in entry else None
    return Attribute(entry["name"], role, domain, distance)


def _strata_from(
    entry: Mapping[str, Any], attribute: Attribute, mechanism: Mechanism, structure: Structure, where: str
) -> Strata:
    """The strata of an attribute, one per condition, in the order of `Placing`."""
    with _reading(f"{where}.{'conditional' if attribute.conditional else 'impossible'}"):
        placing = Placing.of(attribute.constraints, [item.condition for item in attribute.conditional])
    with _reading(f"{where}.mechanism"):
        members = [Stratum.of(attribute, Key(), mechanism)]
    for number, item in enumerate(entry.get("strata", ())):
        with _reading(f"{where}.strata[{number}].mechanism"):
            _check_alike(item["mechanism"], entry)
            members.append(_stratum_from_dict(item, structure, attribute))
    with _reading(f"{where}.strata"):
        if tuple(item.key for item in members) != placing.keys:
            raise ReleaseError(f"the strata of '{attribute.name}' do not fit its conditions")
    return Strata(attribute.constraints, tuple(members))


def _structure_of(distance: Distance | None, threshold: float | None, size: int) -> Structure:
    """Which values may stand together; without a distance, all of them."""
    if distance is None or threshold is None:
        return Clusters(np.arange(size, dtype=np.int64))
    return distance.structure(threshold)


def _posterior(entry: Mapping[str, Any]) -> float | None:
    """The promised posterior; null says that none is promised, and an old manifest says nothing."""
    if "posterior" not in entry:
        return None
    return math.inf if entry["posterior"] is None else float(entry["posterior"])


def _mechanism_to_dict(mechanism: Mechanism, threshold: float | None) -> dict[str, Any]:
    return {
        "design": mechanism.design.name,
        "l": mechanism.l,
        "d": threshold,
        "p": mechanism.p,
        "parameters": dict(mechanism.design.parameters()),
    }


def _mechanism_from_dict(made: Mapping[str, Any], structure: Structure) -> Mechanism:
    # JSON has one kind of number: 3.0 is the whole number 3.
    return Mechanism(design_from(made["design"], structure, int(made["l"]), made["parameters"]), made["p"])


def _check_alike(made: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Check that all strata have one set size and distance, and d exactly with a distance."""
    for key in ("l", "d"):
        if made[key] != entry["mechanism"][key]:
            raise ReleaseError(Problem(key, "not the same as for the records to which no constraint applies"))
    if (made["d"] is None) is ("distance" in entry):
        raise ReleaseError(Problem("d", "d must be given exactly where there is a distance"))


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Whatever is found wrong with a part of the manifest is said with its place."""
    try:
        yield
    except InvalidInput as error:
        raise ReleaseError(
            Problem(f"{MANIFEST}: {where}{f'.{found.where}' if found.where else ''}", found.what, DAMAGED)
            for found in error.problems
        ) from None


def _stratum_from_dict(entry: Mapping[str, Any], structure: Structure, attribute: Attribute) -> Stratum:
    key = Key(_condition_from_dict(entry.get("when", {})), _codes(entry["excluded"], attribute.domain))
    left, _ = restrict(structure, np.delete(np.arange(structure.size), list(key.excluded)))
    return Stratum.of(attribute, key, _mechanism_from_dict(entry["mechanism"], left))


def _conditional_from_dict(entry: Mapping[str, Any], domain: Domain, where: str) -> Conditional:
    with _reading(where):
        return Conditional(_condition_from_dict(entry["when"]), _distributions_from_dict(entry, domain.size))


def _codes(labels: Sequence[Label], domain: Domain | None) -> tuple[int, ...]:
    if domain is None:
        raise ReleaseError("there is no domain")
    texts = list(map(written, labels))
    unknown = [text for text in texts if text not in domain.codes]
    if unknown:
        raise ReleaseError(f"{len(unknown)} impossible values are not in the domain")
    return tuple(sorted(domain.codes[text] for text in texts))


def _domain_to_dict(domain: Domain, from_data: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"values": list(domain.values), "ordered": domain.ordered}
    result["source"] = "data" if from_data else "policy"
    if isinstance(domain.cut, Bins):
        # JSON has no infinity: an open end is null.
        result["bins"] = [edge if np.isfinite(edge) else None for edge in domain.cut.edges]
    if isinstance(domain.cut, Periods):
        result["periods"] = domain.cut.every
    if domain.missing.action == "category":
        result["missing"] = domain.missing.label
    return result


def _distributions_to_dict(distributions: Distributions) -> dict[str, Any]:
    """Promises were made for these public distributions: checking them needs them."""
    result: dict[str, Any] = {}
    if distributions.prior is not None:
        result["prior"] = distributions.prior.tolist()
    if distributions.reference is not None:
        result["reference"] = distributions.reference.tolist()
        result["reference_source"] = "data" if distributions.reference_from_data else "policy"
    return result


def _distributions_from_dict(entry: Mapping[str, Any], size: int) -> Distributions:
    prior, reference = (_shares(entry, key, size) for key in ("prior", "reference"))
    if prior is not None and not np.all(prior / prior.sum() >= LEAST_SHARE):
        raise ReleaseError(Problem("prior", "a prior has a share above 0 for every value"))
    return Distributions(prior, reference, entry.get("reference_source") == "data")


def _domain_from_dict(entry: Mapping[str, Any]) -> Domain:
    cut: Bins | Periods | None = None
    # Only ways of writing: an older release may have two spellings of one value, and shows which it means.
    if len({written(value) for value in entry["values"]}) != len(entry["values"]):
        raise ReleaseError(Problem("values", "a value is listed more than once"))
    if "missing" in entry and entry["missing"] != entry["values"][-1]:
        raise ReleaseError(Problem("missing", "the last value is the one for missing values"))
    if "bins" in entry:
        cut = Bins(_edges(entry["bins"], len(entry["values"]) - ("missing" in entry)))
    if "periods" in entry:
        cut = Periods(entry["periods"])
    missing = Missing("category", entry["missing"]) if "missing" in entry else Missing()
    return Domain(tuple(entry["values"]), entry["ordered"], cut, missing)


def _edges(given: Sequence[float | None], bins: int) -> tuple[float, ...]:
    """The edges of so many bins; null stands for an open end."""
    if None in given[1:-1]:
        raise ReleaseError(Problem("bins", "an open end in the middle"))
    first = -np.inf if given[0] is None else given[0]
    last = np.inf if given[-1] is None else given[-1]
    edges = np.array([first, *given[1:-1], last], dtype=np.float64)
    if len(edges) != bins + 1 or not np.all(edges[:-1] < edges[1:]):
        raise ReleaseError(Problem("bins", f"expected {bins + 1:,} ascending edges, one more than there are bins"))
    return tuple(edges.tolist())


def _shares(entry: Mapping[str, Any], key: str, size: int) -> Floats | None:
    """A distribution over the domain."""
    if key not in entry:
        return None
    shares = stored_floats(entry[key], key, size)
    if not 0.0 < shares.sum() < np.inf:
        raise ReleaseError(Problem(key, "the shares do not add up to a number above 0"))
    return shares
