"""The smallest job that can go wrong as ours could: people draw a number each, and are put in a random order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from mishaps import Disturbed, Mishap, Spread

from polyseme.randomness import StreamKey

__all__ = ["PEOPLE", "from_the_row", "from_the_task", "run"]

PEOPLE = 8_000
_TASKS, _PARTS = 8, 5
_SCHEMA = "person long, word long, place long"
Draw = Callable[[np.ndarray], np.ndarray]


def from_the_row(people: np.ndarray) -> np.ndarray:
    """Two words each, that depend on a key and the row."""
    return StreamKey.seeded("toy").records(people).words(2).view(np.int64)


def from_the_task(people: np.ndarray) -> np.ndarray:
    """Two words each, from the operating system: other ones whenever the task is run."""
    return np.frombuffer(os.urandom(16 * len(people)), dtype=np.int64).reshape(2, -1)


@dataclass(frozen=True)
class _Drawing:
    draw: Draw

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            people = batch.column(0).to_numpy()
            words, places = self.draw(people)
            yield pa.RecordBatch.from_arrays([pa.array(people), pa.array(words), pa.array(places)], ["person", "word", "place"])


def _as_they_are(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def run(spark: Any, draw: Draw, out: Path, folder: Path, mapping: Mishap | None = None, writing: Mishap | None = None) -> None:
    """Draw, shuffle and write, with a mishap in the first stage or in the second."""
    mapped = Disturbed(_Drawing(draw), folder / "map", mapping or Spread())
    people = spark.range(0, PEOPLE, 1, _TASKS).mapInArrow(mapped, _SCHEMA)
    ordered = people.repartition(_PARTS, "place").sortWithinPartitions("place")
    if writing is not None:
        ordered = ordered.mapInArrow(Disturbed(_as_they_are, folder / "write", writing), _SCHEMA)
    ordered.write.parquet(str(out))
