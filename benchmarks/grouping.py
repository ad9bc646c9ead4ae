"""How long grouping takes: Anatomy, buckets and Mondrian on large tables, each against what was asked for.

    python benchmarks/grouping.py [--records N] [--large N] [--peer-records N] [--no-peer]

anonypy runs its Mondrian on a smaller table in an environment of its own, beside ours on the same table. anjana and
pyCANON have none of these methods. Seconds are of processor time, the best of two: other work on the machine disturbs
them least.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from polyseme.kernel.randomness import SystemStream
from polyseme.methods.bucketization import bucketize, distinct
from polyseme.methods.goal import Goal
from polyseme.methods.microdata import Ladder, Microdata, Sensitive
from polyseme.methods.mondrian import mondrian
from polyseme.semantics.distances import CircleDistance, LineDistance
from polyseme.semantics.distances.base import Clusters, Graph, Structure

sys.path.insert(0, str(Path(__file__).resolve().parent))
from peers import peer_python

VALUES = 48
SCRIPT = """
import json, sys, time
import anonypy, pandas
table = pandas.read_csv(sys.argv[1])
table["s"] = table["s"].astype(str).astype("category")
start = time.process_time()
anonypy.Preserver(table, [f"q{j}" for j in range(5)], "s").anonymize_k_anonymity(k=10)
print(json.dumps(time.process_time() - start))
"""


def seconds(work: Callable[[], object], tries: int = 2) -> float:
    best = float("inf")
    for _ in range(tries):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def values(records: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.choice(VALUES, records, p=rng.dirichlet(np.full(VALUES, 3.0)))


def random_graph(size: int, share: float) -> Graph:
    pairs = np.triu(np.random.default_rng(2).random((size, size)) < share, 1)
    return Graph(pairs | pairs.T)


def numbers(records: int) -> Microdata:
    """Five numeric quasi-identifiers, bell-shaped, and a sensitive attribute of twenty values."""
    rng = np.random.default_rng(1)
    ladders, columns = [], []
    for place, size in enumerate((100, 1_000, 50, 200, 73)):
        labels = tuple(map(str, range(size)))
        ladders.append(Ladder(f"q{place}", (np.arange(size), np.zeros(size, dtype=np.int64)), (labels, ("*",))))
        columns.append(np.clip(rng.normal(size / 2, size / 6, records).astype(np.int64), 0, size - 1))
    sensitive = Sensitive("s", rng.integers(0, 20, records), tuple(range(20)))
    return Microdata(tuple(ladders), np.column_stack(columns), {"s": sensitive})


def buckets(records: int, limit: float) -> bool:
    """Prints a line for each structure; whether those with a limit kept it."""
    codes = values(records)
    kept = True
    structures: list[tuple[str, Structure, bool]] = [
        ("Anatomy, 48 values", distinct(VALUES), True),
        ("buckets, 16 clusters", Clusters(np.arange(VALUES) // 3), True),
        ("buckets, line d = 4", LineDistance.ranks(VALUES).structure(4), True),
    ]
    if records <= 1_000_000:
        structures += [
            ("buckets, circle of 24, d = 3, l = 3", CircleDistance.ranks(24).structure(3), False),
            ("buckets, no transitive similarity, 24", random_graph(24, 0.7), False),
        ]
    for name, structure, limited in structures:
        l = 3 if "l = 3" in name else 5 if limited else 4
        here = codes % structure.size
        taken = seconds(lambda here=here, structure=structure, l=l: bucketize(here, structure, l, SystemStream()))
        made = bucketize(here, structure, l, SystemStream())
        limit_text = f"{limit:.0f} s" if limited else ""
        print(
            f"{name:<40}{records:>12,}{taken:>9.2f}{limit_text:>9}   "
            f"{made.suppressed.sum():,} suppressed, gap {made.gap}"
        )
        kept &= taken <= limit or not limited
    return kept


def partitions(records: int, limit: float) -> bool:
    data = numbers(records)
    kept = True
    goals = ([{"k-anonymity": {"k": 10}}], [{"k-anonymity": {"k": 10}}, {"distinct-diversity": {"l": 5}}])
    for specs, about in zip(goals, ("k = 10", "k = 10, l = 5")):
        for mode in ("strict", "relaxed"):
            goal = Goal.of(specs, data)
            taken = seconds(lambda goal=goal, mode=mode: mondrian(data, goal, SystemStream(), mode))
            name = f"Mondrian {mode}, 5 numbers, {about}"
            print(f"{name:<40}{records:>12,}{taken:>9.2f}{f'{limit:.0f} s':>9}")
            kept &= taken <= limit
    return kept


def beside_anonypy(records: int) -> None:
    python = peer_python("anonypy", "pandas")
    if python is None:
        return
    data = numbers(records)
    goal = Goal.of([{"k-anonymity": {"k": 10}}], data)
    ours = seconds(lambda: mondrian(data, goal, SystemStream()))
    frame = pl.DataFrame({name: data.codes[:, place] for place, name in enumerate(data.names)})
    with tempfile.TemporaryDirectory() as folder:
        csv = Path(folder) / "table.csv"
        frame.with_columns(s=pl.Series(data.sensitive["s"].codes)).write_csv(csv)
        command = [python, "-W", "ignore", "-c", SCRIPT, csv]
        try:
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        except subprocess.SubprocessError as error:
            print(f"anonypy failed, comparison left out ({type(error).__name__})")
            return
    theirs = float(json.loads(done.stdout.strip().splitlines()[-1]))
    times = f"{theirs / ours:.0f} times"
    print(f"\nMondrian, k = 10, {records:,} records: polyseme {ours:.2f} s, anonypy {theirs:.1f} s, {times}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000, help="records of the largest table for buckets")
    parser.add_argument("--peer-records", type=int, default=5_000)
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args(arguments)
    print(f"{'method':<40}{'records':>12}{'seconds':>9}{'asked':>9}")
    kept = [buckets(options.records, 1.0), buckets(options.large, 6.0), partitions(options.records, 8.0)]
    if not options.no_peer:
        beside_anonypy(options.peer_records)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
