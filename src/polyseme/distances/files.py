"""Files that a policy names: where they may be, and what is said of them when they cannot be used.

A policy may come from somebody else, so the files it names are below its own folder, unless the user allows others.
No message quotes a file: whatever it holds, an error says its name, a line number and what was expected there.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.distances.paths import Row, numbered_rows
from polyseme.errors import PolicyError

__all__ = ["Folder", "as_folder", "document_of", "is_document", "rows_of"]


@dataclass(frozen=True)
class Folder:
    """The folder of a policy, and whether the policy may name files that are elsewhere."""

    path: Path
    allow_outside: bool = False

    def file(self, name: Any) -> Path:
        """The file of that name; one that is not below the folder is refused before anything is learnt of it."""
        if not isinstance(name, str):
            raise PolicyError("a file is given by its name")
        file = self.path / name
        try:
            if not self.allow_outside and (Path(name).anchor or not self._holds(file)):
                raise PolicyError(
                    f"'{name}' is outside the policy's folder", "move it beside the policy, or say --allow-outside"
                )
            found = file.is_file()
        except (OSError, ValueError, RuntimeError):  # no name for a file, or links that go round in a circle
            found = False
        if not found:
            raise PolicyError(f"no file '{name}' beside the policy", "file names are relative to the policy's folder")
        return file

    def _holds(self, file: Path) -> bool:
        """Whether a file is below the folder, wherever symbolic links lead."""
        return file.resolve().is_relative_to(self.path.resolve())


def as_folder(folder: Folder | Path | str) -> Folder:
    return folder if isinstance(folder, Folder) else Folder(Path(folder))


def is_document(file: Path) -> bool:
    return file.suffix.lower() in {".yaml", ".yml", ".json"}


def rows_of(file: Path, marks: str = ";\t,") -> list[Row]:
    """The rows of a CSV file that are not empty, each with the number of its line."""
    try:
        return numbered_rows(file, marks)
    except (OSError, UnicodeDecodeError):
        raise PolicyError(f"{file.name} cannot be read as UTF-8 text") from None
    except csv.Error:
        raise PolicyError(f"{file.name} cannot be read as CSV", "check its quotes") from None


def document_of(file: Path) -> Any:
    """The objects of a YAML or JSON file."""
    import yaml

    kind = "JSON" if file.suffix.lower() == ".json" else "YAML"
    try:
        text = file.read_text(encoding="utf-8-sig")
        return json.loads(text) if kind == "JSON" else yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        # The messages of the readers quote the file, so only the place is taken over.
        raise PolicyError(f"{file.name} cannot be read as {kind}{_line(error)}") from None


def _line(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f" (line {error.lineno})"
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1})" if mark is not None else ""
