"""Published values: textbook examples, tables of the papers, results on the Adult data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from polyseme.models import Background, check_models, closeness
from polyseme.tables.classes import Counts, class_of_rows, classes_of

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "adult"
needs_adult = pytest.mark.skipif(not SHARED.exists(), reason="the Adult data are not beside the project")

TABLE_B = pl.DataFrame(
    {
        "age": [41, 41, 51, 51, 51, 51, 51, 51],
        "address": ["13*-17*", "13*-17*", "13*-14*", "13*-14*", "14003", "16005", "14003", "16005"],
        "job": ["*", "*", *["Lawyer"] * 6],
        "disease": ["Fever", "Obesity", "Fever", "Obesity", "HIV", "HIV", "Fever", "Obesity"],
    }
)
TABLE_C = TABLE_B.with_columns(address=pl.Series(["13*-17*"] * 2 + ["13*-16*"] * 6))


def test_ordered_emd_of_the_textbook():
    salaries = np.arange(9)
    classes = np.repeat([0, 1, 2], 3)
    values = np.array([0, 1, 2, 3, 5, 8, 4, 6, 7])
    counts = Counts.from_codes(classes, values, 9)
    assert np.array_equal(np.sort(values), salaries)
    assert closeness.ordered_distances(counts)[:2] == pytest.approx([0.375, 1 / 6])


def test_sensitive_qid_table_is_diverse():
    names = TABLE_B.columns
    specs = [{"frequency-diversity": {"l": l, "attribute": a}} for a, l in zip(names, (1, 1, 1, 2))]
    assert all(v.holds for v in check_models(TABLE_B, names, specs))
    assert [v.checked for v in check_models(TABLE_B, names, specs)] == [8, 5, 8, 4]
    more = [{"frequency-diversity": {"l": 2, "attribute": a}} for a in names[:3]]
    assert not any(v.holds for v in check_models(TABLE_B, names, more))


def test_sensitive_qid_table_is_exactly_a_quarter_close():
    asked = [{"closeness": {"t": t}} for t in (0.25, np.nextafter(0.25, 0))]
    exact, below = check_models(TABLE_C, ["age", "address", "job"], asked, sensitive=["disease"])
    assert exact.holds
    assert exact.worst == 0.25
    assert not below.holds


def generalized(levels: dict[str, int]) -> pl.DataFrame:
    table = pl.read_csv(SHARED / "adult-arx.csv", separator=";", infer_schema=False)
    columns = []
    for name, level in levels.items():
        paths = read_hierarchy(name)
        columns.append(table[name].replace_strict({path[0]: path[level] for path in paths}).alias(name))
    return table.with_columns(columns)


def read_hierarchy(name: str) -> list[list[str]]:
    return [line.split(";") for line in (SHARED / "hierarchies" / f"{name}.csv").read_text().splitlines()]


EIGHT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
NINE = [*EIGHT[:7], "occupation", EIGHT[7]]


@needs_adult
def test_adult_without_generalization():
    classes = classes_of(generalized({}), NINE)
    assert classes.count == 19_502
    assert classes.count / classes.records == 0.6465751607983555
    assert np.mean(np.isin(classes.sizes, 1)) * classes.count / classes.records == pytest.approx(0.5142895033485844)


def below(levels: list[int]) -> list[list[int]]:
    """Every node of the lattice one step less general."""
    return [[*levels[:i], level - 1, *levels[i + 1 :]] for i, level in enumerate(levels) if level]


@needs_adult
@pytest.mark.parametrize(
    ("names", "levels", "specs"),
    [
        (NINE, [1, 2, 1, 1, 3, 2, 2, 1, 1], [{"k-anonymity": {"k": 5}}]),
        (EIGHT, [1, 1, 1, 1, 3, 2, 2, 1], [{"entropy-diversity": {"l": 5}}]),
        (EIGHT, [1, 1, 1, 1, 3, 2, 2, 1], [{"recursive-diversity": {"c": 4, "l": 5}}]),
        (EIGHT, [1, 4, 1, 1, 3, 2, 2, 1], [{"closeness": {"t": 0.2}}, {"k-anonymity": {"k": 5}}]),
        (
            EIGHT,
            [0, 4, 1, 1, 3, 2, 2, 1],
            [{"closeness": {"t": 0.2, "ground": "hierarchical"}}, {"k-anonymity": {"k": 5}}],
        ),
    ],
)
def test_adult_optima_hold_and_are_minimal(names, levels, specs):
    """The published optimum is admissible; as a monotone loss makes it minimal, nothing directly below it is."""
    background = Background(hierarchies={"occupation": read_hierarchy("occupation")})

    def holds(node):
        table = generalized(dict(zip(names, node)))
        return all(v.holds for v in check_models(table, names, specs, sensitive=["occupation"], background=background))

    assert holds(levels)
    assert not any(holds(node) for node in below(levels))


@needs_adult
@pytest.mark.parametrize(
    ("levels", "specs"),
    [
        ([0, 0, 1, 1, 2, 2, 2, 0], [{"closeness": {"t": 0.2, "ground": "ordered"}}, {"k-anonymity": {"k": 5}}]),
        ([0, 0, 1, 1, 2, 2, 2, 1], [{"distinct-diversity": {"l": 5}}]),
    ],
)
def test_adult_optima_with_suppression(levels, specs):
    """Rows of violating classes are at most 4 percent; written as `*` and read again, the rest holds."""
    table = generalized(dict(zip(EIGHT, levels)))
    classes = classes_of(table, EIGHT, ["occupation"])
    counts = classes.attributes["occupation"]
    if "distinct-diversity" in specs[0]:
        bad = counts.distinct < 5
    else:
        bad = (closeness.ordered_distances(counts) > 0.2 + 1e-12) | (classes.sizes < 5)
    assert 0 < classes.sizes[bad].sum() <= 0.04 * table.height
    rows = pl.Series(bad[class_of_rows(table, EIGHT)])
    suppressed = table.with_columns(pl.when(rows).then(pl.lit("*")).otherwise(pl.col(n)).alias(n) for n in EIGHT)
    again = classes_of(suppressed, EIGHT, ["occupation"])
    assert again.suppressed == classes.sizes[bad].sum()
    assert again.records == table.height - again.suppressed
    if "distinct-diversity" in specs[0]:
        assert all(v.holds for v in check_models(suppressed, EIGHT, specs, sensitive=["occupation"]))
