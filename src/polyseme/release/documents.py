"""The manifest as a JSON document: reading its text, its schema and its checksum.

What its entries mean is for `release` to say. Its author is not trusted: the checksum only shows that nothing
was damaged on the way.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from polyseme.errors import PolicyError, Problem, ReleaseError
from polyseme.models import read_spec
from polyseme.strict_json import read_json

__all__ = ["DAMAGED", "FORMAT", "MANIFEST", "check_document", "check_entries", "checksum", "read_document"]

FORMAT = 4
"""The newest that is read and written; format 1 has no generalized and no grouped columns, 2 has one data file, and in
3 no group of records shares a set."""
MANIFEST = "manifest.json"
DAMAGED = "damaged or tampered with"
_SHOWN = 12
"""How many places that do not fit the schema are named."""


def read_document(path: Path) -> Any:
    """The JSON in a file; infinite numbers and keys that are written twice are refused like any other damage."""
    try:
        text = path.read_text(encoding="utf-8")
        return read_json(text)
    except (ValueError, RecursionError):
        raise ReleaseError(f"{path}: not readable as JSON", "damaged or truncated") from None


def checksum(document: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest without its checksum; `ValueError` for what cannot be written."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    if "\\ud" in text:
        # Half of a pair of characters is none: no file and no terminal takes it.
        json.dumps(document, ensure_ascii=False).encode()
    return hashlib.sha256(text.encode()).hexdigest()


def check_document(document: Any) -> None:
    """Refuse what is no manifest, is newer than this program, does not fit the schema or was changed."""
    if not isinstance(document, Mapping) or not isinstance(document.get("format"), int):
        raise ReleaseError(f"{MANIFEST}: not a manifest of a release")
    if document["format"] > FORMAT:
        raise ReleaseError(
            f"{MANIFEST}: format {document['format']} is newer than this program reads ({FORMAT})",
            "install a newer polyseme",
        )
    rest = {key: value for key, value in document.items() if key != "checksum"}
    try:
        found = checksum(rest)
    except (ValueError, RecursionError):
        raise ReleaseError(f"{MANIFEST}: not a manifest that polyseme writes", DAMAGED) from None
    misfits = [
        Problem(f"{MANIFEST}: {where}", f"does not match the manifest's schema ({rule})", DAMAGED)
        for where, rule in _misfits(_schema(), document)
    ]
    if misfits:
        raise ReleaseError(misfits)
    if found != document["checksum"]:
        raise ReleaseError(f"{MANIFEST}: the checksum does not match", "the manifest was changed after it was written")
    _check_models(document["models"])


def check_entries(entries: Any) -> None:
    """Refuse columns that are no entries of a manifest, where they stand in another document."""
    schema = _schema()
    alone = {"$defs": schema["$defs"], **schema["properties"]["attributes"]}
    misfits = [
        Problem(where.removeprefix("$"), f"does not match the manifest's schema ({rule})")
        for where, rule in _misfits(alone, entries)
    ]
    if misfits:
        raise ReleaseError(misfits)


def _schema() -> Any:
    return json.loads(resources.files("polyseme").joinpath("manifest.schema.json").read_text(encoding="utf-8"))


def _misfits(schema: Any, document: Any) -> list[tuple[str, str]]:
    """Some of the places that do not fit a schema, each with the rule that it breaks."""
    found = (misfit for error in Draft202012Validator(schema).iter_errors(document) for misfit in _meant(error))
    return [(error.json_path, _rule(error)) for error in itertools.islice(found, _SHOWN)]


def _meant(error: ValidationError) -> Iterator[ValidationError]:
    """An attribute that fits neither form: what is wrong with the form that its `published` names."""
    forms: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        forms.setdefault(inner.schema_path[0], []).append(inner)
    meant = [found for found in forms.values() if not any("published" in inner.path for inner in found)]
    if error.validator != "oneOf" or len(meant) != 1:
        yield error
    else:
        yield from meant[0]


def _rule(error: ValidationError) -> str:
    """The rule of the schema that is broken, without what breaks it."""
    rule = f"{error.validator}: {json.dumps(error.validator_value)}"
    return rule if len(rule) <= 120 else str(error.validator)


def _check_models(models: Sequence[Mapping[str, Any]]) -> None:
    for number, model in enumerate(models):
        try:
            read_spec(model, f"{MANIFEST}: models[{number}]")
        except PolicyError as error:
            raise ReleaseError(error.problems) from None
