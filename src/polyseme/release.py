"""A release: the published data and a manifest with every public parameter.

The manifest says what each column means, which sets are possible and how likely each is, so that estimation,
verification and other programs need nothing else. It holds no secret: no key, no seed, no row order.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa

from polyseme.designs import design_from, restrict
from polyseme.distances import Distance, distance_from
from polyseme.distances.structure import Clusters, Floats, Structure
from polyseme.errors import PolicyError, Problem, ReleaseError, nearest
from polyseme.mechanism import Mechanism
from polyseme.schema import Attribute, Bins, Constraint, Domain, Label, Missing, Periods, Protection, Role, Schema
from polyseme.strata import Strata, Stratum, possible_exclusions
from polyseme.tables.source import CsvSource, FrameSource, ParquetSource, ReleasedCsvSource, Source
from polyseme.version import __version__

__all__ = ["FORMAT", "MANIFEST", "SEEDED", "Manifest", "PublishedAttribute", "Release", "file_digest", "structure_of"]

FORMAT = 1
MANIFEST = "manifest.json"
SEEDED = "made with a seed: not for publication"
"""What is said of a release whose decoys can be recomputed."""
_DAMAGED = "damaged or tampered with"


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
    def from_dict(cls, entry: Mapping[str, Any]) -> PublishedAttribute:
        """The inverse of `to_dict`."""
        role = Role(entry["role"])
        if entry["published"] == "as-is":
            return cls(Attribute(entry["name"], role))
        domain = _domain_from_dict(entry["domain"])
        distance = distance_from(entry["distance"], domain.size) if "distance" in entry else None
        made = entry["mechanism"]
        structure = structure_of(distance, made["d"], domain.size)
        constraints = tuple(
            Constraint({name: tuple(texts) for name, texts in item["when"].items()}, _codes(item["values"], domain))
            for item in entry.get("impossible", ())
        )
        attribute = Attribute(entry["name"], role, domain, distance, Protection(entry["promises"]), constraints)
        restricted = tuple(_stratum_from_dict(item, structure, domain) for item in entry.get("strata", ()))
        if ((), *(item.excluded for item in restricted)) != possible_exclusions(constraints):
            raise ReleaseError(f"{MANIFEST}: the strata of '{entry['name']}' do not fit its impossible combinations")
        mechanism = _mechanism_from_dict(made, structure)
        from_data, repeats = entry["domain"]["source"] == "data", entry.get("repeats", 1.0)
        return cls(attribute, mechanism, made["d"], from_data, restricted, repeats, _posterior(entry))


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
    if made["l"] > structure.size:
        raise ReleaseError(f"{MANIFEST}: sets of more candidates than there are values", _DAMAGED)
    return Mechanism(design_from(made["design"], structure, made["l"], made["parameters"]), made["p"])


def _stratum_from_dict(entry: Mapping[str, Any], structure: Structure, domain: Domain) -> Stratum:
    excluded = _codes(entry["excluded"], domain)
    left, _ = restrict(structure, np.delete(np.arange(domain.size), list(excluded)))
    return Stratum(excluded, domain.size, _mechanism_from_dict(entry["mechanism"], left))


def _codes(labels: Sequence[Label], domain: Domain) -> tuple[int, ...]:
    unknown = [label for label in labels if label not in domain.codes]
    if unknown:
        raise ReleaseError(f"{MANIFEST}: {len(unknown)} impossible values are not in the domain")
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
    if "bins" in entry:
        edges = entry["bins"]
        if None in edges[1:-1]:
            raise ReleaseError(f"{MANIFEST}: bins with an open end in the middle", _DAMAGED)
        first = -np.inf if edges[0] is None else edges[0]
        last = np.inf if edges[-1] is None else edges[-1]
        cut = Bins((first, *edges[1:-1], last))
    if "periods" in entry:
        cut = Periods(entry["periods"])
    if len({str(value) for value in entry["values"]}) != len(entry["values"]):
        raise ReleaseError(f"{MANIFEST}: a domain in which a value stands twice", _DAMAGED)
    missing = Missing("category", entry["missing"]) if "missing" in entry else Missing()
    prior, reference = (_shares(entry, key) for key in ("prior", "reference"))
    from_data = entry.get("reference_source") == "data"
    return Domain(tuple(entry["values"]), entry["ordered"], cut, missing, prior, reference, from_data)


def _shares(entry: Mapping[str, Any], key: str) -> Floats | None:
    """A distribution over the domain."""
    if key not in entry:
        return None
    shares = np.asarray(entry[key], dtype=np.float64)
    if len(shares) != len(entry["values"]) or not 0.0 < shares.sum() < np.inf:
        raise ReleaseError(f"{MANIFEST}: a {key} that is no distribution over its domain", _DAMAGED)
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
            raise ReleaseError(f"{MANIFEST}: an attribute that stands twice", _DAMAGED)
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
        return {**document, "checksum": _checksum(document)}

    def _entry(self, attribute: PublishedAttribute) -> dict[str, Any]:
        counted = self.sticky and not self.uncounted and attribute.mechanism is not None
        return {**attribute.to_dict(), "repeats": attribute.repeats} if counted else attribute.to_dict()

    def to_json(self) -> str:
        """The text of the manifest file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Manifest:
        """The inverse of `to_dict`; refuses what is damaged or newer than this program."""
        _check_document(document)
        _check_repeats(document)
        return cls(
            attributes=tuple(PublishedAttribute.from_dict(entry) for entry in document["attributes"]),
            records=document["records"],
            rows=document["rows"],
            form=document["form"],
            method=document["method"],
            dropped=document["dropped"],
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
            Problem(f"{MANIFEST}: '{name}'", "more records to a draw than there can be", _DAMAGED) for name in wrong
        )


def _finite(text: str) -> float:
    """A number of the manifest; JSON has neither infinity nor NaN, but Python reads both."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _checksum(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _check_document(document: Any) -> None:
    if not isinstance(document, Mapping) or not isinstance(document.get("format"), int):
        raise ReleaseError(f"{MANIFEST}: not a manifest of a release")
    if document["format"] > FORMAT:
        raise ReleaseError(
            f"{MANIFEST}: format {document['format']} is newer than this program reads ({FORMAT})",
            "install a newer polyseme",
        )
    schema = json.loads(resources.files("polyseme").joinpath("manifest.schema.json").read_text(encoding="utf-8"))
    problem = next(iter(jsonschema.Draft202012Validator(schema).iter_errors(document)), None)
    if problem is not None:
        raise ReleaseError(f"{MANIFEST}: {problem.json_path} does not fit the manifest's schema", _DAMAGED)
    rest = {key: value for key, value in document.items() if key != "checksum"}
    try:
        fits = _checksum(rest) == document["checksum"]
    except (ValueError, RecursionError):
        raise ReleaseError(f"{MANIFEST}: no program writes such a manifest", _DAMAGED) from None
    if not fits:
        raise ReleaseError(f"{MANIFEST}: the checksum does not fit", "the manifest was changed after it was written")
    _check_models(document["models"])


def _check_models(models: Sequence[Mapping[str, Any]]) -> None:
    from polyseme.models import read_spec

    for number, model in enumerate(models):
        try:
            read_spec(model, f"{MANIFEST}: models[{number}]")
        except PolicyError as error:
            raise ReleaseError(error.problems) from None


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
        try:
            text = path.read_text(encoding="utf-8")
            document = json.loads(text, parse_constant=_finite, parse_float=_finite)
        except (ValueError, RecursionError):
            raise ReleaseError(f"{path}: not readable as JSON", "damaged or truncated") from None
        manifest = Manifest.from_dict(document)
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
        protected = {attribute.name for attribute in self.manifest.protected}
        for batch in self.source.batches(columns):
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
