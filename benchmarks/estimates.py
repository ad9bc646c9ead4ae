"""What questions cost: many groups, many values, two attributes, few records.

    python benchmarks/estimates.py [NAME..]

Processor seconds of fresh processes, as ratios to a simpler question about the same release; start-up is that of
`--estimator inverse` on 1,000 rows. Prints the bar of each row and whether it holds; exits with 1 where one does not.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import polyseme as ps


def labels(size: int) -> list[str]:
    return [f"{code:05}" for code in range(size)]


def publish(folder: Path, name: str, table: pl.DataFrame, attributes: dict[str, str]) -> Path:
    lines = [f"  {attribute}: {{{words}}}" for attribute, words in attributes.items()]
    policy = ps.Policy.loads("attributes:\n" + "\n".join(lines) + "\n")
    ps.anonymize(table, policy, folder / name, warn=lambda text: None, seed=7, accept_risk=True)
    return folder / name


def sensitive(size: int, rest: str) -> str:
    return f"role: sensitive, domain: {json.dumps(labels(size))}, {rest}"


def codes(values: np.ndarray, size: int) -> np.ndarray:
    return np.array(labels(size))[np.clip(values.round().astype(int), 0, size - 1)]


def groups(folder: Path, rows: int = 1_000_000, many: int = 10_000) -> Path:
    random = np.random.default_rng(5)
    group = random.integers(0, many, rows)
    table = pl.DataFrame({"g": codes(group, many), "v": codes(random.normal(6 + group % 5, 2.5), 14)})
    line = "distance: {line: rank}, protect: {semantic-diversity: {l: 3, d: 3}}"
    return publish(folder, "groups", table, {"g": "role: quasi-identifier", "v": sensitive(14, line)})


def values(folder: Path, rows: int = 1_000_000, size: int = 10_000) -> Path:
    weights = np.arange(1, size + 1) ** -0.9
    drawn = np.random.default_rng(6).choice(size, rows, p=weights / weights.sum())
    table = pl.DataFrame({"v": codes(drawn, size)})
    return publish(folder, "values", table, {"v": sensitive(size, "protect: {diversity: {l: 3}}")})


def pair(folder: Path, rows: int = 1_000_000, size: int = 100) -> Path:
    random = np.random.default_rng(7)
    left = random.normal(40, 15, rows)
    table = pl.DataFrame({"a": codes(left, size), "b": codes(left + random.normal(0, 15, rows), size)})
    plain = sensitive(size, "protect: {diversity: {l: 3}}")
    return publish(folder, "pair", table, {"a": plain, "b": plain})


def few(folder: Path, rows: int = 1_000) -> Path:
    random = np.random.default_rng(8)
    age, sex = random.integers(2, 7, rows), random.integers(0, 2, rows)
    income = random.normal(age, 2.0)
    table = pl.DataFrame({"age": age, "sex": sex, "income": codes(income, 10), "job": codes(income / 2, 6)})
    line = "distance: {line: rank}, protect: {semantic-diversity: {l: 3, d: 3}}"
    known = {"age": "role: quasi-identifier", "sex": "role: quasi-identifier"}
    protected = {"income": sensitive(10, line), "job": sensitive(6, "protect: {diversity: {l: 2}}")}
    return publish(folder, "few", table, {**known, **protected})


def seconds(release: Path, *question: str) -> float:
    """Processor seconds of `polyseme estimate` in a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "polyseme", "estimate", str(release), *question]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={"OPENBLAS_NUM_THREADS": "1", **os.environ})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main(names: list[str]) -> int:
    missed = 0

    def row(what: str, found: float, bar: float, unit: str) -> None:
        nonlocal missed
        missed += found > bar
        print(f"{what:<58}{found:>8.2f}{bar:>7.1f}  {unit:<22}{'holds' if found <= bar else 'MISSED'}", flush=True)

    print(f"{'':58}{'found':>8}{'bar':>7}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not names or "groups" in names:
            release = groups(folder)
            question = ("--of", "v", "--by", "g")
            plain = seconds(release, *question, "--estimator", "inverse")
            row("10,000 groups x 14 values, chosen", seconds(release, *question) / plain, 4.4, "x inverse")
        if not names or "values" in names:
            release = values(folder)
            plain = seconds(release, "--of", "v", "--estimator", "ml")
            row("10,000 plain values, chosen", seconds(release, "--of", "v") / plain, 2.0, "x ml")
        if not names or "pair" in names:
            release = pair(folder)
            plain = seconds(release, "--of", "a", "--of", "b", "--estimator", "ml")
            row("100 x 100 values, chosen", seconds(release, "--of", "a", "--of", "b") / plain, 1.5, "x ml")
        if not names or "few" in names:
            release = few(folder)
            start = seconds(release, "--of", "income", "--estimator", "inverse")
            row("1,000 rows by age and sex", seconds(release, "--of", "income", "--by", "age,sex") - start, 1.0, "s")
            row("1,000 rows, two attributes", seconds(release, "--of", "income", "--of", "job") - start, 1.0, "s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
