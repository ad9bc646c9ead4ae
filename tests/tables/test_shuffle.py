from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from polyseme.randomness import StreamKey
from polyseme.tables.io.shuffle import Shuffler


def shuffled(rows: int, folder: Path, seed: int, memory: int, known: bool = True) -> list[int]:
    table = pa.table({"a": np.arange(rows), "b": pa.array([str(n) for n in range(rows)]).dictionary_encode()})
    streams = StreamKey.seeded(seed).partitions()
    with Shuffler(streams, folder, memory, rows if known else None) as shuffler:
        for batch in table.to_batches(max_chunksize=3):
            shuffler.add(batch)
        result = pa.concat_tables(shuffler.tables())
    assert [str(n) for n in result["a"].to_pylist()] == result["b"].to_pylist()
    return result["a"].to_pylist()


def test_every_row_comes_back_once_and_nothing_is_left(tmp_path: Path) -> None:
    for memory in (1, 200, 1 << 20):
        rows = shuffled(1_000, tmp_path, 1, memory)
        assert sorted(rows) == list(range(1_000))
        assert rows != list(range(1_000))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_order_is_equally_likely_also_through_files(tmp_path: Path) -> None:
    for memory in (1, 1 << 20):
        seen = Counter(tuple(shuffled(4, tmp_path, seed, memory)) for seed in range(4_800))
        assert len(seen) == 24
        assert stats.chisquare(list(seen.values())).pvalue > 1e-4


def test_files_are_removed_when_something_fails(tmp_path: Path) -> None:
    try:
        with Shuffler(StreamKey.fresh().partitions(), tmp_path, memory=1) as shuffler:
            shuffler.add(pa.RecordBatch.from_pydict({"a": [1, 2]}))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert list(tmp_path.iterdir()) == []
