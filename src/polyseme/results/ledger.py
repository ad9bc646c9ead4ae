"""What was published about the same people, and what all of it tells together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from polyseme.kernel.errors import InvalidInput, Problem, ReleaseError
from polyseme.kernel.files import whole_file
from polyseme.privacy.analysis.intersection import Between
from polyseme.release import Column, Sets
from polyseme.release.codec import columns_from, entry_of
from polyseme.release.data import checksum, read_document
from polyseme.results.base import Result, restored, written

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Exposure", "Exposures", "Ledger", "Publication", "spent"]

FORMAT = 1
"""The newest format of a ledger that is read and written."""


@dataclass(frozen=True, eq=False)
class Publication:
    """One release, as far as later ones must know of it. All of it is public.

    people    whom it is about: a name that the data holder chose
    date      when it was recorded, in ISO 8601
    checksum  that of the manifest; empty for a release in memory
    sticky    whether the same person with the same value gets the same set again
    columns   how each column was published
    learned   the distribution of the values of each protected column, as estimated from the release
    key_check  that of the manifest: whether sticky sets have the same key; empty where it is not known
    """

    people: str
    date: str
    checksum: str
    records: int
    sticky: bool
    columns: tuple[Column, ...]
    learned: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    key_check: str = ""

    @property
    def sets(self) -> tuple[Sets, ...]:
        """The columns in which sets of candidates stand for the values."""
        return tuple(column for column in self.columns if isinstance(column, Sets))

    def find(self, name: str) -> Column | None:
        """The column of that name, if it was published."""
        return next((column for column in self.columns if column.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """An entry under `releases`."""
        return {
            "people": self.people,
            "date": self.date,
            "manifest": self.checksum,
            "records": self.records,
            "sticky": self.sticky,
            "attributes": [{**entry_of(column), **_summary(column)} for column in self.columns],
            "learned": {name: list(shares) for name, shares in self.learned.items()},
            **({"key_check": self.key_check} if self.key_check else {}),
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote, read back."""
        learned = {str(name): tuple(map(float, shares)) for name, shares in entry["learned"].items()}
        return cls(
            people=str(entry["people"]),
            date=str(entry["date"]),
            checksum=str(entry["manifest"]),
            records=int(entry["records"]),
            sticky=bool(entry["sticky"]),
            columns=columns_from(entry["attributes"]),
            learned=learned,
            key_check=str(entry.get("key_check", "")),
        )


def _summary(column: Column) -> dict[str, Any]:
    """What a reader looks for in a ledger; the mechanism itself stands beside it."""
    if not isinstance(column, Sets):
        return {}
    return {
        "summary": written({"l": column.l, "d": column.threshold, "p": column.mechanism.p, "epsilon": spent(column)})
    }


def spent(column: Sets) -> float | None:
    """The epsilon of one draw, in the worst stratum: infinite at p = 1, None where it is not known."""
    found = [member.mechanism.design.epsilon(member.mechanism.p) for member in column.strata.members]
    known = [value for value in found if value is not None]
    return max(known) if len(known) == len(found) else None


@dataclass(frozen=True, eq=False, repr=False)
class Ledger(Result):
    """What was published about the same people, in the order in which it was recorded."""

    publications: tuple[Publication, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ledger file; a damaged one is noticed here."""
        path = Path(path)
        if not path.is_file():
            raise InvalidInput(
                f"{path}: no ledger here", "begin one with: polyseme ledger add LEDGER RELEASE --people NAME"
            )
        try:
            return cls.from_dict(read_document(path))
        except InvalidInput as error:
            raise InvalidInput(
                Problem(str(path), f"not readable as a ledger: {found.what}", found.hint) for found in error.problems
            ) from None

    def save(self, path: str | Path) -> None:
        """Write the ledger, whole or not at all, in the place of what is there."""
        with whole_file(Path(path), overwrite=True) as partial:
            text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
            partial.write_text(text + "\n", encoding="utf-8")

    def add(self, publication: Publication) -> Self:
        """The ledger with one more release; a release is recorded once for the same people."""
        known = {item.checksum for item in self.about(publication.people)}
        if publication.checksum and publication.checksum in known:
            raise InvalidInput(f"the ledger holds this release about '{publication.people}' already")
        return replace(self, publications=(*self.publications, publication))

    @property
    def people(self) -> tuple[str, ...]:
        """The names of those whom releases are about."""
        return tuple(dict.fromkeys(item.people for item in self.publications))

    def about(self, people: str) -> tuple[Publication, ...]:
        """The releases about these people."""
        return tuple(item for item in self.publications if item.people == people)

    def to_dict(self) -> dict[str, Any]:
        """The document of a ledger file, with a checksum over all of it."""
        document = {"ledger": FORMAT, "releases": [item.to_dict() for item in self.publications]}
        return {**document, "checksum": checksum(document)}

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        if document["ledger"] > FORMAT:
            raise InvalidInput(f"format {document['ledger']} is newer than this program reads ({FORMAT})")
        if checksum({key: document[key] for key in document if key != "checksum"}) != document["checksum"]:
            raise ReleaseError("the checksum does not match", "it was damaged, or changed by hand")
        return cls(tuple(Publication.from_dict(entry) for entry in document["releases"]))

    def __repr__(self) -> str:
        return f"<Ledger of {len(self.publications)} releases about {len(self.people)} groups of people>"

    def __rich__(self) -> RenderableType:
        from polyseme.results.views.record_views import ledger_view

        return ledger_view(self.to_dict())

    def _repr_html_(self) -> str:
        from polyseme.results.views.record_views import ledger_table

        return ledger_table(self.to_dict())


@dataclass(frozen=True)
class Exposure:
    """What all releases about some people tell about one attribute.

    releases   how many published it
    draws      how many independent sets a person has in them: sticky sets that stay the same count once
    epsilon    the sum over the draws: infinite where a set always holds the true value, None where it is not known
    alone      how often only the true value is in all sets
    success    how often an attacker who knows the distribution of the values and has all releases guesses right
    single     the same with the most revealing release alone
    assumed    where that distribution comes from
    intersected  whether several draws that always hold the true value leave fewer candidates than one
    reasons    what else must be said: published as it is elsewhere, other values, sticky sets that changed
    """

    people: str
    attribute: str
    releases: int
    draws: int
    epsilon: float | None
    alone: Between
    success: Between
    single: Between
    assumed: str
    intersected: bool
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """An entry under `exposures` of `ledger show --json`."""
        ranges = {name: [getattr(self, name).low, getattr(self, name).high] for name in ("alone", "success", "single")}
        plain = {name: getattr(self, name) for name in ("people", "attribute", "releases", "draws", "epsilon")}
        said = {"assumed": self.assumed, "reasons": list(self.reasons), "intersected": self.intersected}
        return written({**plain, **ranges, **said})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote, read back."""
        found = restored(document)
        ranges = {name: Between(*map(float, found[name])) for name in ("alone", "success", "single")}
        return cls(**{**found, **ranges, "reasons": tuple(found["reasons"])})

    def _repr_html_(self) -> str:
        from polyseme.results.views.record_views import exposure_table

        return exposure_table({"exposures": [self.to_dict()], "epsilon": {}})


@dataclass(frozen=True, eq=False, repr=False)
class Exposures(Result):
    """What all releases tell together: for each group of people, attribute by attribute."""

    items: tuple[Exposure, ...]

    @property
    def intersected(self) -> tuple[Exposure, ...]:
        """Those whose sets can be intersected."""
        return tuple(item for item in self.items if item.intersected)

    def spent(self, people: str) -> float | None:
        """The sum of the epsilons of the attributes that may lie (p < 1).

        None where one of them is not known.
        """
        found = [item.epsilon for item in self.items if item.people == people]
        return None if None in found else sum(value for value in found if value is not None and isfinite(value))

    def to_dict(self) -> dict[str, Any]:
        """The document of `ledger show --json`, beside the releases."""
        people = dict.fromkeys(item.people for item in self.items)
        return {
            "exposures": [item.to_dict() for item in self.items],
            "epsilon": {name: self.spent(name) for name in people},
        }

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        return cls(tuple(Exposure.from_dict(entry) for entry in document["exposures"]))

    def __repr__(self) -> str:
        return f"<Exposures of {len(self.items)} attributes: {len(self.intersected)} can be intersected>"

    def __rich__(self) -> RenderableType:
        from polyseme.results.views.record_views import exposure_view

        return exposure_view(self.to_dict())

    def _repr_html_(self) -> str:
        from polyseme.results.views.record_views import exposure_table

        return exposure_table(self.to_dict())
