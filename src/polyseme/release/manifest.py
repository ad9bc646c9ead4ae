"""The manifest: everything public about a release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polyseme.kernel.errors import Problem, ReleaseError, nearest
from polyseme.kernel.version import __version__
from polyseme.models import is_about
from polyseme.release.codec import columns_from, entry_of
from polyseme.release.columns import AsIs, Column, Generalized, Grouped, Sets
from polyseme.release.data import DAMAGED, FORMAT, MANIFEST, check_data, check_document, checksum
from polyseme.release.facts import About, Applied, Collected, People, flaw_of
from polyseme.schema import Role, Schema

__all__ = ["COMBINED", "Manifest"]

COMBINED = "combined-learner"
"""The verdict on a promise about learners, for an attacker who reads all sets of a record."""
_SEVERAL = 2
"""Attributes that are published as sets, so that one can tell of another."""


@dataclass(frozen=True)
class Manifest:
    """Everything public about a release.

    applied    what was done to the whole table before; None where nothing was
    seeded     whether its random numbers can be recomputed by guessing a seed; None where another program drew them
    uncounted  whether the decoys are sticky, but the records per draw were not counted (a release of an older program):
               `repeats` is then taken as 1, and intervals are too narrow where people have several records
    accepted   names of the models that did not hold when it was published all the same, because its owner said so;
               `combined-learner` where a promise about learners does not hold against one who reads all sets
    about      what its owner says of it: its name, who answers for it
    collected  how devices sent what they had drawn; None where a table was anonymized
    people     of how many people the records are, by what their publisher says; None where records were counted
    program    the version of the program that wrote it
    key_check  tells whether two releases with sticky decoys were drawn with the same key; empty where it is not known
    checksum   of the manifest as it was written, and through it of the data; empty before that
    """

    columns: tuple[Column, ...]
    records: int
    rows: int
    form: str = "set"
    method: str = "decoys"
    dropped: int = 0
    seeded: bool | None = False
    sticky: bool = False
    models: tuple[Mapping[str, Any], ...] = ()
    missing_values: tuple[str, ...] = ("",)
    data: Mapping[str, Any] = field(default_factory=dict)
    uncounted: bool = False
    applied: Applied | None = None
    accepted: tuple[str, ...] = ()
    about: About = field(default_factory=About)
    collected: Collected | None = None
    people: People | None = None
    key_check: str = ""
    program: str = field(default=__version__, compare=False)
    checksum: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise ReleaseError(f"{MANIFEST}: an attribute is listed more than once", DAMAGED)
        bare = [item.name for item in self.columns if item.attribute.role.is_secret and not self._covered(item)]
        if bare:
            raise ReleaseError(
                Problem(f"{MANIFEST}: '{name}'", "sensitive, but published as it is", "a release must not contain it")
                for name in bare
            )
        weights = [item for item in self.columns if item.attribute.role is Role.WEIGHT]
        if len(weights) > 1 or not all(isinstance(item, AsIs) for item in weights):
            raise ReleaseError(f"{MANIFEST}: more than one survey weight, or one that is no number", DAMAGED)
        groups = {item.group for item in self.columns if isinstance(item, Grouped)} - set(self.names)
        if groups:
            raise ReleaseError(f"{MANIFEST}: the column that tells groups is not listed", DAMAGED)

    def _covered(self, column: Column) -> bool:
        """Whether a sensitive column has a promise: its own, or one of its records' classes."""
        if isinstance(column, Sets):
            return True
        return self.applied is not None and any(is_about(model, column.name) for model in self.models)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise ReleaseError(f"no attribute '{name}' in this release", nearest(name, self.names))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def sets(self) -> tuple[Sets, ...]:
        """The columns in which sets of candidates stand for the values."""
        return tuple(column for column in self.columns if isinstance(column, Sets))

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the columns that an attacker may know, as they are or generalized."""
        return tuple(
            column.name
            for column in self.columns
            if isinstance(column, AsIs | Generalized) and not column.attribute.role.is_secret
        )

    @property
    def links(self) -> tuple[str, ...]:
        """The columns that form equivalence classes, of records that agree in all of them.

        These are quasi-identifiers and survey weights, as they are published; sets form no classes. The models,
        reports, attacks and measures of risk of a release mean these classes.
        """
        return tuple(name for name in self.shown if self[name].attribute.role.tells_apart)

    @property
    def weight(self) -> str | None:
        """The column of survey weights; None where there is none."""
        return next((column.name for column in self.columns if column.attribute.role is Role.WEIGHT), None)

    @property
    def grouped(self) -> tuple[Grouped, ...]:
        """The columns that show the values of a group."""
        return tuple(column for column in self.columns if isinstance(column, Grouped))

    @property
    def schema(self) -> Schema:
        return Schema(tuple(column.attribute for column in self.columns))

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON objects, with a checksum over all of it."""
        document: dict[str, Any] = {
            "format": self.format,
            "polyseme": __version__,
            "method": self.method if self.applied is None else self.applied.to_dict(),
            "form": self.form,
            "records": self.records,
            "rows": self.rows,
            "dropped": self.dropped,
            "for_publication": None if self.seeded is None else not self.seeded,
            "seeded": self.seeded,
            "sticky": self.sticky,
            "attributes": [self._entry(column) for column in self.columns],
            "models": [dict(model) for model in self.models],
            "missing_values": list(self.missing_values),
            "data": dict(self.data),
        }
        if self.accepted:
            document["accepted_risk"] = list(self.accepted)
        if self.about:
            document["about"] = self.about.to_dict()
        if self.collected is not None:
            document["collected"] = self.collected.to_dict()
        if self.people is not None:
            document |= {"counts": "people", "people": self.people.to_dict()}
        if self.key_check:
            document["key_check"] = self.key_check
        return {**document, "checksum": checksum(document)}

    @property
    def format(self) -> int:
        """The first format that can say all of it, so that older programs read what they can."""
        if any(column.shared_by for column in self.sets):
            return FORMAT
        reported = self.accepted or self.about or self.collected or self.key_check or self.people
        plain = not (self.applied or reported)
        if "files" in self.data:
            return 3
        return 1 if plain and all(_in_format_1(column) for column in self.columns) else 2

    def _entry(self, column: Column) -> dict[str, Any]:
        entry = entry_of(column)
        if isinstance(column, Sets) and (column.shared_by or (self.sticky and not self.uncounted)):
            entry["repeats"] = column.repeats
        return entry

    def to_json(self) -> str:
        """The text of the manifest file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Manifest:
        """The inverse of `to_dict`; refuses what is damaged or newer than this program."""
        check_document(document)
        _check_repeats(document)
        check_data(document["data"], document["rows"])
        method = document["method"]
        made = cls(
            columns=columns_from(document["attributes"]),
            records=int(document["records"]),
            rows=int(document["rows"]),
            form=document["form"],
            method=method if isinstance(method, str) else method["name"],
            applied=None if isinstance(method, str) else Applied.from_dict(method),
            dropped=int(document["dropped"]),
            seeded=document["seeded"],
            sticky=document["sticky"],
            models=tuple(document["models"]),
            missing_values=tuple(document["missing_values"]),
            data=document["data"],
            accepted=_accepted(document),
            about=_about(document),
            collected=_collected(document),
            people=_people(document),
            key_check=document.get("key_check", ""),
            program=document["polyseme"],
            checksum=document["checksum"],
            uncounted=document["sticky"] and any("repeats" not in entry for entry in _protected(document)),
        )
        if made.format > document["format"]:
            raise ReleaseError(f"{MANIFEST}: format {document['format']} has no such columns or files", DAMAGED)
        return made


def _in_format_1(column: Column) -> bool:
    if column.attribute.role is Role.WEIGHT:
        return False
    return (isinstance(column, AsIs) and column.attribute.domain is None) or (
        isinstance(column, Sets) and not column.attribute.conditional and not column.attribute.members
    )


def _protected(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [entry for entry in document["attributes"] if entry["published"] == "sets"]


def _accepted(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What was not reached and accepted: listed models, and links between several sets."""
    accepted = tuple(document.get("accepted_risk", ()))
    listed = {name for model in document["models"] for name in model}
    listed |= {COMBINED} if len(_protected(document)) >= _SEVERAL else set()
    if not listed.issuperset(accepted):
        raise ReleaseError(f"{MANIFEST}: a risk was accepted for a model that is not listed", DAMAGED)
    return accepted


def _about(document: Mapping[str, Any]) -> About:
    given = document.get("about", {})
    wrong = [(name, flaw) for name, text in given.items() if (flaw := flaw_of(name, text))]
    if wrong:
        raise ReleaseError(Problem(f"{MANIFEST}: $.about.{name}", flaw, DAMAGED) for name, flaw in wrong)
    return About.from_dict(given)


def _collected(document: Mapping[str, Any]) -> Collected | None:
    if "collected" not in document:
        return None
    collected = Collected.from_dict(document["collected"])
    flaws = collected.flaws()
    if flaws:
        raise ReleaseError(Problem(f"{MANIFEST}: $.collected.{key}", flaw, DAMAGED) for key, flaw in flaws.items())
    return collected


def _people(document: Mapping[str, Any]) -> People | None:
    if "people" not in document:
        return None
    people = People.from_dict(document["people"])
    flaw = people.flaw(int(document["records"]))
    if flaw:
        raise ReleaseError(Problem(f"{MANIFEST}: $.people", flaw, DAMAGED))
    return people


def _check_repeats(document: Mapping[str, Any]) -> None:
    """Check that no draw has more records than exist, and draws without a key are distinct."""
    most = max(document["records"], 1)
    wrong = [
        entry["name"]
        for entry in _protected(document)
        if not 1 <= entry.get("repeats", 1) <= (most if document["sticky"] or "shared_by" in entry else 1)
    ]
    if wrong:
        raise ReleaseError(
            Problem(f"{MANIFEST}: '{name}'", "more records per draw than there can be", DAMAGED) for name in wrong
        )
