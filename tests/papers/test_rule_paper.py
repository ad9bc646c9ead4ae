"""The rule paper's experiment on Adult: classes that lie in one group of occupations, and what merging them costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.methods.microdata import Microdata
from polyseme.papers.rule_paper import ENTROPY, RECURSIVE, prevented, read_adult, vulnerable_classes

NODES = [
    (0, 0, 0, 1, 0, 1, 2),
    (0, 0, 1, 2, 1, 2, 0),
    (0, 1, 0, 0, 0, 2, 1),
    (1, 0, 1, 1, 1, 0, 0),
    (1, 1, 0, 0, 1, 1, 0),
]


@pytest.fixture(scope="module")
def records(adult: Path) -> Microdata:
    return read_adult(adult.parent)


@pytest.mark.parametrize("levels", NODES)
def test_five_nodes_have_the_papers_10_and_20_vulnerable_classes(records, levels):
    assert [vulnerable_classes(records, levels, model) for model in (ENTROPY, RECURSIVE)] == [10, 20]


def test_a_neighbouring_node_has_others(records):
    assert vulnerable_classes(records, (0, 0, 0, 1, 0, 1, 1), ENTROPY) != 10


def test_merging_leaves_none_vulnerable_and_costs_far_less_than_leaving_them_out(records):
    assert records.records == 45_222
    found = prevented(records, NODES[0], RECURSIVE)
    assert (found.classes, found.vulnerable, found.left, found.suppressing) == (1786, 20, 0, 79)
    assert found.least <= found.greedy < 1.05 * found.least
    assert found.loss_after - found.loss == pytest.approx(found.least, abs=1e-6)
    assert found.least < 0.02 * found.suppressing
    assert (found.size, found.size_after) == (pytest.approx(20.971, abs=1e-3), pytest.approx(21.196, abs=1e-3))
    assert (found.cost, found.cost_after) == (2_556_638, 2_557_320)


def test_greedy_is_as_good_as_the_program_where_no_two_classes_want_the_same_partner(records):
    found = prevented(records, NODES[2], RECURSIVE)
    assert found.greedy == pytest.approx(found.least, abs=1e-9)


def test_nothing_is_merged_where_nothing_is_vulnerable(records):
    found = prevented(records, NODES[0], {"entropy-diversity": {"l": 5}})
    assert (found.vulnerable, found.left, found.least) == (0, 0, 0.0)
    assert found.size_after == found.size
