"""Which files a folder or a pattern stands for, in the order of their paths, and what their folders say of them.

Names that begin with `.` or `_` are notes of the programs that wrote a folder (`_SUCCESS`, `_metadata`), and are left
out, unless they are partitions (`_year=2024`). A link that leads nowhere, or to what is there already, is refused:
records would be lost, or counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from polyseme.errors import Problem, TableError
from polyseme.tables.io.places import Place

__all__ = ["Listed", "files_in", "files_like", "is_pattern"]

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
    """The files of a pattern: `*`, `?` and `[...]` stand for parts of a name, `**` for any folders.

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
    """The files whose paths in a folder are like these names, and all below a folder whose path is."""
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
