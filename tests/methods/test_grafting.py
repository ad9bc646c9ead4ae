"""Parts that are cut by themselves and put together: one tree, which finds the classes of each part and no others."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import among, random_data, skewed_data

import polyseme as ps
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.goal import Goal
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Microdata, Recoding
from polyseme.methods.mondrian import cut_part, divided, grafted, mondrian, settled
from polyseme.methods.mondrian.partition import axes_of

GOALS = (
    [{"k-anonymity": {"k": 4}}, {"distinct-diversity": {"l": 2, "attribute": "s"}}],
    [{"k-anonymity": {"k": 3}}, {"closeness": {"t": 0.4, "attribute": "s"}}],
    [{"entropy-diversity": {"l": 1.8, "attribute": "s"}}],
)
STREAM = SystemStream.seeded(1)


def counted(data):
    """Rows that differ, with how often each occurs."""
    rows = np.column_stack([data.codes, data.sensitive["s"].codes])
    rows, counts = np.unique(rows, axis=0, return_counts=True)
    secret = replace(data.sensitive["s"], codes=rows[:, -1])
    return replace(data, codes=rows[:, :-1], sensitive={"s": secret}, counts=counts)


def in_parts(data, models, sample, parts, ordered=None, halved=True):
    """The table cut in parts: the division, the branch of each part, and the whole."""
    goal = Goal.of(models, data)
    first = divided(among(data, sample), parts, ordered, halved)
    division = settled(first, first.parts_of(data.codes), goal)
    branches = {}
    for number in division.numbers.tolist():
        some = counted(among(data, np.flatnonzero(division.parts_of(data.codes) == number)))
        branch = cut_part(some, Goal.of(models, some), goal.totals(), ordered)
        branches[number] = pickle.loads(pickle.dumps(branch))  # noqa: S301
    made = grafted(division, branches, data.ladders, ordered)
    return division, branches, replace(made, tree=pickle.loads(pickle.dumps(made.tree)))  # noqa: S301


def as_recoding(data, made):
    shown, classes = np.unique(made.tree.cells(data.codes), axis=0, return_inverse=True)
    return Recoding(classes.reshape(-1), shown, made.cells)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    models=st.sampled_from(GOALS),
    share=st.sampled_from([0.05, 0.3, 1.0]),
    parts=st.integers(1, 12),
    ordered=st.booleans(),
    halved=st.booleans(),
)
def test_the_whole_is_its_parts(seed, models, share, parts, ordered, halved):
    data = random_data(seed, rows=120)
    known = {ladder.name: ordered for ladder in data.ladders}
    goal = Goal.of(models, data)
    sample = np.flatnonzero(np.random.default_rng(seed).random(data.rows) < share)
    try:
        division, branches, made = in_parts(data, models, sample, parts, known, halved)
    except ps.ImpossibleError:
        with pytest.raises(ps.ImpossibleError):
            mondrian(data, goal, STREAM, ordered=known)
        return
    nodes = made.tree.nodes(data.codes)
    part = division.parts_of(data.codes)
    assert sum(branch.records for branch in branches.values()) == data.records
    ends = 0
    for number in branches:
        rows = np.flatnonzero(part == number)
        some = among(data, rows)
        alone = Goal.of(models, some)
        # Records are in one class here exactly if they are where the part is a table of its own, compared with the
        # whole one.
        owner = np.unique(nodes[rows], return_inverse=True)[1].reshape(-1)
        branch = cut_part(some, alone, goal.totals(), known)
        assert len(branch.ends) == owner.max() + 1
        if not goal.relative:
            there = mondrian(some, alone, STREAM, ordered=known).classes
            assert len(np.unique(np.column_stack([owner, there]), axis=0)) == owner.max() + 1
        ends += len(branch.ends)
    # No node is in two parts, each meets the goal, compared with the whole table; and so do those that look alike.
    found, owner = np.unique(nodes, return_inverse=True)
    assert len(found) == ends == made.ends
    assert goal.fine(*goal.counted(owner.reshape(-1), len(found))).all()
    whole = as_recoding(data, made)
    assert len(whole.shown) == made.classes <= made.ends
    assert goal.fine(*goal.counted(whole.classes, made.classes)).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), ordered=st.booleans())
def test_one_part_is_the_whole_table(seed, ordered):
    """So it is where no record was drawn for the sample."""
    data = random_data(seed, rows=80)
    known = {ladder.name: ordered for ladder in data.ladders}
    goal = Goal.of(GOALS[0], data)
    try:
        whole = mondrian(data, goal, STREAM, ordered=known)
    except ps.ImpossibleError:
        return
    made = in_parts(data, GOALS[0], np.arange(0), 1, known)[2]
    assert whole.showing is not None
    assert made.classes == len(whole.shown)
    assert [cells.labels for cells in made.cells] == [cells.labels for cells in whole.cells]
    assert np.array_equal(made.tree.cells(data.codes), whole.showing.cells(data.codes))


def test_cells_say_what_they_stand_for():
    data = skewed_data(5)
    made = in_parts(data, GOALS[0], np.arange(0, data.rows, 5), 12)[2]
    shown = made.tree.cells(data.codes)
    for place, cells in enumerate(made.cells):
        assert all(code in cells.leaves[cell] for code, cell in zip(data.codes[:, place], shown[:, place]))
        assert len(set(cells.labels)) == len(cells.labels)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("models", GOALS[:2])
def test_parts_lose_little(ordered, models):
    data = skewed_data(1)
    known = {ladder.name: ordered for ladder in data.ladders}
    whole = mondrian(data, Goal.of(models, data), STREAM, ordered=known)
    sample = np.random.default_rng(2).choice(data.rows, 600, replace=False)
    division, _, made = in_parts(data, models, sample, 12, known)
    assert 6 <= len(division.numbers) <= 24
    lost = Loss("loss").of_recoding(data, as_recoding(data, made))
    assert lost == pytest.approx(Loss("loss").of_recoding(data, whole), rel=0.1)
    # The mean size of a class, within a tenth.
    assert made.classes == pytest.approx(len(whole.shown), rel=0.1)


def test_a_part_is_cut_alike_in_whatever_order_its_rows_come():
    data = counted(skewed_data(6))
    order = np.random.default_rng(1).permutation(data.rows)
    moved = replace(among(data, order), counts=data.counts[order])
    one, two = (cut_part(some, Goal.of(GOALS[0], some), Goal.of(GOALS[0], some).totals()) for some in (data, moved))
    assert pickle.dumps((one.cuts, one.ends, one.extents)) == pickle.dumps((two.cuts, two.ends, two.extents))


def test_a_part_that_does_not_reach_the_goal_is_refused():
    data = skewed_data(3, rows=3)
    with pytest.raises(ps.ImpossibleError, match="does not meet k-anonymity"):
        cut_part(data, Goal.of(GOALS[0], data), Goal.of(GOALS[0], data).totals())


def test_axes_are_those_of_the_ladders_whatever_records_there_are():
    data = skewed_data(2)
    none = Microdata(data.ladders, np.zeros((0, 3), dtype=np.int64))
    assert [type(axis) for axis in axes_of(data, {})] == [type(axis) for axis in axes_of(none, {})]
