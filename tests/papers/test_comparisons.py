"""The study of comparisons: the pipeline's exact error against simulation, and rules that can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream
from polyseme.papers.comparisons import COSTS, STUDY, pipeline_error
from polyseme.papers.study import Results, Sources, Verdict
from polyseme.semantics.distances import LineDistance


@pytest.mark.parametrize(("size", "l", "d"), [(9, 2, 2), (10, 3, 2)])
def test_the_exact_error_of_the_pipeline_is_what_simulated_tables_have(size: int, l: int, d: int) -> None:
    """Equation 2 by hand, counts of simulated sets, equations solved: the mean over 300 tables."""
    mechanism = Mechanism(make_design("simple", LineDistance.ranks(size).structure(d), l))
    counts = np.linspace(300, 30, size).astype(int)
    codes, records = np.repeat(np.arange(size), counts), int(counts.sum())
    far = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) >= d
    matrix = np.eye(size) + far * ((l - 1) / far.sum(axis=1))[:, None]
    stream, squares = SystemStream.seeded(4), []
    for _ in range(300):
        seen = np.bincount(mechanism.sample(codes, stream).ravel(), minlength=size)
        estimate = np.linalg.solve(matrix.T, seen)
        squares.append((((estimate - counts) / records) ** 2).mean())
    error, half = np.mean(squares), 4 * np.std(squares) / np.sqrt(len(squares))
    exact = pipeline_error(mechanism, counts / records, records)
    assert abs(exact - error) < half
    assert half < 0.25 * exact, "narrow enough to find an error of a quarter"


def test_a_price_is_found_where_there_is_one() -> None:
    rows = STUDY.run(STUDY.points(True, Sources())[0], Sources())
    verdicts = {}
    for factor in (1.0, 20.0, 2_000.0):
        dearer = [replace(row, value=row.value * factor) if row.measure.startswith("error") else row for row in rows]
        finding = next(one for one in STUDY.findings(Results(dearer)) if one.claim is COSTS)
        verdicts[factor] = finding.verdict
    assert list(verdicts.values()) == [Verdict.REPRODUCED, Verdict.IN_PART, Verdict.NOT_REPRODUCED]
