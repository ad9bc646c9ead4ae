"""What `anonymize` costs on each engine, beside a plain copy of the same table with its rows shuffled.

python benchmarks/engines.py [ROWS] [MANY]

Every figure is of a fresh process. Runs of the copy and of the engine alternate, and the quickest of each counts; CPU
seconds stand beside seconds, because they depend less on what else the machine does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

ROWS, MANY, REPEATS = 10_000_000, 100_000_000, 3
TIMES_POLARS = 1.3
"""What the local engine may take, as a multiple of the copy by Polars."""
LINEAR = 1.15
"""How much more a row may take in a table that is ten times as long."""
FLAT = 1.1
"""How much more memory such a table may take."""
COUNTING_SECONDS = 30.0
POLICY = """
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  weight: {role: insensitive}
  income:
    role: sensitive
    domain: [c00, c01, c02, c03, c04, c05, c06, c07, c08, c09, c10, c11, c12, c13]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 3, d: 4}}
"""
COPY = """
table = pl.read_parquet('people.parquet', columns=['age', 'sex', 'weight', 'income'])
table.sample(fraction=1.0, shuffle=True).write_parquet('copy.parquet')
"""
LOCAL = "anonymize('people.parquet', 'policy.yaml', 'release', overwrite=True)"
COUNT = """
release = Release.open('release')
assert published_counts(release, 'income').sum() > 0
"""
MEASURED = """
import re, resource, time, warnings
from pathlib import Path
warnings.simplefilter('ignore')
{before}
started, used = time.perf_counter(), time.process_time()
{code}
seconds, used = time.perf_counter() - started, time.process_time() - used
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
# What the system calls the peak of a process begins with that of its parent; Linux also knows its own.
if Path('/proc/self/status').exists():
    peak = int(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1]) * 1024
print(seconds, used, peak)
"""


@dataclass(frozen=True)
class Cost:
    """What some work took: seconds, seconds of all cores together, and bytes of memory at the most."""

    seconds: float
    cpu: float
    peak: float

    def row(self, name: str, rows: int) -> str:
        rate = rows / self.seconds
        return f"{name:34}{self.seconds:>9.2f}{self.cpu:>9.2f}{rate:>13,.0f}{self.peak / 1e6:>10.0f}"


HEADER = f"{'':34}{'seconds':>9}{'CPU s':>9}{'rows/s':>13}{'peak MB':>10}"


def make_table(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    labels = pa.array([f"c{code:02d}" for code in range(14)])
    writer = None
    for start in range(0, rows, 1 << 20):
        count = min(1 << 20, rows - start)
        table = pa.table(
            {
                "id": np.arange(start, start + count),
                "age": rng.integers(20, 70, count).astype(np.int8),
                "sex": pa.array(["f", "m"]).take(pa.array(rng.integers(0, 2, count))),
                "weight": rng.normal(70, 10, count),
                "income": labels.take(pa.array(rng.binomial(13, 0.35, count))),
            }
        )
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measured(code: str, folder: Path, before: str = "") -> Cost:
    """What `code` costs in a fresh interpreter; `before` (imports) is not timed."""
    script = MEASURED.format(before=before, code=code)
    result = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    return Cost(*map(float, result.stdout.split()))


def polars_copy(folder: Path) -> Cost:
    """Polars reads the columns that are published, shuffles all rows in memory and writes them."""
    return measured(COPY, folder, "import polars as pl")


def local(folder: Path) -> Cost:
    """The local engine."""
    return measured(LOCAL, folder, "import polyseme.verbs.anonymize\nfrom polyseme import anonymize")


def counting(folder: Path) -> Cost:
    """The distinct sets of the release, counted as `estimate` does."""
    return measured(
        COUNT, folder, "from polyseme import Release\nfrom polyseme.inference.questions.counts import published_counts"
    )


def prepared(folder: Path, rows: int) -> Path:
    """A folder with a table of so many rows and its policy."""
    started = time.perf_counter()
    folder.mkdir()
    make_table(folder / "people.parquet", rows)
    (folder / "policy.yaml").write_text(POLICY)
    print(f"{rows:,} rows made in {time.perf_counter() - started:.1f} s")
    return folder


def quickest(costs: list[Cost]) -> Cost:
    """The best of several runs: seconds and CPU seconds of the quickest, memory of the hungriest."""
    best = min(costs, key=lambda cost: cost.seconds)
    return Cost(best.seconds, min(cost.cpu for cost in costs), max(cost.peak for cost in costs))


def verdict(text: str, bar: str, held: bool) -> None:
    print(f"{text} (bar: {bar}: {'yes' if held else 'NO'})")


def compare(folder: Path, rows: int) -> Cost:
    """The local engine beside Polars; returns what the engine took."""
    runs = [(polars_copy(folder), local(folder)) for _ in range(REPEATS)]
    copy, ours = (quickest(list(costs)) for costs in zip(*runs))
    print(HEADER)
    print(copy.row("Polars: read, shuffle, write", rows))
    print(ours.row("local engine", rows))
    files = [(folder / name).stat().st_size for name in ("copy.parquet", "release/data.parquet")]
    print(f"files: {files[0] / 1e6:.0f} MB with one value a cell, {files[1] / 1e6:.0f} MB with sets")
    ratio = ours.seconds / copy.seconds
    verdict(f"ratio {ratio:.2f}, of CPU seconds {ours.cpu / copy.cpu:.2f}", f"{TIMES_POLARS:g}", ratio <= TIMES_POLARS)
    return ours


def lengthen(folder: Path, rows: int, short: Cost, many: int) -> None:
    """A longer table: whether time goes up like rows and memory not at all; and counting its sets."""
    ours, counted = local(folder), counting(folder)
    print(HEADER)
    print(ours.row("local engine", many))
    print(counted.row("counting sets", many))
    growth, cpu = (rows / many * ratio for ratio in (ours.seconds / short.seconds, ours.cpu / short.cpu))
    verdict(f"a row takes {growth:.2f} times as long, CPU seconds {cpu:.2f}", f"{LINEAR:g}", growth <= LINEAR)
    more = ours.peak / short.peak
    verdict(f"peak memory {more:.2f} times as high", f"{FLAT:g}", more <= FLAT)
    verdict(f"sets counted in {counted.seconds:.1f} s", f"{COUNTING_SECONDS:g} s", counted.seconds < COUNTING_SECONDS)


def main(rows: int = ROWS, many: int = MANY) -> None:
    with tempfile.TemporaryDirectory() as name:
        short = compare(prepared(Path(name) / "short", rows), rows)
        lengthen(prepared(Path(name) / "long", many), rows, short, many)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
