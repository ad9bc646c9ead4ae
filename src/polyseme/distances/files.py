"""Files that a declared distance names, beside the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyseme.distances.paths import read_rows
from polyseme.errors import PolicyError

__all__ = ["document_of", "file_beside", "is_document", "rows_of"]


def file_beside(name: Any, folder: Path) -> Path:
    if not isinstance(name, str):
        raise PolicyError("a file is given by its name")
    file = folder / name
    if not file.is_file():
        raise PolicyError(f"no file '{name}' beside the policy", "file names are relative to the policy's folder")
    return file


def is_document(file: Path) -> bool:
    return file.suffix.lower() in {".yaml", ".yml", ".json"}


def rows_of(file: Path) -> list[list[str]]:
    try:
        return read_rows(file)
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{file.name} cannot be read as UTF-8 text") from error


def document_of(file: Path) -> Any:
    import yaml

    try:
        text = file.read_text(encoding="utf-8-sig")
        return json.loads(text) if file.suffix.lower() == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise PolicyError(f"{file.name} cannot be read as {'JSON' if file.suffix == '.json' else 'YAML'}") from error
