"""What a manifest says of the data: one file, or several in a folder, each with its digest.

Several files have one digest together, of the lines `<sha256>  <file>` in their order, as `sha256sum` writes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.errors import Problem, ReleaseError
from polyseme.release.documents import DAMAGED, MANIFEST
from polyseme.tables.io.spreadsheets import GUARD

__all__ = ["FOLDER", "DataFile", "check_data", "data_entry", "data_files", "digests", "file_digest", "require_data"]

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
    """What a manifest says of these files; a single one outside of the folder is named by itself."""
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
    """What is in the folder of the data and not listed, but for names that no reader takes for data."""
    listed = {item.file for item in files}
    names = (path.relative_to(folder).as_posix() for path in (folder / FOLDER).rglob("*") if not path.is_dir())
    return sorted(
        name for name in names if name not in listed and not any(part[0] in "._" for part in name.split("/")[1:])
    )
