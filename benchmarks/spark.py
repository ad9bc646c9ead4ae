"""What `anonymize` costs on Spark, beside a plain copy with the same shuffle, and on Sail beside the local engine.

python benchmarks/spark.py [ROWS] [MANY]

    Spark, two cores of this machine     at most 1.7 times a plain Spark copy: read, key, repartition, sort, write
    Sail                                 at most 2 times the local engine
    Spark, two workers, MANY rows        time in proportion to the rows within 15%, and no more memory in Python;
                                         Java takes what it is given, whatever the rows

Copies and releases alternate in one session; the first pair warms up and does not count.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "spark"), str(ROOT / "benchmarks")]

import servers  # noqa: E402
import spark_cluster  # noqa: E402
from guard import in_session  # noqa: E402
from sessions import Classic, remote  # noqa: E402

from engines import FLAT, HEADER, LINEAR, local, prepared, quickest, verdict  # noqa: E402
from polyseme import spark as on_spark  # noqa: E402

ROWS, MANY, REPEATS = 10_000_000, 100_000_000, 3
TIMES_COPY, TIMES_LOCAL = 1.7, 2.0
EXECUTOR_MEMORY = "2g"


def files(rows: int) -> int:
    return max(-(-rows // 2_000_000), 1)


def copied(spark: Any, folder: Path, rows: int) -> float:
    """Seconds of a plain copy of the published columns: the same shuffle, the same files."""
    from pyspark.sql import functions as sql

    out = folder / "copy"
    shutil.rmtree(out, ignore_errors=True)
    started = time.perf_counter()
    frame = spark.read.parquet((folder / "people.parquet").as_uri())
    keyed = frame.select("age", "sex", "weight", "income", sql.xxhash64("id").alias("place"))
    ordered = keyed.repartition(files(rows), "place").sortWithinPartitions("place").drop("place")
    ordered.write.option("compression", "zstd").parquet(out.as_uri())
    return time.perf_counter() - started


def published(spark: Any, folder: Path) -> float:
    """Seconds of a release: two passes, the shuffle, labels, digests and the last look."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        on_spark.anonymize(
            folder / "people.parquet", folder / "policy.yaml", folder / "spark", spark=spark, overwrite=True
        )
    return time.perf_counter() - started


def pairs(spark: Any, folder: Path, rows: int) -> tuple[float, float]:
    """Median seconds of copies and of releases, one after the other."""
    found = [(copied(spark, folder, rows), published(spark, folder)) for _ in range(REPEATS + 1)][1:]
    return median(copy for copy, _ in found), median(ours for _, ours in found)


@contextmanager
def classic(folder: Path, master: str) -> Iterator[Any]:
    running = Classic(folder)
    try:
        # Java as it comes: tests make it start quickly, which makes it slow in the long run.
        plain = dict.fromkeys(("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), "-XX:+UseG1GC")
        sizes = {"spark.driver.memory": "2g", "spark.executor.memory": EXECUTOR_MEMORY}
        made = running.session(master, {**sizes, **plain})
        yield made
        # Its workers end before it does, which it would complain about at length.
        made.sparkContext.setLogLevel("OFF")
    finally:
        running.end()


@contextmanager
def on_cluster(folder: Path) -> Iterator[tuple[Any, spark_cluster.Cluster]]:
    cluster = spark_cluster.Cluster(folder, memory="3g")
    try:
        with classic(folder, cluster.address) as spark:
            yield spark, cluster
    finally:
        cluster.end()


def said(name: str, seconds: float, rows: int) -> None:
    print(f"{name:34}{seconds:>9.2f}{'':9}{rows / seconds:>13,.0f}", flush=True)


def on_this_machine(folder: Path, rows: int, place: Path) -> None:
    with classic(place, "local[2]") as spark:
        copy, ours = pairs(spark, folder, rows)
    print(HEADER)
    said("Spark: read, shuffle, write", copy, rows)
    said("Spark engine", ours, rows)
    verdict(f"ratio {ours / copy:.2f}", f"{TIMES_COPY:g}", ours <= TIMES_COPY * copy)


def on_sail(folder: Path, rows: int, place: Path) -> None:
    server = servers.sail(place)
    try:
        spark = remote(server.address)
        ours = median([published(spark, folder) for _ in range(REPEATS + 1)][1:])
        beside = quickest([local(folder) for _ in range(REPEATS)]).seconds
        spark.stop()
    finally:
        server.end()
    said("Sail", ours, rows)
    said("local engine", beside, rows)
    verdict(f"ratio {ours / beside:.2f}", f"{TIMES_LOCAL:g}", ours <= TIMES_LOCAL * beside)


class Memory(threading.Thread):
    """The most memory that workers have at a time, in bytes: Java's and Python's; shared pages count once."""

    def __init__(self, cluster: spark_cluster.Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster, self._done = cluster, threading.Event()
        self.java = self.python = 0

    def run(self) -> None:
        while not self._done.wait(0.3):
            held = {"java": 0, "python": 0}
            for pid in (one for worker in self._cluster.workers for one in in_session(worker.session)):
                command = spark_cluster.command_of(pid)
                if "CoarseGrainedExecutorBackend" in command or "pyspark" in command:
                    held["java" if "CoarseGrained" in command else "python"] += _held(pid)
            self.java, self.python = max(self.java, held["java"]), max(self.python, held["python"])

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._done.set()
        self.join()


def _held(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def on_two_workers(short: Path, rows: int, long: Path, many: int, place: Path) -> None:
    with on_cluster(place) as (spark, cluster):
        published(spark, short)
        with Memory(cluster) as before:
            few = published(spark, short)
        with Memory(cluster) as after:
            all_of_them = published(spark, long)
    for seconds, memory, count in ((few, before, rows), (all_of_them, after, many)):
        said("Spark, two workers", seconds, count)
        print(f"  their memory at the most: Python {memory.python / 1e6:,.0f} MB, Java {memory.java / 1e6:,.0f} MB")
    growth = rows / many * all_of_them / few
    verdict(f"a row takes {growth:.2f} times as long", f"{LINEAR:g}", growth <= LINEAR)
    more = after.python / before.python
    verdict(f"Python's memory {more:.2f} times as high", f"{FLAT:g}", more <= FLAT)


def step(name: str, place: Path, rows: int, many: int) -> None:
    """One part of it, in a process of its own: a process can have one Java machine, and speak to one server."""
    short = place / "short"
    if name == "machine":
        on_this_machine(short, rows, place)
    elif name == "sail":
        # By it PySpark's functions know that they speak to a server.
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        on_sail(short, rows, place)
    else:
        on_two_workers(short, rows, place / "long", many, place)


def main(rows: int = ROWS, many: int = MANY) -> int:
    missing = spark_cluster.missing() or servers.missing_sail()
    if missing:
        print(f"skipped: {missing}")
        return 0
    with tempfile.TemporaryDirectory() as name:
        prepared(Path(name) / "short", rows)
        if many:
            prepared(Path(name) / "long", many)
        for part in ("machine", "sail", *(("workers",) if many else ())):
            command = [sys.executable, __file__, "--step", part, name, str(rows), str(many)]
            environment = {"PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore", **os.environ}
            subprocess.run(command, check=True, env=environment)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        step(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
        sys.stdout.flush()
        os._exit(0)
    sys.exit(main(*map(int, sys.argv[1:3])))
