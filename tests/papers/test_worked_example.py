"""The worked example of the journal paper, through the public interface: Tables 8, 9, 10 and Equation 19."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.scrutiny.metrics import compare

GROUPS = [("male", "over 50"), ("female", "over 50"), ("male", "under 50"), ("female", "under 50")]
TRUE = np.array([[120, 50, 10, 20, 30], [80, 60, 30, 10, 20], [50, 30, 110, 100, 90], [20, 20, 40, 40, 70]])
REPORTED = np.array([[143, 72, 60, 86, 99], [108, 70, 65, 64, 93], [188, 108, 155, 130, 179], [83, 62, 73, 57, 105]])
ESTIMATED = np.array(
    [
        [117.8, 52.5, 11.5, 20.5, 27.8],
        [82.9, 60.3, 30.8, 6.3, 19.9],
        [55.1, 27.8, 105.3, 97.8, 94.1],
        [16.9, 18.3, 44.8, 42.3, 67.9],
    ]
)
POLICY = """
attributes:
  gender: {role: quasi-identifier}
  age: {role: quasi-identifier}
  obesity:
    role: sensitive
    domain: [1, 2, 3, 4, 5]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2, mechanism: simple}}
"""


def long_table(counts: np.ndarray) -> pl.DataFrame:
    """One row for each person and value counted in a cell."""
    rows = [
        (gender, age, level + 1)
        for (gender, age), cells in zip(GROUPS, counts)
        for level, count in enumerate(cells)
        for _ in range(count)
    ]
    return pl.DataFrame(rows, schema=["gender", "age", "obesity"], orient="row")


@pytest.fixture(scope="module")
def release() -> ps.Release:
    return ps.adopt(long_table(REPORTED), ps.Policy.loads(POLICY), form="long")


def table_of(estimate: ps.Estimate) -> np.ndarray:
    order = [list(zip(estimate.by["gender"], estimate.by["age"])).index(group) for group in GROUPS]
    return estimate.values[order]


def test_table_9_gives_table_10(release: ps.Release) -> None:
    assert release.manifest.records == 1_000
    estimate = ps.estimate(release, of=["obesity"], by=["gender", "age"], estimator="paper")
    found = table_of(estimate)
    assert np.abs(found - ESTIMATED).max() < 0.06, "the paper rounds to one decimal"
    assert np.allclose(found[0], [117.75, 52.5, 11.5, 20.5, 27.75]), "the exact solution of Equation 4"


def test_the_exact_channel_agrees_at_two_candidates(release: ps.Release) -> None:
    papers = ps.estimate(release, of=["obesity"], by=["gender", "age"], estimator="paper")
    exact = ps.estimate(release, of=["obesity"], by=["gender", "age"], estimator="inverse")
    assert np.allclose(papers.values, exact.values)


def test_equation_19_is_the_mean_over_twenty_cells(release: ps.Release) -> None:
    assert compare(TRUE, ESTIMATED, 1_000)["mse"] == pytest.approx(8.06e-6, abs=6e-9)
    original = long_table(TRUE)
    found = ps.evaluate(release, original, of=["obesity"], by=["gender", "age"], estimator="paper").to_dict()
    assert found["mse"] == pytest.approx(8.06e-6, rel=0.01)


def test_the_baselines_of_equations_20_to_22(release: ps.Release) -> None:
    simple = table_of(ps.estimate(release, of=["obesity"], by=["gender", "age"], estimator="simple"))
    assert np.allclose(simple, REPORTED / 2)
    existing = table_of(ps.estimate(release, of=["obesity"], by=["gender", "age"], estimator="existing"))
    q = 1 / 4
    assert np.allclose(existing, (REPORTED - q * TRUE.sum(axis=1, keepdims=True)) / (1 - q))


def test_adopted_tables_can_be_saved_and_read_again(release: ps.Release, tmp_path) -> None:
    saved = ps.save(release, tmp_path / "r")
    assert saved.manifest.records == 1_000
    assert ps.Release.open(tmp_path / "r").manifest.form == "long"
    with pytest.raises(ps.ReleaseError, match="already"):
        ps.save(saved, tmp_path / "s")


def test_tables_that_cannot_be_adopted() -> None:
    table = long_table(REPORTED)
    with pytest.raises(ps.TableError, match="whole number"):
        ps.adopt(table[:-1], ps.Policy.loads(POLICY), form="long")
    with pytest.raises(ps.TableError, match="a list of candidates"):
        ps.adopt(table, ps.Policy.loads(POLICY), form="set")
