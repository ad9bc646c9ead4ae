"""The whole of `polyseme reproduce`: which studies, what is missing, measuring, pages.

There is a page for each study with its numbers as CSV, and an index with a line for every claim and every item of the
papers; `claims.json` has both for programs. A folder holds quick pages or full ones, never both, and every file says
which. Files are the same in every run but for `times.csv`, the studies of times, and the order of lines in `points/`.

Pages look like the report of a release: they take over its style sheet. They run no script and fetch nothing.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from polyseme.kernel.errors import InvalidInput, Problem, QuestionError, nearest
from polyseme.kernel.files import whole_file
from polyseme.kernel.version import __version__
from polyseme.kernel.work import Cancellation
from polyseme.papers.adult import find_adult
from polyseme.papers.index import ERRATA, ITEMS, Item, place_of
from polyseme.papers.plots import LINE_STYLE, Look, chart, look_of, number, picture, swatch
from polyseme.papers.runner import STUDIES, Outcome, Progress, kept_outcome, measure, missing
from polyseme.papers.sensitive_qids.census import census_name, find_census
from polyseme.papers.study import (
    BY_SETTING,
    SETTING_BY_SETTING,
    Exhibit,
    Finding,
    Results,
    Row,
    Sources,
    Study,
    Verdict,
)
from polyseme.reports.page import is_page
from polyseme.reports.templates import environment_of

__all__ = ["Done", "Work", "chosen_studies", "prepare", "reproduce", "write_index", "write_study"]

_OWN_STYLE = """
a { color: var(--accent); }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: .5rem 2rem; }
.beside .promise { border-left-color: var(--rule); }
.beside .ours { border-left-color: var(--accent); }
.beside .muted { margin-bottom: .2rem; }
.panels .remark { margin-left: 0; }
.panels h4 { margin-bottom: .1rem; }
"""


def write_study(out: Path, outcome: Outcome, notes: Sequence[str] = ()) -> list[Finding]:
    """Write the page and the numbers of a study; returns what came of its claims."""
    findings = outcome.study.findings(outcome.results)
    _write(out / f"{outcome.study.name}.csv", _csv(outcome))
    _write(out / f"{outcome.study.name}.html", _study_page(outcome, findings, notes))
    for name, svg in _pictures(outcome):
        _write(out / "pictures" / name, svg)
    return findings


def _pictures(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Every chart as a file of its own."""
    study, results = outcome.study, outcome.results
    looks = look_of([row.series for row in results.rows])
    figures = [figure for exhibit in study.exhibits(results) for figure in exhibit.figures]
    for place, figure in enumerate(figures, 1):
        rows = figure.rows(results)
        if rows:
            title = f"{figure.title or figure.panel} (quick run)" if outcome.quick else figure.title
            yield f"{study.name}-{place}.svg", picture(replace(figure, title=title), rows, looks)


def write_index(
    out: Path,
    studies: Sequence[tuple[Study, Outcome | None]],
    findings: Mapping[str, Sequence[Finding]],
    quick: bool,
    sources: Sources,
    found: Mapping[str, str],
) -> None:
    """Write the index and the claims as CSV."""
    linked = [(finding, name) for name, found in findings.items() for finding in found]
    tally = Counter(finding.verdict for finding, _ in linked)
    page = (
        _environment()
        .get_template("index.html.j2")
        .render(
            style=_style(),
            tally=[(verdict.value.capitalize(), tally[verdict]) for verdict in Verdict if tally[verdict]],
            quick=quick,
            found=found,
            items=[(one, one.study in findings, one.verdicts(findings)) for one in ITEMS],
            errata=[(one, one.study in findings) for one in ERRATA],
            studies=[(study, outcome, "" if outcome else _why_not(study, sources)) for study, outcome in studies],
            claims_table=_claims(linked),
            version=__version__,
        )
    )
    _write(out / "index.html", page)
    _write(out / "claims.csv", _claims_csv(linked, quick))
    _write(out / CLAIMS, _claims_json(studies, findings, quick, sources))
    _write(out / "times.csv", _times(studies))


def _why_not(study: Study, sources: Sources) -> str:
    lacking = study.lacks(sources)
    return f"not run here: it needs {lacking}" if lacking else "not run here"


def _write(file: Path, text: str) -> None:
    ours = is_page if file.suffix == ".html" else None
    with whole_file(file, overwrite=True, ours=ours) as partial:
        partial.write_text(text, encoding="utf-8")


def _csv(outcome: Outcome) -> str:
    run, rows = run_name(outcome.quick), outcome.results.rows
    return _lines([[*(field.name for field in fields(Row)), "run"], *((*astuple(row), run) for row in rows)])


def run_name(quick: bool) -> str:
    """What files call a run."""
    return "quick" if quick else "full"


def _claims_csv(linked: Sequence[tuple[Finding, str]], quick: bool) -> str:
    run = run_name(quick)
    rows = [
        [found.claim.where, found.claim.says, found.verdict.value, found.because, found.claim.rule, name, run]
        for found, name in linked
    ]
    return _lines([["where", "claim", "verdict", "because", "rule", "study", "run"], *rows])


def _claims_json(
    studies: Sequence[tuple[Study, Outcome | None]],
    findings: Mapping[str, Sequence[Finding]],
    quick: bool,
    sources: Sources,
) -> str:
    """Every claim with paper, item, rule, numbers and verdict; all items; what was not run."""
    document = {
        "format": 1,
        "version": __version__,
        "run": run_name(quick),
        "data": {"adult": sources.adult is not None, "census": census_name(sources.census)},
        "claims": [_claim(name, finding) for name, found in findings.items() for finding in found],
        "index": [_item(one, findings) for one in ITEMS],
        "not_run": {study.name: _why_not(study, sources) for study, outcome in studies if outcome is None},
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _claim(study: str, finding: Finding) -> dict[str, Any]:
    paper, item = place_of(finding.claim.where)
    return {
        "paper": paper,
        "item": item,
        "claim": finding.claim.says,
        "rule": _whole_rule(finding.claim.rule),
        "verdict": finding.verdict.value,
        "because": finding.because,
        "study": study,
        "steady": STUDIES[study].steady,
        "numbers": [_number(row) for row in finding.numbers],
    }


def _whole_rule(rule: str) -> str:
    """The rule without words that another page explains."""
    return rule.replace(BY_SETTING, SETTING_BY_SETTING)


def _number(row: Row) -> dict[str, Any]:
    """A row; null for what is no finite number."""
    values = {field.name: getattr(row, field.name) for field in fields(Row)}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def _item(one: Item, findings: Mapping[str, Sequence[Finding]]) -> dict[str, Any]:
    verdicts = {"verdicts": one.verdicts(findings)}
    return {field.name: getattr(one, field.name) for field in fields(Item)} | verdicts


def _times(studies: Sequence[tuple[Study, Outcome | None]]) -> str:
    """How long each study took on one core: the one file that differs from run to run."""
    rows = [[study.name, len(done.points), f"{done.seconds:.1f}"] for study, done in studies if done is not None]
    return _lines([["study", "points", "seconds"], *rows])


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _study_page(outcome: Outcome, findings: Sequence[Finding], notes: Sequence[str]) -> str:
    study, results = outcome.study, outcome.results
    looks = look_of([row.series for row in results.rows])
    return (
        _environment()
        .get_template("study.html.j2")
        .render(
            style=_style(),
            study=study,
            outcome=outcome,
            notes=notes,
            claims_table=_claims([(finding, "") for finding in findings]),
            by_setting=_by_setting(study),
            settings=_settings(outcome),
            repeats=_repeats(outcome),
            exhibits=[_drawn(exhibit, results, looks) for exhibit in study.exhibits(results)],
            tables=_tables(results),
            version=__version__,
        )
    )


def _by_setting(study: Study) -> str:
    """What judging setting by setting means, where some claim is judged so."""
    used = any(BY_SETTING in claim.rule for claim in study.claims)
    return f"{SETTING_BY_SETTING[:1].lower()}{SETTING_BY_SETTING[1:]}" if used else ""


def _drawn(exhibit: Exhibit, results: Results, looks: dict[str, Look]) -> dict[str, Any]:
    chosen = [(figure, figure.rows(results)) for figure in exhibit.figures]
    chosen = [(figure, rows) for figure, rows in chosen if rows]
    series = dict.fromkeys(row.series for _, rows in chosen for row in rows)
    return {
        "title": exhibit.title,
        "says": exhibit.says,
        "sees": exhibit.sees,
        "legend": [(name, Markup(swatch(looks[name]))) for name in series],  # noqa: S704 - drawn here
        "drawn": [(figure, Markup(chart(figure, rows, looks))) for figure, rows in chosen],  # noqa: S704 - drawn here
    }


def _tables(results: Results) -> list[tuple[str, str, list[Row]]]:
    pairs = dict.fromkeys((row.panel, row.measure) for row in results.rows)
    return [(panel, measure, results.pick(panel, measure)) for panel, measure in pairs]


def _claims(linked: Sequence[tuple[Finding, str]]) -> Markup:
    return Markup(_environment().get_template("claims.html.j2").render(findings=linked))  # noqa: S704 - escaped there


def _settings(outcome: Outcome) -> str:
    """What the grid goes over: each setting with its values, the numbers as a range."""
    seen: dict[str, dict[Any, None]] = {}
    for point in outcome.points:
        for name, value in point.setting:
            seen.setdefault(name, {})[value] = None
    return "; ".join(f"{name} {_listed(list(values))}" for name, values in seen.items())


def _listed(values: Sequence[Any]) -> str:
    if all(isinstance(value, int | float) for value in values) and len(values) > 4:
        return f"{number(min(values))} to {number(max(values))}"
    return ", ".join(value if isinstance(value, str) else number(value) for value in values)


def _repeats(outcome: Outcome) -> str:
    numbers = sorted({point.repeats for point in outcome.points})
    return ", ".join(f"{repeats:,}" if repeats else "none, the numbers are exact" for repeats in numbers)


@cache
def _environment() -> jinja2.Environment:
    environment = environment_of("polyseme", "papers")
    environment.filters["number"] = number
    environment.filters["coded"] = _coded
    return environment


def _coded(text: str) -> Markup:
    """Text in which names between backticks are code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped here


@cache
def _style() -> Markup:
    """The style sheet of the report, and what studies have beside it."""
    house = (files("polyseme.reports") / "style.css").read_text(encoding="utf-8")
    return Markup(house + _OWN_STYLE + LINE_STYLE)  # noqa: S704 - files of this package


_DATA = ("adult", "census")
CLAIMS = "claims.json"
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
    _refuse_other_run(out, quick)
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


def _refuse_other_run(out: Path, quick: bool) -> None:
    """Quick pages beside full ones would be taken for each other."""
    run = _run_in(out / CLAIMS)
    if run not in (None, run_name(quick)):
        again = "leave out --quick" if quick else "say --quick"
        raise InvalidInput(f"{out}: holds the pages of a {run} run", f"choose another folder, or {again}")


def _run_in(file: Path) -> str | None:
    """Which run a folder has the pages of; None where it has none."""
    if not file.exists():
        return None
    try:
        run = json.loads(file.read_text(encoding="utf-8"))["run"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(run)
