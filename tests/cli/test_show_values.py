"""Which value, which row: lines and counts for everybody, values for the owner's eyes only."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.kernel.errors import Problem, TableError
from polyseme.kernel.sightings import Sightings

MARK = "SECRETWORD"
TABLE = f"""zip,disease,age
1,flu,30
1,cold,{MARK}9

2,"{MARK}
1",31
1,ulcer,32
2,{MARK}2,33
2,{MARK}2,34
1,,35
"""
POLICY = """
attributes:
  zip: {role: quasi-identifier}
  age: {role: insensitive, type: integer}
  disease: {role: sensitive, domain: [flu, cold, ulcer, cough], protect: {diversity: {l: 2}}}
models: [{distinct-diversity: {l: 3}}, {k-anonymity: {k: 5}}]
"""
GROUPED = """
attributes:
  zip: {role: quasi-identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10]}}
  disease: {role: sensitive, domain: [flu, cold, ulcer, cough], missing: drop}
models: [{k-anonymity: {k: 2}}]
method: {full-domain: {}}
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(TABLE)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "grouped.yaml").write_text(GROUPED)
    return tmp_path


COMMANDS = {
    "anonymize": ("anonymize", "policy.yaml", "people.csv", "--out", "release"),
    "grouped": ("anonymize", "grouped.yaml", "people.csv", "--out", "release"),
    "plan": ("plan", "policy.yaml", "--data", "people.csv"),
    "plan-grouped": ("plan", "grouped.yaml", "--data", "people.csv"),
    "verify": ("verify", "people.csv", "--policy", "policy.yaml"),
    "hierarchy": ("hierarchy", "check", "intervals: [5]", "people.csv", "--column", "age"),
    "taxonomy": ("taxonomy", "check", "icd10", "people.csv", "--column", "disease"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_values_are_shown_only_when_asked_for(
    work: Path, command: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    silent = polyseme(*command, cwd=work)
    assert MARK not in silent.stdout + silent.stderr
    assert "line" in silent.stdout + silent.stderr or "row" in silent.stdout + silent.stderr
    refused = polyseme(*command, "--show-values", cwd=work)
    assert refused.returncode == 2
    assert "--force-show-values" in refused.stderr
    assert MARK not in refused.stdout + refused.stderr
    shown = polyseme(*command, "--force-show-values", cwd=work)
    assert shown.returncode == silent.returncode
    assert MARK in shown.stderr
    assert shown.stdout == silent.stdout
    assert MARK not in caplog.text
    assert not (work / "release").exists()


def test_lines_are_those_of_the_file(work: Path) -> None:
    text = polyseme(*COMMANDS["anonymize"], cwd=work).stderr
    assert "3 values are not in the declared domain of 4 values, in lines 5, 8 and 9" in text
    assert "1 value is missing, in line 10" in text
    assert "1 value cannot be read as integer, in line 3" in text
    shown = polyseme(*COMMANDS["anonymize"], "--force-show-values", cwd=work).stderr
    rows = [line.split() for line in shown.splitlines()]
    assert [f"{MARK}2", "2", "8"] in rows
    assert ["(missing)", "1", "10"] in rows


def test_plan_says_what_anonymize_will_refuse(work: Path) -> None:
    document = json.loads(polyseme(*COMMANDS["plan"], "--json", cwd=work).stdout)
    (warned,) = [text for text in document["remarks"] if "declared domain" in text]
    assert warned.startswith(
        "column 'disease': 3 values are not in the declared domain of 4 values, in lines 5, 8 and 9"
    )


def test_verify_names_lines_of_what_it_could_not_judge_and_of_the_worst_classes(work: Path) -> None:
    document = json.loads(polyseme(*COMMANDS["verify"], "--json", cwd=work).stdout)
    diversity, k = document["verdicts"]
    assert diversity["note"].endswith("in lines 5, 8, 9 and 10")
    assert k["note"] == "a record of each of the worst classes: lines 2, 5"
    assert MARK not in json.dumps(document)


def test_init_lists_what_a_taxonomy_does_not_know(tmp_path: Path) -> None:
    countries = ["Japan", "France", "Germany", "Italy", "Spain", "Kenya", "Chile", "Peru", "Ghana", f"{MARK}land"]
    pl.DataFrame({"country": countries * 30, "age": list(range(300))}).write_csv(tmp_path / "people.csv")
    silent = polyseme("init", "people.csv", cwd=tmp_path)
    assert "unknown: other" in silent.stdout
    assert MARK not in silent.stdout + silent.stderr
    shown = polyseme("init", "people.csv", "--force-show-values", cwd=tmp_path)
    assert [f"{MARK}land", "30", "11"] in [line.split() for line in shown.stderr.splitlines()]


def test_rows_of_a_frame_count_from_one_over_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.tables.io.source.BATCH_ROWS", 2)
    frame = pl.DataFrame({"zip": ["1"] * 6, "disease": ["flu", "flu", None, MARK, "cold", MARK], "age": [1] * 6})
    policy = ps.Policy.loads(POLICY.replace("ulcer, cough]", "ulcer, cough], missing: drop"))
    with pytest.raises(TableError) as error:
        ps.anonymize(frame, policy)
    (problem,) = error.value.problems
    assert problem.what.endswith("in rows 4 and 6")
    assert problem.seen is not None
    assert problem.seen.values == {MARK: (2, 4)}


def test_impossible_values_are_found_in_their_rows() -> None:
    frame = pl.DataFrame({"sex": ["f", "m", "m", "f"], "disease": ["flu", "birth", "flu", "birth"]})
    policy = ps.Policy.from_dict(
        {
            "attributes": {
                "sex": {"role": "quasi-identifier"},
                "disease": {
                    "role": "sensitive",
                    "domain": ["flu", "cold", "ulcer", "birth"],
                    "protect": {"diversity": {"l": 2}},
                },
            },
            "impossible": [{"when": {"sex": "m"}, "attribute": "disease", "values": ["birth"]}],
        }
    )
    with pytest.raises(TableError, match="1 value is declared impossible in the policy, in row 2"):
        ps.anonymize(frame, policy)


def test_an_error_carries_values_in_no_text_and_no_copy(work: Path) -> None:
    with pytest.raises(TableError) as caught:
        ps.anonymize(work / "people.csv", work / "policy.yaml")
    error = caught.value
    assert any(MARK in str(problem.seen.values) for problem in error.problems if problem.seen)
    for text in (str(error), repr(error), repr(error.problems), repr(vars(error)), str(error.args)):
        assert MARK not in text
    for problem in error.problems:
        assert MARK not in str(asdict(problem))
        for again in (copy.copy(problem), copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):  # noqa: S301
            assert again == problem
        assert pickle.loads(pickle.dumps(problem)).seen.values == {}  # noqa: S301
        assert copy.copy(problem.seen).values == {}
    assert MARK.encode() not in pickle.dumps(error)


def test_sightings_add_up() -> None:
    one = Sightings.of({"a": (2, 0), None: (1, 4)}, [0, 2, 4])
    two = Sightings.of({"a": (1, 1), "b": (4, 0)}, [0, 1, 2, 3, 4]).moved(10)
    both = one + two
    assert both.values == {"a": (3, 0), None: (1, 4), "b": (4, 10)}
    assert (both.count, both.rows) == (8, (0, 2, 4, 10, 11))
    numbered = both.numbered(lambda rows: ("line", [row + 2 for row in rows]))
    assert numbered.words() == "first in lines 2, 4, 6, 12 and 13"
    assert numbered.values["b"] == (4, 12)
    assert Sightings().words() == ""
    assert Sightings.of({"a": (1, 3)}, [3]).words() == "in row 3"


def test_no_more_values_are_kept_than_users_read() -> None:
    many = Sightings.of({str(number): (1, number) for number in range(5_000)}, range(5))
    assert len(many.values) == 1_000
    assert many.count == 5_000


def test_problems_compare_by_what_they_say() -> None:
    assert Problem("a", "b", seen=Sightings(3)) == Problem("a", "b")
