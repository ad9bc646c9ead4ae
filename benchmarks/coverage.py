"""`make coverage`: how often intervals hold the truth, over everything people ask; nominal ones of 95%, but for some.

Every scene is released some times. With thousands of classes of answers many fall below 92% by chance, so the
questions of those that do are asked again of more and new releases, and once more of many: what counts is the last
look, which was not chosen for its result. Exits with 1 when a class is surely below 92% at its last look, when cells
that are well away from zero are surely covered in more than 99.5%, or when means, sums and such cells are surely more
than 3 points away from a level other than 95%.

`--further` looks only at large domains, weights, repeated people, small groups, pairs of attributes and other levels:
about 20 minutes on one core.

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
from dataclasses import astuple, dataclass
from pathlib import Path

from polyseme.testing.coverage import DESIGNS, QUESTIONS, TRUTHS, Found, Scene, simulate
from polyseme.testing.record_coverage import RECORD_QUESTIONS, RecordScene, simulate_records

LEAST = 0.92
MOST = 0.995
"""What cells that are well away from zero may be covered in."""
OFF = 0.03
"""How far from another level than 95% the coverage may be."""
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


def further_scenes() -> list[RecordScene]:
    """Large domains, weights, repeated people with weights, small groups, two attributes, five levels."""
    shapes = ("smooth", "steep", "bimodal")
    large = itertools.product(shapes, ("120 (3,5)", "250 (4,8)"), ("ml", None))
    found = [RecordScene(t, line, 3_000, estimator=e) for t, line, e in large]
    lines = ("12 (3,3)", "10 (3,2) p 0.7")
    found += [
        RecordScene(t, line, n, weights=kind)
        for t, line, (kind, n) in itertools.product(
            shapes[:2], lines, (("spread", 500), ("heavy", 500), ("busy", 300), ("busy", 3_000))
        )
    ]
    found += [RecordScene(t, line, n, groups=g) for t, line in itertools.product(shapes[:2], lines) for n, g in SMALL]
    found += [RecordScene(t, "12 (3,3)", n, pair=True) for t, n in itertools.product(shapes, (300, 2_000))]
    levels = itertools.product(("uniform", "smooth"), ("12 (3,3)", "14 (2,2)"), ("ml", None), LEVELS)
    return found + [RecordScene(t, line, 1_500, estimator=e, level=level) for t, line, e, level in levels]


LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
SMALL = ((400, 8), (600, 20))
"""People and groups: 50 and 30 in each."""


@dataclass(frozen=True)
class Job:
    scene: Scene | RecordScene
    releases: int
    seed: int
    questions: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.scene} | {self.releases} | {self.seed} | {','.join(self.questions)}"


def one(job: Job) -> list[Found]:
    if isinstance(job.scene, RecordScene):
        return simulate_records(job.scene, job.releases, job.seed, job.questions)
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
                line = {"job": job.name, "found": [astuple(row)[1:] for row in rows]}
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
    parser.add_argument("--further", action="store_true", help="only large domains, weights, pairs and other levels")
    parser.add_argument("--part", default="1/1", help="which part of the scenes, such as 2/4")
    parser.add_argument("--worst", type=int, default=25, help="how many classes to print")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kept", type=Path, help="file of results, read and added to")
    chosen = parser.parse_args()
    part, parts = (int(word) for word in chosen.part.split("/"))
    usual = {} if chosen.further else {scene: tuple(QUESTIONS) for scene in scenes()}
    every = {**usual, **dict.fromkeys(further_scenes(), RECORD_QUESTIONS)}
    scenes_run = {scene: names for scene, names in every.items() if chosen.only in str(scene)}
    scenes_run = dict(list(scenes_run.items())[part - 1 :: parts])
    last: dict[tuple[Scene | RecordScene, str], Found] = {}
    for look, times in enumerate(LOOKS):
        jobs = [Job(scene, times * chosen.releases, chosen.seed + look, names) for scene, names in scenes_run.items()]
        found = run(jobs, chosen.jobs, chosen.kept)
        last |= {(row.scene, row.answer): row for row in found}
        doubtful = [row for row in last.values() if miss(row) > 0.0]
        print(f"look {look + 1}: {len(jobs)} scenes, {len(found)} classes, {len(doubtful)} out of bounds", flush=True)
        scenes_run = questions_of(doubtful)
    return show(list(last.values()), chosen.worst)


def level_of(scene: Scene | RecordScene) -> float:
    return scene.level if isinstance(scene, RecordScene) else 0.95


def miss(row: Found) -> float:
    """How far a class is out of its bounds; at most 0 where it is within them."""
    interior = row.answer.startswith("cell interior")
    level, inside = level_of(row.scene), interior or row.answer in ("mean", "sum of values")
    if level == 0.95:
        return max(LEAST - row.held, row.held - MOST if interior else 0.0)
    return max(level - OFF - row.held, row.held - min(level + OFF, MOST) if inside else 0.0)


def questions_of(rows: Iterable[Found]) -> dict[Scene | RecordScene, tuple[str, ...]]:
    """The questions whose classes these are, of each scene."""
    wanted: dict[Scene | RecordScene, set[str]] = defaultdict(set)
    for row in rows:
        wanted[row.scene].add(question_of(row.answer))
    return {scene: tuple(name for name in QUESTIONS if name in names) for scene, names in wanted.items()}


def question_of(answer: str) -> str:
    prefixes = {"cell": "cells", "margin": "margins", "mean": "means", "quantile": "quantiles"}
    prefixes |= {"difference": "differences", "sum": "sums", "standardized": "sums", "top": "top"}
    return prefixes[answer.split()[0]]


def show(found: list[Found], worst: int) -> int:
    """The mean of each question, and the worst classes."""
    found95 = [row for row in found if level_of(row.scene) == 0.95]
    names = sorted({row.answer for row in found95})
    print(f"{'question':<28}{'classes':>8}{'held':>8}{'worst':>8}")
    for name in names:
        rows = [row for row in found95 if row.answer == name]
        mean = sum(row.held * row.answers for row in rows) / sum(row.answers for row in rows)
        print(f"{name:<28}{len(rows):>8}{mean:>8.3f}{min(row.held for row in rows):>8.3f}")
    for level in sorted({level_of(row.scene) for row in found} - {0.95}):
        show_level(level, [row for row in found if level_of(row.scene) == level])
    print(f"\nthe {worst} worst of {len(found)} classes at their last look; +- is one standard error")
    for row in sorted(found, key=lambda row: -miss(row))[:worst]:
        print(f"{row.held:.3f} +- {row.doubt:.3f}  {row.answers:>6} answers  {row.answer:<24} {row.scene}")
    out = [row for row in found if miss(row) > 0.0]
    sure = [row for row in out if miss(row) > 2.0 * chance(row)]
    print(f"\n{len(out)} of {len(found)} classes are out of bounds, {len(sure)} of them by two standard errors")
    return 1 if sure else 0


def show_level(level: float, rows: list[Found]) -> None:
    """The mean of each question at another level."""
    for name in sorted({row.answer for row in rows}):
        here = [row for row in rows if row.answer == name]
        mean = sum(row.held * row.answers for row in here) / sum(row.answers for row in here)
        print(f"{f'{name} at {level:.0%}':<28}{len(here):>8}{mean:>8.3f}{min(row.held for row in here):>8.3f}")


def chance(row: Found) -> float:
    """The standard error of a coverage; at the upper bound where it is above that."""
    return row.doubt_at(MOST) if row.held > MOST else row.doubt


if __name__ == "__main__":
    sys.exit(main())
