"""A page for each study, its numbers as CSV, and an index with a line for every claim.

Pages look like the report of a release: they take over its style sheet. They run no script and fetch nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from polyseme.files.whole import whole_file
from polyseme.reports.page import is_page
from polyseme.reports.templates import environment_of
from polyseme.studies.reproduce.charts import chart
from polyseme.studies.reproduce.judging import BY_SETTING, SETTING_BY_SETTING
from polyseme.studies.reproduce.lines import LINE_STYLE, Look, look_of, number, swatch
from polyseme.studies.reproduce.papers import ERRATA, SHOWN, label
from polyseme.studies.reproduce.pictures import picture
from polyseme.studies.reproduce.running import Outcome
from polyseme.studies.reproduce.study import Exhibit, Finding, Results, Row, Sources, Study, Verdict
from polyseme.version import __version__

__all__ = ["write_index", "write_study"]

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
    _write(out / f"{outcome.study.name}.csv", _csv(outcome.results))
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
            yield f"{study.name}-{place}.svg", picture(figure, rows, looks)


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
            shown=[(label(one), one, one.study in findings) for one in SHOWN],
            errata=[(one, one.study in findings) for one in ERRATA],
            studies=[
                (study, outcome, _time(outcome) if outcome else _why_not(study, sources)) for study, outcome in studies
            ],
            claims_table=_claims(linked),
            version=__version__,
        )
    )
    _write(out / "index.html", page)
    _write(out / "claims.csv", _claims_csv(linked))


def _why_not(study: Study, sources: Sources) -> str:
    lacking = study.lacks(sources)
    return f"not run here: it needs {lacking}" if lacking else "not run here"


def _write(file: Path, text: str) -> None:
    ours = is_page if file.suffix == ".html" else None
    with whole_file(file, overwrite=True, ours=ours) as partial:
        partial.write_text(text, encoding="utf-8")


def _csv(results: Results) -> str:
    return _lines([[field.name for field in fields(Row)], *(astuple(row) for row in results.rows)])


def _claims_csv(linked: Sequence[tuple[Finding, str]]) -> str:
    rows = [
        [found.claim.where, found.claim.says, found.verdict.value, found.because, found.claim.rule, name]
        for found, name in linked
    ]
    return _lines([["where", "claim", "verdict", "because", "rule", "study"], *rows])


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
            seconds=_time(outcome),
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


def _time(outcome: Outcome) -> str:
    seconds = outcome.seconds
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.1f} s"


@cache
def _environment() -> jinja2.Environment:
    environment = environment_of("polyseme.studies", "reproduce")
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
