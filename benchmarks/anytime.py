"""Good answers at once, and bounded memory: each row with its bar and whether it holds.

    python benchmarks/anytime.py [--checks N] [--records N] [--before COMMIT] [ROW..]

    greedy    full-domain on 100,000 rows of independent columns, k = 5, 5% suppression: the loss at any limit over that
              of a naive greedy descent; and the loss after a tenth of the limit over the last one
    proof     eight quasi-identifiers to the proof: seconds of processor time over those of an earlier commit; ten
              without any limit given: the gap that is left
    memory    anatomy of ten million rows: the peak of all of its processes together
    relaxed   Mondrian, cells as a mean share of their column: relaxed over strict on Adult and twenty random tables,
              and over anonypy on the numbers of Adult

Limits count nodes, so that a busy machine changes nothing but seconds.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import polars as pl

from polyseme.kernel.arrays import Ints
from polyseme.kernel.randomness import SystemStream
from polyseme.methods.full_domain import Progress, optimum
from polyseme.methods.goal import Goal
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Ladder, Microdata, Recoding
from polyseme.methods.mondrian import mondrian

sys.path.insert(0, str(Path(__file__).resolve().parent))
from peers import peer_python

ROOT = Path(__file__).resolve().parent.parent
ADULT = ROOT.parent / "shared" / "data" / "adult" / "adult.data"
ROWS, K, SHARE, LEVELS = 100_000, 5, 0.05, 5
MEGABYTES = 1_000.0
POLICY = """
attributes: {age: {role: quasi-identifier}, zip: {role: quasi-identifier}, sex: {role: quasi-identifier},
  disease: {role: sensitive}}
method: {anatomy: {l: 5}}
"""
PEER = """
import json, sys
import pandas
from anonypy.mondrian import Mondrian
table = pandas.read_csv(sys.argv[1])
values = table.to_numpy(float)
span = values.max(0) - values.min(0)
parts = Mondrian(table, list(table.columns)).partition(k=int(sys.argv[2]))
print(json.dumps(sum(len(p) * ((values[p].max(0) - values[p].min(0)) / span).mean() for p in parts) / len(table)))
"""


class Table:
    """The lines so far, and whether all of them hold."""

    def __init__(self) -> None:
        self.holds = True
        print(f"{'row':<58}{'measured':>12}{'bar':>10}  holds")

    def add(self, name: str, measured: float, bar: float, about: str = "") -> None:
        fine = measured <= bar * (1 + 1e-9)
        self.holds &= fine
        print(f"{name:<58}{measured:>12,.4g}{bar:>10,.4g}  {'yes' if fine else 'NO'}  {about}".rstrip(), flush=True)


# -- full-domain ---------------------------------------------------------------------------------------------------


def independent(columns: int, rows: int = ROWS) -> Microdata:
    """Columns of sixteen values, unequally frequent, that have nothing to do with each other; halved at each level."""
    random = np.random.default_rng(29)
    groups = tuple(np.arange(16) >> level for level in range(LEVELS))
    labels = tuple(tuple(f"{level}.{group}" for group in range(16 >> level)) for level in range(LEVELS))
    shares = [random.dirichlet(np.full(16, 2.0)) for _ in range(columns)]
    codes = np.column_stack([random.choice(16, rows, p=share) for share in shares])
    return Microdata(tuple(Ladder(f"q{place}", groups, labels) for place in range(columns)), codes)


def naive_greedy(data: Microdata) -> float:
    """From the top, always the step that lowers the entropy loss most and suppresses few enough records."""
    bits = []
    for ladder, column in zip(data.ladders, data.codes.T):
        own = np.bincount(column)[column]
        shown = [np.bincount(groups[column])[groups[column]] for groups in ladder.groups]
        bits.append([float(np.log2(number / own).sum()) for number in shown])

    def suppressed(levels: list[int]) -> int:
        keys = np.zeros(data.rows, dtype=np.int64)
        for ladder, column, level in zip(data.ladders, data.codes.T, levels):
            if level < LEVELS - 1:
                keys = np.unique(keys * 16 + ladder.groups[level][column], return_inverse=True)[1]
        sizes = np.bincount(keys)
        return int(sizes[sizes < K].sum())

    def loss(levels: list[int]) -> float:
        return sum(lost[level] for lost, level in zip(bits, levels))

    levels = [LEVELS - 1] * len(bits)
    while True:
        below = [[*levels[:place], level - 1, *levels[place + 1 :]] for place, level in enumerate(levels) if level]
        step = next((step for step in sorted(below, key=loss) if suppressed(step) <= SHARE * data.rows), None)
        if step is None:
            return loss(levels)
        levels = step


def searched(columns: int, checks: int | None) -> dict[str, Any]:
    """One search: the losses on the way from the end of the dive on, what was found, and seconds of processor time."""
    data, seen = independent(columns), list[Progress]()
    began = time.process_time()
    found = optimum(
        data,
        Goal.of([{"k-anonymity": {"k": K}}], data),
        loss=Loss("entropy"),
        suppression=SHARE,
        progress=seen.append,
        **({} if checks is None else {"checks": checks}),
    )
    way = [(state.checks, state.loss) for state in seen if state.loss is not None]
    seconds = time.process_time() - began
    return {"loss": found.loss, "gap": found.gap, "checks": found.checks, "seconds": seconds, "way": way}


def greedy_rows(table: Table, checks: int) -> None:
    for columns in (8, 10, 12, 15):
        rival, found = naive_greedy(independent(columns)), searched(columns, checks)
        dive = found["checks"] - checks
        after = [loss for number, loss in found["way"] if number >= dive] or [found["loss"]]
        tenth = [loss for number, loss in found["way"] if number <= dive + checks // 10][-1]
        about = f"gap {found['gap'] / found['loss']:.1%} after {found['checks']:,} nodes"
        table.add(f"{columns} QI: first answer over greedy's loss", after[0] / rival, 1.0)
        table.add(f"{columns} QI: answer at {checks:,} nodes over greedy's", found["loss"] / rival, 1.0, about)
        table.add(f"{columns} QI: after a tenth of the limit over the last", tenth / found["loss"], 1.03)


def proof_rows(table: Table, before: str) -> None:
    now = _elsewhere(ROOT / "src")
    table.add("8 QI: gap at the end", now["gap"], 0.0, f"{now['seconds']:.0f} s, {now['checks']:,} nodes")
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", before, "src"], cwd=ROOT, capture_output=True, check=False)
        if packed.returncode:
            print(f"8 QI: no commit {before} here, comparison left out")
        else:
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
                archive.extractall(folder, filter="data")
            then = _elsewhere(Path(folder) / "src")
            about = f"{then['seconds']:.0f} s then; losses {then['loss']:.6g} and {now['loss']:.6g}"
            table.add("8 QI: seconds to the proof over those before", now["seconds"] / then["seconds"], 0.5, about)
    found = searched(10, None)
    about = f"{found['seconds']:.0f} s, {found['checks']:,} nodes"
    table.add("10 QI: gap over the loss without any limit given", found["gap"] / found["loss"], 1.0, about)


def _elsewhere(source: Path) -> dict[str, Any]:
    """The search of eight by some state of the library, in a process of its own."""
    command = [sys.executable, __file__, "--search", "8"]
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


# -- memory --------------------------------------------------------------------------------------------------------


def memory_rows(table: Table, records: int) -> None:
    random = np.random.default_rng(3)
    values = np.array([f"d{number:02}" for number in range(48)])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame = {
            "age": random.integers(18, 90, records).astype(np.int16),
            "zip": random.integers(1_000, 9_999, records).astype(np.int16),
            "sex": np.array(["f", "m"])[random.integers(0, 2, records)],
            "disease": values[random.choice(48, records, p=random.dirichlet(np.full(48, 3.0)))],
        }
        pl.DataFrame(frame).write_parquet(folder / "table.parquet")
        del frame
        (folder / "policy.yaml").write_text(POLICY)
        command = ["anonymize", folder / "policy.yaml", folder / "table.parquet", "--out", folder / "release"]
        peak = _peak([sys.executable, "-m", "polyseme", *map(str, command)])
    table.add(f"anatomy, {records:,} rows: peak in MB", peak, MEGABYTES)


def _peak(command: list[str]) -> float:
    """The most memory, in MB, that a command and its children hold at one time."""
    process, peak = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while process.poll() is None:
        peak = max(peak, sum(map(_resident, _tree(process.pid))))
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"the command failed: {process.returncode}")
    return peak / 1e3


def _tree(number: int) -> Iterator[int]:
    yield number
    try:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def _resident(number: int) -> int:
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


# -- Mondrian ------------------------------------------------------------------------------------------------------


def relaxed_rows(table: Table) -> None:
    ratios = [_widths(columns, k) for columns, k in _random_tables()]
    if ADULT.exists():
        columns = _adult()
        ratios.append(_widths(columns, 10))
        _beside_anonypy(table, columns[:3])
    else:
        print("no adult.data: left out")
    strict, relaxed = (mean(widths) for widths in zip(*ratios))
    worst = max(one / other if other else 1.0 + one for other, one in ratios)
    table.add(f"relaxed over strict, mean of {len(ratios)} tables", relaxed / strict, 1.0, f"worst {worst:.4f}")


def _beside_anonypy(table: Table, columns: list[Ints]) -> None:
    python = peer_python("anonypy", "pandas")
    if python is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        pl.DataFrame({f"q{place}": column for place, column in enumerate(columns)}).write_csv(path)
        command = [python, "-W", "ignore", "-c", PEER, path, "10"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print("anonypy failed, comparison left out")
        return
    strict, relaxed = _widths(columns, 10)
    theirs = float(json.loads(done.stdout))
    about = f"{relaxed:.4f}, anonypy {theirs:.4f}, strict {strict:.4f}"
    table.add("relaxed over anonypy, three numbers of Adult, k = 10", relaxed / theirs, 1.0, about)


def _widths(columns: list[Ints], k: int) -> tuple[float, float]:
    """The mean share of its column that a cell spans: strict, and relaxed."""
    found = [np.unique(column, return_inverse=True) for column in columns]
    ladders = [
        Ladder(
            f"q{place}", (np.arange(len(held)), np.zeros(len(held), dtype=np.int64)), (tuple(map(str, held)), ("*",))
        )
        for place, (held, _) in enumerate(found)
    ]
    data = Microdata(tuple(ladders), np.column_stack([codes for _, codes in found]))
    goal = Goal.of([{"k-anonymity": {"k": k}}], data)
    values = [held for held, _ in found]
    strict = mondrian(data, goal, SystemStream.seeded(7))
    return _width(strict, values), _width(mondrian(data, goal, SystemStream.seeded(7), "relaxed"), values)


def _width(made: Recoding, values: list[Ints]) -> float:
    shares = []
    for place, held in enumerate(values):
        spans = np.array([held[leaves[-1]] - held[leaves[0]] for leaves in made.cells[place].leaves])
        shares.append(float(spans[made.shown[made.classes, place]].mean()) / max(int(held[-1] - held[0]), 1))
    return mean(shares)


def _random_tables() -> Iterator[tuple[list[Ints], int]]:
    for seed in range(20):
        random = np.random.default_rng(100 + seed)
        rows, columns, k = (int(random.integers(*ends)) for ends in ((300, 3_000), (2, 7), (2, 26)))
        made = []
        for _ in range(columns):
            size, kind = int(random.choice([3, 8, 20, 73, 200, 1_000])), random.integers(3)
            drawn = [
                random.integers(0, size, rows),
                random.normal(size / 2, size / 6, rows).astype(np.int64),
                random.geometric(min(1.0, 5 / size), rows) - 1,
            ]
            made.append(np.clip(drawn[kind], 0, size - 1))
        yield made, k


def _adult() -> list[Ints]:
    """Age, years of education and hours; then five columns of categories, in the order of their names."""
    raw = pl.read_csv(ADULT, has_header=False, infer_schema=False).select(pl.all().str.strip_chars())
    raw = raw.filter(pl.nth(0) != "")
    numbers = [raw.to_series(place).cast(pl.Int64).to_numpy() for place in (0, 4, 12)]
    return numbers + [np.unique(raw.to_series(place).to_numpy(), return_inverse=True)[1] for place in (1, 5, 6, 8, 9)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[[], "greedy", "proof", "memory", "relaxed"])
    parser.add_argument("--checks", type=int, default=1_000, help="nodes that are looked at after the dive")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--before", default="066704ab", help="the commit that the proof is compared with")
    parser.add_argument("--search", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.search:
        # Earlier commits know no such limit, and went on to the proof.
        endless = 10**9 if "checks" in inspect.signature(optimum).parameters else None
        print(json.dumps({name: found for name, found in searched(given.search, endless).items() if name != "way"}))
        return 0
    table = Table()
    for name in given.rows or ("relaxed", "greedy", "memory", "proof"):
        if name == "relaxed":
            relaxed_rows(table)
        elif name == "greedy":
            greedy_rows(table, given.checks)
        elif name == "memory":
            memory_rows(table, given.records)
        else:
            proof_rows(table, given.before)
    return 0 if table.holds else 1


if __name__ == "__main__":
    sys.exit(main())
