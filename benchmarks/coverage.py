"""`make coverage`: how often nominal 95% intervals hold the truth, over everything people ask.

Every scene is released some times. With thousands of classes of answers many fall below 92% by chance, so the
questions of those that do are asked again of more and new releases, and once more of many: what counts is the last
look, which was not chosen for its result. Exits with 1 when a class is surely below 92% at its last look.

Results are kept in a file as they come, and a run that was stopped goes on from there.
"""

import argparse
import itertools
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from polyseme.studies.choices import DESIGNS, TRUTHS
from polyseme.studies.coverage import QUESTIONS, Found, Scene, simulate

LEAST = 0.92
LOOKS = (1, 4, 12)
"""How many times the releases of the first look the second and the third have."""


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


@dataclass(frozen=True)
class Job:
    scene: Scene
    releases: int
    seed: int
    questions: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.scene} | {self.releases} | {self.seed} | {','.join(self.questions)}"


def one(job: Job) -> list[Found]:
    return simulate(job.scene, job.releases, job.seed, job.questions)


def run(jobs: list[Job], workers: int, kept: Path | None) -> list[Found]:
    """What the jobs find: what is kept already is read, the rest is simulated and kept."""
    known = {}
    if kept is not None and kept.exists():
        known = {row["job"]: row["found"] for row in map(json.loads, kept.read_text("utf-8").splitlines())}
    found = [Found(job.scene, *row) for job in jobs for row in known.get(job.name, ())]
    missing = [job for job in jobs if job.name not in known]
    began = time.time()
    with ProcessPoolExecutor(workers) as pool:
        running = {pool.submit(one, job): job for job in missing}
        for done, future in enumerate(as_completed(running), start=1):
            job, rows = running[future], future.result()
            found += rows
            if kept is not None:
                line = {"job": job.name, "found": [[r.answer, r.held, r.width, r.answers, r.releases] for r in rows]}
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            if sys.stderr.isatty():
                left = (time.time() - began) / done * (len(missing) - done)
                print(f"\r{done} of {len(missing)} scenes, {left / 60:.0f} minutes left ", end="", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=40, help="of each scene, at the first look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="scenes whose description holds this text")
    parser.add_argument("--part", default="1/1", help="which part of the scenes, such as 2/4")
    parser.add_argument("--worst", type=int, default=25, help="how many classes to print")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kept", type=Path, help="file of results, read and added to")
    chosen = parser.parse_args()
    part, parts = (int(word) for word in chosen.part.split("/"))
    asked = {scene: tuple(QUESTIONS) for scene in scenes() if chosen.only in str(scene)}
    asked = dict(list(asked.items())[part - 1 :: parts])
    last: dict[tuple[Scene, str], Found] = {}
    for look, times in enumerate(LOOKS):
        jobs = [Job(scene, times * chosen.releases, chosen.seed + look, names) for scene, names in asked.items()]
        found = run(jobs, chosen.jobs, chosen.kept)
        last |= {(row.scene, row.answer): row for row in found}
        low = [row for row in last.values() if row.held < LEAST]
        print(f"look {look + 1}: {len(jobs)} scenes, {len(found)} classes, {len(low)} below {LEAST:.0%}", flush=True)
        asked = questions_of(low)
    return show(list(last.values()), chosen.worst)


def questions_of(rows: Iterable[Found]) -> dict[Scene, tuple[str, ...]]:
    """The questions whose classes these are, of each scene."""
    asked: dict[Scene, set[str]] = defaultdict(set)
    for row in rows:
        asked[row.scene].add(question_of(row.answer))
    return {scene: tuple(name for name in QUESTIONS if name in names) for scene, names in asked.items()}


def question_of(answer: str) -> str:
    prefixes = {"cell": "cells", "margin": "margins", "mean": "means", "quantile": "quantiles"}
    prefixes |= {"difference": "differences", "sum": "sums", "standardised": "sums", "top": "top"}
    return prefixes[answer.split()[0]]


def show(found: list[Found], worst: int) -> int:
    """The mean of each question, and the worst classes."""
    names = sorted({row.answer for row in found})
    print(f"{'question':<28}{'classes':>8}{'held':>8}{'worst':>8}")
    for name in names:
        rows = [row for row in found if row.answer == name]
        mean = sum(row.held * row.answers for row in rows) / sum(row.answers for row in rows)
        print(f"{name:<28}{len(rows):>8}{mean:>8.3f}{min(row.held for row in rows):>8.3f}")
    print(f"\nthe {worst} worst of {len(found)} classes at their last look; +- is one standard error")
    for row in sorted(found, key=lambda row: row.held)[:worst]:
        print(f"{row.held:.3f} +- {row.doubt:.3f}  {row.answers:>6} answers  {row.answer:<24} {row.scene}")
    below = [row for row in found if row.held < LEAST]
    sure = [row for row in below if row.held + 2.0 * row.doubt < LEAST]
    print(f"\n{len(below)} of {len(found)} classes are below {LEAST:.0%}, {len(sure)} of them by two standard errors")
    return 1 if sure else 0


if __name__ == "__main__":
    sys.exit(main())
