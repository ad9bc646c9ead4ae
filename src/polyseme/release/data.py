"""The data of a release as its manifest describes it, and the manifest as a JSON document.

What its entries mean is for `release` to say. Its author is not trusted: the checksum only shows that nothing
was damaged on the way.

The data are one file, or several in a folder, each with its digest.

Several files have one digest together, of the lines `<sha256>  <file>` in their order, as `sha256sum` writes them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.kernel.documents import read_json
from polyseme.kernel.errors import PolicyError, Problem, ReleaseError
from polyseme.models import read_spec
from polyseme.tables.io.workbooks import GUARD

if TYPE_CHECKING:
    from jsonschema import ValidationError

__all__ = [
    "DAMAGED",
    "FOLDER",
    "FORMAT",
    "MANIFEST",
    "DataFile",
    "check_data",
    "check_document",
    "check_entries",
    "checksum",
    "data_entry",
    "data_files",
    "digests",
    "file_digest",
    "read_document",
    "require_data",
]

FORMAT = 4
"""The newest that is read and written; format 1 has no generalized and no grouped columns, 2 has one data file, and in
3 no group of records shares a set."""
MANIFEST = "manifest.json"
DAMAGED = "damaged or tampered with"
_SHOWN_DOCUMENTS = 12
"""How many places that do not fit the schema are named."""


def read_document(path: Path) -> Any:
    """The JSON in a file; infinite numbers and repeated keys are refused like other damage."""
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
    """Refuse what is no manifest, is too new, does not fit the schema or was changed."""
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
    return json.loads(resources.files("polyseme.release").joinpath("manifest.schema.json").read_text(encoding="utf-8"))


def _misfits(schema: Any, document: Any) -> list[tuple[str, str]]:
    """Some of the places that do not fit a schema, each with the rule that it breaks."""
    from jsonschema import Draft202012Validator

    found = (misfit for error in Draft202012Validator(schema).iter_errors(document) for misfit in _meant(error))
    return [(error.json_path, _rule(error)) for error in itertools.islice(found, _SHOWN_DOCUMENTS)]


def _meant(error: ValidationError) -> Iterator[ValidationError]:
    """The problem of an attribute that fits neither form, judged by its `published`."""
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


FOLDER = "data"
"""Where several files are."""
_SHOWN = 12
"""Files that are named, of those with problems."""
_THREADS = 2


@dataclass(frozen=True)
class DataFile:
    """A file of a release.

    file  its path in the folder of the release, with slashes
    rows  how many it has; None where the manifest does not say, because it is the only one
    """

    file: str
    sha256: str
    rows: int | None = None


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of files, two at a time."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(file_digest, paths))


def data_files(data: Mapping[str, Any]) -> tuple[DataFile, ...]:
    """The files that a manifest names."""
    if "files" in data:
        return tuple(DataFile(item["file"], item["sha256"], item["rows"]) for item in data["files"])
    return (DataFile(data["file"], data["sha256"]),)


def data_entry(files: Sequence[DataFile], file_format: str) -> dict[str, Any]:
    """What a manifest says of these files; a single one outside the folder stands by its name."""
    if len(files) == 1 and "/" not in files[0].file:
        entry: dict[str, Any] = {"file": files[0].file, "format": file_format, "sha256": files[0].sha256}
    else:
        listed = [{"file": item.file, "rows": item.rows, "sha256": item.sha256} for item in files]
        entry = {"files": listed, "format": file_format, "sha256": _together(files)}
    return {**entry, "guard": GUARD} if file_format == "csv" else entry


def _together(files: Iterable[DataFile]) -> str:
    lines = "".join(f"{item.sha256}  {item.file}\n" for item in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def check_data(data: Mapping[str, Any], rows: int) -> None:
    """Raise where a manifest contradicts itself about its files."""
    if "files" not in data:
        return
    files = data_files(data)
    problems = []
    if len({item.file for item in files}) < len(files):
        problems.append(Problem(f"{MANIFEST}: $.data.files", "a file is listed more than once", DAMAGED))
    if _together(files) != data["sha256"]:
        problems.append(Problem(f"{MANIFEST}: $.data.sha256", "not the digest of the files that are listed", DAMAGED))
    if sum(item.rows or 0 for item in files) != rows:
        problems.append(Problem(f"{MANIFEST}: $.data.files", "not as many rows as the release has", DAMAGED))
    if problems:
        raise ReleaseError(problems)


def require_data(folder: Path, data: Mapping[str, Any]) -> None:
    """Raise unless all data is there as it was written, and nothing else in its place."""
    files = data_files(data)
    there = [item for item in files if (folder / item.file).is_file()]
    found = dict(zip(there, digests([folder / item.file for item in there])))
    owners = {item.sha256: item.file for item in files}
    problems = [
        *(_missing(folder, item, len(files)) for item in files if item not in found),
        *(_changed(folder, item, owners.get(sha256)) for item, sha256 in found.items() if sha256 != item.sha256),
        *(_extra(folder / name) for name in (_others(folder, files) if "files" in data else ())),
    ]
    if problems:
        more = len(problems) - _SHOWN
        last = (
            [Problem(str(folder), f"{more:,} more files are missing, changed or not in the manifest")]
            if more > 0
            else []
        )
        raise ReleaseError([*problems[:_SHOWN], *last])


def _missing(folder: Path, item: DataFile, files: int) -> Problem:
    which = f"one of {files:,} data files" if files > 1 else "the data file"
    return Problem("", f"{folder}: {which}, '{item.file}', is missing", "copy the release again, with all its files")


def _changed(folder: Path, item: DataFile, owner: str | None) -> Problem:
    if owner is not None:
        hint = f"it has the content of {owner}: files were renamed or exchanged"
    else:
        hint = "damaged, truncated or tampered with"
    return Problem("", f"{folder / item.file}: the content does not match the manifest", hint)


def _extra(path: Path) -> Problem:
    return Problem("", f"{path}: not in the manifest", "programs that read the folder would read it too: remove it")


def _others(folder: Path, files: Sequence[DataFile]) -> list[str]:
    """Files in the data folder that are not listed, except names that no reader takes for data."""
    listed = {item.file for item in files}
    names = (path.relative_to(folder).as_posix() for path in (folder / FOLDER).rglob("*") if not path.is_dir())
    return sorted(
        name for name in names if name not in listed and not any(part[0] in "._" for part in name.split("/")[1:])
    )
