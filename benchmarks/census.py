"""The shape of the US Census data set, anonymized in a stream: seconds, peak memory, cells per second.

2,458,285 records with 68 attributes of 2 to 18 values, generated, at l = 3. Domains that are too small for l take
l = F - 1, as in the paper. Timed are the drawing of sets alone, and the whole way from a Parquet file to a release
(with the passes that only read the input taken off).

    python benchmarks/census.py [RECORDS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import SystemStream, experiment
from polyseme.privacy.calibration import choose, mechanism_for
from polyseme.privacy.promises import Diversity, Promises

sys.path.insert(0, str(Path(__file__).resolve().parent))
from engines import measured

RECORDS, ATTRIBUTES, BATCH, THREADS, L = 2_458_285, 68, 131_072, 2, 3
POLICY = f"protect-all-but: []\nprotect: {{diversity: {{l: {L}, adapt: true}}}}\n"
ANONYMIZE = "from polyseme import anonymize; anonymize('census.parquet', 'policy.yaml', 'release')"
READ = "from polyseme.tables.io.readers import open_table; any(False for _ in open_table('census.parquet').batches())"
IMPORTS = "import polyseme.verbs.estimate"
TABLES = {"largest": ("a66", "a67"), "middle": ("a33", "a67"), "smallest": ("a00", "a01")}
TABLE = "polyseme.verbs.estimate.estimate('release', of={of}, estimator={estimator!r})"
KINDS = 6


def domain_sizes() -> list[int]:
    """68 sizes from 2 to 18, small ones more often."""
    return [int(size) for size in np.round(2 + 16 * np.linspace(0, 1, ATTRIBUTES) ** 1.5)]


def mechanisms() -> list[Mechanism]:
    return [mechanism_for(choose(size, None, Promises.of(Diversity(l=L, adapt=True)))) for size in domain_sizes()]


def draw(columns: np.ndarray, made: list[Mechanism], streams: list[SystemStream]) -> int:
    """Sets for the given columns; returns how many cells were made."""
    return sum(len(mechanism.sample(codes, stream)) for codes, mechanism, stream in zip(columns, made, streams))


def drawing(records: int) -> float:
    """Seconds for the sets of all cells, on two threads."""
    made, generator, sizes = mechanisms(), experiment(1), np.array(domain_sizes())
    streams = [SystemStream() for _ in made]
    parts = [list(range(start, ATTRIBUTES, THREADS)) for start in range(THREADS)]
    seconds = 0.0
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, records, BATCH):
            rows = min(BATCH, records - start)
            columns = (generator.random((ATTRIBUTES, rows)) * sizes[:, None]).astype(np.int64)
            begin = time.perf_counter()
            jobs = [pool.submit(draw, columns[p], [made[j] for j in p], [streams[j] for j in p]) for p in parts]
            for job in jobs:
                job.result()
            seconds += time.perf_counter() - begin
    return seconds


def make_table(path: Path, records: int) -> None:
    """Skewed attributes that depend on one another through a hidden class of each record."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, KINDS, records)
    columns = {}
    for j, size in enumerate(domain_sizes()):
        bounds = np.cumsum(rng.dirichlet(np.full(size, 0.7), KINDS), axis=1)[:, :-1]
        draws, codes = rng.random(records), np.zeros(records, dtype=np.int8)
        for bound in bounds.T:
            codes += draws > bound[kinds]
        columns[f"a{j:02d}"] = codes
    pa.parquet.write_table(pa.table(columns), path)


def main(records: int = RECORDS) -> None:
    cells = records * ATTRIBUTES
    small = sum(mechanism.l == 1 for mechanism in mechanisms())
    print(f"{records:,} records x {ATTRIBUTES} attributes at l = {L} ({small} attributes have two values: l = 1)")
    seconds = drawing(records)
    print(f"drawing the sets      {seconds:6.1f} s on {THREADS} threads, {cells / seconds:,.0f} cells/s")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_table(folder / "census.parquet", records)
        (folder / "policy.yaml").write_text(POLICY)
        reading = measured(READ, folder).seconds
        made = measured(ANONYMIZE, folder)
        whole, peak = made.seconds, made.peak
        net = whole - 2 * reading
        print(f"file to release       {whole:6.1f} s, of which reading (two passes) {2 * reading:.1f} s")
        bar = "yes" if net <= 30 else "NO"
        print(f"without reading       {net:6.1f} s, {cells / net:,.0f} cells/s (bar: 30 s: {bar})")
        print(f"peak memory           {peak / 1e9:6.2f} GB (bar: 2 GB: {'yes' if peak < 2e9 else 'NO'})")
        for name, of in TABLES.items():
            for estimator in ("ml", None):
                seconds = measured(TABLE.format(of=list(of), estimator=estimator), folder, IMPORTS).seconds
                bar = "yes" if seconds < 2 else "NO"
                print(f"{name:>8} two-way, {estimator or 'default':<8}{seconds:5.1f} s (bar: 2 s: {bar})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
