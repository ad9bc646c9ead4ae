"""What `--force` may replace: a file of the kind that the command writes, or an empty one; never a user's table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["is_explanation", "is_hierarchy", "is_policy", "is_prior"]


def is_policy(file: Path) -> bool:
    """Whether a file reads as a policy: YAML that says something of attributes."""
    from polyseme.files.core_schema import NotYaml, load

    try:
        document = load(file.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, NotYaml):
        return False
    if document is None:
        return _is_empty(file)
    return isinstance(document, Mapping) and not {"attributes", "protect-all-but"}.isdisjoint(document)


def is_hierarchy(file: Path) -> bool:
    """Whether every line of a file goes from a value up to the same root."""
    rows = _rows(file)
    widths, roots = {len(cells) for cells in rows}, {cells[-1] for cells in rows}
    return _is_empty(file) or (len(widths) == 1 and min(widths) > 1 and len(roots) == 1)


def is_prior(file: Path) -> bool:
    """Whether a file has the header of a prior."""
    rows = [cells for cells in _rows(file) if not cells[0].startswith("#")]
    return _is_empty(file) or (bool(rows) and rows[0][-1] == "people")


def is_explanation(file: Path) -> bool:
    """Whether a file has the header of an explanation."""
    from polyseme.results.explanation import HEAD

    rows = _rows(file)
    return _is_empty(file) or (bool(rows) and tuple(rows[0][-len(HEAD) :]) == HEAD)


def _is_empty(file: Path) -> bool:
    return file.stat().st_size == 0


def _rows(file: Path) -> list[list[str]]:
    """The records of a CSV file; none where it is something else."""
    from polyseme.errors import InvalidInput
    from polyseme.files.delimited import read_rows

    try:
        return [cells for _, cells in read_rows(file)]
    except InvalidInput:
        return []
