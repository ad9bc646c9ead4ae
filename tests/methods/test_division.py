"""The parts of a table that Mondrian cuts in parts: as many as asked for, and each reaches the goal."""

from __future__ import annotations

import numpy as np
import pytest
from draws import seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import among, random_data, skewed_data

import polyseme as ps
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.goal import Goal
from polyseme.methods.mondrian import divided, mondrian, settled

STREAM = SystemStream.seeded(1)


@settings(max_examples=20)
@given(seeds, st.integers(5, 200))
def test_the_tree_is_the_partition(seed, rows):
    data = random_data(seed, rows)
    made = mondrian(data, Goal.of([{"k-anonymity": {"k": 5}}], data), STREAM)
    assert made.showing is not None
    assert np.array_equal(made.showing.cells(data.codes), made.shown[made.classes])


def settled_on(data, goal, division):
    return settled(division, division.parts_of(data.codes), goal)


def test_parts_that_do_not_reach_the_goal_are_joined():
    data = skewed_data(3)
    # A rare value that every class must have: most parts of a blind division lack it.
    goal = Goal.of([{"distinct-diversity": {"l": 5, "attribute": "s"}}], data)
    sample = among(data, np.arange(300))
    first = divided(sample, 60)
    division = settled_on(data, goal, first)
    before, after = len(np.unique(first.parts_of(data.codes))), len(np.unique(division.parts_of(data.codes)))
    assert 1 < after < before
    owner = np.unique(division.parts_of(data.codes), return_inverse=True)[1]
    assert goal.fine(*goal.counted(owner, after)).all()
    # What stayed apart was cut apart before, and what was joined stayed together.
    pairs = np.unique(np.column_stack([first.parts_of(data.codes), division.parts_of(data.codes)]), axis=0)
    assert len(pairs) == before


@pytest.mark.parametrize("parts", [1, 7, 40])
@pytest.mark.parametrize("ordered", [True, False])
def test_parts_are_about_as_many_as_asked_for_and_alike_in_size(parts, ordered):
    data = skewed_data(1)
    division = divided(among(data, np.arange(600)), parts, {ladder.name: ordered for ladder in data.ladders})
    part = division.parts_of(data.codes)
    assert set(np.unique(part)) <= set(division.numbers)
    assert parts <= len(division.numbers) <= 2 * parts
    assert np.bincount(part).max() < 5 * data.rows / parts


def test_a_goal_that_nothing_reaches_is_refused():
    data = skewed_data(3)
    goal = Goal.of([{"entropy-diversity": {"l": 4.9, "attribute": "s"}}], data)
    with pytest.raises(ps.ImpossibleError, match="the whole table as one class, of 3,000 records, does not meet"):
        settled_on(data, goal, divided(among(data, np.arange(300)), 10))
