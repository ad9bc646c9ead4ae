"""Where files are, and which files a folder or a pattern stands for.

Files are on this machine, or in an object store under an address such as `s3://bucket/folder`. Stores are reached
through the file systems of Arrow, and credentials come from the environment. What an address says of keys and options
is never shown.

Files are in the order of their paths, with the values of their partition folders.

Names that begin with `.` or `_` are notes of the programs that wrote a folder (`_SUCCESS`, `_metadata`), and are left
out, unless they are partitions (`_year=2024`). A link that leads nowhere, or to what is there already, is refused:
records would be lost, or counted twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, total_ordering
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.fs

from polyseme.kernel.errors import Problem, TableError

__all__ = [
    "Address",
    "Listed",
    "Place",
    "files_in",
    "files_like",
    "first_bytes",
    "is_address",
    "is_pattern",
    "open_file",
    "place_of",
    "size_of",
]

_ADDRESS = re.compile(r"(file|s3|gs|gcs|az|abfs|abfss)://", re.IGNORECASE)
_ANY_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_REASON = re.compile(r"AWS Error ([A-Z_]+)")
_NEEDED = {
    "s3": (
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"),
        "or AWS_PROFILE; AWS_ENDPOINT_URL for a store that is not Amazon's",
    ),
    "gs": (("GOOGLE_APPLICATION_CREDENTIALS",), "the file with the key of a service account"),
    "az": (("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"), "or an account and az login"),
}
_ALLOWED = "/%:?&=@*+,;!$'()~#"
_PATIENCE = 60
"""Seconds for which requests to a store of Google are repeated; by itself it would be a quarter of an hour."""


@total_ordering
@dataclass(frozen=True)
class Address:
    """A file or folder in a store, with what `Path` has that readers of tables ask for.

    path  the bucket and what is in it
    info  what it is ("File", "Directory", "NotFound") and its bytes, as the store said when its folder was listed
    """

    scheme: str
    path: str
    filesystem: Any = field(repr=False, compare=False)
    info: tuple[str, int] | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}"

    def __lt__(self, other: Address) -> bool:
        return self.path < other.path

    def __truediv__(self, name: str) -> Address:
        return Address(self.scheme, f"{self.path}/{name}", self.filesystem)

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.path).parts

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix

    def above(self, parts: int) -> Address:
        """The folder that the first parts of the path name."""
        return Address(self.scheme, "/".join(self.parts[:parts]), self.filesystem)

    def relative_to(self, folder: Address) -> PurePosixPath:
        return PurePosixPath(self.path).relative_to(folder.path)

    def resolve(self) -> Address:
        return self

    def iterdir(self) -> Iterator[Address]:
        try:
            found = self.filesystem.get_file_info(pa.fs.FileSelector(self.path))
        except (OSError, pa.ArrowException) as error:
            raise _unreachable(self.scheme, str(self), error) from None
        for item in found:
            yield Address(self.scheme, item.path.rstrip("/"), self.filesystem, _info(item))

    @cached_property
    def _kind_and_size(self) -> tuple[str, int]:
        if self.info is not None:
            return self.info
        try:
            return _info(self.filesystem.get_file_info(self.path))
        except (OSError, pa.ArrowException) as error:
            raise _unreachable(self.scheme, str(self), error) from None

    def exists(self) -> bool:
        return self._kind_and_size[0] != "NotFound"

    def is_dir(self) -> bool:
        return self._kind_and_size[0] == "Directory"

    def is_file(self) -> bool:
        return self._kind_and_size[0] == "File"

    @property
    def size(self) -> int:
        return self._kind_and_size[1]


def _info(found: Any) -> tuple[str, int]:
    return str(found.type.name), int(found.size or 0)


Place: TypeAlias = Path | Address


def is_address(name: str) -> bool:
    """Whether a name is an address and not a path; one of an unknown kind is an address too."""
    return _ANY_ADDRESS.match(name) is not None


def place_of(address: str) -> Place:
    """What an address leads to; a path where that is on this machine."""
    if not _ADDRESS.match(address):
        raise TableError(f"{_shown(address)}: no such kind of address", "file://, s3://, gs:// and az:// are read")
    scheme = address.partition(":")[0].lower()
    try:
        filesystem, path = _store(scheme, address)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreachable(scheme, _shown(address), error) from None
    if isinstance(filesystem, pa.fs.LocalFileSystem):
        return Path(path)
    return Address(scheme, path.rstrip("/"), filesystem)


def _store(scheme: str, address: str) -> tuple[Any, str]:
    rest = address.partition("://")[2]
    if scheme == "az":
        account = os.environ.get("AZURE_STORAGE_ACCOUNT", "")
        if not account:
            raise ValueError("no account")
        key = os.environ.get("AZURE_STORAGE_KEY")
        return pa.fs.AzureFileSystem(account_name=account, account_key=key), rest.partition("?")[0]
    if scheme in ("gs", "gcs") and "retry_limit_seconds" not in rest:
        address += f"{'&' if '?' in rest else '?'}retry_limit_seconds={_PATIENCE}"
    # Brackets of a pattern, blanks and the like are not allowed in an address as they are.
    filesystem, path = pa.fs.FileSystem.from_uri(quote(address, safe=_ALLOWED))
    return filesystem, str(path)


def _shown(address: str) -> str:
    """An address without what it says of keys and options."""
    scheme, _, rest = address.partition("://")
    place = rest.partition("?")[0]
    bucket, slash, path = place.partition("/")
    return f"{scheme}://{bucket.rpartition('@')[2] if '@' in bucket else bucket}{slash}{path}"


def _unreachable(scheme: str, shown: str, error: Exception) -> TableError:
    reason = _REASON.search(str(error))
    needed, more = _NEEDED.get({"gcs": "gs", "abfs": "az", "abfss": "az"}.get(scheme, scheme), ((), ""))
    absent = [name for name in needed if name not in os.environ]
    hint = f"not in the environment: {', '.join(absent)} ({more})" if absent else more
    return TableError(f"{shown}: cannot be read{f' ({reason[1]})' if reason else ''}", hint)


def open_file(place: Place) -> Any:
    """The content of a file, as a file of Arrow; Python's own functions can read it too."""
    if isinstance(place, Path):
        return pa.OSFile(str(place))
    try:
        return place.filesystem.open_input_file(place.path)
    except (OSError, pa.ArrowException) as error:
        raise _unreachable(place.scheme, str(place), error) from None


def first_bytes(place: Place, count: int) -> bytes:
    """How a file begins."""
    with open_file(place) as file:
        return bytes(file.read(count))


def size_of(place: Place) -> int:
    """The bytes of a file."""
    return place.stat().st_size if isinstance(place, Path) else place.size


_WILD = frozenset("*?[")
_DEEP = "**"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, Spark and others call the folder of records without a value."""
_HIDDEN = "names that begin with _ or . are skipped"


@dataclass(frozen=True)
class Listed:
    """A file of a table.

    relative    its path inside of the folder, with slashes
    partitions  what the names of its folders say, such as year=2024: column and text; None for no value
    """

    path: Place
    relative: str
    partitions: tuple[tuple[str, str | None], ...] = ()


def is_pattern(name: str) -> bool:
    """Whether a name stands for those of several files."""
    return not _WILD.isdisjoint(name)


def files_in(folder: Place) -> list[Listed]:
    """All files of a folder and of those in it."""
    found = _sorted(folder, _walk(folder, [_DEEP]))
    if not found:
        raise TableError(f"{folder}: no files in this folder", f"a folder of Parquet, Arrow or text files; {_HIDDEN}")
    return found


def files_like(pattern: Place) -> list[Listed]:
    """The files of a pattern: `*`, `?`, `[...]` for parts of a name, `**` for any folders.

    Of a folder that the pattern names, all files count.
    """
    fixed = next(place for place, name in enumerate(pattern.parts) if is_pattern(name))
    folder = Path(*pattern.parts[:fixed]) if isinstance(pattern, Path) else pattern.above(fixed)
    if not folder.is_dir():
        raise TableError(f"{pattern}: there is no folder {folder}", "folders before the first *, ? or [ must exist")
    found = _sorted(folder, _walk(folder, pattern.parts[fixed:]))
    if not found:
        raise TableError(f"{pattern}: no file matches this pattern", f"`**` matches any number of folders; {_HIDDEN}")
    return found


def _sorted(folder: Place, paths: Iterator[Any]) -> list[Listed]:
    relative: dict[str, Place] = {path.relative_to(folder).as_posix(): path for path in paths}
    found = [Listed(relative[name], name, _partitions(name)) for name in sorted(relative)]
    _refuse_repeated(found)
    return found


def _walk(folder: Place, names: Sequence[str], above: tuple[Place, ...] = ()) -> Iterator[Place]:
    """The files in a folder whose paths match these names, and all files below matching folders."""
    above = (*above, _refuse_circle(folder, above))
    name, *rest = names
    if name == _DEEP and rest:
        yield from _walk(folder, rest, above[:-1])
    for path in folder.iterdir():
        if _is_hidden(path.name) or (name != _DEEP and not fnmatchcase(path.name, name)):
            continue
        if path.is_dir():
            yield from _walk(path, names if name == _DEEP else rest or [_DEEP], above)
        elif not path.exists():
            raise TableError(f"{path}: a symbolic link that leads nowhere", "remove it, or give a pattern without it")
        elif path.is_file() and not rest:
            yield path


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and "=" not in name


def _refuse_circle(folder: Place, above: Sequence[Place]) -> Place:
    place = folder.resolve()
    if place in above:
        raise TableError(f"{folder}: a symbolic link that leads back into a folder above it", "remove it")
    return place


def _refuse_repeated(found: Sequence[Listed]) -> None:
    """Raise where links make one file stand in the table more than once."""
    places: dict[Place, str] = {}
    double = []
    for item in found:
        first = places.setdefault(item.path.resolve(), item.relative)
        if first != item.relative:
            double.append(Problem(str(item.path), f"leads to the same file as {first}", "remove the symbolic link"))
    if double:
        raise TableError(double)


def _partitions(relative: str) -> tuple[tuple[str, str | None], ...]:
    folders = (name.partition("=") for name in PurePosixPath(relative).parent.parts if "=" in name)
    return tuple((unquote(key), None if text == _NO_VALUE else unquote(text)) for key, _, text in folders if key)
