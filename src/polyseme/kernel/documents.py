"""The one reader of YAML and JSON, for a policy and for every file that a policy names.

A policy may come from elsewhere, so the files it names must be below its own folder, unless the user allows others.

JSON is read strictly: its numbers are finite, and no object has a key twice. Python would read infinity and NaN, which
JSON does not have, and take the last of two equal keys.

A document is read piece by piece, and every problem is collected with its place instead of stopping at the first.
Readers know `$.attributes.age`; places give the line of the file that users look for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from polyseme.kernel.errors import InvalidInput, PolicyError, Problem, ReleaseError, nearest

__all__ = [
    "Folder",
    "Reader",
    "as_folder",
    "content",
    "in_file",
    "is_document",
    "kind_of",
    "once",
    "parse",
    "read_document",
    "read_json",
]

_REMEMBERED = 16
"""Files whose content is remembered: those of one policy, and hardly more."""
_LARGEST = 1 << 24
"""Bytes of a file up to which it is (16 MB)."""


@dataclass(frozen=True)
class Folder:
    """The folder of a policy, and whether the policy may name files that are elsewhere."""

    path: Path
    allow_outside: bool = False

    def file(self, name: Any) -> Path:
        """The file of that name.

        One that is not below the folder is refused before anything is learned of it.
        """
        if not isinstance(name, str):
            raise PolicyError("expected the name of a file")
        file = self.path / name
        try:
            if not self.allow_outside and (Path(name).anchor or not self._holds(file)):
                raise PolicyError(
                    f"'{name}' is outside the policy's folder", "move it next to the policy, or use --allow-outside"
                )
            found = file.is_file()
        except (OSError, ValueError, RuntimeError):  # no name for a file, or links that go round in a circle
            found = False
        if not found:
            raise PolicyError(f"no file '{name}' beside the policy", "file names are relative to the policy's folder")
        return file

    def release(self, name: Any) -> Path:
        """The folder of the release of that name, under the same rule."""
        if not isinstance(name, str):
            raise PolicyError("a release is given by its name")
        return self.file(f"{name}/manifest.json").parent

    def _holds(self, file: Path) -> bool:
        """Whether a file is below the folder, wherever symbolic links lead."""
        return file.resolve().is_relative_to(self.path.resolve())


def as_folder(folder: Folder | Path | str) -> Folder:
    return folder if isinstance(folder, Folder) else Folder(Path(folder))


def content(file: Path) -> bytes:
    """The bytes of a file; as long as it stays as it is, it is opened once, however often it is read."""
    there = file.stat()
    if there.st_size > _LARGEST:
        return file.read_bytes()
    return _content(file, there.st_ino, there.st_mtime_ns, there.st_size)


@lru_cache(_REMEMBERED)
def _content(file: Path, number: int, changed: int, size: int) -> bytes:
    return file.read_bytes()


def read_json(text: str) -> Any:
    """What a JSON text says; `ValueError`, or `RecursionError` where it is nested too deeply.

    >>> read_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> read_json('{"a": 1e999}')
    Traceback (most recent call last):
    ValueError: not a finite number
    >>> read_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: a key is given more than once
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=once)


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its entries; of a key that is written twice no two programs read the same."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given more than once")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def parse(text: str) -> Any:
    """The objects of a YAML text that the user wrote.

    `PolicyError` with the place where it is none.
    """
    from polyseme.kernel.yaml_schema import NotYaml, load

    try:
        return load(text)
    except NotYaml as error:
        if not error.problem:
            hint = "control characters and tags such as !!int are not allowed in a policy"
            raise PolicyError("not valid YAML", hint) from None
        place = "" if error.line is None else f"line {error.line}, column {error.column}"
        raise PolicyError(Problem(place, f"not valid YAML: {error.problem}")) from None


def is_document(file: Path) -> bool:
    return file.suffix.lower() in {".yaml", ".yml", ".json"}


def read_document(file: Path) -> Any:
    """The objects of a YAML or JSON file.

    No message quotes the file: it names the place and nothing else.
    """
    from polyseme.kernel.yaml_schema import load

    kind = "JSON" if file.suffix.lower() == ".json" else "YAML"
    try:
        text = content(file).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        return _json(text) if kind == "JSON" else load(text)
    except (OSError, ValueError, RecursionError) as error:
        raise PolicyError(f"{file.name} cannot be read as {kind}{_line(error)}") from None


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=once)


def _line(error: Exception) -> str:
    line = error.lineno if isinstance(error, json.JSONDecodeError) else getattr(error, "line", None)
    return "" if line is None else f" (line {line})"


_KINDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}


def kind_of(value: object) -> str:
    """A word for the type of a YAML value, for error messages."""
    return _KINDS.get(type(value), type(value).__name__)


class Reader:
    """One place (`$.attributes.age`) in a document.

    Readers of inner places share its list of problems.
    """

    def __init__(self, value: Any, where: str = "$", problems: list[Problem] | None = None) -> None:
        self.value = value
        self.where = where
        self.problems: list[Problem] = [] if problems is None else problems

    def at(self, key: str | int, value: Any) -> Reader:
        """The reader of an inner place."""
        inner = f"{self.where}[{key}]" if isinstance(key, int) else f"{self.where}.{key}"
        return Reader(value, inner, self.problems)

    def problem(self, what: str, hint: str = "") -> None:
        self.problems.append(Problem(self.where, what, hint))

    def adopt(self, error: InvalidInput) -> None:
        """Take over the problems of an error from a lower room, putting this place before theirs."""
        for found in error.problems:
            inner = f"{self.where}.{found.where}" if found.where else self.where
            self.problems.append(replace(found, where=inner))

    def expected(self, what: str) -> None:
        self.problem(f"expected {what}, found {kind_of(self.value)}")

    def mapping(self, known: Collection[str] | None = None) -> Mapping[str, Any]:
        """The value as a mapping; keys that are not known are problems."""
        if not isinstance(self.value, Mapping):
            self.expected("a mapping")
            return {}
        result = {str(key): value for key, value in self.value.items()}
        if known is not None:
            for key in result.keys() - set(known):
                self.at(key, result[key]).problem("unknown key", nearest(key, known))
        return result

    def items(self) -> Iterable[tuple[str, Reader]]:
        """Keys of a mapping with the readers of their values."""
        return [(key, self.at(key, value)) for key, value in self.mapping().items()]

    def elements(self) -> list[Reader]:
        """Readers of the elements of a list."""
        if not isinstance(self.value, list):
            self.expected("a list")
            return []
        return [self.at(index, value) for index, value in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        if isinstance(self.value, str):
            return self.value
        self.expected("text")
        return default

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.expected("true or false")
        return self.value is True

    def choice(self, options: Collection[str], default: str) -> str:
        """The value as one word out of `options`."""
        if isinstance(self.value, str) and self.value in options:
            return self.value
        if isinstance(self.value, str):
            self.problem(f"unknown word '{self.value}'", nearest(self.value, options))
        else:
            self.expected(f"one of: {', '.join(options)}")
        return default


def in_file(error: InvalidInput, file: Path) -> InvalidInput:
    """The same error, in which every place of the policy has its file and its line."""
    if isinstance(error, ReleaseError):  # those places are in a manifest
        return error
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return error
    return type(error)(_placed(problem, file, text) for problem in error.problems)


def _placed(problem: Problem, file: Path, text: str) -> Problem:
    if problem.where.startswith("line "):
        return replace(problem, where=f"{file}, {problem.where}")
    if not problem.where.startswith("$"):
        return problem
    from polyseme.kernel.yaml_schema import line_of

    line = line_of(text, problem.where)
    return replace(problem, where=f"{file}{f', line {line}' if line else ''}: {problem.where}")
