"""Examples 1 to 3 of the journal paper, Equation 12, and Algorithm 1 of the sensitive-QID paper to the letter."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from polyseme.papers import printed
from polyseme.papers.baselines import algorithm_one_as_printed
from polyseme.papers.journal.violation_measured import WHOLE, equation_12
from polyseme.papers.runner import STUDIES
from polyseme.papers.study import Results, Row, Sources, Verdict
from polyseme.semantics.distances.ground import Equal

VALUES = ("<20", "20-30", "30-40", "40-50", "50-60", "60-70", "70-80", "80-90", "90-100", ">100")
DEPTH_3 = ({"<20"}, {"20-30"}, {"30-40", "40-50"}, {"50-60", "60-70"}, {"70-80"}, {"80-90"}, {"90-100"}, {">100"})
DEPTH_1 = (set(VALUES[:6]), set(VALUES[6:]))


def found(where: str) -> dict[str, float]:
    (example,) = [one for one in printed.EXAMPLES if one.where == where]
    return {name: float(number) for name, number in (example.found(Sources()) or {}).items()}


def parents() -> list[dict[str, str]]:
    """Every tree that has the nodes of Example 1: nodes of depth 2 are all ways to part those of depth 3."""
    halves = [[node for node in DEPTH_3 if node <= half] for half in DEPTH_1]
    return [{**left, **right} for left, right in product(*(_groupings(half) for half in halves))]


def _groupings(nodes: list[set[str]]) -> list[dict[str, str]]:
    return [
        {value: f"{min(nodes[0])}{label}" for node, label in zip(nodes, labels) for value in node}
        for labels in product(range(len(nodes)), repeat=len(nodes))
    ]


def test_distances_of_example_3_hold_in_every_tree_of_example_1() -> None:
    """Whatever the nodes of depth 2 are, 30K-40K and 70K-80K meet four steps above 30K-40K, never three."""

    def above(value: str, second: dict[str, str]) -> list[str]:
        node = next(place for place, held in enumerate(DEPTH_3) if value in held)
        own = [f"3:{node}"] if len(DEPTH_3[node]) > 1 else []
        half = next(place for place, held in enumerate(DEPTH_1) if value in held)
        return [*own, f"2:{second[value]}", f"1:{half}", "root"]

    def steps(one: str, other: str, second: dict[str, str]) -> int:
        return next(up for up, node in enumerate(above(one, second), 1) if node in above(other, second))

    trees = [tree for tree in parents() if steps("30-40", "50-60", tree) == 2]
    assert len(trees) > 10
    far = {max(steps("30-40", "70-80", tree), steps("70-80", "30-40", tree)) for tree in trees}
    assert far == {4}
    assert {steps("30-40", "40-50", tree) for tree in trees} == {1}
    assert list(found("journal, Example 3 and Fig. 2").values()) == [1, 2, 4]


def test_the_semilattice_has_the_distances_of_places_and_no_tree_has() -> None:
    """A tree with leaves of one depth makes the two largest of three distances equal; 1, 1 and 2 are not."""
    numbers = found("journal, Example 2 and Fig. 3")
    assert numbers["pairs at distance |i - j| in the semilattice"] == len(list(combinations(range(10), 2)))
    assert numbers["a tree can have these distances"] == 0


def test_likeness_is_the_largest_share_that_the_definition_lets_through() -> None:
    numbers = found("sensitive QIDs, III")
    for share, name in ((0.5, "0.7-like, from 0.5"), (0.01, "0.7-like, from 0.01")):
        tried = np.arange(share, 1.0, 1e-5)
        allowed = tried[(tried - share) / share <= np.minimum(0.7, -np.log(share))]
        assert numbers[name] == pytest.approx(allowed.max(), abs=2e-5)


def test_algorithm_1_to_the_letter_breaks_closeness() -> None:
    """By enumeration of the sets: kappa of section V-C, Bayes by hand, half the sum of absolute differences."""
    prior, t = np.array([3, 2, 3]) / 8, 0.1
    p, eta = algorithm_one_as_printed(prior, t, Equal())
    shown_truth = p + (1 - p) * eta / 3
    inside, outside = shown_truth / comb(2, eta - 1), (1 - shown_truth) / comb(2, eta)
    moved = []
    for shown in combinations(range(3), eta):
        likelihood = np.array([inside if value in shown else outside for value in range(3)])
        posterior = likelihood * prior / (likelihood @ prior)
        moved.append(float(np.abs(posterior - prior).sum() / 2))
    assert min(moved) == pytest.approx(t, abs=1e-9)
    assert sum(far > t + 1e-9 for far in moved) == 2
    assert list(found("sensitive QIDs, Algorithm 1").values()) == [2]


def test_equation_12_is_the_chance_that_one_of_the_records_violates() -> None:
    for rho, records in ((0.3, 3), (0.05, 5)):
        outcomes = product((True, False), repeat=records)
        exact = sum(np.prod([rho if bad else 1 - rho for bad in one]) for one in outcomes if any(one))
        assert equation_12(rho, records) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (1.03, False), (0.97, False)])
def test_whole_databases_fail_a_bound_that_is_too_high_or_too_low(factor: float, holds: bool) -> None:
    """With the full study's 100,000 records a bound off by 3% on either side is found out."""
    study = STUDIES["violation-measured"]
    point = next(p for p in study.points(False, Sources()) if (p["l"], p["d"]) == (3, 2))
    rows = [
        Row.exact(row.panel, row.measure, row.series, row.x, row.value * factor) if row.series == "Equation 12" else row
        for row in study.run(point, Sources())
    ]
    verdict = next(one.verdict for one in study.findings(Results(rows)) if one.claim is WHOLE)
    assert verdict is (Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED)
