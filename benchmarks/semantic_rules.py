"""The rule paper's experiment on Adult: vulnerable classes, what merging them costs, class size and discernibility.

    python benchmarks/semantic_rules.py [FOLDER] [--search]

FOLDER holds adult.data, adult.test and hierarchies/; by default the one beside the project. `--search` looks through
all nodes first, which takes about a minute.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from polyseme.papers.rule_paper import ENTROPY, RECURSIVE, nodes_with, prevented, read_adult

ADULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult"
NODES = (
    (0, 0, 0, 1, 0, 1, 2),
    (0, 0, 1, 2, 1, 2, 0),
    (0, 1, 0, 0, 0, 2, 1),
    (1, 0, 1, 1, 1, 0, 0),
    (1, 1, 0, 0, 1, 1, 0),
)


def main(folder: Path, search: bool) -> None:
    data = read_adult(folder)
    nodes = list(nodes_with(data, {10: ENTROPY, 20: RECURSIVE})) if search else NODES
    print(f"{data.records:,} records; levels with 10 and 20 vulnerable classes: {len(nodes)}")
    print("levels         diversity   classes vulnerable left greedy  exact suppressing  size, after     DM, after")
    for levels in nodes:
        for model in (ENTROPY, RECURSIVE):
            begin = time.perf_counter()
            found = prevented(data, levels, model)
            took = time.perf_counter() - begin
            print(
                f"{','.join(map(str, levels))}  {next(iter(model)).removesuffix('-diversity'):<11}{found.classes:>8,}"
                f"{found.vulnerable:>11}{found.left:>5}{found.greedy:>7.2f}{found.least:>7.2f}{found.suppressing:>12}"
                f"{found.size:>9.2f},{found.size_after:>7.2f}  {found.cost:,}, {found.cost_after:,}  {took:.2f} s"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ADULT)
    parser.add_argument("--search", action="store_true")
    chosen = parser.parse_args()
    if (chosen.folder / "adult.data").exists():
        main(chosen.folder, chosen.search)
    else:
        print("skipped: the Adult records are not beside the project; give their folder")
