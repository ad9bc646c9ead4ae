"""Where a user could fall off: tables that are long or wide, codes that look like diseases, settings to explore.

    python benchmarks/cliffs.py [ROWS]

Each line is a ratio or a size beside its bar. Memory is the peak of the process and all that it started. DuckDB gets an
environment of its own. Seconds are those of all cores, because they depend less on what else the machine does; of a
command, those beyond the same command on a table of 100 rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import polyseme as ps
from polyseme.demo.walkthrough import DEMO_POLICY, income_statistics, income_table, with_age_bands
from polyseme.inference.knowledge.tradeoff import advise, tradeoff
from polyseme.verbs.plan import frontier

sys.path.insert(0, str(Path(__file__).resolve().parent))
from peers import peer_python

from engines import make_table, verdict

ROWS = 10_000_000
MEMORY = 0.6e9
TIMES_DUCKDB = 2.0
WIDER = 4.0
"""How much longer 1,000 columns may take than 300."""
LIKE_DISEASES = 1.5
"""How much longer a draft may take for codes that look like diseases than for other texts."""
EXPLORED = {"frontier": 0.97, "advise": 0.2}
"""Seconds: a tenth of what they took."""
MODELS = """
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  weight: {role: insensitive}
  income: {role: sensitive}
models: [{k-anonymity: {k: 5}}, {distinct-diversity: {l: 2}}]
"""
CLASSES = "import duckdb; duckdb.sql(\"select age, sex, income, count(*) from '{}' group by all\").fetchall()"


@dataclass(frozen=True)
class Cost:
    """Seconds of all cores, and bytes of memory at the most, of a process and all that it started."""

    seconds: float
    peak: float


def measured(command: Sequence[str]) -> Cost:
    """What a command costs in a process of its own."""
    before = os.times()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_resident, _tree(process.pid))))
        time.sleep(0.01)
    if process.returncode not in (0, 1):  # 1: some model does not hold
        raise RuntimeError(f"{' '.join(command[:4])} failed")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(used, float(peak))


def _tree(pid: int) -> list[int]:
    """A process and all that it started, as Linux lists them."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [other for child in task.read_text().split() for other in _tree(int(child))]
        except OSError:  # it has ended
            continue
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def long_tables(folder: Path, rows: int) -> None:
    """`risk` and `verify` of a long table with few classes, beside DuckDB counting the same classes."""
    policy, short, long = folder / "models.yaml", folder / "short.parquet", folder / "long.parquet"
    policy.write_text(MODELS)
    make_table(short, 100)
    make_table(long, rows)
    duckdb = peer_python("duckdb")
    theirs = None
    if duckdb is not None:
        runs = [measured([str(duckdb), "-c", CLASSES.format(path)]).seconds for path in (short, long)]
        theirs = runs[1] - runs[0]
    for name, options in (
        ("risk", ["--qi", "age,sex", "--sensitive", "income"]),
        ("verify", ["--policy", str(policy)]),
    ):
        start = [sys.executable, "-m", "polyseme", name]
        few, many = measured([*start, str(short), *options]), measured([*start, str(long), *options])
        verdict(
            f"{name} of {rows:,} rows: peak {many.peak / 1e6:.0f} MB", f"{MEMORY / 1e6:.0f} MB", many.peak <= MEMORY
        )
        if theirs is None:
            continue
        ratio = (many.seconds - few.seconds) / theirs
        verdict(
            f"{name} of {rows:,} rows: {ratio:.2f} x DuckDB ({theirs:.2f} s)",
            f"{TIMES_DUCKDB:g}",
            ratio <= TIMES_DUCKDB,
        )


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def wide_tables(rows: int = 2_000) -> None:
    """`risk` of tables with many columns."""

    def table(columns: int) -> pl.DataFrame:
        random = np.random.default_rng(1)
        drawn = {f"q{place}": random.integers(0, 4 + place % 13, rows) for place in range(columns)}
        return pl.DataFrame({name: [f"{code:02}" for code in codes.tolist()] for name, codes in drawn.items()})

    def of(columns: int, named: bool) -> float:
        made = table(columns)
        return seconds(lambda: ps.risk(made, made.columns if named else None))

    for what, named in (("columns named", True), ("columns chosen", False)):
        few, many = of(300, named), of(1_000, named)
        text = f"risk of {rows:,} rows, {what}: 1,000 columns take {many / few:.2f} x 300 ({few:.2f} s)"
        verdict(text, f"{WIDER:g}", many <= WIDER * few)


def codes_like_diseases(rows: int = 500, columns: int = 300) -> None:
    """`init` of codes that look like those of diseases."""
    random = np.random.default_rng(1)

    def table(begin: str) -> pl.DataFrame:
        drawn = {f"c{place}": random.integers(0, 12, rows).tolist() for place in range(columns)}
        return pl.DataFrame(
            {
                name: [f"{begin}{place % 80:03}{code:02}" for code in codes]
                for place, (name, codes) in enumerate(drawn.items())
            }
        )

    usual, alike = (seconds(lambda made=made: ps.init(made)) for made in (table("word "), table("k")))
    text = f"init of {columns} columns: codes like k00011 take {alike / usual:.2f} x other texts ({usual:.2f} s)"
    verdict(text, f"{LIKE_DISEASES:g}", alike <= LIKE_DISEASES * usual)
    found = ps.init(table("k")).count("    role: sensitive ")
    verdict(f"init: {found} of {columns} such columns are drafted as sensitive", "0", found == 0)


def exploring(folder: Path) -> None:
    """`plan --frontier` and `--advise` on the demo, beyond the plan."""
    (folder / "statistics.csv").write_text(income_statistics())
    (folder / "policy.yaml").write_text(DEMO_POLICY)
    made = ps.plan(folder / "policy.yaml", data=with_age_bands(income_table(100_000)))
    for name, work in (
        ("frontier", lambda: (frontier(made), tradeoff(made))),
        ("advise", lambda: advise(made, 0.5)),
    ):
        used = seconds(work)
        verdict(
            f"plan --{name} of the demo: {used:.2f} s beyond the plan", f"{EXPLORED[name]:g} s", used <= EXPLORED[name]
        )


def main(rows: int = ROWS) -> None:
    with tempfile.TemporaryDirectory() as name:
        long_tables(Path(name), rows)
        wide_tables()
        codes_like_diseases()
        exploring(Path(name))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
