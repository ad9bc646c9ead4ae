from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from draws import replications
from scipy import stats

from polyseme.kernel.randomness import StreamKey
from polyseme.tables.io import shuffle
from polyseme.tables.io.shuffle import Shuffler

KNOWN = pytest.mark.parametrize("known", [True, False], ids=["of known size", "of any size"])


def shuffled(rows: int, folder: Path, seed: int, memory: int, known: bool = True) -> list[int]:
    table = pa.table({"a": np.arange(rows), "b": pa.array([str(n) for n in range(rows)]).dictionary_encode()})
    streams = StreamKey.seeded(seed).partitions()
    with Shuffler(streams, folder, memory, rows if known else None) as shuffler:
        for batch in table.to_batches(max_chunksize=3):
            shuffler.add(batch)
        result = pa.concat_tables(shuffler.tables())
    assert [str(n) for n in result["a"].to_pylist()] == result["b"].to_pylist()
    return result["a"].to_pylist()


@KNOWN
def test_every_row_comes_back_once_and_nothing_is_left(tmp_path: Path, known: bool) -> None:
    for rows, memory in ((50, 1), (1_000, 2_000), (1_000, 1 << 20)):
        found = shuffled(rows, tmp_path, 1, memory, known)
        assert sorted(found) == list(range(rows))
        assert found != list(range(rows))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@KNOWN
def test_every_order_is_equally_likely_also_through_files(tmp_path: Path, known: bool) -> None:
    for memory in (1, 1 << 20):
        seen = Counter(tuple(shuffled(4, tmp_path, seed, memory, known)) for seed in replications(4_800))
        assert len(seen) == 24
        assert stats.chisquare(list(seen.values())).pvalue > 1e-4


@pytest.mark.parametrize(
    "memory", [pytest.param(100, marks=pytest.mark.slow, id="through files"), pytest.param(1 << 20, id="in memory")]
)
def test_a_row_may_end_up_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int) -> None:
    """Neighbors in the table: how far apart they are tells whether parts are drawn, and rows within them."""
    monkeypatch.setattr(shuffle, "_PART_ROWS", 16)
    rows, runs = 64, 60
    apart = []
    for seed in replications(runs):
        place = np.argsort(shuffled(rows, tmp_path, seed, memory))
        apart.extend(np.abs(np.diff(place)).tolist())
    # Two different places out of n are k apart with probability 2 (n - k) / (n (n - 1)).
    gaps = np.arange(rows)
    expected = np.where(gaps > 0, 2 * (rows - gaps) / (rows * (rows - 1)), 0.0) * len(apart)
    found = np.bincount(apart, minlength=rows)
    assert stats.chisquare(found.reshape(-1, 8).sum(axis=1), expected.reshape(-1, 8).sum(axis=1)).pvalue > 1e-2


def test_a_seed_gives_the_same_order_in_any_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = []
    for threads in (1, 3):
        monkeypatch.setattr("polyseme.tables.io.shuffle._cores", lambda threads=threads: threads)
        orders.append(shuffled(300, tmp_path, 5, 200))
    assert orders[0] == orders[1] != shuffled(300, tmp_path, 6, 200)


def test_parts_that_are_too_large_are_divided_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the size of a table is not known, it may be larger than the parts were made for."""
    monkeypatch.setattr(shuffle, "_PARTS", 2)
    table = pa.table({"a": np.arange(2_000)})
    with Shuffler(StreamKey.seeded(2).partitions(), tmp_path, memory=1_000) as shuffler:
        for batch in table.to_batches(max_chunksize=50):
            shuffler.add(batch)
        pieces = [piece["a"].to_pylist() for piece in shuffler.tables()]
    assert max(map(len, pieces)) * 8 <= 1_000
    assert sorted(chain.from_iterable(pieces)) == list(range(2_000))


def test_nothing_of_the_rows_has_a_name_while_they_wait(tmp_path: Path) -> None:
    with Shuffler(StreamKey.fresh().partitions(), tmp_path, memory=1) as shuffler:
        shuffler.add(pa.RecordBatch.from_pydict({"a": [1, 2]}))
        shuffler.add(pa.RecordBatch.from_pydict({"a": [3, 4]}))
        assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_while_rows_are_written_is_raised(tmp_path: Path) -> None:
    with Shuffler(StreamKey.fresh().partitions(), tmp_path, memory=1) as shuffler:
        shuffler.add(pa.RecordBatch.from_pydict({"a": [1, 2]}))
        assert shuffler._spill is not None
        shuffler._spill.finish()
        shuffler._spill._file.close()
        shuffler.add(pa.RecordBatch.from_pydict({"a": [3, 4]}))
        with pytest.raises(ValueError, match="closed file"):
            list(shuffler.tables())


def test_files_are_removed_when_something_fails(tmp_path: Path) -> None:
    try:
        with Shuffler(StreamKey.fresh().partitions(), tmp_path, memory=1) as shuffler:
            shuffler.add(pa.RecordBatch.from_pydict({"a": [1, 2]}))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert list(tmp_path.iterdir()) == []
