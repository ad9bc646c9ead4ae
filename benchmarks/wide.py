"""A wide table: how long a report and the attacks take when nearly every column is protected.

    python benchmarks/wide.py [--rows N] [--protected C] [--untouched C]

Seconds of one core (other work on the machine does not count) and seconds by the clock; how often the data is read, as
calls and as columns. Fails above the bars.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

import polyseme as ps
from polyseme.tables.io.columnar import FrameSource, ParquetSource

BARS = {"report": 30.0, "report --original": 60.0, "attack": 15.0, "attack --original": 45.0}
"""Seconds of one core on 2,000 rows x 300 columns; a report took 119 and attacks took 48 before columns were shared."""


def make_table(rows: int, protected: int, untouched: int, seed: int = 1) -> pl.DataFrame:
    """Answers to a long questionnaire: neighbors in the list of questions go together a little."""
    random = np.random.default_rng(seed)
    mood = random.normal(size=rows)
    columns: dict[str, Sequence[str]] = {}
    for number in range(protected):
        size = _size(number)
        score = (mood * (number % 4) + random.normal(size=rows) * 2 + 6) / 12
        codes = np.clip((score * size).astype(int), 0, size - 1)
        columns[f"q{number}"] = [f"{code:02}" for code in codes.tolist()]
    for number in range(untouched):
        columns[f"u{number}"] = [f"{code}" for code in random.integers(0, 3 + number, rows).tolist()]
    return pl.DataFrame(columns)


def _size(number: int) -> int:
    return 8 + number % 13


def make_policy(protected: int, untouched: int) -> ps.Policy:
    """Half of the questions promise a distance between candidates, half of them three candidates."""
    lines = ["attributes:"]
    for number in range(protected):
        labels = [f"{code:02}" for code in range(_size(number))]
        kept = (
            "distance: {line: rank}, protect: {semantic-diversity: {l: 2, d: 2}}"
            if number % 2
            else "protect: {diversity: {l: 3}}"
        )
        lines.append(f"  q{number}: {{role: sensitive, domain: {json.dumps(labels)}, {kept}}}")
    lines += [f"  u{number}: {{role: quasi-identifier}}" for number in range(untouched)]
    return ps.Policy.loads("\n".join(lines) + "\n")


class Reads:
    """How often tables are read: calls, and columns of all calls together."""

    def __init__(self) -> None:
        self.calls = self.columns = 0


@contextmanager
def counted_reads() -> Iterator[Reads]:
    """Count every reading of a table that begins inside."""
    reads, kinds = Reads(), (ParquetSource, FrameSource)
    plain = [kind._read for kind in kinds]

    def counting(read: Callable[..., Iterator[pa.RecordBatch]]) -> Callable[..., Iterator[pa.RecordBatch]]:
        def counted(self: object, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            reads.calls += 1
            reads.columns += len(columns)
            return read(self, columns)

        return counted

    try:
        for kind, read in zip(kinds, plain):
            kind._read = counting(read)  # type: ignore[method-assign]
        yield reads
    finally:
        for kind, read in zip(kinds, plain):
            kind._read = read  # type: ignore[method-assign]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--protected", type=int, default=290)
    parser.add_argument("--untouched", type=int, default=10)
    options = parser.parse_args(arguments)
    shape = (options.protected, options.untouched)
    table, policy = make_table(options.rows, *shape), make_policy(*shape)
    print(f"{table.height:,} rows, {table.width} columns, {options.protected} of them protected\n")
    print(f"{'verb':<20}{'core s':>9}{'clock s':>9}{'reads':>8}{'columns':>9}{'bar':>7}")
    slow = False
    with tempfile.TemporaryDirectory() as name:
        original, out = Path(name) / "table.parquet", Path(name) / "release"
        table.write_parquet(original)
        verbs: dict[str, Callable[[], object]] = {
            "anonymize": lambda: ps.anonymize(original, policy, out, warn=lambda text: None),
            "verify": lambda: ps.verify(out),
            "estimate": lambda: ps.estimate(out, ["q0"], by=["u0"]),
            "attack": lambda: ps.attack(out),
            "attack --original": lambda: ps.attack(out, original),
            "report": lambda: ps.report(out),
            "report --original": lambda: ps.report(out, original),
        }
        for verb, run in verbs.items():
            clock, core = time.perf_counter(), time.process_time()
            with counted_reads() as reads:
                run()
            core, clock = time.process_time() - core, time.perf_counter() - clock
            bar = BARS.get(verb)
            slow |= bar is not None and core > bar
            limit = f"{bar:>7.0f}" if bar is not None else ""
            print(f"{verb:<20}{core:>9.1f}{clock:>9.1f}{reads.calls:>8}{reads.columns:>9}{limit}", flush=True)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
