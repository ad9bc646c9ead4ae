"""Policies: what a table means and what is promised for it, as YAML.

A policy is read whole and every problem is reported at once, each with its place (`$.attributes.age.distance`).
It is then *resolved* into a schema (`polyseme.policy.resolution`), where domains and distances take their final form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from polyseme.kernel.documents import Folder, Reader, in_file, parse
from polyseme.kernel.errors import PolicyError, TableError, nearest
from polyseme.kernel.parameters import validated
from polyseme.methods import DECOYS, METHODS
from polyseme.models import read_spec
from polyseme.policy.attributes import (
    AttributePolicy,
    JointPolicy,
    joined_attributes,
    read_about,
    read_attribute,
    read_joints,
    read_protect,
)
from polyseme.policy.rule_files import read_sources
from polyseme.privacy.promises import Promises
from polyseme.release.facts import About
from polyseme.schema import Role
from polyseme.tables.io.dialects import DECIMALS, Dialect

__all__ = ["PROTECT_HINT", "AttributePolicy", "Exclusion", "MethodSpec", "ModelSpec", "Policy", "TableFormat"]

PROTECT_HINT = "protect: {semantic-diversity: {l: 3, d: 2}}, or give it another role"
_KEYS = (
    "attributes",
    "models",
    "method",
    "table",
    "record-key",
    "repeats",
    "impossible",
    "protect-all-but",
    "protect",
    "joint",
    "about",
)
_WAYS_IN = "Policy.load(path), Policy.loads(text) or Policy.from_dict(mapping)"
_POLICY_FIRST = "a policy is a YAML file, and comes before the data: polyseme anonymize POLICY DATA"
_TABLES = frozenset(".csv .tsv .tab .parquet .pq .arrow .feather .ipc .xlsx .xls .ods .gz .zst .dta .sav".split())  # noqa: SIM905
_NAMED = 4
"""Protected attributes that a short text names."""
_TABLE_KEYS = ("separator", "encoding", "sheet", "decimal", "dates", "missing-values", "wildcard")


@dataclass(frozen=True)
class ModelSpec:
    """A privacy model to check: its name and parameters."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class MethodSpec:
    """How a table is made publishable: the name of a method and its parameters."""

    name: str = "decoys"
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableFormat:
    """How a table is stored; None means: look and guess.

    wildcard  whether a missing or suppressed quasi-identifier matches anything when models are checked
    """

    separator: str | None = None
    encoding: str = "utf-8"
    missing_values: tuple[str, ...] = ("",)
    wildcard: bool = False
    sheet: str | None = None
    dialect: Dialect = field(default_factory=Dialect)


@dataclass(frozen=True)
class Exclusion:
    """Values of a protected attribute that records with given untouched values never have.

    may_be_empty  whether it is fine that no record has them
    """

    when: Mapping[str, tuple[Any, ...]]
    attribute: str
    values: tuple[Any, ...]
    may_be_empty: bool = False


@dataclass(frozen=True)
class Policy:
    """What a table means and what is promised for it.

    method    how values that are protected by themselves are published
    grouping  how records are put into classes or groups; None where they are not
    population  the table of a reference population that was given beside it, in the place of one that it names
    """

    attributes: tuple[AttributePolicy, ...]
    models: tuple[ModelSpec, ...] = ()
    method: MethodSpec = field(default_factory=MethodSpec)
    grouping: MethodSpec | None = None
    table: TableFormat = field(default_factory=TableFormat)
    record_key: str | None = None
    repeats: bool = False
    exclusions: tuple[Exclusion, ...] = ()
    protect_all_but: tuple[str, ...] | None = None
    protect: Promises = field(default_factory=Promises)
    joint: tuple[JointPolicy, ...] = ()
    about: About = field(default_factory=About)
    folder: Path = field(default_factory=Path, repr=False)
    allow_outside: bool = field(default=False, repr=False)
    population: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        given: Any = self.attributes  # whatever a caller without a type checker hands in
        if isinstance(given, str) or not all(isinstance(item, AttributePolicy) for item in given):
            raise PolicyError("a policy is made of attributes that were read", _WAYS_IN)

    @classmethod
    def load(cls, path: str | Path, allow_outside: bool = False) -> Policy:
        """Read a policy file; every problem in it is in the error.

        allow_outside  whether files that it names may be elsewhere than below its own folder
        """
        path = _path_given(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise PolicyError(f"{path}: no such policy file", "draft one with: polyseme init DATA") from None
        except IsADirectoryError:
            what = "a release" if (path / "manifest.json").is_file() else "a folder"
            raise PolicyError(f"{path}: {what}, not a policy file", _POLICY_FIRST) from None
        except UnicodeDecodeError:
            what = "a table, not a policy" if _is_table(path) else "not UTF-8 text"
            raise PolicyError(f"{path}: {what}", _POLICY_FIRST) from None
        try:
            return cls.loads(text, path.parent, allow_outside)
        except PolicyError as error:
            if not text.strip():
                raise PolicyError(f"{path}: the policy is empty", "draft one with: polyseme init DATA") from None
            if _is_table(path) or _looks_like_table(text):
                raise PolicyError(f"{path}: this looks like a table, not like a policy", _POLICY_FIRST) from None
            raise in_file(error, path) from None

    @classmethod
    def loads(cls, text: str, folder: str | Path = ".", allow_outside: bool = False) -> Policy:
        """Read a policy from YAML text.

        Files it names are below `folder`, or anywhere if that is allowed.
        """
        if not isinstance(text, str):
            raise PolicyError(f"expected the text of a policy, not {type(text).__name__}", _WAYS_IN)
        return cls.from_dict(parse(text), folder, allow_outside)

    @classmethod
    def from_dict(cls, document: Any, folder: str | Path = ".", allow_outside: bool = False) -> Policy:
        """A policy from the objects that YAML gives."""
        reader = Reader(document)
        if document is None:
            raise PolicyError("the policy is empty", "draft one with: polyseme init DATA")
        policy = _read(reader, Folder(Path(folder), allow_outside))
        if reader.problems:
            raise PolicyError(reader.problems)
        return policy

    @property
    def files(self) -> Folder:
        """Where the files are that it names."""
        return Folder(self.folder, self.allow_outside)

    @cached_property
    def by_name(self) -> Mapping[str, AttributePolicy]:
        return {attribute.name: attribute for attribute in self.attributes}

    @property
    def protected(self) -> tuple[AttributePolicy, ...]:
        return tuple(attribute for attribute in self.attributes if attribute.protect)

    def __repr__(self) -> str:
        names = [item.name for item in self.protected]
        more = f", {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        protected = f"protected: {', '.join(names[:_NAMED])}{more}" if names else "none protected"
        listed = f"; models: {', '.join(model.name for model in self.models)}" if self.models else ""
        grouped = f"; method: {self.grouping.name}" if self.grouping is not None else ""
        return f"<Policy of {len(self.attributes)} attributes, {protected}{listed}{grouped}>"

    def _repr_html_(self) -> str:
        from polyseme.results.views.formats import parameters
        from polyseme.results.views.html import titled_table

        head = (("attribute", False), ("role", False), ("promised", False))
        rows = [
            (
                item.name,
                item.role.value,
                "; ".join(f"{one.name} {parameters(one.given())}".strip() for one in item.protect),
            )
            for item in self.attributes
        ]
        models = [f"model: {model.name} {parameters(model.parameters)}".strip() for model in self.models]
        method = [] if self.grouping is None else [f"method: {self.grouping.name}"]
        return titled_table(f"Policy of {len(rows)} attributes", head, rows, [*models, *method])


def _path_given(path: object) -> Path:
    if not isinstance(path, str | Path):
        raise PolicyError(f"expected the name of a policy file, not {type(path).__name__}", _WAYS_IN)
    return Path(path)


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in _TABLES


def _looks_like_table(text: str) -> bool:
    """Whether a text has the same separator in its first lines and no key of a policy."""
    lines = [line for line in text.splitlines()[:5] if line.strip()]
    if len(lines) < 2 or lines[0][0] in "{[#-" or any(f"{key}:" in line for key in _KEYS for line in lines):
        return False
    return any(len({line.count(mark) for line in lines}) == 1 and mark in lines[0] for mark in ",;\t|")


def _read(reader: Reader, folder: Folder) -> Policy:
    given = reader.mapping(_KEYS)
    if "attributes" not in given and "protect-all-but" not in given:
        reader.problem("no attributes", "attributes: {age: {role: quasi-identifier}}")
    attributes = [
        read_attribute(name, inner) for name, inner in reader.at("attributes", given.get("attributes", {})).items()
    ]
    joint = read_joints(reader.at("joint", given["joint"])) if "joint" in given else ()
    named = reader.at("method", given["method"]) if "method" in given else None
    method, grouping = (MethodSpec(), None) if named is None else _methods(named)
    policy = Policy(
        attributes=joined_attributes(attributes, joint, reader.at("joint", None)),
        models=_models(reader.at("models", given.get("models", [])), attributes, folder),
        method=method,
        grouping=grouping,
        table=_table(reader.at("table", given["table"])) if "table" in given else TableFormat(),
        record_key=reader.at("record-key", given["record-key"]).text() if "record-key" in given else None,
        repeats=reader.at("repeats", given["repeats"]).flag() if "repeats" in given else False,
        exclusions=_exclusions(reader.at("impossible", given.get("impossible", []))),
        protect_all_but=_names(reader.at("protect-all-but", given["protect-all-but"]))
        if "protect-all-but" in given
        else None,
        protect=read_protect(reader.at("protect", given["protect"])) if "protect" in given else Promises(),
        joint=joint,
        about=read_about(reader.at("about", given["about"])) if "about" in given else About(),
        folder=folder.path,
        allow_outside=folder.allow_outside,
    )
    _check_names(reader, policy)
    return policy


def _names(reader: Reader) -> tuple[str, ...]:
    return tuple(element.text() for element in reader.elements())


def _models(reader: Reader, attributes: Sequence[AttributePolicy], folder: Folder) -> tuple[ModelSpec, ...]:
    models = []
    for element in reader.elements():
        given = element.mapping()
        if len(given) != 1:
            if isinstance(element.value, Mapping):
                element.problem("one model in each entry", "- {k-anonymity: {k: 5}}")
            continue
        (name, inner) = next(iter(element.items()))
        parameters = read_sources(inner, attributes, folder) if name == "semantic-rules" else inner.mapping()
        if name != "semantic-rules":
            _check_model(name, inner, parameters)
        models.append(ModelSpec(name, parameters))
    return tuple(models)


def _check_model(name: str, reader: Reader, parameters: Mapping[str, Any]) -> None:
    """Check that the model exists and accepts its parameters; rules are read with their files."""
    try:
        read_spec({name: parameters}, reader.where.removesuffix(f".{name}"))
    except PolicyError as error:
        reader.problems.extend(error.problems)


def _methods(reader: Reader) -> tuple[MethodSpec, MethodSpec | None]:
    """`method: decoys`, or with parameters `method: {decoys: {}, full-domain: {...}}`."""
    named = [(reader.value, reader.at(reader.value, {}))] if isinstance(reader.value, str) else list(reader.items())
    for name, inner in named:
        if name not in METHODS:
            inner.problem("unknown method", nearest(name, METHODS) or f"known: {', '.join(METHODS)}")
    if not named and isinstance(reader.value, Mapping):
        reader.problem("no method", f"known: {', '.join(METHODS)}")
    found = [_method(name, inner) for name, inner in named if name in METHODS]
    groupers = [spec for spec in found if spec.name != DECOYS]
    if len(groupers) > 1:
        reader.problem("more than one method that groups records", "keep one, and decoys beside it if you like")
    return MethodSpec(), groupers[0] if groupers else None


def _method(name: str, reader: Reader) -> MethodSpec:
    parameters = METHODS[name].parameters
    given = reader.mapping([parameter.name for parameter in parameters])
    known = {key: value for key, value in given.items() if key in {parameter.name for parameter in parameters}}
    try:
        return MethodSpec(name, validated("", parameters, known))
    except PolicyError as error:
        reader.adopt(PolicyError(replace(item, where=item.where.removeprefix(".")) for item in error.problems))
        return MethodSpec(name)


def _table(reader: Reader) -> TableFormat:
    given = reader.mapping(_TABLE_KEYS)
    separator = reader.at("separator", given["separator"]).text() if given.get("separator") is not None else None
    if separator is not None and len(separator) != 1:
        reader.at("separator", separator).problem("a separator is one character")
    encoding = reader.at("encoding", given["encoding"]).text() if "encoding" in given else "utf-8"
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        reader.at("encoding", encoding).problem("no such encoding", "utf-8, latin-1, cp932, utf-16 ...")
    missing: tuple[str, ...] = ("",)
    if "missing-values" in given:
        words = reader.at("missing-values", given["missing-values"]).elements()
        for element in words:
            if element.value is None:
                element.problem("expected text, found nothing", "quote words that YAML reads as null: 'null'")
        missing = tuple(str(element.value) for element in words)
    wildcard = reader.at("wildcard", given["wildcard"]).flag() if "wildcard" in given else False
    sheet = reader.at("sheet", given["sheet"]).text() if given.get("sheet") is not None else None
    return TableFormat(separator, encoding, missing, wildcard, sheet, _dialect(reader, given))


def _dialect(reader: Reader, given: Mapping[str, Any]) -> Dialect:
    decimal = reader.at("decimal", given["decimal"]).choice(DECIMALS, "point") if "decimal" in given else "point"
    if given.get("dates") is None:
        return Dialect(decimal)
    dates = reader.at("dates", given["dates"])
    try:
        return Dialect(decimal, dates.text("dd.mm.yyyy"))
    except TableError as error:
        dates.adopt(error)
        return Dialect(decimal)


def _exclusions(reader: Reader) -> tuple[Exclusion, ...]:
    exclusions = []
    for element in reader.elements():
        given = element.mapping(("when", "attribute", "values", "may-be-empty"))
        missing = [key for key in ("when", "attribute", "values") if key not in given]
        if missing:
            element.problem(f"no {', '.join(missing)}", "{when: {sex: male}, attribute: disease, values: [O80]}")
            continue
        when = {
            key: tuple(inner.value) if isinstance(inner.value, list) else (inner.value,)
            for key, inner in element.at("when", given["when"]).items()
        }
        if not when and isinstance(given["when"], Mapping):
            element.at("when", None).problem("no condition", "remove values that no person can have from the domain")
        values = tuple(inner.value for inner in element.at("values", given["values"]).elements())
        may_be_empty = "may-be-empty" in given and element.at("may-be-empty", given["may-be-empty"]).flag()
        exclusions.append(Exclusion(when, element.at("attribute", given["attribute"]).text(), values, may_be_empty))
    return tuple(exclusions)


def _check_names(reader: Reader, policy: Policy) -> None:
    """Check that names refer to attributes, and that every attribute drawn as sets says how."""
    names = [attribute.name for attribute in policy.attributes]
    if policy.record_key is not None and policy.record_key not in names:
        reader.at("record-key", None).problem(f"no attribute '{policy.record_key}'", nearest(policy.record_key, names))
    for index, exclusion in enumerate(policy.exclusions):
        inner = reader.at("impossible", None).at(index, None)
        for name in (exclusion.attribute, *exclusion.when):
            # With protect-all-but, columns need no entry: their names are checked against the table.
            if name not in names and policy.protect_all_but is None:
                inner.problem(f"no attribute '{name}'", nearest(name, names))
    _check_shared(reader, policy)
    for attribute in policy.attributes:
        place = reader.at("attributes", None).at(attribute.name, None)
        if attribute.distance is None and attribute.protect.semantic and not attribute.joined:
            numeric = attribute.edges is not None or attribute.bins is not None
            if not numeric and attribute.periods is None:
                place.problem("semantic diversity needs a distance", "distance: {line: rank} or {tree: FILE.csv}")
    if policy.protect_all_but is not None and not policy.protect:
        reader.at("protect-all-but", None).problem("no rule for the others", "add protect: {diversity: {l: 3}}")
    weights = [attribute.name for attribute in policy.attributes if attribute.role is Role.WEIGHT]
    for name in weights[1:]:
        place = reader.at("attributes", None).at(name, None)
        place.problem(f"a second survey weight beside '{weights[0]}'", "role: weight for one of them")
    _check_protected(reader, policy)


def _check_shared(reader: Reader, policy: Policy) -> None:
    """Check that `shared-by` names a column with one value per record, the same in every run."""
    for attribute in policy.attributes:
        if not attribute.shared_by:
            continue
        place = reader.at("attributes", None).at(attribute.name, None).at("shared-by", None)
        group = policy.by_name.get(attribute.shared_by)
        if group is None:
            if policy.protect_all_but is None:
                place.problem(f"no attribute '{attribute.shared_by}'", nearest(attribute.shared_by, policy.by_name))
        elif group.role.is_secret or group.role is Role.WEIGHT:
            place.problem(
                f"'{group.name}' is {group.role.value}, and cannot tell groups",
                "name a column that is dropped (role: identifier) or published as it is",
            )
        elif group.hierarchy is not None:
            what = f"'{group.name}' is generalized, and would no longer tell groups"
            place.problem(what, "remove its hierarchy, or drop it (role: identifier)")
    for joint in policy.joint:
        shared = {policy.by_name[name].shared_by for name in joint.attributes if name in policy.by_name}
        if len(shared) > 1:
            what = f"the members of '{joint.name}' are not shared by the same groups"
            reader.at("joint", None).problem(what, "give each of them the same shared-by")


def _check_protected(reader: Reader, policy: Policy) -> None:
    """Report sensitive attributes without protection, unless the policy may only verify."""
    if policy.models or policy.grouping is not None or policy.protect_all_but is not None:
        return
    for attribute in policy.attributes:
        if attribute.role.is_secret and not attribute.protect:
            place = reader.at("attributes", None).at(attribute.name, None)
            place.problem(
                f"{attribute.role.value}, but nothing protects it",
                PROTECT_HINT,
            )
