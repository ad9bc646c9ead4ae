from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyseme.tables.distinct import TAIL_BITS, Tallied, Tally, mixed


@pytest.mark.parametrize("held", [100, 50_000, 1 << 30])
def test_counts_do_not_depend_on_what_is_held_in_memory(tmp_path: Path, held: int) -> None:
    rng = np.random.default_rng(1)
    prints = rng.integers(0, 1 << 64, 3_000, dtype=np.uint64)[rng.integers(0, 3_000, 20_000)]
    tally = Tally(tmp_path, held)
    for part in np.array_split(prints, 13):
        tally.add(part)
        assert tally._bytes <= held
    assert bool(list(tmp_path.iterdir())) is (held < 160_000)
    sizes = np.unique(prints, return_counts=True)[1]
    counted = tally.count()
    assert (counted.total, counted.distinct, counted.squares) == (20_000, len(sizes), int((sizes**2).sum()))
    tails = np.unique(np.unique(prints) >> np.uint64(TAIL_BITS), return_counts=True)[1]
    assert (counted.heads, counted.several) == (len(tails), int((tails > 1).sum()))
    assert not list(tmp_path.iterdir())


def test_nothing_is_counted_as_nothing(tmp_path: Path) -> None:
    assert Tally(tmp_path).count() == Tallied()


def test_mixed_fingerprints_tell_sets_and_people_apart() -> None:
    people, codes = np.meshgrid(np.arange(300, dtype=np.uint64), np.arange(300))
    rows = np.stack([codes.ravel(), codes.ravel()[::-1]], axis=1)
    prints = mixed(people.ravel(), rows)
    assert len(np.unique(prints)) == 90_000
    assert np.array_equal(prints, mixed(people.ravel(), rows))
    assert np.array_equal(people.ravel()[:5], np.arange(5, dtype=np.uint64)), "what was given is left as it was"
