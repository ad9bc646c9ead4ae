"""Subset selection, against multi-freq-ldpy: drawing the sets, and estimating from the same reports.

Its subset selection is our uniform design with a truth probability below one, so both programs can read the same
reports. Its iterative update works on counts and stops at a cap of rounds; ours is maximum likelihood on the sets to a
certified gap.

    python benchmarks/subset_selection.py [REPORTS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from polyseme.designs import make_design
from polyseme.designs.mechanism import Mechanism
from polyseme.inference.base import Reports
from polyseme.inference.sets.registry import ESTIMATORS
from polyseme.kernel.randomness import SystemStream
from polyseme.semantics.distances import LineDistance
from polyseme.semantics.distances.base import Clusters

sys.path.insert(0, str(Path(__file__).resolve().parent))
from peers import peer_python

SIZE, REPORTS, OURS = 148, 100_000, 4_000_000
SETTINGS = (float(np.log(148 / 3 - 1)), 1.0)
"""Epsilon: sets of three, and the size that is best at a strict privacy."""
PEER = """
import json, sys, time, numpy as np
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client, SS_Aggregator_IBU, SS_Aggregator_MI
size, epsilon = int(sys.argv[1]), float(sys.argv[2])
codes = np.load("codes.npy")
SS_Client(0, size, epsilon)  # compiled on first use
start = time.perf_counter()
reports = [SS_Client(int(code), size, epsilon) for code in codes]
drawing = time.perf_counter() - start
np.save("reports.npy", np.array(reports))
found = {"drawing": drawing}
for name, aggregate in (("mi", SS_Aggregator_MI), ("ibu", SS_Aggregator_IBU)):
    start = time.perf_counter()
    np.save(name + ".npy", aggregate(reports, size, epsilon))
    found[name] = time.perf_counter() - start
print(json.dumps(found))
"""


def smooth(size: int) -> np.ndarray:
    place = np.linspace(0, 1, size)
    shares = np.exp(-((place - 0.3) ** 2) / 0.02) + 0.5 * np.exp(-((place - 0.7) ** 2) / 0.01) + 0.05
    return shares / shares.sum()


def subset_selection(size: int, epsilon: float) -> Mechanism:
    """The same channel in our words: sets of l, the true value put among them with probability p."""
    l = int(max(1, np.rint(size / (np.exp(epsilon) + 1))))
    holds_truth = l * np.exp(epsilon) / (l * np.exp(epsilon) + size - l)
    p = (holds_truth - l / size) / (1 - l / size)
    return Mechanism(make_design("balanced", Clusters(np.arange(size)), l), float(p))


def main(reports: int = REPORTS) -> None:
    for epsilon in SETTINGS:
        compare(epsilon, reports)


def compare(epsilon: float, reports: int) -> None:
    mechanism = subset_selection(SIZE, epsilon)
    codes = np.random.default_rng(0).choice(SIZE, reports, p=smooth(SIZE))
    truth = np.bincount(codes, minlength=SIZE) / reports
    many = np.random.default_rng(1).choice(SIZE, OURS, p=smooth(SIZE))
    start = time.process_time()
    mechanism.sample(many, SystemStream())
    ours = OURS / (time.process_time() - start)
    print(f"\nF = {SIZE}, epsilon = {epsilon:.2f}, sets of {mechanism.l}, {reports:,} reports")
    python = peer_python("multi-freq-ldpy", "scipy")
    if python is None:
        print(f"drawing: ours {ours / 1e6:.2f} million records/s")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "codes.npy", codes)
        command = [python, "-c", PEER, str(SIZE), str(epsilon)]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        seconds = json.loads(done.stdout)
        sets = np.sort(np.load(folder / "reports.npy"), axis=1)
        theirs = {name: np.load(folder / f"{name}.npy") for name in ("mi", "ibu")}
    rate = reports / seconds["drawing"]
    if mechanism.l == 3:
        line = Mechanism(make_design("balanced", LineDistance.ranks(SIZE).structure(10), 3))
        line.sample(many[:1000], SystemStream())  # the table of sets is made on first use
        start = time.process_time()
        line.sample(many, SystemStream())
        fast = OURS / (time.process_time() - start)
        print(f"balanced line, d = 10: {fast / 1e6:.2f} million records/s, ratio {fast / rate:.0f}")
    print(
        f"drawing: ours {ours / 1e6:.2f}, multi-freq-ldpy {rate / 1e6:.3f} million records/s, ratio {ours / rate:.0f}"
    )
    print(f"{'estimator':28}{'seconds':>9}{'MSE':>12}{'gap':>10}")
    for name, words in (("mi", "multi-freq-ldpy MI"), ("ibu", "multi-freq-ldpy IBU")):
        error = float(np.mean((theirs[name] - truth) ** 2))
        print(f"{words:28}{seconds[name]:9.2f}{error:12.2e}{'-':>10}")
    distinct, counts = np.unique(sets, axis=0, return_counts=True)
    # The values are places on a line, which multi-freq-ldpy has no word for; only `smooth` makes use of it.
    ranks = LineDistance.ranks(SIZE)
    grouped = Reports((distinct,), np.zeros(len(counts), dtype=np.int64), counts, 1, distances=(ranks,))
    for name in ("inverse", "ml", "shrink", "smooth"):
        start = time.perf_counter()
        fit = ESTIMATORS[name].fit(grouped, [mechanism])
        taken = time.perf_counter() - start
        error = float(np.mean((fit.values[0] / reports - truth) ** 2))
        gap = f"{fit.gap:.0e}" if fit.gap is not None else "-"
        print(f"{name:28}{taken:9.2f}{error:12.2e}{gap:>10}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPORTS)
