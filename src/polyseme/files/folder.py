"""Files that a policy names.

A policy may come from elsewhere, so the files it names must be below its own folder, unless the user allows others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from polyseme.errors import PolicyError

__all__ = ["Folder", "as_folder", "content"]

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
        """The file of that name; one that is not below the folder is refused before anything is learned of it."""
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
    """The bytes of a file; as long as it stays as it is, it is opened once, however often it is asked for."""
    there = file.stat()
    if there.st_size > _LARGEST:
        return file.read_bytes()
    return _content(file, there.st_ino, there.st_mtime_ns, there.st_size)


@lru_cache(_REMEMBERED)
def _content(file: Path, number: int, changed: int, size: int) -> bytes:
    return file.read_bytes()
