"""Points that are measured already, one line each in a file of the study, so that a stopped run goes on.

A line that was being written when the run was stopped is no line: the next one begins after it.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from polyseme.studies.reproduce.study import Point, Row, Study

__all__ = ["Measured", "append", "read"]


@dataclass(frozen=True)
class Measured:
    """The rows of one point, and how long they took."""

    rows: tuple[Row, ...]
    seconds: float


def append(file: Path, study: Study, point: Point, measured: Measured) -> None:
    """Add one point."""
    entry = {
        "point": _identity(study, point),
        "seconds": round(measured.seconds, 3),
        "rows": [astuple(row) for row in measured.rows],
    }
    begin = "" if _ends_a_line(file) else "\n"
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"{begin}{json.dumps(entry)}\n")


def _ends_a_line(file: Path) -> bool:
    return not file.exists() or file.read_bytes()[-1:] in (b"", b"\n")


def read(file: Path, study: Study, points: list[Point]) -> dict[Point, Measured]:
    """Those of the points that are measured."""
    wanted = {_identity(study, point): point for point in points}
    found: dict[Point, Measured] = {}
    for entry in _entries(file):
        point = wanted.get(entry["point"])
        if point is not None:
            found[point] = Measured(tuple(Row(*row) for row in entry["rows"]), entry["seconds"])
    return found


def _identity(study: Study, point: Point) -> str:
    """Whatever the numbers depend on."""
    return f"edition {study.edition}, seed {study.seed}: {point.key}"


def _entries(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    entries = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the line that was being written when the run was stopped
        if isinstance(entry, dict) and {"point", "seconds", "rows"} <= entry.keys():
            entries.append(entry)
    return entries
