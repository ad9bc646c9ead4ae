"""A release: the published data and a manifest with every public parameter.

The manifest says what each column means, which sets are possible and how likely each is, so that estimation,
verification and other programs need nothing else. It holds no secret: no key, no seed, no row order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from polyseme.designs import design_from, restrict
from polyseme.designs.base import LEAST_SHARE
from polyseme.distances import Distance, distance_from
from polyseme.distances.stored import stored_floats
from polyseme.distances.structure import Clusters, Floats, Structure
from polyseme.errors import InvalidInput, Problem, ReleaseError, nearest
from polyseme.manifests import DAMAGED, FORMAT, MANIFEST, check_document, checksum, read_document
from polyseme.mechanism import Mechanism
from polyseme.schema import Attribute, Bins, Constraint, Domain, Label, Missing, Periods, Protection, Role, Schema
from polyseme.strata import Strata, Stratum, possible_exclusions
from polyseme.tables.codes import label_text
from polyseme.tables.source import CsvSource, FrameSource, ParquetSource, ReleasedCsvSource, Source
from polyseme.version import __version__

__all__ = ["FORMAT", "MANIFEST", "SEEDED", "Manifest", "PublishedAttribute", "Release", "file_digest", "structure_of"]

SEEDED = "made with a seed: not for publication"
"""What is said of a release whose decoys can be recomputed."""


def structure_of(distance: Distance | None, threshold: float | None, size: int) -> Structure:
    """Which values may stand together; without a distance, all of them."""
    if distance is None or threshold is None:
        return Clusters(np.arange(size, dtype=np.int64))
    return distance.structure(threshold)


@dataclass(frozen=True)
class PublishedAttribute:
    """One column of the release, how it was made and what was promised for it.

    repeats  records to a draw, as the design effect counts them: with sticky decoys all records of one person with one
             value have one set, so `n` records tell as much as `n / repeats` independent ones
    posterior  how likely any candidate can be, at most, under the declared prior; infinite where none is promised,
               None where the manifest does not say
    """

    attribute: Attribute
    mechanism: Mechanism | None = None
    threshold: float | None = None
    domain_from_data: bool = False
    restricted: tuple[Stratum, ...] = ()
    repeats: float = 1.0
    posterior: float | None = None

    @cached_property
    def strata(self) -> Strata:
        """All strata, first that of the records to which no constraint applies."""
        if self.mechanism is None:
            raise ReleaseError(f"'{self.name}' is published as it is")
        everything = Stratum((), self.domain.size, self.mechanism)
        return Strata(self.attribute.constraints, (everything, *self.restricted))

    @property
    def name(self) -> str:
        return self.attribute.name

    @property
    def domain(self) -> Domain:
        if self.attribute.domain is None:
            raise ReleaseError(f"'{self.name}' is published as it is and has no declared domain")
        return self.attribute.domain

    def to_dict(self) -> dict[str, Any]:
        """The manifest's entry for it."""
        entry: dict[str, Any] = {"name": self.name, "role": self.attribute.role.value}
        if self.mechanism is None:
            return {**entry, "published": "as-is"}
        entry |= {
            "published": "sets",
            "domain": _domain_to_dict(self.domain, self.domain_from_data),
            "promises": {name: dict(values) for name, values in _promises(self.attribute).items()},
            "mechanism": _mechanism_to_dict(self.mechanism, self.threshold),
        }
        if self.posterior is not None:
            entry["posterior"] = self.posterior if math.isfinite(self.posterior) else None
        if self.attribute.distance is not None:
            entry["distance"] = dict(self.attribute.distance.parameters())
        if self.attribute.constraints:
            entry["impossible"] = [
                {
                    "when": {name: list(texts) for name, texts in item.when.items()},
                    "values": self._labels(item.excluded),
                }
                for item in self.attribute.constraints
            ]
            entry["strata"] = [
                {
                    "excluded": self._labels(item.excluded),
                    "mechanism": _mechanism_to_dict(item.mechanism, self.threshold),
                }
                for item in self.restricted
            ]
        return entry

    def _labels(self, codes: Sequence[int]) -> list[Label]:
        return [self.domain.values[code] for code in codes]

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any], where: str = "$") -> PublishedAttribute:
        """The inverse of `to_dict`; `where` is the entry's place in the manifest."""
        role = Role(entry["role"])
        if entry["published"] == "as-is":
            return cls(Attribute(entry["name"], role))
        with _reading(f"{where}.domain"):
            domain = _domain_from_dict(entry["domain"])
        with _reading(f"{where}.distance"):
            distance = distance_from(entry["distance"], domain.size) if "distance" in entry else None
        made = entry["mechanism"]
        with _reading(f"{where}.mechanism"):
            _check_alike(made, entry)
            structure = structure_of(distance, made["d"], domain.size)
            mechanism = _mechanism_from_dict(made, structure)
        with _reading(f"{where}.impossible"):
            constraints = tuple(
                Constraint({name: tuple(texts) for name, texts in item["when"].items()}, _codes(item["values"], domain))
                for item in entry.get("impossible", ())
            )
            exclusions = possible_exclusions(constraints)
        attribute = Attribute(entry["name"], role, domain, distance, Protection(entry["promises"]), constraints)
        restricted = []
        for number, item in enumerate(entry.get("strata", ())):
            with _reading(f"{where}.strata[{number}].mechanism"):
                _check_alike(item["mechanism"], entry)
                restricted.append(_stratum_from_dict(item, structure, domain))
        with _reading(f"{where}.strata"):
            if ((), *(item.excluded for item in restricted)) != exclusions:
                raise ReleaseError(f"the strata of '{entry['name']}' do not fit its impossible combinations")
        from_data, repeats = entry["domain"]["source"] == "data", entry.get("repeats", 1.0)
        return cls(attribute, mechanism, made["d"], from_data, tuple(restricted), repeats, _posterior(entry))


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
    """All strata draw sets of one size and distance, and there is a d exactly where there is a distance."""
    for key in ("l", "d"):
        if made[key] != entry["mechanism"][key]:
            raise ReleaseError(Problem(key, "not the same as for the records to which no constraint applies"))
    if (made["d"] is None) is ("distance" in entry):
        raise ReleaseError(Problem("d", "there is a d exactly where there is a distance"))


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


def _stratum_from_dict(entry: Mapping[str, Any], structure: Structure, domain: Domain) -> Stratum:
    excluded = _codes(entry["excluded"], domain)
    left, _ = restrict(structure, np.delete(np.arange(domain.size), list(excluded)))
    return Stratum(excluded, domain.size, _mechanism_from_dict(entry["mechanism"], left))


def _codes(labels: Sequence[Label], domain: Domain) -> tuple[int, ...]:
    unknown = [label for label in labels if label not in domain.codes]
    if unknown:
        raise ReleaseError(f"{len(unknown)} impossible values are not in the domain")
    return tuple(sorted(domain.codes[label] for label in labels))


def _promises(attribute: Attribute) -> Mapping[str, Mapping[str, Any]]:
    return attribute.protection.models if attribute.protection else {}


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
    # Promises were made for these public distributions: whoever checks them needs them.
    if domain.prior is not None:
        result["prior"] = domain.prior.tolist()
    if domain.reference is not None:
        result["reference"] = domain.reference.tolist()
        result["reference_source"] = "data" if domain.reference_from_data else "policy"
    return result


def _domain_from_dict(entry: Mapping[str, Any]) -> Domain:
    cut: Bins | Periods | None = None
    if len({label_text(value) for value in entry["values"]}) != len(entry["values"]):
        raise ReleaseError(Problem("values", "a value is listed more than once"))
    if "missing" in entry and entry["missing"] != entry["values"][-1]:
        raise ReleaseError(Problem("missing", "the last value is the one for missing values"))
    if "bins" in entry:
        cut = Bins(_edges(entry["bins"], len(entry["values"]) - ("missing" in entry)))
    if "periods" in entry:
        cut = Periods(entry["periods"])
    missing = Missing("category", entry["missing"]) if "missing" in entry else Missing()
    prior, reference = (_shares(entry, key) for key in ("prior", "reference"))
    if prior is not None and not np.all(prior / prior.sum() >= LEAST_SHARE):
        raise ReleaseError(Problem("prior", "a prior has a share above 0 for every value"))
    from_data = entry.get("reference_source") == "data"
    return Domain(tuple(entry["values"]), entry["ordered"], cut, missing, prior, reference, from_data)


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


def _shares(entry: Mapping[str, Any], key: str) -> Floats | None:
    """A distribution over the domain."""
    if key not in entry:
        return None
    shares = stored_floats(entry[key], key, len(entry["values"]))
    if not 0.0 < shares.sum() < np.inf:
        raise ReleaseError(Problem(key, "the shares do not add up to a number above 0"))
    return shares


@dataclass(frozen=True)
class Manifest:
    """Everything public about a release.

    seeded     whether its random numbers can be recomputed by guessing a seed; None where somebody else drew them
    uncounted  whether the decoys are sticky, but nobody counted the records to a draw (a release of an older program):
               `repeats` is then taken as 1, and intervals are too narrow where people have several records
    """

    attributes: tuple[PublishedAttribute, ...]
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

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise ReleaseError(f"{MANIFEST}: an attribute that stands twice", DAMAGED)
        bare = [item.name for item in self.attributes if item.attribute.role.is_secret and item.mechanism is None]
        if bare:
            raise ReleaseError(
                Problem(f"{MANIFEST}: '{name}'", "sensitive, but published as it is", "no release may hold it")
                for name in bare
            )

    def __getitem__(self, name: str) -> PublishedAttribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise ReleaseError(f"no attribute '{name}' in this release", nearest(name, self.names))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def protected(self) -> tuple[PublishedAttribute, ...]:
        return tuple(attribute for attribute in self.attributes if attribute.mechanism is not None)

    @property
    def schema(self) -> Schema:
        return Schema(tuple(attribute.attribute for attribute in self.attributes))

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON objects, with a checksum over all of it."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "polyseme": __version__,
            "method": self.method,
            "form": self.form,
            "records": self.records,
            "rows": self.rows,
            "dropped": self.dropped,
            "for_publication": None if self.seeded is None else not self.seeded,
            "seeded": self.seeded,
            "sticky": self.sticky,
            "attributes": [self._entry(attribute) for attribute in self.attributes],
            "models": [dict(model) for model in self.models],
            "missing_values": list(self.missing_values),
            "data": dict(self.data),
        }
        return {**document, "checksum": checksum(document)}

    def _entry(self, attribute: PublishedAttribute) -> dict[str, Any]:
        counted = self.sticky and not self.uncounted and attribute.mechanism is not None
        return {**attribute.to_dict(), "repeats": attribute.repeats} if counted else attribute.to_dict()

    def to_json(self) -> str:
        """The text of the manifest file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Manifest:
        """The inverse of `to_dict`; refuses what is damaged or newer than this program."""
        check_document(document)
        _check_repeats(document)
        return cls(
            attributes=_attributes(document["attributes"]),
            records=int(document["records"]),
            rows=int(document["rows"]),
            form=document["form"],
            method=document["method"],
            dropped=int(document["dropped"]),
            seeded=document["seeded"],
            sticky=document["sticky"],
            models=tuple(document["models"]),
            missing_values=tuple(document["missing_values"]),
            data=document["data"],
            uncounted=document["sticky"] and any("repeats" not in entry for entry in _protected(document)),
        )


def _protected(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [entry for entry in document["attributes"] if entry["published"] == "sets"]


def _check_repeats(document: Mapping[str, Any]) -> None:
    """No draw has more records than there are, and draws without a key are all different."""
    most = max(document["records"], 1) if document["sticky"] else 1
    wrong = [entry["name"] for entry in _protected(document) if not 1 <= entry.get("repeats", 1) <= most]
    if wrong:
        raise ReleaseError(
            Problem(f"{MANIFEST}: '{name}'", "more records to a draw than there can be", DAMAGED) for name in wrong
        )


def _attributes(entries: Sequence[Mapping[str, Any]]) -> tuple[PublishedAttribute, ...]:
    """All attributes of a manifest, or all that is wrong with them."""
    attributes: list[PublishedAttribute] = []
    problems: list[Problem] = []
    untouched = {entry["name"] for entry in entries if entry["published"] == "as-is"}
    for number, entry in enumerate(entries):
        where = f"$.attributes[{number}]"
        try:
            attributes.append(PublishedAttribute.from_dict(entry, where))
        except ReleaseError as error:
            problems += error.problems
        if not untouched.issuperset(name for item in entry.get("impossible", ()) for name in item["when"]):
            what = "a condition on an attribute that is not published as it is"
            problems.append(Problem(f"{MANIFEST}: {where}.impossible", what, DAMAGED))
    if problems:
        raise ReleaseError(problems)
    return tuple(attributes)


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Release:
    """Published data with its manifest, in a folder or in memory."""

    manifest: Manifest
    folder: Path | None = None
    table: pa.Table | None = field(default=None, repr=False)

    @classmethod
    def open(cls, folder: str | Path) -> Release:
        """Read a release folder; a changed or truncated one is noticed here."""
        folder = Path(folder)
        path = folder / MANIFEST
        if not path.is_file():
            raise ReleaseError(f"{folder}: no release here (no {MANIFEST})", "make one with: polyseme anonymize")
        manifest = Manifest.from_dict(read_document(path))
        data = folder / manifest.data["file"]
        if not data.is_file():
            raise ReleaseError(f"{folder}: the data file '{data.name}' is missing")
        if file_digest(data) != manifest.data["sha256"]:
            raise ReleaseError(f"{data}: the content does not fit the manifest", "damaged, truncated or tampered with")
        return cls(manifest, folder)

    def __repr__(self) -> str:
        where = f"'{self.folder}'" if self.folder else "in memory"
        protected = ", ".join(attribute.name for attribute in self.manifest.protected)
        mark = f"; {SEEDED}" if self.manifest.seeded else ""
        return f"<Release {where}: {self.manifest.records:,} records, protected: {protected}{mark}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(attribute.name)}</td><td>{attribute.attribute.role.value}</td>"
            f"<td>{'sets of ' + str(attribute.mechanism.l) if attribute.mechanism else 'as it is'}</td></tr>"
            for attribute in self.manifest.attributes
        )
        mark = f" <b>({SEEDED})</b>" if self.manifest.seeded else ""
        head = f"<b>Release</b> of {self.manifest.records:,} records{mark}"
        return f"{head}<table><tr><th>attribute</th><th>role</th><th>published</th></tr>{rows}</table>"

    @property
    def source(self) -> Source:
        """The published data as a stream of batches."""
        if self.table is not None:
            return FrameSource(self.table, "release")
        if self.folder is None:
            raise ReleaseError("a release without data")
        path = self.folder / self.manifest.data["file"]
        if self.manifest.data["format"] == "parquet":
            return ParquetSource(path, [item.name for item in self.manifest.protected])
        if "guard" in self.manifest.data:
            return ReleasedCsvSource(path)
        return CsvSource(path, ",", well_formed=True)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The named columns; sets are list columns of labels, whatever the file format."""
        protected, source = {attribute.name for attribute in self.manifest.protected}, self.source
        absent = [name for name in columns if name not in source.schema.names]
        if absent:
            raise ReleaseError(Problem(source.name, f"no column '{name}'", "run polyseme verify") for name in absent)
        for batch in source.batches(columns):
            if self.manifest.data.get("format") == "csv" and self.manifest.form == "set":
                batch = _parse_sets(batch, [name for name in columns if name in protected])
            yield batch


def _parse_sets(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Set columns of a CSV release, written as JSON arrays, back to lists of labels."""
    for name in columns:
        try:
            lists = [json.loads(text) if text else [] for text in batch.column(name).to_pylist()]
            column = pa.array(lists)
        except (ValueError, pa.ArrowException):
            raise ReleaseError(f"column '{name}': a cell is not a JSON list of candidates") from None
        batch = batch.set_column(batch.schema.get_field_index(name), name, column)
    return batch
