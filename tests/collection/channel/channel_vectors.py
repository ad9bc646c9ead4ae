"""The examples of RFC 9180, RFC 9458 and RFC 9474 that Python and JavaScript are held to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["VECTORS", "rfc"]

VECTORS = Path(__file__).parent / "rfc_vectors.json"


def rfc(name: str) -> dict[str, Any]:
    """One example, its hexadecimal texts as bytes."""
    return {key: _bytes(value) for key, value in json.loads(VECTORS.read_text())[name].items()}


def _bytes(value: Any) -> Any:
    return bytes.fromhex(value) if isinstance(value, str) else [_bytes(item) for item in value]
