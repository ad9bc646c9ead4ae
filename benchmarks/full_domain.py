"""The optimal full-domain generalization of the Adult records: seconds, nodes looked at, peak memory.

    python benchmarks/full_domain.py [FOLDER] [--case NAME]

FOLDER holds `adult-arx.csv` and `hierarchies/`, as the ARX tool publishes them. A million records are drawn from these
with replacement, a fifth of the cells then drawn again. The lattice of 259,200 nodes has two more quasi-identifiers,
hours and area, that were generated and depend on nothing, so that little is ruled out at a time. Every case runs in
a fresh interpreter; reading and drawing are not timed.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from polyseme.kernel.randomness import experiment
from polyseme.methods.full_domain import Progress, full_domain
from polyseme.methods.goal import Goal
from polyseme.methods.losses import Loss
from polyseme.methods.microdata import Ladder, Microdata, Sensitive
from polyseme.semantics.hierarchies import Hierarchy, Intervals, Prefixes, Rule, fit, values_of
from polyseme.semantics.hierarchies.builders import read_listed

NAMES = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
NAMES.append("salary-class")
ALWAYS = 100_000
"""Lattices of no more nodes are searched to the end; larger ones for as long as they may take."""
K = {"k-anonymity": {"k": 5}}


def adult(folder: Path, sensitive: str = "") -> Microdata:
    table = pl.read_csv(folder / "adult-arx.csv", separator=";", infer_schema=False)
    names = [name for name in NAMES if name != sensitive]
    found = [fit(read_listed(folder / "hierarchies" / f"{name}.csv")) for name in names]
    codes = np.column_stack([hierarchy.codes(table[name]) for name, hierarchy in zip(names, found)])
    secret = {}
    if sensitive:
        values = table[sensitive].unique().sort()
        order = table[sensitive].replace_strict(values, range(len(values))).cast(pl.Int64).to_numpy()
        secret[sensitive] = Sensitive(sensitive, order, tuple(values.to_list()))
    return Microdata(tuple(Ladder.of(name, hierarchy) for name, hierarchy in zip(names, found)), codes, secret)


def million(data: Microdata, rows: int = 1_000_000, again: float = 0.2) -> Microdata:
    random = experiment(1)
    drawn = random.integers(0, data.records, rows)

    def cells(column: np.ndarray) -> np.ndarray:
        taken = np.where(random.random(rows) < again, random.integers(0, data.records, rows), drawn)
        return column[taken]

    codes = np.column_stack([cells(column) for column in data.codes.T])
    return replace(
        data, codes=codes, sensitive={k: replace(s, codes=cells(s.codes)) for k, s in data.sensitive.items()}
    )


def wider(data: Microdata) -> Microdata:
    random = experiment(7)
    hours = np.clip(np.round(random.normal(40, 12, data.records)), 1, 99).astype(int)
    area = np.minimum(random.geometric(0.02, data.records), 999)
    columns = {
        "hours": (Intervals((5, 10, 20)), hours.astype(str)),
        "area": (Prefixes.masking(3), np.char.zfill(area.astype(str), 3)),
    }
    for name, (rule, values) in columns.items():
        hierarchy, codes = _fitted(rule, pl.Series(values.tolist()))
        data = replace(
            data, ladders=(*data.ladders, Ladder.of(name, hierarchy)), codes=np.column_stack([data.codes, codes])
        )
    return data


def _fitted(rule: Rule, values: pl.Series) -> tuple[Hierarchy, np.ndarray]:
    hierarchy = fit(rule, values_of([values]))
    return hierarchy, hierarchy.codes(values)


@dataclass(frozen=True)
class Case:
    """A table, a goal, a loss, and the seconds that it may take."""

    data: Callable[[Path], Microdata]
    goal: list[dict[str, dict[str, object]]]
    loss: str
    seconds: float
    local: bool = False


CASES = {
    "k = 5, 9 QI": Case(adult, [K], "entropy", 1),
    "k = 5, 9 QI, recoded locally": Case(adult, [K], "entropy", 3, local=True),
    "distinct 5": Case(
        lambda folder: adult(folder, "occupation"), [{"distinct-diversity": {"l": 5}}], "discernibility", 1
    ),
    "t = 0.2, k = 5": Case(
        lambda folder: adult(folder, "occupation"), [{"closeness": {"t": 0.2}}, K], "discernibility", 2
    ),
    "k = 5, 9 QI, 1 million": Case(lambda folder: million(adult(folder)), [K], "entropy", 10),
    "distinct 5, 1 million": Case(
        lambda folder: million(adult(folder, "occupation")), [{"distinct-diversity": {"l": 5}}], "discernibility", 10
    ),
    "k = 5, 11 QI, 259,200 nodes": Case(lambda folder: wider(adult(folder)), [K], "entropy", 30),
}
"""All with 4% suppression."""


def run(case: Case, folder: Path) -> None:
    data = case.data(folder)
    seen: list[Progress] = []
    nodes = math.prod(ladder.height + 1 for ladder in data.ladders)
    started, worked = time.perf_counter(), time.process_time()
    made = full_domain(
        data,
        Goal.of(case.goal, data),
        loss=Loss(case.loss),
        suppression=0.04,
        local_recoding=case.local,
        time_limit=case.seconds if nodes > ALWAYS else None,
        progress=seen.append,
    )
    seconds, processor = time.perf_counter() - started, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    late = "" if seconds <= case.seconds else f"  more than {case.seconds:g} s"
    gap = "none" if not seen[-1].gap else f"{seen[-1].gap / (seen[-1].loss or 1.0):.1%}"
    lost = int(made.suppressed.sum())
    print(
        f"{seconds:>8.2f}{processor:>8.2f}{seen[-1].checks:>8,}{nodes:>9,}{lost:>10,}{gap:>8}{peak:>9,.0f}{late}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("../shared/data/adult"))
    parser.add_argument("--case", choices=CASES)
    options = parser.parse_args()
    if not (options.folder / "adult-arx.csv").exists():
        print(f"no adult-arx.csv in {options.folder}: nothing was measured")
        return
    if options.case:
        run(CASES[options.case], options.folder)
        return
    heads = [("seconds", 8), ("of CPU", 8), ("checks", 8), ("nodes", 9), ("lost rows", 10), ("gap", 8), ("peak MB", 9)]
    print(f"{'4% suppression':32}" + "".join(f"{head:>{width}}" for head, width in heads))
    for name in CASES:
        print(f"{name:32}", end="", flush=True)
        subprocess.run([sys.executable, __file__, str(options.folder), "--case", name], check=True)


if __name__ == "__main__":
    main()
