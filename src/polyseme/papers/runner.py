"""The studies by name, and measuring their points on several cores.

What is measured is kept at once, one line each in a file of the study, so that a stopped run goes on and measures
nothing twice. An incomplete last line is ignored: the next one begins after it.
"""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.pool
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from polyseme.kernel.work import Cancellation
from polyseme.papers import attacks, comparisons, conference, le_diversity, learner_figures, printed, rule_paper
from polyseme.papers.journal import (
    efficiency,
    histograms,
    mean_squared_error,
    posterior,
    violation_measured,
    violation_theory,
    worked_example,
)
from polyseme.papers.sensitive_qids import age_occupation, queries, times
from polyseme.papers.study import Point, Results, Row, Sources, Study

__all__ = ["STUDIES", "Measured", "Outcome", "append", "kept_outcome", "measure", "missing", "read"]


@dataclass(frozen=True)
class Measured:
    """The rows of one point, and how long they took."""

    rows: tuple[Row, ...]
    seconds: float


def append(file: Path, study: Study, point: Point, measured: Measured) -> None:
    """Add one point."""
    entry = {
        "point": _identity(study, point),
        "seconds": round(measured.seconds, 3),
        "rows": [astuple(row) for row in measured.rows],
    }
    begin = "" if _ends_a_line(file) else "\n"
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"{begin}{json.dumps(entry)}\n")


def _ends_a_line(file: Path) -> bool:
    return not file.exists() or file.read_bytes()[-1:] in (b"", b"\n")


def read(file: Path, study: Study, points: list[Point]) -> dict[Point, Measured]:
    """Those of the points that are measured."""
    wanted = {_identity(study, point): point for point in points}
    found: dict[Point, Measured] = {}
    for entry in _entries(file):
        point = wanted.get(entry["point"])
        if point is not None:
            found[point] = Measured(tuple(Row(*row) for row in entry["rows"]), entry["seconds"])
    return found


def _identity(study: Study, point: Point) -> str:
    """Whatever the numbers depend on."""
    return f"edition {study.edition}, seed {study.seed}: {point.key}"


def _entries(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    entries = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the line that was being written when the run was stopped
        if isinstance(entry, dict) and {"point", "seconds", "rows"} <= entry.keys():
            entries.append(entry)
    return entries


_ALL = (
    worked_example.STUDY,
    printed.STUDY,
    violation_theory.STUDY,
    violation_measured.STUDY,
    posterior.STUDY,
    mean_squared_error.STUDY,
    histograms.STUDY,
    efficiency.STUDY,
    conference.STUDY,
    age_occupation.STUDY,
    queries.BY_L,
    queries.BY_T,
    times.STUDY,
    le_diversity.STUDY,
    rule_paper.STUDY,
    learner_figures.STUDY,
    attacks.STUDY,
    comparisons.STUDY,
)

STUDIES: Mapping[str, Study] = MappingProxyType({study.name: study for study in _ALL})


Progress: TypeAlias = Callable[[float], None]
"""Told how many seconds of estimated work were done."""

_Job: TypeAlias = tuple[str, Point, Sources]

_PATIENCE = 0.3
"""Seconds between two checks for cancellation."""


@dataclass(frozen=True)
class Outcome:
    """What a study found, as far as it is measured.

    seconds  of all its points, as measured on one core
    """

    study: Study
    results: Results
    points: tuple[Point, ...]
    seconds: float
    quick: bool


def missing(study: Study, folder: Path, quick: bool, sources: Sources) -> list[Point]:
    """The points that are still to be measured."""
    points = study.points(quick, sources)
    done = read(_file(folder, study), study, points)
    return [point for point in points if point not in done]


def kept_outcome(study: Study, folder: Path, quick: bool, sources: Sources) -> Outcome | None:
    """What is kept of a study; None unless every point of its grid is."""
    points = study.points(quick, sources)
    done = read(_file(folder, study), study, points)
    if not points or len(done) < len(points):
        return None
    rows = [row for point in points for row in done[point].rows]
    return Outcome(study, Results(rows), tuple(points), sum(done[point].seconds for point in points), quick)


def measure(
    work: Sequence[tuple[Study, Point]],
    folder: Path,
    sources: Sources,
    jobs: int,
    progress: Progress,
    cancellation: Cancellation | None = None,
) -> None:
    """Measure points, the longest first, and keep each as soon as it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(work, key=lambda item: -item[1].seconds)
    for (study, point), measured in _measured(ordered, sources, jobs, cancellation):
        append(_file(folder, study), study, point, measured)
        progress(point.seconds)
        if cancellation is not None:
            cancellation.check()


def _file(folder: Path, study: Study) -> Path:
    return folder / f"{study.name}.jsonl"


def _measured(
    work: Sequence[tuple[Study, Point]], sources: Sources, jobs: int, cancellation: Cancellation | None
) -> Iterator[tuple[tuple[Study, Point], Measured]]:
    if jobs == 1 or len(work) < 2:
        for study, point in work:
            yield (study, point), _one((study.name, point, sources))[1]
        return
    # A fresh process rather than a copy of this one: copies of processes with threads may hang.
    context = multiprocessing.get_context("spawn")
    waiting = [(study.name, point, sources) for study, point in work]
    by_name = {study.name: study for study, _ in work}
    with context.Pool(min(jobs, len(work)), _be_a_worker) as pool:
        arriving = pool.imap_unordered(_one, waiting)
        for _ in work:
            (name, point, _), measured = _next(arriving, cancellation)
            yield (by_name[name], point), measured


def _next(
    arriving: multiprocessing.pool.IMapIterator[tuple[_Job, Measured]], cancellation: Cancellation | None
) -> tuple[_Job, Measured]:
    while True:
        try:
            return arriving.next(_PATIENCE)
        except multiprocessing.TimeoutError:
            if cancellation is not None:
                cancellation.check()


def _be_a_worker() -> None:
    """Ignore interrupts in a worker: the process that started the workers stops them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(job: _Job) -> tuple[_Job, Measured]:
    name, point, sources = job
    begin = time.process_time()  # of the processor, whatever else the machine does
    rows = STUDIES[name].run(point, sources)
    return job, Measured(tuple(rows), time.process_time() - begin)
