"""`make coverage`: how often nominal 95% intervals hold the truth, over everything people ask.

Prints the worst classes of answers of every question; exits with 1 when a class is surely below 92%.
"""

import argparse
import itertools
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from polyseme.studies.coverage import DESIGNS, TRUTHS, Found, Scene, simulate

LEAST = 0.92


def scenes() -> list[Scene]:
    """Truths x designs x sizes, then groups, strata, repeated people, help, populations and the default choice."""
    found = [Scene(t, d, n) for t, d, n in itertools.product(TRUTHS, DESIGNS, (50, 300, 5_000))]
    some = ("line (3,3)", "line (3,4)", "line (2,2)", "epsilon 3", "line (3,2), p 0.7")
    found += [Scene(t, d, n, groups=g) for t, d in itertools.product(TRUTHS, some) for n, g in ((25, 40), (300, 8))]
    found += [Scene(t, d, n, strata=s) for t, d in itertools.product(TRUTHS, some) for n, s in ((240, 12), (6_000, 12))]
    found += [Scene(t, "line (3,3)", 100, groups=6, strata=4) for t in TRUTHS]
    found += [Scene(t, "line (3,3)", 3_000, repeats=r) for t, r in itertools.product(TRUTHS, (5, 20))]
    found += [Scene(t, d, 1_000, help=True, estimator=None) for t, d in itertools.product(TRUTHS, some[:2])]
    found += [Scene(t, d, 300, estimator=None) for t, d in itertools.product(TRUTHS, some)]
    found += [Scene(t, "line (3,3)", 25, groups=40, estimator=None) for t in TRUTHS]
    found += [Scene(t, d, 300, population="super") for t, d in itertools.product(TRUTHS, some)]
    found += [Scene(t, "line (3,3)", 25, groups=20, population="super") for t in TRUTHS]
    shapes = ("uniform", "smooth", "steep", "bimodal")
    groups = itertools.product(shapes, ("line (2,2)", "line (3,3)"), ("balanced", "stale", "learner"), (600, 12_000))
    found += [Scene(t, d, n, strata=6, priors=kind) for t, d, kind, n in groups]
    found += [Scene(t, "line (2,2)", 1_200, groups=4, strata=6, priors="learner", estimator=None) for t in shapes]
    return found


def one(job: tuple[Scene, int, int]) -> list[Found]:
    scene, releases, seed = job
    return simulate(scene, releases, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=60, help="of each scene")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="scenes whose description holds this text")
    parser.add_argument("--part", default="1/1", help="which part of the scenes, such as 2/4")
    parser.add_argument("--worst", type=int, default=25, help="how many classes to print")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    part, parts = (int(word) for word in chosen.part.split("/"))
    jobs = [(s, chosen.releases, chosen.seed) for s in scenes() if chosen.only in str(s)][part - 1 :: parts]
    began, found = time.time(), []
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for done, rows in enumerate(pool.map(one, jobs), start=1):
            found += rows
            if sys.stderr.isatty():
                print(f"\r{done} of {len(jobs)} scenes, {time.time() - began:.0f} s", end="", file=sys.stderr)
    return show(found, chosen.worst)


def show(found: list[Found], worst: int) -> int:
    """The mean of each question, and the worst classes."""
    names = sorted({row.answer for row in found})
    print(f"{'question':<28}{'classes':>8}{'held':>8}{'worst':>8}")
    for name in names:
        rows = [row for row in found if row.answer == name]
        mean = sum(row.held * row.answers for row in rows) / sum(row.answers for row in rows)
        print(f"{name:<28}{len(rows):>8}{mean:>8.3f}{min(row.held for row in rows):>8.3f}")
    print(f"\nthe {worst} worst of {len(found)} classes; +- is one standard error")
    for row in sorted(found, key=lambda row: row.held)[:worst]:
        print(f"{row.held:.3f} +- {row.doubt:.3f}  width {row.width:10.4f}  {row.answer:<24} {row.scene}")
    # With thousands of classes a few are below by chance: three standard errors are not.
    sure = [row for row in found if row.held + 3.0 * row.doubt < LEAST]
    print(f"\n{len(sure)} of {len(found)} classes are surely below {LEAST:.0%}")
    return 1 if sure else 0


if __name__ == "__main__":
    sys.exit(main())
