"""The studies of `polyseme reproduce`: numbers that stay, runs that go on, pages that stand alone."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import time
from functools import cache
from itertools import combinations, product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from polyseme.cli import cli
from polyseme.kernel.errors import Cancelled, InvalidInput
from polyseme.kernel.work import Cancellation
from polyseme.papers import adult as adults
from polyseme.papers.adult import FILES
from polyseme.papers.journal.violation_theory import equation_11, room, violation
from polyseme.papers.plots import chart, look_of
from polyseme.papers.runner import STUDIES, Measured, append, kept_outcome, measure, missing, read
from polyseme.papers.study import Figure, Point, Results, Row, Sources, Verdict, mean_row, share_row

NOWHERE = Sources()
STORED = Path(__file__).with_name("reproduce-quick.json")
"""Quick numbers of three studies; `python tests/papers/test_reproduce.py` writes them again."""
KEPT = ("worked-example", "posterior", "mse")


@cache
def rows_of(name: str) -> list[Row]:
    study = STUDIES[name]
    return [row for point in study.points(True, NOWHERE) for row in study.run(point, NOWHERE)]


@pytest.mark.parametrize("name", KEPT)
def test_quick_numbers_are_the_stored_ones(name: str) -> None:
    stored = json.loads(STORED.read_text(encoding="utf-8"))[name]
    found = [[row.panel, row.measure, row.series, row.x, row.value] for row in rows_of(name)]
    assert [row[:4] for row in found] == [row[:4] for row in stored]
    # Solvers stop within a tolerance, and libraries of linear algebra round differently.
    np.testing.assert_allclose([row[4] for row in found], [row[4] for row in stored], rtol=1e-4, atol=1e-12)


def test_a_point_depends_on_nothing_but_itself() -> None:
    study = STUDIES["worked-example"]
    points = study.points(True, NOWHERE)
    forth = {point: study.run(point, NOWHERE) for point in points}
    assert {point: study.run(point, NOWHERE) for point in reversed(points)} == forth
    assert len({study.seed_of(point) for point in points}) == len(points)


@pytest.mark.parametrize("name", list(STUDIES))
@pytest.mark.parametrize("quick", [True, False])
def test_grids_are_declared(name: str, quick: bool, tmp_path: Path) -> None:
    study = STUDIES[name]
    for file in study.beside:
        (tmp_path / file).mkdir()
    points = study.points(quick, Sources(tmp_path))
    assert points
    assert len({point.key for point in points}) == len(points)
    assert all(point.repeats >= 0 and point.seconds > 0 for point in points)
    assert all([study.did, study.ran, study.source])
    if study.adult == "all":
        assert study.points(quick, NOWHERE) == []


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    study, token = STUDIES["posterior"], Cancellation()
    todo = [(study, point) for point in missing(study, tmp_path, True, NOWHERE)]
    seen: list[float] = []

    def stop_at_the_third(seconds: float) -> None:
        seen.append(seconds)
        if len(seen) == 3:
            token.cancel()

    with pytest.raises(Cancelled):
        measure(todo, tmp_path, NOWHERE, 1, stop_at_the_third, token)
    assert kept_outcome(study, tmp_path, True, NOWHERE) is None
    left = missing(study, tmp_path, True, NOWHERE)
    assert len(left) == len(todo) - 3
    with (tmp_path / "posterior.jsonl").open("a") as file:
        file.write('{"point": "edition 1, se')  # a line that was being written when the power went
    measure([(study, point) for point in left], tmp_path, NOWHERE, 1, lambda _: None)
    outcome = kept_outcome(study, tmp_path, True, NOWHERE)
    assert outcome is not None
    assert list(outcome.results.rows) == rows_of("posterior")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_command_goes_on(how: signal.Signals, tmp_path: Path) -> None:
    """Whatever was measured when the process died is kept, and the rest comes out the same."""
    out = tmp_path / "pages"
    command = ["reproduce", "mse", "--quick", "--jobs", "1", "--out", str(out)]
    running = subprocess.Popen([sys.executable, "-m", "polyseme", *command], stderr=subprocess.DEVNULL)
    kept = out / "points" / "mse.jsonl"
    while running.poll() is None and not (kept.exists() and kept.read_bytes().endswith(b"\n")):
        time.sleep(0.01)
    running.send_signal(how)
    running.wait(60)
    before = kept.read_text(encoding="utf-8").splitlines()
    again = CliRunner().invoke(cli, command)
    assert again.exit_code == 0, again.output
    after = kept.read_text(encoding="utf-8").splitlines()
    assert after[: len(before)] == before
    outcome = kept_outcome(STUDIES["mse"], out / "points", True, NOWHERE)
    assert outcome is not None
    assert list(outcome.results.rows) == rows_of("mse")


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    study = STUDIES["worked-example"]
    points = missing(study, tmp_path, True, NOWHERE)
    done: list[float] = []
    measure([(study, point) for point in points], tmp_path, NOWHERE, 2, done.append)
    outcome = kept_outcome(study, tmp_path, True, NOWHERE)
    assert outcome is not None
    assert list(outcome.results.rows) == rows_of("worked-example")
    assert sum(done) == pytest.approx(sum(point.seconds for point in points))


def test_other_editions_and_settings_are_measured_again(tmp_path: Path) -> None:
    study, point = STUDIES["posterior"], Point.of(l=2, d=2, repeats=3)
    file = tmp_path / "posterior.jsonl"
    append(file, study, point, Measured((Row.exact("a", "b", "c", 1, 0.5),), 0.1))
    assert read(file, study, [point])[point].rows[0].value == 0.5
    assert read(file, study, [Point.of(l=2, d=2, repeats=4)]) == {}


def test_the_command_writes_pages_that_stand_alone(tmp_path: Path) -> None:
    out = tmp_path / "pages"
    names = ["violation-theory", "posterior", "sensitive-qids-table"]
    ran = CliRunner().invoke(cli, ["reproduce", *names, "--quick", "--jobs", "1", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "sensitive-qids-table: left out, it needs the Adult table" in ran.output
    for name in ("index", "violation-theory", "posterior"):
        page = (out / f"{name}.html").read_text(encoding="utf-8")
        assert "<script" not in page
        assert not re.search(r'(src|href)="(https?:)?//', page)
        assert "prefers-color-scheme: dark" in page
        assert "{{" not in page
    pictures = sorted((out / "pictures").iterdir())
    assert len(pictures) > 5
    for file in pictures:
        ElementTree.fromstring(file.read_text(encoding="utf-8"))  # noqa: S314 - made by us a moment ago
    assert not (out / "sensitive-qids-table.html").exists()
    claims = (out / "claims.csv").read_text(encoding="utf-8")
    assert "not reproduced" in claims
    assert "reproduced with a correction" in claims
    index = (out / "index.html").read_text(encoding="utf-8")
    assert "not run here: it needs the Adult table" in index
    again = CliRunner().invoke(cli, ["reproduce", "posterior", "--quick", "--out", str(out)])
    assert "14 points, 14 of them measured already" in again.output


def test_all_studies_run_quickly(tmp_path: Path) -> None:
    """Those that can do without the Adult table."""
    ran = CliRunner().invoke(cli, ["reproduce", "--quick", "--jobs", "1", "--out", str(tmp_path / "pages")])
    assert ran.exit_code == 0, ran.output
    pages = {file.stem for file in (tmp_path / "pages").glob("*.html")}
    assert {name for name, study in STUDIES.items() if study.adult != "all"} <= pages
    index = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    for words in (
        "journal, Figure 6",
        "(l, e), Table 4",
        "not given (--data census=FILE)",
        "l d &lt;= F: the sign",
    ):
        assert words in index
    page = (tmp_path / "pages" / "sensitive-qids-time.html").read_text(encoding="utf-8")
    assert "The file of the US Census was not given; a generated table of its shape stands for it." in page


@pytest.mark.slow
def test_every_study_judges_all_its_claims(adult: Path) -> None:
    sources = Sources(adult.parent)
    for study in STUDIES.values():
        rows = [row for point in study.points(True, sources) for row in study.run(point, sources)]
        findings = study.findings(Results(rows))
        assert all(finding.because for finding in findings)
        assert study.exhibits(Results(rows))


def test_wrong_asks_are_refused_together(tmp_path: Path) -> None:
    out = tmp_path / "pages"
    ran = CliRunner().invoke(cli, ["reproduce", "posteriors", "msee", "--out", str(out)])
    assert ran.exit_code != 0
    assert isinstance(ran.exception, InvalidInput)
    assert [problem.hint for problem in ran.exception.problems] == ["did you mean 'posterior'?", "did you mean 'mse'?"]
    (tmp_path / "note.txt").write_text("mine")
    ran = CliRunner().invoke(cli, ["reproduce", "posterior", "--out", str(tmp_path)])
    assert "holds other files" in str(ran.exception)
    ran = CliRunner().invoke(cli, ["reproduce", "posterior", "--out", str(out), "--data", "planets=x"])
    assert "there is no such data" in str(ran.exception)


def test_studies_are_listed() -> None:
    ran = CliRunner().invoke(cli, ["reproduce", "--list"])
    assert [line.split()[0] for line in ran.output.splitlines()] == list(STUDIES)


def test_posteriors_are_the_known_ones() -> None:
    """Exact worst posteriors of Algorithm 1 on 14 ranks, computed before by enumeration."""
    found = {
        (row.panel, row.x): row.value
        for row in rows_of("posterior")
        if row.series == "Algorithm 1" and row.measure == "worst posterior"
    }
    known = {
        ("l = 2", 3): 0.550,
        ("l = 2", 6): 0.727,
        ("l = 2", 7): 0.875,
        ("l = 3", 2): 0.365,
        ("l = 3", 4): 0.506,
        ("l = 4", 3): 0.393,
    }
    for place, value in known.items():
        assert found[place] == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize(("size", "l", "d"), [(6, 2, 2), (7, 3, 2), (9, 3, 3), (8, 4, 2), (5, 2, 4), (6, 3, 3)])
def test_violations_are_counted_right(size: int, l: int, d: int) -> None:
    for value, found in enumerate(violation(size, l, d)):
        sets = [(value, *rest) for rest in combinations([v for v in range(size) if v != value], l - 1)]
        valid = [one for one in sets if all(abs(a - b) >= d for a, b in combinations(one, 2))]
        assert found == pytest.approx(1 - len(valid) / len(sets), abs=1e-12)
        assert (room(size, d)[value] >= l) == bool(valid)
    assert equation_11(size, l, d) == pytest.approx(violation(size, l, d)[0], abs=1e-12)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(3)
    rows = [mean_row("", "", "", 1, generator.normal(5.0, 2.0, 6)) for _ in range(2_000)]
    assert abs(np.mean([row.low <= 5.0 <= row.high for row in rows]) - 0.95) < 0.02
    shares = [share_row("", "", "", 1, int(generator.binomial(60, 0.1)), 60) for _ in range(2_000)]
    assert abs(np.mean([row.low <= 0.1 <= row.high for row in shares]) - 0.95) < 0.03


def test_no_two_series_look_the_same() -> None:
    names = ["the limit", *(f"method {number}" for number in range(20)), "ours", "ours, smooth", "original"]
    looks = look_of(names)
    assert len({(look.color, look.dash) for look in looks.values()}) == len(names)
    assert (looks["ours"].color, looks["the limit"].color) == ("c0", "c8")


def test_charts_escape_names_and_have_no_nonsense() -> None:
    rows = [Row.exact("p", "m", "<b>", x, value) for x, value in ((1, 0.0), (2, 1e-6), (3, math.inf))]
    for log, joined in product((False, True), repeat=2):
        svg = chart(Figure("p", "m", "x", "y", log=log, joined=joined), rows, look_of(["<b>"]))
        assert "<b>" not in svg
        assert "nan" not in svg
        assert "inf" not in svg


def test_adult_files_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        adults.find_adult(str(tmp_path), tmp_path)
    assert len(caught.value.problems) == 2
    line = ", ".join(["1"] * 15)
    for name in FILES:
        (tmp_path / name).write_text(f"{line}\n{line}\n\n")
    with pytest.raises(InvalidInput, match="2 records, where 32,561 were published"):
        adults.find_adult(str(tmp_path), tmp_path)


def test_adult_is_coded_as_the_papers_use_it(adult: Path) -> None:
    folder, words = adults.find_adult(str(adult.parent), Path("unused"))
    assert folder is not None
    assert "given" in words
    table, weight = adults.education(folder), adults.weights(folder)
    assert (table.records, table.size) == (30_162, 16)
    assert weight.size == 148, "classes of 10,000 make the paper's 148"
    place = {label: np.array([code]) for code, label in enumerate(table.labels)}
    apart = [
        table.distance.between(place["Doctorate"], place[other])[0] for other in ("Masters", "Bachelors", "Assoc-voc")
    ]
    assert apart == [1.0, 2.0, 3.0]
    assert table.counts().sum() == 30_162


def test_every_claim_of_a_quick_run_has_a_verdict() -> None:
    for name in KEPT:
        study = STUDIES[name]
        findings = study.findings(Results(rows_of(name)))
        assert findings
        assert all(finding.because and isinstance(finding.verdict, Verdict) for finding in findings)


if __name__ == "__main__":
    numbers = {name: [[row.panel, row.measure, row.series, row.x, row.value] for row in rows_of(name)] for name in KEPT}
    STORED.write_text(json.dumps(numbers, indent=None).replace("]], ", "]],\n") + "\n", encoding="utf-8")
