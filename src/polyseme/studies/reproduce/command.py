"""The whole of `polyseme reproduce`: which studies, what is missing, measuring it, writing pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.errors import InvalidInput, Problem, QuestionError, nearest
from polyseme.kernel.work import Cancellation
from polyseme.studies.reproduce.adult import find_adult
from polyseme.studies.reproduce.pages import write_index, write_study
from polyseme.studies.reproduce.registry import STUDIES
from polyseme.studies.reproduce.running import Progress, kept_outcome, measure, missing
from polyseme.studies.reproduce.sensitive_qids.census import find_census
from polyseme.studies.reproduce.study import Finding, Sources, Study

__all__ = ["Done", "Work", "chosen_studies", "prepare", "reproduce"]

_DATA = ("adult", "census")
_KEPT = "points"
"""The folder of what is measured already, in the folder of the pages."""


@dataclass(frozen=True)
class Work:
    """What is to be done.

    found    where data of others is from, by its name
    seconds  about how long it takes on one core
    kept     points that are measured already
    notes    what cannot be run, and why
    """

    studies: tuple[Study, ...]
    out: Path
    quick: bool
    sources: Sources
    found: dict[str, str]
    seconds: float
    points: int
    kept: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """What came of it: the claims of each study that is on the pages."""

    index: Path
    findings: dict[str, list[Finding]]


def chosen_studies(names: Sequence[str]) -> tuple[Study, ...]:
    """The studies of these names, all of them without a name; says all that is wrong at once."""
    problems = [
        Problem(name, "there is no such study", nearest(name, STUDIES)) for name in names if name not in STUDIES
    ]
    if problems:
        raise QuestionError(problems)
    return tuple(STUDIES[name] for name in dict.fromkeys(names)) if names else tuple(STUDIES.values())


def prepare(names: Sequence[str], out: Path, quick: bool, data: dict[str, str]) -> Work:
    """Find the data, and see what is measured already."""
    unknown = [Problem(name, "there is no such data", " or ".join(_DATA)) for name in data if name not in _DATA]
    if unknown:
        raise QuestionError(unknown)
    studies = chosen_studies(names)
    _refuse_foreign(out)
    folder, adult = find_adult(data.get("adult"), out / "data" / "adult")
    file, census = find_census(data.get("census"))
    sources = Sources(folder, file)
    left = [point for study in studies for point in missing(study, out / _KEPT, quick, sources)]
    total = sum(len(study.points(quick, sources)) for study in studies)
    notes = tuple(f"{study.name}: {note}" for study in studies for note in _notes(study, sources))
    seconds = sum(point.seconds for point in left)
    words = {"Adult table": adult, "US Census": census}
    return Work(studies, out, quick, sources, words, seconds, total, total - len(left), notes)


def reproduce(work: Work, jobs: int, progress: Progress, cancellation: Cancellation | None = None) -> Done:
    """Measure what is missing, and write the pages of everything that is measured."""
    kept = work.out / _KEPT
    todo = [(study, point) for study in work.studies for point in missing(study, kept, work.quick, work.sources)]
    measure(todo, kept, work.sources, jobs, progress, cancellation)
    findings: dict[str, list[Finding]] = {}
    listed = []
    for study in STUDIES.values():
        outcome = kept_outcome(study, kept, work.quick, work.sources)
        listed.append((study, outcome))
        if outcome is not None:
            findings[study.name] = write_study(work.out, outcome, _notes(study, work.sources))
    write_index(work.out, listed, findings, work.quick, work.sources, work.found)
    return Done(work.out / "index.html", findings)


def _notes(study: Study, sources: Sources) -> list[str]:
    """What of a study cannot be run here, or is run on something else, and why."""
    lacking = study.lacks(sources)
    if lacking:
        return [f"left out, it needs {lacking}."]
    notes = []
    if study.adult == "some" and sources.adult is None:
        notes.append("the part of it that needs the Adult table is left out.")
    if study.census and sources.census is None:
        notes.append("the file of the US Census was not given; a generated table of its shape stands for it.")
    return notes


def _refuse_foreign(out: Path) -> None:
    """Pages of other things stay: a folder that is not ours is not written to."""
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"{out}: a file, not a folder", "choose another place")
    if out.is_dir() and any(out.iterdir()) and not (out / _KEPT).is_dir():
        raise InvalidInput(f"{out}: holds other files, and no studies", "choose another folder, or an empty one")
