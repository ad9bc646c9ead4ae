"""A table larger than memory should be: rows a second, peak memory, and the ratio to copying the same file.

python benchmarks/streaming.py [ROWS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

ROWS = 20_000_000
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
ANONYMIZE = "from polyseme import anonymize; anonymize('people.parquet', 'policy.yaml', 'release')"
COPY = "import polars as pl; pl.scan_parquet('people.parquet').sink_parquet('copy.parquet')"
MEASURED = """
import resource, time
{}
started = time.perf_counter()
{}
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


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


def measured(code: str, folder: Path, before: str = "") -> tuple[float, float]:
    """Seconds of `code`, and peak bytes, in a fresh interpreter; `before` (imports) is not timed."""
    result = subprocess.run(
        [sys.executable, "-c", MEASURED.format(before, code)], cwd=folder, capture_output=True, text=True, check=True
    )
    seconds, peak = map(float, result.stdout.split())
    return seconds, peak


def main(rows: int = ROWS) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        make_table(folder / "people.parquet", rows)
        (folder / "policy.yaml").write_text(POLICY)
        print(f"{rows:,} rows made in {time.perf_counter() - started:.1f} s")
        copy, copy_peak = measured(COPY, folder)
        ours, peak = measured(ANONYMIZE, folder)
        print(f"{'':24}{'seconds':>10}{'rows/s':>14}{'peak MB':>10}")
        print(f"{'plain Polars copy':24}{copy:>10.1f}{rows / copy:>14,.0f}{copy_peak / 1e6:>10.0f}")
        print(f"{'anonymize':24}{ours:>10.1f}{rows / ours:>14,.0f}{peak / 1e6:>10.0f}")
        print(f"ratio {ours / copy:.1f}; peak memory under 1.5 GB: {'yes' if peak < 1.5e9 else 'NO'}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
