"""What commands print can be read in 80 columns, and says what its numbers mean."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import polars as pl
import pytest
from command_line import Result, polyseme
from rich.cells import cell_len

from polyseme.cli.console import _broken
from polyseme.results.views.terminal import column_widths

POLICY = """
attributes:
  identification-number: {role: identifier}
  age: {role: quasi-identifier}
  country-of-residence: {role: quasi-identifier}
  occupation-before-retirement:
    role: sensitive
    domain: [Adm-clerical, Armed-Forces, Craft-repair, Exec-managerial, Farming-fishing, Machine-operation-inspection]
    distance: {line: rank}
    prior: [6, 5, 4, 3, 2, 1]
    protect: {semantic-diversity: {l: 2, d: 2}, learner: {success: 0.9}}
  income:
    role: sensitive
    domain: [low, middle, high]
    protect: {ldp: {epsilon: 1.0}}
models: [{k-anonymity: {k: 2}}]
"""
GROUPED = """
attributes:
  identification-number: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20, 40]}}
  country-of-residence: {role: quasi-identifier, hierarchy: suppress}
  occupation-before-retirement: {role: sensitive}
  income: {role: insensitive}
models: [{k-anonymity: {k: 5}}, {distinct-diversity: {l: 2, attribute: occupation-before-retirement}}]
method: {full-domain: {suppression: 0.05}}
"""
SMALL = """
attributes:
  rank:
    role: sensitive
    domain: [a, b, c, d]
    distance: {line: rank}
    prior: [4, 3, 2, 1]
    protect: {semantic-diversity: {l: 2, d: 1}}
"""
STRICT = GROUPED.replace("k: 5", "k: 4000").replace("suppression: 0.05", "suppression: 0.0")
OCCUPATIONS = [
    "Adm-clerical",
    "Armed-Forces",
    "Craft-repair",
    "Exec-managerial",
    "Farming-fishing",
    "Machine-operation-inspection",
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with long names and values, its policies, two releases and a ledger."""
    folder = tmp_path_factory.mktemp("screen")
    rows = 1_500
    pl.DataFrame(
        {
            "identification-number": [f"p-{number}" for number in range(rows)],
            "age": [20 + number % 7 for number in range(rows)],
            "country-of-residence": [
                ("Japan", "United Kingdom of Great Britain")[number % 2] for number in range(rows)
            ],
            "occupation-before-retirement": [
                OCCUPATIONS[(number * number + number // 7) % 6] for number in range(rows)
            ],
            "income": [("low", "middle", "high")[(number // 3) % 3] for number in range(rows)],
        }
    ).write_csv(folder / "people.csv")
    for name, text in (("policy", POLICY), ("grouped", GROUPED), ("strict", STRICT), ("small", SMALL)):
        (folder / f"{name}.yaml").write_text(text)
    for name in ("policy", "grouped"):
        made = polyseme("anonymize", f"{name}.yaml", "people.csv", "--out", name, cwd=folder)
        assert made.returncode == 0, made.stderr
    polyseme("ledger", "add", "ledger.json", "policy", "--people", "everybody who was asked in the survey", cwd=folder)
    return folder


COMMANDS = {
    "help": "--help",
    "plan": "plan policy.yaml --records 100000",
    "plan-data": "plan policy.yaml --data people.csv",
    "plan-frontier": "plan small.yaml --records 1000 --frontier --advise --learner 0.9",
    "plan-grouped": "plan grouped.yaml --data people.csv",
    "plan-impossible": "plan strict.yaml --data people.csv",
    "anonymize": "anonymize grouped.yaml people.csv --out grouped --force",
    "anonymize-preview": "anonymize policy.yaml people.csv --preview 2 --force-preview",
    "verify": "verify policy",
    "verify-explained": "verify policy --explain",
    "verify-grouped": "verify grouped",
    "verify-table": "verify people.csv --policy strict.yaml",
    "risk": "risk people.csv --sensitive income",
    "estimate": "estimate policy --of occupation-before-retirement --by country-of-residence --estimator ml",
    "estimate-long": "estimate policy --of occupation-before-retirement --by age,country-of-residence --estimator ml",
    "attack": "attack policy --original people.csv",
    "attack-explained": "attack policy --explain",
    "attack-grouped": "attack grouped --original people.csv",
    "evaluate": "evaluate policy --original people.csv --by country-of-residence",
    "ledger": "ledger show ledger.json",
    "hierarchy": "hierarchy show suppress --values people.csv --column country-of-residence",
    "hierarchy-check": "hierarchy check taxonomy:icd10 people.csv --column income",
    "taxonomy": "taxonomy list",
    "taxonomy-show": "taxonomy show icd10",
    "rules": "rules list",
    "no-such-release": "verify policy.yaml",
}


def run(work: Path, command: str) -> Result:
    words = [word.replace("taxonomy:", "taxonomy: ") for word in command.split()]
    return polyseme(*words, cwd=work)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_output_fits_80_columns(work: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run(work, command)
    assert result.returncode in (0, 1, 2), result.stderr
    lines = (result.stdout + result.stderr).splitlines()
    assert lines
    assert [line for line in lines if cell_len(line) > 80] == []
    assert "…" not in result.stdout + result.stderr


def words_of(text: str) -> set[str]:
    return set(text.split())


@pytest.mark.parametrize("command", ["verify policy", COMMANDS["estimate"], COMMANDS["plan-data"]])
def test_no_word_is_cut(work: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = words_of(run(work, command).stdout)
    monkeypatch.setenv("COLUMNS", "80")
    narrow = words_of(run(work, command).stdout)
    # Ruled lines are as long as their tables.
    cut = {word for word in narrow - wide if not set(word) <= {"─"}}
    assert cut == set()


def test_a_table_that_cannot_fit_becomes_blocks(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = polyseme("plan", "policy.yaml", "--records", 1000, cwd=work).stdout
    assert max(map(cell_len, text.splitlines())) <= 40
    assert "occupation-before-retirement" not in text.splitlines()[0]
    assert "worst posterior" in text


def test_attack_names_each_attacker_with_explain(work: Path) -> None:
    text = polyseme("attack", "policy", "--original", "people.csv", "--explain", cwd=work).stdout
    for word in ("success", "without", "promised", "kept", "knows", "gains", "what helps", "exceeds the promise"):
        assert word in text


@pytest.mark.parametrize(
    ("command", "meaning"),
    [
        ("plan policy.yaml --records 1000", "the smallest distance between two of them"),
        ("verify policy", "the limit for it"),
        ("attack policy", "The attackers"),
    ],
)
def test_numbers_come_without_a_legend_unless_asked_for(work: Path, command: str, meaning: str) -> None:
    """Every line of the short output is in the long one; only the long one says what rows mean."""
    hint = "Add --explain for what each row means."
    short, explained = run(work, command).stdout, run(work, f"{command} --explain").stdout
    assert short.splitlines()[-1] == hint
    assert hint not in explained
    assert meaning not in short
    assert meaning in explained
    assert set(short.splitlines()) - {hint} <= set(explained.splitlines())


def test_evaluate_explains_its_metrics_and_counts_covered_cells(work: Path) -> None:
    arguments = ("evaluate", "policy", "--original", "people.csv", "--of", "occupation-before-retirement")
    text, document = polyseme(*arguments, cwd=work).stdout, json.loads(polyseme(*arguments, "--json", cwd=work).stdout)
    assert document["cells"] == 6
    assert document["covered"] == round(document["coverage"] * 6) >= 4
    assert document["level"] == 0.95
    assert f"{document['covered']:.0f} of 6 true numbers lie in their confidence intervals; about 95.0% should" in text
    assert "sum of the absolute errors of all cells" in text


def test_why_a_policy_fails_is_red_and_not_dim(work: Path) -> None:
    from rich.console import Console

    from polyseme.verbs.plan import plan

    file = io.StringIO()
    Console(file=file, force_terminal=True, width=80, color_system="standard").print(
        plan(work / "strict.yaml", data=work / "people.csv")
    )
    (line,) = [line for line in file.getvalue().splitlines() if "not possible" in line]
    assert "\x1b[1;31m" in line
    assert "\x1b[2m" not in line


def test_many_cells_end_with_how_to_see_all(work: Path) -> None:
    text = run(work, COMMANDS["estimate-long"]).stdout
    assert "24 more cells: use --csv FILE to see all" in text


def test_csv_is_printed_or_written(work: Path, tmp_path: Path) -> None:
    printed = polyseme("estimate", "--csv", "policy", "--of", "income", cwd=work).stdout
    assert printed.startswith("income,estimate,stderr,low,high")
    result = polyseme("estimate", "policy", "--of", "income", "--csv", tmp_path / "cells.csv", cwd=work)
    assert result.stdout == ""
    assert (tmp_path / "cells.csv").read_text() == printed
    again = polyseme("estimate", "policy", "--of", "income", "--csv", tmp_path / "cells.csv", cwd=work)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_lines_for_people_are_broken_between_words() -> None:
    assert _broken("  one two three", 9, 2) == ["  one two", "    three"]
    assert _broken("\x1b[31mone\x1b[0m two", 7, 0) == ["\x1b[31mone\x1b[0m two"]
    assert _broken("incomprehensibility of it", 10, 0) == ["incomprehensibility", "of it"]
    assert _broken("", 10, 0) == [""]


def test_widths_are_taken_from_the_widest_column() -> None:
    assert column_widths([3, 3, 3], [3, 20, 30], 100) == [3, 20, 30]
    assert column_widths([3, 3, 3], [3, 20, 30], 39) == [3, 16, 16]
    assert column_widths([3, 3, 3], [3, 20, 30], 12) is None


def test_nothing_is_said_of_progress_in_a_pipe(work: Path) -> None:
    result = polyseme("attack", "policy", "--json", cwd=work)
    json.loads(result.stdout)
    assert result.stderr == ""


def test_progress_is_on_standard_error_only(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from polyseme.cli import console

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with console.busy("Testing"):
        from polyseme.kernel.work import stage

        with stage("sheep", "Counting sheep", 3) as progress:
            progress.advance()
            print("an answer")
    captured = capsys.readouterr()
    assert captured.out == "an answer\n"
    assert "an answer" not in captured.err
