"""The parts of a policy on one attribute, on joint attributes, and about the table.

Several attributes can be protected as one:

    joint:
      - name: illness
        attributes: [disease, treatment]
        protect: {semantic-diversity: {l: 3, d: 1}}

Candidates are combinations of values. By default (`distance: min`) two of them are as far apart as the member in which
they are closest, so that all candidates of a set differ in every member, and each member by itself keeps the promise.

About the table a policy states for readers its name, its data holder, the version of the policy, and a date.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, cast

from polyseme.kernel.documents import Reader
from polyseme.kernel.errors import InvalidInput, PolicyError, nearest
from polyseme.kernel.spelling import Label, spellings
from polyseme.privacy.promises import Promises, read_promises, stored_promises
from polyseme.release.facts import About, flaw_of
from polyseme.schema import Missing, Role, Weighting
from polyseme.semantics.distances.joint import RULES
from polyseme.semantics.hierarchies import DeclaredHierarchy, read_hierarchy

__all__ = [
    "FROM_DATA",
    "TYPES",
    "AttributePolicy",
    "AutomaticBins",
    "ConditionalShares",
    "JointPolicy",
    "PeriodRange",
    "Shares",
    "joined_attributes",
    "read_about",
    "read_attribute",
    "read_joints",
    "read_protect",
    "read_shares_of",
]

TYPES = ("text", "integer", "number", "boolean", "date", "datetime")
_KEYS = (
    "role",
    "type",
    "domain",
    "bins",
    "periods",
    "missing",
    "distance",
    "protect",
    "prior",
    "reference",
    "hierarchy",
    "round",
    "trim",
    "shared-by",
)
_PERIODS = ("year", "quarter", "month", "week", "day")
_BIN_METHODS = ("equal-width", "quantile")
_LABEL_TYPES = (str, int, float, bool)

Shares: TypeAlias = tuple[float, ...] | Mapping[str, float] | str
"""A public distribution: a number for each value in the order of the domain, or by value, or where to find it."""


@dataclass(frozen=True)
class ConditionalShares:
    """Where to find a public distribution for each combination of other attributes.

    file, release  the name of a CSV file, or of an earlier release to estimate it from
    rows           what was found there, once it has been looked up: the texts of `by`, the value and a number
    """

    by: tuple[str, ...]
    file: str = ""
    release: str = ""
    rows: tuple[tuple[str, ...], ...] | None = None


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
    """What the policy says of one attribute, before any data is seen.

    joined     the joint attribute that it is a part of, whose promises it has
    shared_by  the column whose groups share one value, and get one set; empty for none
    """

    name: str
    role: Role
    type: str | None = None
    values: tuple[Label, ...] | None = None
    edges: tuple[float, ...] | None = None
    bins: AutomaticBins | None = None
    periods: PeriodRange | None = None
    missing: Missing = field(default_factory=Missing)
    distance: Mapping[str, Any] | None = None
    protect: Promises = field(default_factory=Promises)
    prior: Shares | ConditionalShares | None = None
    reference: Shares | None = None
    hierarchy: DeclaredHierarchy | None = None
    joined: str = ""
    weighting: Weighting | None = None
    shared_by: str = ""


def read_attribute(name: str, reader: Reader) -> AttributePolicy:
    """One entry under `attributes`."""
    given = reader.mapping(_KEYS)
    # A role that cannot be read is one problem, not two: what is protected was meant to be sensitive.
    role = Role.SENSITIVE if "protect" in given else Role.INSENSITIVE
    if "role" not in given:
        reader.problem("no role", "role: identifier, quasi-identifier, sensitive, sensitive-qid, insensitive or weight")
    else:
        role = Role(reader.at("role", given["role"]).choice([role.value for role in Role], role.value))
    protect = Promises()
    if "protect" in given:
        protect = read_protect(reader.at("protect", given["protect"]))
        if not role.is_secret:
            reader.at("protect", None).problem(
                f"an attribute with role {role.value} is not protected", "role: sensitive or sensitive-qid"
            )
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
        reference=read_shares_of(reader.at("reference", given["reference"])) if "reference" in given else None,
        hierarchy=_hierarchy(reader.at("hierarchy", given["hierarchy"]), role, protect)
        if "hierarchy" in given
        else None,
        weighting=_weighting(reader, given, role),
        shared_by=_shared_by(reader.at("shared-by", given["shared-by"]), role) if "shared-by" in given else "",
    )


def _shared_by(reader: Reader, role: Role) -> str:
    """The column whose groups share one set; only what is published as sets has one."""
    if not role.is_secret:
        reader.problem("only attributes that are published as sets share one", "role: sensitive, protect: ...")
    return reader.text()


def _weighting(reader: Reader, given: Mapping[str, Any], role: Role) -> Weighting | None:
    """How a survey weight is published; nothing else is said of one, and of nothing else this."""
    if role is not Role.WEIGHT:
        for key in ("round", "trim"):
            if key in given:
                reader.at(key, None).problem("only survey weights are rounded and trimmed", "role: weight")
        return None
    for key in given:
        if key in _KEYS and key not in ("role", "type", "round", "trim"):
            reader.at(key, None).problem("a survey weight is published as a number", "round: STEP or trim: LARGEST")
    if given.get("type", "number") not in ("integer", "number"):
        reader.at("type", None).problem("a survey weight is a number", "type: number, or leave it out")
    return Weighting(_positive(reader, given, "round"), _positive(reader, given, "trim"))


def _positive(reader: Reader, given: Mapping[str, Any], key: str) -> float | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < math.inf:
        reader.at(key, value).problem("expected a number above 0", f"{key}: 100")
        return None
    return float(value)


def _hierarchy(reader: Reader, role: Role, protect: Promises) -> DeclaredHierarchy | None:
    """How a column is generalized that is neither left out nor published as sets."""
    if protect or role is Role.SENSITIVE:
        what = "a hierarchy generalizes columns that are not published as sets"
        reader.problem(what, "remove the hierarchy, or give the column the role quasi-identifier without protect")
    elif role is Role.IDENTIFIER:
        reader.problem("an identifier is not published, so there is nothing to generalize", "role: quasi-identifier")
    try:
        return read_hierarchy(reader.value)
    except InvalidInput as error:
        reader.adopt(error)
        return None


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
    repeated = len(labels) - len(set(spellings(labels)))
    if repeated:
        reader.problem(
            f"{repeated} of the {len(labels)} values are listed more than once", "1, 1.0 and '1' are the same value"
        )
    return tuple(labels)


def _is_unwritable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _bins(reader: Reader) -> tuple[tuple[float, ...] | None, AutomaticBins | None]:
    if isinstance(reader.value, list):
        edges = [element.value for element in reader.elements()]
        if not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in edges):
            reader.problem("bin edges must be numbers", "bins: [0, 10, 20, 50]; use -.inf and .inf for open ends")
            return None, None
        if any(math.isnan(edge) for edge in edges):
            reader.problem("a bin edge is .nan, which is not a number", "use -.inf and .inf for open ends")
            return None, None
        if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
            reader.problem("bin edges must be increasing, and there must be at least two")
            return None, None
        return tuple(float(edge) for edge in edges), None
    given = reader.mapping(("count", "method"))
    count = given.get("count", 10)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        reader.at("count", count).problem("the number of bins must be a whole number, at least 1")
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


def _prior(reader: Reader) -> Shares | ConditionalShares | None:
    """The declared prior: it must not depend on the records, or it would reveal some of them."""
    if reader.value == FROM_DATA:
        reader.problem("a prior must be public and independent of the records", "give it in the policy, or in a file")
        return None
    # Shares are numbers: what has names or a file in their place cannot be meant as values called `by` and `file`.
    if isinstance(reader.value, Mapping) and isinstance(reader.value.get("by"), str | list):
        return _conditional(reader)
    return read_shares_of(reader)


def _conditional(reader: Reader) -> ConditionalShares | None:
    given = reader.mapping(("by", "file", "release"))
    by = given["by"] if isinstance(given["by"], list) else [given["by"]]
    names = [name for name in by if isinstance(name, str)]
    if not names or len(set(names)) < len(by):
        reader.at("by", by).problem("expected the names of other attributes, each of them once", "by: [sex, age]")
    sources = [key for key in ("file", "release") if isinstance(given.get(key), str)]
    if not sources:
        reader.problem("no file", "file: NAME.csv, with a column for each attribute of `by`, the value and a number")
    if len(sources) > 1:
        reader.problem("a file and a release", "keep one of them: each says where the distribution comes from")
    return ConditionalShares(tuple(names), str(given.get("file", "")), str(given.get("release", "")))


def read_shares_of(reader: Reader) -> Shares | None:
    """Non-negative weights, in the order of the domain or by value; they need not add up to one.

    Or a file's name.
    """
    if isinstance(reader.value, str):
        return reader.value
    weights = reader.value if isinstance(reader.value, list) else list(reader.mapping().values())
    numbers = [weight for weight in weights if isinstance(weight, int | float)]
    if not all(math.isfinite(weight) for weight in numbers):
        named = ".nan, which is not a number" if any(map(math.isnan, numbers)) else ".inf, which is infinite"
        reader.problem(f"a share is {named}", "[0.2, 0.5, 0.3] or {low: 2, high: 5}")
        return None
    if any(not isinstance(weight, int | float) or isinstance(weight, bool) or not weight >= 0 for weight in weights):
        reader.problem("a distribution needs numbers that are not negative", "[0.2, 0.5, 0.3] or {low: 2, high: 5}")
        return None
    return tuple(weights) if isinstance(reader.value, list) else dict(reader.mapping())


def _distance(reader: Reader) -> Mapping[str, Any] | None:
    given = reader.mapping()
    if len(given) != 1 and isinstance(reader.value, Mapping):
        reader.problem("a distance has exactly one kind", "distance: {line: rank}")
        return None
    return dict(given) or None


def read_protect(reader: Reader) -> Promises:
    """What is promised, as far as that can be said without the domain.

    Problems are the reader's.
    """
    given = reader.mapping()
    if not isinstance(reader.value, Mapping):
        return Promises()
    try:
        return read_promises(given)
    except PolicyError as error:
        reader.adopt(error)
        return stored_promises(given)


_JOINT_KEYS = ("name", "attributes", "protect", "distance", "prior", "reference")
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
    given = reader.mapping(_JOINT_KEYS)
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
    """The attributes with what protects those that are joined.

    Every problem of the names at once.
    """
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


_ABOUT_KEYS = tuple(field.name for field in fields(About))


def read_about(reader: Reader) -> About:
    """`about: {title: Patients of 2025, publisher: Registry, version: 3}`.

    Whatever is left out is not said.
    """
    given = reader.mapping(_ABOUT_KEYS)
    read = {name: _fact(name, reader.at(name, given[name])) for name in _ABOUT_KEYS if name in given}
    return About(**read)


def _fact(name: str, reader: Reader) -> str:
    """One line of text; a version may be a number."""
    value = reader.value
    if name == "version" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    text = reader.text()
    flaw = flaw_of(name, text) if isinstance(value, str) else ""
    if flaw:
        reader.problem(flaw)
    return text
