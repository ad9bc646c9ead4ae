"""Measuring the points of studies on several cores; what is measured is kept at once, and never measured again."""

from __future__ import annotations

import multiprocessing
import multiprocessing.pool
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from polyseme.kernel.work import Cancellation
from polyseme.studies.reproduce.kept import Measured, append, read
from polyseme.studies.reproduce.registry import STUDIES
from polyseme.studies.reproduce.study import Point, Results, Sources, Study

__all__ = ["Outcome", "kept_outcome", "measure", "missing"]

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
    """Stopping the run stops the workers too: an interruption is for the process that started them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(job: _Job) -> tuple[_Job, Measured]:
    name, point, sources = job
    begin = time.process_time()  # of the processor, whatever else the machine does
    rows = STUDIES[name].run(point, sources)
    return job, Measured(tuple(rows), time.process_time() - begin)
