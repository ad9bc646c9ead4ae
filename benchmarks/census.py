"""The shape of the US Census data set, anonymized in a stream: seconds, peak memory, cells per second.

2,458,285 records with 68 attributes of 2 to 18 values, generated, at l = 3. Domains that are too small for l take
l = F - 1, as in the paper; only the drawing of sets is timed, not the making of the input.

    python benchmarks/census.py [--records N] [--l 3] [--threads 2] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from polyseme.mechanism import Mechanism
from polyseme.randomness import SystemStream, experiment
from polyseme.recipes import choose, mechanism_for

RECORDS, ATTRIBUTES, BATCH = 2_458_285, 68, 131_072


def domain_sizes() -> list[int]:
    """68 sizes from 2 to 18, small ones more often."""
    return [int(size) for size in np.round(2 + 16 * np.linspace(0, 1, ATTRIBUTES) ** 1.5)]


def mechanisms(l: int) -> list[Mechanism]:
    protection = {"diversity": {"l": l, "adapt": True}}
    return [mechanism_for(choose(size, None, protection)) for size in domain_sizes()]


def anonymize(columns: np.ndarray, made: list[Mechanism], streams: list[SystemStream]) -> int:
    """Sets for the given columns, in the smallest type that holds a code; returns how many cells were made."""
    cells = 0
    for codes, mechanism, stream in zip(columns, made, streams, strict=True):
        published = mechanism.sample(codes, stream).astype(np.uint8)
        cells += len(published)
    return cells


def run(records: int, l: int, threads: int) -> dict[str, float]:
    made = mechanisms(l)
    streams = [SystemStream() for _ in made]
    sizes = np.array(domain_sizes())
    generator = experiment(1)
    seconds, cells = 0.0, 0
    parts = [range(start, ATTRIBUTES, threads) for start in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, records, BATCH):
            rows = min(BATCH, records - start)
            columns = (generator.random((ATTRIBUTES, rows)) * sizes[:, None]).astype(np.int64)
            begin = time.perf_counter()
            jobs = [
                pool.submit(anonymize, columns[part], [made[j] for j in part], [streams[j] for j in part])
                for part in (list(part) for part in parts)
            ]
            cells += sum(job.result() for job in jobs)
            seconds += time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform != "darwin" else 2**30)
    return {
        "records": records,
        "attributes": ATTRIBUTES,
        "l": l,
        "published_as_they_are": sum(mechanism.l == 1 for mechanism in made),
        "threads": threads,
        "seconds": round(seconds, 2),
        "cells_per_second": round(cells / seconds),
        "peak_memory_gb": round(peak, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--l", type=int, default=3)
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = run(arguments.records, arguments.l, arguments.threads)
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"{result['records']:,} records x {result['attributes']} attributes at l = {result['l']}")
    print(f"{result['published_as_they_are']} attributes have two values, so that l = F - 1 leaves them as they are")
    print(f"{result['seconds']} s on {result['threads']} threads, {result['cells_per_second']:,} cells/s")
    print(f"peak memory {result['peak_memory_gb']} GB")


if __name__ == "__main__":
    main()
