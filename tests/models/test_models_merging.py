"""What becomes of classes that are merged, for every model: on that a search prunes whole parts of its space.

A class is a row of counts. Each model is asked about two classes and about the two together, in the same whole table.
"""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from polyseme.methods.goal import Goal, tally
from polyseme.methods.microdata import Microdata, Sensitive
from polyseme.models import MODELS, Background
from polyseme.semantics.distances.line import LineDistance
from polyseme.semantics.distances.matrix import MatrixDistance
from polyseme.semantics.distances.tree import TreeDistance

VALUES = ("a", "b", "c", "d", "e")
TREE = TreeDistance.from_paths([(v, w, "*") for v, w in zip(VALUES, "xxyyz")])
PATHS = [(v, w, "*") for v, w in zip(VALUES, "xxyyz")]
LINE = LineDistance.ranks(5)


def known(distance):
    return Background(domains={"s": VALUES}, distances={"s": distance}, hierarchies={"s": PATHS})


CASES = {
    "k": ("k-anonymity", {"k": 4}, LINE, "absorbing"),
    "k-map": ("k-map", {"k": 4}, LINE, "absorbing"),
    "alpha-k": ("alpha-k-anonymity", {"alpha": 0.45, "k": 3}, LINE, "additive"),
    "distinct": ("distinct-diversity", {"l": 3}, LINE, "absorbing"),
    "frequency": ("frequency-diversity", {"l": 2.2}, LINE, "additive"),
    "frequency-whole": ("diversity", {"l": 2}, LINE, "additive"),
    "entropy": ("entropy-diversity", {"l": 2.5}, LINE, "additive"),
    "recursive": ("recursive-diversity", {"c": 2, "l": 2}, LINE, "additive"),
    "recursive-3": ("recursive-diversity", {"c": 1.5, "l": 3}, LINE, "additive"),
    "t-equal": ("closeness", {"t": 0.4}, LINE, "additive"),
    "t-ordered": ("closeness", {"t": 0.2, "ground": "ordered"}, LINE, "additive"),
    "t-hierarchical": ("closeness", {"t": 0.3, "ground": "hierarchical"}, LINE, "additive"),
    "beta": ("beta-likeness", {"beta": 0.8}, LINE, "additive"),
    "beta-enhanced": ("beta-likeness", {"beta": 1.5, "enhanced": True}, LINE, "additive"),
    "delta": ("delta-disclosure", {"delta": 1.2}, LINE, "additive"),
    "delta-ignored": ("delta-disclosure", {"delta": 1.2, "absent": "ignored"}, LINE, "neither"),
    "le": ("le-diversity", {"l": 2, "e": 1}, TREE, "neither"),
    "le-frequency": ("le-diversity", {"l": 2, "e": 1, "represented": "frequency"}, TREE, "neither"),
    "strict": ("semantic-diversity", {"l": 2, "d": 2}, LINE, "neither"),
    "exists": ("semantic-diversity", {"l": 2, "d": 2, "reading": "exists"}, LINE, "absorbing"),
    "ld-frequency-tree": ("semantic-diversity", {"l": 2, "d": 2, "reading": "frequency"}, TREE, "additive"),
    "ld-frequency-line": ("semantic-diversity", {"l": 2, "d": 2, "reading": "frequency"}, LINE, "neither"),
    "ld-frequency-graph": (
        "semantic-diversity",
        {"l": 2, "d": 2, "reading": "frequency"},
        MatrixDistance(np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))),
        "neither",
    ),
    "rules": ("semantic-rules", {"rules": [{"never-all": {"s": ["a", "b"]}}]}, LINE, "absorbing"),
    "rules-silent": ("semantic-rules", {"rules": [{"never-all": {"s": ["a", "b"]}}]}, LINE, "additive"),
}

tables = arrays(np.int64, (4, 5), elements=st.sampled_from([0, 0, 1, 1, 2, 3, 6]))


def goal_of(case):
    name, parameters, distance, _ = CASES[case]
    labels = (*VALUES[:3], None, "*") if case == "rules-silent" else VALUES
    s = Sensitive("s", np.arange(5), labels)
    data = Microdata((), np.zeros((5, 0), dtype=np.int64), {"s": s}, np.zeros((5, 0), dtype=np.int64))
    return Goal.of([{name: parameters}], data, known(distance))


def judged(goal, rows, table):
    """Fine, and promising with suppression, for each row of counts; the whole table is the sum of `table`."""
    rows = np.atleast_2d(rows)
    owner, code = np.nonzero(rows)
    counts = {}
    for name, item in goal.sensitive.items():
        found = tally(item, owner, item.codes[code], len(rows), rows.sum(axis=1), rows[owner, code])
        found.total[:] = np.bincount(item.codes, table.sum(axis=0), len(item.labels))
        counts[name] = found
    return goal.judged(rows.sum(axis=1), counts, suppressing=True)


def merged(goal, table):
    """(fine, promising) of the first row, of the second and of both together."""
    one, two = table[0], table[1]
    fine, promising = judged(goal, np.stack([one, two, one + two]), table)
    return tuple(zip(fine.tolist(), promising.tolist()))


def whole(table):
    table[:2] += (table[:2].sum(axis=1, keepdims=True) == 0).astype(np.int64)
    table[3] += 1
    return table


def test_every_model_is_here():
    assert {name for name, *_ in CASES.values()} == set(MODELS)


@pytest.mark.parametrize("case", CASES)
def test_the_declared_behaviour(case):
    goal = goal_of(case)
    assert goal.demands[0].merging == CASES[case][3]
    assert goal.absorbing == (CASES[case][3] == "absorbing")
    assert goal.additive == (CASES[case][3] != "neither")


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=150)
@given(table=tables.map(whole))
def test_merging_keeps_what_it_is_said_to_keep(case, table):
    goal = goal_of(case)
    (fine_one, one), (fine_two, two), (fine_both, both) = merged(goal, table)
    if goal.absorbing:
        assert fine_both or not (fine_one or fine_two)
    if goal.additive:
        assert fine_both or not (fine_one and fine_two)
    # What a relaxation refuses is never fine, and it is absorbing itself.
    assert one or not fine_one
    assert two or not fine_two
    assert both or not (one or two)


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][3] != "absorbing"])
def test_no_more_is_said_than_is_true(case):
    """Some two classes show that an additive model is not absorbing, and one that is neither not additive."""
    goal = goal_of(case)

    def shows_it(table):
        (one, _), (two, _), (both, _) = merged(goal, table)
        return not both and (one and two if CASES[case][3] == "neither" else one or two)

    counts = np.random.default_rng(5).choice([0, 0, 1, 1, 2, 3, 6], (4_000, 4, 5))
    assert any(shows_it(whole(table)) for table in counts)
