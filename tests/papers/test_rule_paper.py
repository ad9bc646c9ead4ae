"""The rule paper's experiment on Adult: classes that lie in one group of occupations, and what merging them costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyseme.methods.microdata import Microdata, Recoding
from polyseme.papers import rule_paper
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


def test_a_neighboring_node_has_others(records):
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


def test_two_releases_are_attacked_by_intersection(records: Microdata) -> None:
    """An attacker who knows both classes of a person keeps the occupations that occur in both."""
    data = records
    first, second = (rule_paper._repaired(data, levels, rule_paper.ENTROPY) for levels in rule_paper.NODES[:2])
    safe = rule_paper.over_time(data, first, second)
    occupations = np.array(data.sensitive["occupation"].labels)[data.sensitive["occupation"].codes]

    def revealed(one: Recoding, other: Recoding) -> int:
        """People whose common candidates lie in one group, counted person by person."""
        seen: list[dict[int, set[str]]] = [{}, {}]
        for release, held in zip((one, other), seen, strict=True):
            for number, value in zip(release.classes.tolist(), occupations.tolist(), strict=True):
                held.setdefault(number, set()).add(value)
        pairs = zip(one.classes.tolist(), other.classes.tolist(), strict=True)
        both = [seen[0][a] & seen[1][b] for a, b in pairs if a >= 0 and b >= 0]
        return sum(any(left <= set(group) for group in rule_paper.GROUPS.values()) for left in both)

    assert revealed(first, first) == 0
    assert revealed(first, second) > 0
    assert revealed(first, safe) == 0
    assert len(safe.shown) > len(second.shown) / 2, "most classes stay"
