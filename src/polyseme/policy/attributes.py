"""The part of a policy that speaks of one attribute."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from polyseme.errors import PolicyError
from polyseme.policy.reading import Reader
from polyseme.recipes.promises import read_promises
from polyseme.schema import Label, Missing, Role

__all__ = ["FROM_DATA", "TYPES", "AttributePolicy", "AutomaticBins", "PeriodRange", "Shares", "read_attribute"]

TYPES = ("text", "integer", "number", "boolean", "date", "datetime")
_KEYS = ("role", "type", "domain", "bins", "periods", "missing", "distance", "protect", "prior", "reference")
_PERIODS = ("year", "quarter", "month", "week", "day")
_BIN_METHODS = ("equal-width", "quantile")
_LABEL_TYPES = (str, int, float, bool)
_ANY_SIZE = 1 << 62


Shares: TypeAlias = tuple[float, ...] | Mapping[str, float] | str
"""A public distribution: a number for each value in the order of the domain, or by value, or where to find it."""

FROM_DATA = "data"
"""The word for "as it is in the table"."""


@dataclass(frozen=True)
class AutomaticBins:
    """Bins whose edges are found in the data; the edges are published with the release."""

    count: int
    method: str


@dataclass(frozen=True)
class PeriodRange:
    """Calendar periods between two dates; ends left out are found in the data."""

    every: str
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True)
class AttributePolicy:
    """What the policy says of one attribute, before any data is seen."""

    name: str
    role: Role
    type: str | None = None
    values: tuple[Label, ...] | None = None
    edges: tuple[float, ...] | None = None
    bins: AutomaticBins | None = None
    periods: PeriodRange | None = None
    missing: Missing = field(default_factory=Missing)
    distance: Mapping[str, Any] | None = None
    protect: Mapping[str, Mapping[str, Any]] | None = None
    prior: Shares | None = None
    reference: Shares | None = None


def read_attribute(name: str, reader: Reader) -> AttributePolicy:
    """One entry under `attributes`."""
    given = reader.mapping(_KEYS)
    # A role that cannot be read is one problem, not two: what is protected was meant to be sensitive.
    role = Role.SENSITIVE if "protect" in given else Role.INSENSITIVE
    if "role" not in given:
        reader.problem("no role", "role: identifier, quasi-identifier, sensitive, sensitive-qid or insensitive")
    else:
        role = Role(reader.at("role", given["role"]).choice([role.value for role in Role], role.value))
    protect = _protect(reader.at("protect", given["protect"]), role) if "protect" in given else None
    if sum(key in given for key in ("domain", "bins", "periods")) > 1:
        reader.problem("more than one of domain, bins and periods", "keep one: each of them says what the values are")
    edges, bins = _bins(reader.at("bins", given["bins"])) if "bins" in given else (None, None)
    return AttributePolicy(
        name=name,
        role=role,
        type=reader.at("type", given["type"]).choice(TYPES, "text") if "type" in given else None,
        values=_values(reader.at("domain", given["domain"])) if "domain" in given else None,
        edges=edges,
        bins=bins,
        periods=_periods(reader.at("periods", given["periods"])) if "periods" in given else None,
        missing=_missing(reader.at("missing", given["missing"])) if "missing" in given else Missing(),
        distance=_distance(reader.at("distance", given["distance"])) if "distance" in given else None,
        protect=protect,
        prior=_prior(reader.at("prior", given["prior"])) if "prior" in given else None,
        reference=_shares(reader.at("reference", given["reference"])) if "reference" in given else None,
    )


def _values(reader: Reader) -> tuple[Label, ...]:
    labels: list[Label] = []
    for element in reader.elements():
        if isinstance(element.value, str) and not element.value.isprintable() and _is_unwritable(element.value):
            element.problem("not text that a file can hold")
        elif isinstance(element.value, _LABEL_TYPES):
            labels.append(element.value)
        elif element.value is None:
            element.problem("an empty value", "declare missing values with missing: {category: LABEL}")
        else:
            element.expected("a value")
    if not labels and isinstance(reader.value, list):
        reader.problem("an empty domain")
    # 1, 1.0 and "1" are the same value: a text table could not tell them apart.
    repeated = len(labels) - len({_meaning(label) for label in labels})
    if repeated:
        reader.problem(f"{repeated} of the {len(labels)} values stand twice")
    return tuple(labels)


def _is_unwritable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _meaning(label: Label) -> str:
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).lower() if isinstance(label, bool) else str(label)


def _bins(reader: Reader) -> tuple[tuple[float, ...] | None, AutomaticBins | None]:
    if isinstance(reader.value, list):
        edges = [element.value for element in reader.elements()]
        if not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in edges):
            reader.problem("edges of bins are numbers", "bins: [0, 10, 20, 50]; use -.inf and .inf for open ends")
            return None, None
        if (
            len(edges) < 2
            or any(math.isnan(edge) for edge in edges)
            or any(a >= b for a, b in itertools.pairwise(edges))
        ):
            reader.problem("edges of bins must rise, and there must be two or more")
            return None, None
        return tuple(float(edge) for edge in edges), None
    given = reader.mapping(("count", "method"))
    count = given.get("count", 10)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        reader.at("count", count).problem("the number of bins is a whole number from 1")
        count = 1
    method = (
        reader.at("method", given["method"]).choice(_BIN_METHODS, "equal-width") if "method" in given else "equal-width"
    )
    return None, AutomaticBins(count, method)


def _periods(reader: Reader) -> PeriodRange:
    if isinstance(reader.value, str):
        return PeriodRange(reader.choice(_PERIODS, "year"))
    given = reader.mapping(("every", "from", "to"))
    every = reader.at("every", given.get("every")).choice(_PERIODS, "year")
    first, last = (str(given[key]) if given.get(key) is not None else None for key in ("from", "to"))
    return PeriodRange(every, first, last)


def _missing(reader: Reader) -> Missing:
    if isinstance(reader.value, Mapping):
        given = reader.mapping(("category",))
        return Missing("category", reader.at("category", given.get("category")).text("(missing)"))
    action = reader.choice(("refuse", "drop", "category"), "refuse")
    return Missing(cast("Literal['refuse', 'drop', 'category']", action))


def _prior(reader: Reader) -> Shares | None:
    """What designs are balanced for must not depend on the records: it would tell something about them."""
    if reader.value == FROM_DATA:
        reader.problem("a prior is public and independent of the records", "give it in the policy, or in a file")
        return None
    return _shares(reader)


def _shares(reader: Reader) -> Shares | None:
    """Non-negative weights, in the order of the domain or by value; they need not add up to one. Or a file's name."""
    if isinstance(reader.value, str):
        return reader.value
    weights = reader.value if isinstance(reader.value, list) else list(reader.mapping().values())
    if any(not isinstance(weight, int | float) or isinstance(weight, bool) or not weight >= 0 for weight in weights):
        reader.problem("a distribution holds numbers from 0", "[0.2, 0.5, 0.3] or {low: 2, high: 5}")
        return None
    return tuple(weights) if isinstance(reader.value, list) else dict(reader.mapping())


def _distance(reader: Reader) -> Mapping[str, Any] | None:
    given = reader.mapping()
    if len(given) != 1 and isinstance(reader.value, Mapping):
        reader.problem("a distance has exactly one kind", "distance: {line: rank}")
        return None
    return dict(given) or None


def _protect(reader: Reader, role: Role) -> Mapping[str, Mapping[str, Any]]:
    promises = {name: inner.mapping() for name, inner in reader.items()}
    if isinstance(reader.value, Mapping) and not promises:
        reader.problem("nothing is promised", "protect: {semantic-diversity: {l: 3, d: 2}}")
    readable = {name: promises[name] for name, inner in reader.items() if isinstance(inner.value, Mapping)}
    if readable:
        try:
            # What is wrong whatever the domain and the distance are is said together with everything else.
            read_promises(readable, _ANY_SIZE, has_distance=True)
        except PolicyError as error:
            reader.adopt(error)
    if not role.is_secret:
        reader.problem(f"an attribute with role {role.value} is not protected", "role: sensitive or sensitive-qid")
    return promises
