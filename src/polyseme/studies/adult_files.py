"""The two files of the Adult table (UCI, Census Income 1994): their columns, how many records they hold, their text.

adult.data   32,561 rows, 30,162 of them without an unknown value: the journal and the conference paper
both files   48,842 rows, 45,222 without an unknown value: the papers on sensitive quasi-identifiers and on rules
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from polyseme.errors import InvalidInput

__all__ = ["COLUMNS", "COMPLETE", "FILES", "adult_rows", "records_of"]

FILES = {"adult.data": 32_561, "adult.test": 16_281}
"""The files, and how many records each holds."""
COMPLETE = {"adult.data": 30_162, "adult.test": 15_060}
"""Records without an unknown value."""
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)


def records_of(file: Path) -> list[list[str]]:
    """The cells of each record, without blanks and without the dot that ends a line of adult.test."""
    lines = file.read_text(encoding="utf-8").splitlines()
    cells = ([cell.strip().rstrip(".") for cell in line.split(",")] for line in lines)
    return [row for row in cells if len(row) == len(COLUMNS)]


@lru_cache(maxsize=4)
def adult_rows(folder: Path, both: bool = False, complete: bool = True) -> dict[str, np.ndarray]:
    """The records, column by column, as text.

    both      of both files, or of adult.data alone
    complete  only those without an unknown value
    """
    names = list(FILES) if both else ["adult.data"]
    rows = [row for name in names for row in records_of(folder / name) if not complete or "?" not in row]
    expected = sum((COMPLETE if complete else FILES)[name] for name in names)
    if len(rows) != expected:
        raise InvalidInput(f"{folder}: {len(rows):,} records remain, where {expected:,} were published")
    return {name: np.array(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}
