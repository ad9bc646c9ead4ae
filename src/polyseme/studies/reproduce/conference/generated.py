"""The conference paper's two generated tables: diseases by ICD chapter (its Figures 3 and 5), incomes (4 and 6).

Neither table is published, nor is the patient survey that the diseases follow part of the paper. Both are invented
here: incomes as in `studies/income.py`, diseases here. Values of the latter are blocks of ICD-10, three of each of the
chapters I to XIX, at distance 1 within a chapter and 2 between chapters; charts show the 19 chapters, as the paper's
do. Chapters have a level and a slope with age, and some are for women or for children mostly.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from polyseme.arrays import Floats
from polyseme.distances import TreeDistance
from polyseme.distances.taxonomies.taxonomy import Node, load_taxonomy
from polyseme.randomness import SystemStream, experiment
from polyseme.studies.reproduce.coded import Coded, income
from polyseme.studies.reproduce.intervals import mean_row
from polyseme.studies.reproduce.pipelines import (
    EX,
    OURS,
    mechanism_or_none,
    most_likely,
    our_mechanism,
    paper_tables,
    squared_error,
)
from polyseme.studies.reproduce.study import Row

__all__ = ["DISEASES", "INCOME", "MSE", "ORIGINAL", "PEOPLE", "SHOWN", "compared", "generated_rows", "histogram_panels"]

DISEASES, INCOME, ORIGINAL = "diseases", "income in million yen", "original"
MSE, PEOPLE = "MSE", "people"
NAMES = {"Ex-Proposal": "Proposal", "Ex-Existing": "Existing", "Ex-Simple": "Simple"}
SHOWN = {DISEASES: (2, 2), INCOME: (2, 3)}
"""The setting of the histograms: the paper names none for them; its example of incomes has d = 3 million yen."""
_CHAPTERS, _BLOCKS, _BANDS = 19, 3, 9
_SEXES = ("men", "women")
_WOMEN, _NEWBORN = "XV", "XVI"


@lru_cache(maxsize=2)
def diseases(records: int) -> Coded:
    """Invented diseases of people of all ages."""
    taxonomy = load_taxonomy("icd10")
    chapters = [node.code for node in taxonomy.children()][:_CHAPTERS]
    paths = [(block.code, chapter) for chapter in chapters for block in _blocks(chapter)]
    generator = experiment(3)
    shares = _shares(chapters, generator)
    cell = generator.integers(len(shares), size=records)
    chapter = (generator.random(records)[:, None] > np.cumsum(shares, axis=1)[cell]).sum(axis=1)
    first = [next(place for place, path in enumerate(paths) if path[1] == name) for name in chapters]
    many = [sum(path[1] == name for path in paths) for name in chapters]
    within = np.minimum(generator.geometric(0.5, records) - 1, np.array(many)[chapter] - 1)
    groups = tuple(f"{10 * band}-{10 * band + 9}, {sex}" for band in range(_BANDS) for sex in _SEXES)
    labels = tuple(path[0] for path in paths)
    return Coded(DISEASES, np.array(first)[chapter] + within, cell, labels, groups, TreeDistance.from_paths(paths))


def _blocks(chapter: str) -> tuple[Node, ...]:
    return load_taxonomy("icd10").children(chapter)[:_BLOCKS]


def _shares(chapters: list[str], generator: np.random.Generator) -> Floats:
    """Shares of the chapters for each age and sex: (cells, chapters)."""
    level, slope = generator.normal(0.0, 0.8, len(chapters)), generator.normal(0.0, 0.25, len(chapters))
    ages = np.repeat(np.arange(_BANDS), len(_SEXES))
    weight = np.exp(level + slope * (ages[:, None] - _BANDS / 2))
    woman = np.tile([False, True], _BANDS)
    weight[~woman | (ages < 1) | (ages > 4), chapters.index(_WOMEN)] = 0.0
    weight[ages > 0, chapters.index(_NEWBORN)] = 0.0
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def compared(table: Coded, l: int, d: float, repeats: int, stream: SystemStream) -> dict[str, list[Floats]]:
    """The tables that each analysis makes of sets of Algorithm 1, and ours of its own."""
    simple, ours = mechanism_or_none("simple", table.distance.structure(d), l), our_mechanism(table.distance, l, d)
    if simple is None or ours is None:
        raise ValueError("sets of this size at this distance exist for every value")
    found: dict[str, list[Floats]] = {}
    for _ in range(repeats):
        made = paper_tables(EX, table, simple, simple.sample(table.codes, stream))
        tables = {NAMES[name]: estimate for name, estimate in made.items()}
        tables[OURS] = most_likely(table, ours, ours.sample(table.codes, stream))
        for name, estimate in tables.items():
            found.setdefault(name, []).append(estimate)
    return found


def generated_rows(data: str, records: int, l: int, d: int, repeats: int, stream: SystemStream) -> list[Row]:
    """Errors of one setting, and the histogram where it is the one that is shown."""
    table = diseases(records) if data == DISEASES else income(records, yen=True)
    found = compared(table, l, d, repeats, stream)
    over = "d = 2, over l" if data == DISEASES else "l = 2, over d"
    rows = [
        mean_row(
            f"{data}, {over}", MSE, name, l if data == DISEASES else d, [squared_error(table, one) for one in made]
        )
        for name, made in found.items()
    ]
    return rows + (_bars(table, data, found) if (l, d) == SHOWN[data] else [])


def histogram_panels(data: str) -> list[str]:
    return [f"{data} at ({SHOWN[data][0]}, {SHOWN[data][1]}), {sex}" for sex in _SEXES]


def _bars(table: Coded, data: str, found: dict[str, list[Floats]]) -> list[Row]:
    """Sums over ages, for men and for women; diseases by chapter."""
    rows, names, merge = [], *_merged(table, data)
    for sex, panel in zip(_SEXES, histogram_panels(data), strict=True):
        cells = [place for place, group in enumerate(table.groups) if group.endswith(f", {sex}")]
        rows += [
            Row.exact(panel, PEOPLE, ORIGINAL, name, float(many))
            for name, many in zip(names, table.counts()[cells].sum(axis=0) @ merge, strict=True)
        ]
        for series, made in found.items():
            sums = np.array([one[cells].sum(axis=0) @ merge for one in made])
            rows += [
                mean_row(panel, PEOPLE, series, name, sums[:, place], least=None) for place, name in enumerate(names)
            ]
    return rows


def _merged(table: Coded, data: str) -> tuple[list[str], Floats]:
    """The names along the chart, and which values each of them sums."""
    if data != DISEASES:
        return list(table.labels), np.eye(table.size)
    chapter = [load_taxonomy("icd10").nodes[label].parent for label in table.labels]
    names = list(dict.fromkeys(chapter))
    return names, np.array([[float(name == own) for name in names] for own in chapter])
