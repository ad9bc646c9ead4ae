"""Losses: one number for levels, for recodings and for records."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from small_tables import frame_at, random_data

from polyseme.kernel.errors import PolicyError
from polyseme.methods.losses import LOSSES, SEPARABLE, Loss
from polyseme.methods.microdata import Recoding
from polyseme.scrutiny.metrics.risk import discernibility, entropy_loss


def nodes(data):
    return itertools.product(*(range(ladder.height + 1) for ladder in data.ladders))


def at(data, levels, suppressed=None):
    hidden = np.zeros(data.records, dtype=bool) if suppressed is None else suppressed
    return Recoding.of_levels(data, levels, hidden, None, None)


@pytest.mark.parametrize("name", SEPARABLE)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_levels_and_recodings_agree(name, seed):
    data = random_data(seed)
    loss = Loss(name, {"q0": 3.0})
    costs = loss.of_levels(data)
    for levels in nodes(data):
        expected = sum(cost[level] for cost, level in zip(costs, levels))
        climbed = at(data, levels)
        assert loss.of_recoding(data, climbed) == pytest.approx(expected, abs=1e-9)
        each = [column.sum() for column in loss.of_records(data, climbed)]
        assert each == pytest.approx([cost[level] for cost, level in zip(costs, levels)], abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_no_loss_falls_as_levels_rise(name, seed):
    data = random_data(seed)
    loss = Loss(name)
    costs = loss.of_levels(data) if loss.separable else None

    def value(levels):
        if costs is not None:
            return sum(cost[level] for cost, level in zip(costs, levels))
        return loss.of_sizes(at(data, levels).sizes)

    for levels in nodes(data):
        for place, level in enumerate(levels):
            if level:
                below = (*levels[:place], level - 1, *levels[place + 1 :])
                assert value(below) <= value(levels) + 1e-9


def test_as_in_the_definitions():
    data = random_data(4)
    levels = tuple(1 for _ in data.ladders)
    made = at(data, levels)
    bottom, frame = frame_at(data, [0] * len(levels)).drop("s"), frame_at(data, levels).drop("s")
    assert Loss("entropy").of_recoding(data, made) == pytest.approx(entropy_loss(bottom, frame), rel=1e-12)
    assert Loss("discernibility").of_recoding(data, made) == discernibility(made.sizes)


def test_suppressed_records_are_charged_with_everything():
    data = random_data(4, rows=40)
    hidden = np.arange(40) < 7
    bottom, top = tuple(0 for _ in data.ladders), tuple(ladder.height for ladder in data.ladders)
    made = at(data, bottom, hidden)
    assert Loss("precision").of_recoding(data, at(data, top)) == pytest.approx(1.0)
    assert Loss("precision").of_recoding(data, made) == pytest.approx(7 / 40)
    assert Loss("loss").of_recoding(data, made) == pytest.approx(7 / 40)
    everything = Loss("entropy").of_records(data, at(data, top))
    assert Loss("entropy").of_recoding(data, made) == pytest.approx(sum(column[:7].sum() for column in everything))
    assert Loss("discernibility").of_recoding(data, made) == discernibility(made.sizes, suppressed=7)
    assert Loss("average-class-size").of_recoding(data, made) == 40 / (len(made.sizes) + 1)


def test_what_is_no_loss():
    with pytest.raises(PolicyError, match="did you mean 'entropy'"):
        Loss("entropie")
    with pytest.raises(PolicyError, match="at least 0"):
        Loss("entropy", {"q0": -1.0})
