"""The Adult records, as the UCI repository publishes them: `adult.data` and `adult.test`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["records"]


def records(folder: Path) -> list[list[str]]:
    """The rows of both files without unknown values."""
    rows = []
    for name in ("adult.data", "adult.test"):
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.split(",")]
            if len(cells) == 15 and "?" not in cells:
                rows.append(cells)
    return rows
