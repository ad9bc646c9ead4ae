"""The one reader of YAML and JSON, for a policy and for every file that a policy names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyseme.errors import PolicyError, Problem
from polyseme.files.folder import content
from polyseme.strict_json import once

__all__ = ["is_document", "parse", "read_document"]


def parse(text: str) -> Any:
    """The objects of a YAML text that the user wrote; `PolicyError` with the place where it is none."""
    from polyseme.files.core_schema import NotYaml, load  # only those who read YAML pay for it

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
    """The objects of a YAML or JSON file. No message quotes the file: it names the place and nothing else."""
    from polyseme.files.core_schema import load

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
