"""`anonymize` says what it does: models that do not hold stop it, and what goes out as it is, is counted and told."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme
from hospital import patients

import polyseme as ps
from polyseme.cli.anonymize import column_lines
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.randomness import new_key
from polyseme.publishing.review import Exposure
from polyseme.release import Manifest
from polyseme.release.data import checksum
from polyseme.tables.codes import as_series
from polyseme.tables.readings import plain_text
from polyseme.verbs.preview import preview

RAW = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  visits: {role: insensitive}
  disease: {role: sensitive, domain: [a, b, c, d, e, f], protect: {diversity: {l: 2}}}
"""
REACHED = "models: [{k-anonymity: {k: 2}}, {diversity: {l: 2, attribute: disease}}]\n"
MISSED = "models: [{k-anonymity: {k: 5}}]\n"
MARK = "MARKED"


def people() -> pl.DataFrame:
    """Twenty-two records: two are alone, four are pairs, and sixteen are classes of eight."""
    ages = [20] * 8 + [30] * 8 + [40, 40, 50, 50] + [60, 61]
    return pl.DataFrame(
        {
            "name": [f"{MARK}{row}" for row in range(22)],
            "age": ages,
            "sex": ["f"] * 22,
            "visits": [row % 3 for row in range(22)],
            "disease": [list("abcdef")[row % 6] for row in range(22)],
        }
    )


def heard_of(text: str, table: pl.DataFrame | None = None, **how: Any) -> list[str]:
    heard: list[str] = []
    ps.anonymize(people() if table is None else table, ps.Policy.loads(text), warn=heard.append, **how)
    return heard


# -- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("into", ["memory", "folder"])
def test_a_model_that_does_not_hold_stops_the_run(into: str, tmp_path: Path) -> None:
    out = tmp_path / "release" if into == "folder" else None
    with pytest.raises(ps.RiskError, match=r"\$\.models: k-anonymity \(k = 5\) does not hold") as caught:
        ps.anonymize(people(), ps.Policy.loads(RAW + MISSED), out)
    assert caught.value.exit_code == 1
    assert "--accept-risk" in str(caught.value)
    assert MARK not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_earlier_release_stays_when_the_next_is_refused(tmp_path: Path) -> None:
    ps.anonymize(people(), ps.Policy.loads(RAW), tmp_path / "release")
    before = (tmp_path / "release" / "manifest.json").read_text()
    with pytest.raises(ps.RiskError):
        ps.anonymize(people(), ps.Policy.loads(RAW + MISSED), tmp_path / "release", overwrite=True)
    assert (tmp_path / "release" / "manifest.json").read_text() == before


def test_every_model_that_does_not_hold_is_named() -> None:
    models = "models: [{k-anonymity: {k: 5}}, {diversity: {l: 3, attribute: disease}}]\n"
    with pytest.raises(ps.RiskError) as caught:
        ps.anonymize(people(), ps.Policy.loads(RAW + models))
    assert [problem.what.partition(" (")[0] for problem in caught.value.problems] == [
        "k-anonymity",
        "diversity of disease",
    ]


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("form", ["set", "long"])
def test_an_accepted_risk_is_in_the_manifest_and_verify_still_sees_it(
    tmp_path: Path, file_format: str, form: str
) -> None:
    how: dict[str, Any] = {"file_format": file_format, "form": form}
    with pytest.warns(ps.PrivacyWarning, match="published all the same"):
        ps.anonymize(people(), ps.Policy.loads(RAW + MISSED), tmp_path / "r", accept_risk=True, **how)
    document = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert document["format"] == 2
    assert document["accepted_risk"] == ["k-anonymity"]
    release = ps.Release.open(tmp_path / "r")
    assert release.manifest.accepted == ("k-anonymity",)
    (broken,) = [verdict for verdict in ps.verify(release).verdicts if not verdict.holds]
    assert broken.model == "k-anonymity"


def test_a_release_without_risk_says_nothing_of_one() -> None:
    document = ps.anonymize(people(), ps.Policy.loads(RAW), accept_risk=True).manifest.to_dict()
    assert "accepted_risk" not in document
    assert document["format"] == 1


@pytest.mark.parametrize(
    "edit",
    [{"format": 1}, {"accepted_risk": ["closeness"]}, {"accepted_risk": ["combined-learner"]}, {"accepted_risk": []}],
)
def test_a_manifest_that_accepts_what_it_cannot_is_refused(edit: dict[str, Any]) -> None:
    document = ps.anonymize(people(), ps.Policy.loads(RAW + MISSED), accept_risk=True).manifest.to_dict()
    Manifest.from_dict(document)
    changed = {**document, **edit}
    del changed["checksum"]
    with pytest.raises(ps.ReleaseError):
        Manifest.from_dict({**changed, "checksum": checksum(changed)})


def test_models_that_hold_are_no_obstacle_and_sets_are_looked_at_as_sets() -> None:
    table = people().head(20)
    heard = heard_of(RAW + REACHED, table)
    assert not [text for text in heard if "value by value" in text or "does not hold" in text]
    assert ps.verify(ps.anonymize(table, ps.Policy.loads(RAW + REACHED))).holds


def test_a_model_that_says_nothing_about_sets_is_not_taken_to_hold() -> None:
    models = "models: [{closeness: {t: 0.9, attribute: disease}}]\n"
    with pytest.raises(ps.RiskError, match="says nothing about published sets") as caught:
        ps.anonymize(people(), ps.Policy.loads(RAW + models))
    assert "under protect" in str(caught.value)


def test_beside_a_grouping_method_models_about_sets_are_looked_at_too() -> None:
    grouped = RAW.replace("{role: quasi-identifier}", "{role: quasi-identifier, hierarchy: suppress}")
    models = "models: [{k-anonymity: {k: 5}}, {diversity: {l: LL, attribute: disease}}]\n"
    method = "method: {full-domain: {suppression: 0.5}}\n"
    release = ps.anonymize(people(), ps.Policy.loads(grouped + models.replace("LL", "2") + method))
    assert ps.verify(release).holds
    with pytest.raises(ps.RiskError, match="diversity of disease"):
        ps.anonymize(people(), ps.Policy.loads(grouped + models.replace("LL", "3") + method))


# -- quasi-identifiers as they are -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["set", "long"])
def test_what_goes_out_as_it_is_is_told_last_and_counted(form: str) -> None:
    warning = heard_of(RAW, form=form)[-1]
    assert warning.startswith("age, sex are published as in the table, value by value: 2 of 22 records (9.1%)")
    assert "and 6 in all share them with at most 3 others" in warning
    assert "finds the record with 2 candidates for disease and 1 other column as in the table" in warning
    for line in ("hierarchy: ..", "models: [{k-anonymity: {k: 5}}]", "method: {full-domain: {suppression: 0.05}}"):
        assert line in warning


def test_the_lines_that_are_advised_work() -> None:
    warning = heard_of(RAW)[-1].split("\n")
    models, method = (line.strip() for line in warning[-2:])
    hierarchy = RAW.replace("quasi-identifier}", "quasi-identifier, hierarchy: {intervals: [5, 10, 20]}}", 1)
    text = f"{hierarchy}{models}\n{method.replace('0.05', '0.5')}\n"
    assert not [line for line in heard_of(text) if "value by value" in line]


def test_classes_that_are_large_are_said_to_be() -> None:
    assert "every combination of values is shared by at least 5 records" in heard_of(RAW, people().head(16))[-1]


def test_without_quasi_identifiers_there_is_nothing_to_say() -> None:
    heard = heard_of(RAW.replace("quasi-identifier", "insensitive"))
    assert not [line for line in heard if "value by value" in line]


def test_the_warning_is_one_about_privacy_and_can_stop_the_run(tmp_path: Path) -> None:
    with pytest.warns(ps.PrivacyWarning, match="value by value"):
        ps.anonymize(people(), ps.Policy.loads(RAW))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.PrivacyWarning)
        with pytest.raises(ps.PrivacyWarning):
            ps.anonymize(people(), ps.Policy.loads(RAW), tmp_path / "release")
    assert not list(tmp_path.iterdir())


def test_missing_values_and_types_are_compared_as_they_are_published() -> None:
    table = people().with_columns(age=pl.when(pl.col("age") > 50).then(None).otherwise("age"))
    assert "0 of 22 records (0.0%)" in heard_of(RAW, table)[-1]


@pytest.mark.parametrize("held", [1 << 30, 20_000])
def test_of_very_many_rows_a_share_of_the_classes_is_looked_at(held: int) -> None:
    """One person in four is alone; where not everybody can be remembered, the estimate is close."""
    generator = np.random.default_rng(6)
    rows = 200_000
    code = np.concatenate([np.arange(rows // 4), np.repeat(np.arange(rows // 4, rows // 2), 3)])
    generator.shuffle(code)
    exposure = Exposure(("code",), held=held)
    for part in np.array_split(code, 20):
        exposure.add(pl.DataFrame({"code": part}).to_arrow())
        assert sum(map(len, exposure._parts)) <= held
    assert exposure.sampled == (held < rows)
    # Of 20,000 held at most, some 2,500 are alone: a standard deviation of 2%.
    tolerance = 0.07 if exposure.sampled else 0.0
    assert exposure.records_in_classes_below(2) == pytest.approx(rows // 4, rel=tolerance)
    assert exposure.records_in_classes_below(5) == pytest.approx(rows, rel=tolerance)


def test_classes_of_columns_of_any_type_are_those_of_their_texts() -> None:
    rng = np.random.default_rng(7)
    columns: dict[str, pl.Series] = {
        "whole": pl.Series(rng.integers(0, 5, 600), dtype=pl.Int8).set(pl.Series(rng.random(600) < 0.1), None),
        "number": pl.Series(rng.choice([1.0, 2.5, float("nan")], 600)),
        "text": pl.Series(rng.choice(["30", "30.0", " x", "x", ""], 600)),
        "category": pl.Series(rng.choice(["a", "b"], 600), dtype=pl.Categorical),
        "many": pl.Series([None, *[f"v{n % 256}" for n in range(599)]], dtype=pl.Enum([f"v{n}" for n in range(256)])),
        "list": pl.Series([[int(n)] for n in rng.integers(0, 3, 600)]),
    }
    texts = pl.DataFrame(
        [plain_text(as_series(column.to_arrow()).alias(name), [""]) for name, column in columns.items()]
    )
    for names in (["whole"], ["text", "number"], list(columns)):
        sizes = texts.group_by(names).len()["len"]
        exposure = Exposure(tuple(names))
        exposure.add(pl.DataFrame(columns)[:200].to_arrow())
        exposure.add(pl.DataFrame(columns)[200:].to_arrow())
        for limit in (2, 5, 20):
            assert exposure.records_in_classes_below(limit) == sizes.filter(sizes < limit).sum()


# -- what happened ---------------------------------------------------------------------------------------------------


@pytest.fixture
def work(tmp_path: Path) -> Path:
    people().write_csv(tmp_path / "people.csv")
    (tmp_path / "raw.yaml").write_text(RAW)
    (tmp_path / "missed.yaml").write_text(RAW + MISSED)
    return tmp_path


def test_the_command_lists_every_column_and_warns_last(work: Path) -> None:
    done = polyseme("anonymize", "raw.yaml", "people.csv", "--out", "r", cwd=work)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if not line.startswith("─")]
    assert lines[:6] == [
        ["column", "role", "published"],
        ["name", "identifier", "not", "published"],
        ["age", "quasi-identifier", "as", "it", "is"],
        ["sex", "quasi-identifier", "as", "it", "is"],
        ["visits", "insensitive", "as", "it", "is"],
        ["disease", "sensitive", "sets", "of", "2"],
    ]
    assert done.stderr.splitlines()[-1] == "  method: {full-domain: {suppression: 0.05}}"
    both = subprocess.run(
        [sys.executable, "-m", "polyseme", "anonymize", "raw.yaml", "people.csv", "--out", "r2"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, cwd=work,
    )  # fmt: skip
    assert both.stdout.splitlines()[-1] == "  method: {full-domain: {suppression: 0.05}}"


def test_the_command_refuses_with_exit_code_1_and_accepts_when_told(work: Path) -> None:
    refused = polyseme("anonymize", "missed.yaml", "people.csv", "--out", "r", cwd=work)
    assert refused.returncode == 1
    assert "k-anonymity (k = 5) does not hold" in refused.stderr
    assert MARK not in refused.stderr
    assert not (work / "r").exists()
    done = polyseme("anonymize", "missed.yaml", "people.csv", "--out", "r", "--accept-risk", "--json", cwd=work)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["accepted_risk"] == ["k-anonymity"]
    assert document["columns"][0] == {"name": "name", "role": "identifier", "published": "not published"}
    assert polyseme("verify", "r", cwd=work).returncode == 1


def test_members_of_a_joint_attribute_and_new_columns_are_listed() -> None:
    text = """
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier}
  sex: {role: quasi-identifier}
  visits: {role: sensitive, domain: [0, 1, 2]}
  disease: {role: sensitive, domain: [a, b, c, d, e, f]}
joint: [{name: both, attributes: [visits, disease], protect: {semantic-diversity: {l: 2, d: 1}}}]
"""
    policy = ps.Policy.loads(text)
    release = ps.anonymize(people(), policy)
    lines = {name: how for name, _, how in column_lines(release, policy, people().columns)}
    assert lines["visits"] == lines["disease"] == "in both"
    assert lines["both"] == "sets of 2"
    assert list(lines) == [*people().columns, "both"]


# -- before and after ------------------------------------------------------------------------------------------------


def test_a_preview_pairs_what_belongs_together() -> None:
    shown = preview(people(), ps.Policy.loads(RAW), 22)
    assert shown.total == len(shown.records) == 22
    assert {record.before["name"] for record in shown.records} == set(people()["name"])
    for record in shown.records:
        assert record.after is not None
        assert record.after.keys() == {"age", "sex", "visits", "disease"}
        assert record.before["disease"] in record.after["disease"]
        assert record.before["age"] == record.after["age"]
    assert MARK not in repr(shown)


def test_a_preview_of_classes_shows_who_is_left_out() -> None:
    table = patients(400).select("age", "sex", "main_diagnosis")
    text = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10, 20]}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  main_diagnosis: {role: sensitive, distance: {taxonomy: icd10}, protect: {diversity: {l: 2}}}
models: [{k-anonymity: {k: 30}}]
method: {mondrian: {}}
"""
    shown = preview(table, ps.Policy.loads(text), 5)
    assert len(shown.records) == 5
    for record in shown.records:
        assert record.after is not None
        low, high = json.loads(record.after["age"].replace(")", "]"))
        assert low <= record.before["age"] <= high
    dropped = preview(
        _one_missing(),
        ps.Policy.loads(RAW.replace("domain:", "missing: drop, domain:")),
        22,
    )
    assert sum(record.after is None for record in dropped.records) == 1
    assert dropped._repr_html_().count("would be left out") == 1


def _one_missing() -> pl.DataFrame:
    return people().with_columns(disease=pl.when(pl.col("age") == 61).then(None).otherwise("disease"))


@pytest.mark.parametrize("sticky", [False, True])
def test_a_preview_draws_sets_for_the_records_it_shows_and_no_others(
    sticky: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    sample = Mechanism.sample

    def counting(self: Mechanism, codes: Any, stream: Any) -> Any:
        drawn.append(len(codes))
        return sample(self, codes, stream)

    table = pl.DataFrame({"id": range(150_000), "ill": ["a", "b", "c"] * 50_000})
    key = tmp_path / "key"
    new_key(key)
    policy = (
        "record-key: id\nattributes: {id: {role: identifier}, "
        "ill: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    )
    monkeypatch.setattr(Mechanism, "sample", counting)
    shown = preview(table, policy, 10, key_file=key if sticky else None)
    assert sum(drawn) == len(shown.records) == 10
    assert shown.total == 150_000
    assert all(item.after is not None and item.before["ill"] in item.after["ill"] for item in shown.records)


def test_a_preview_with_a_seed_shows_the_sets_of_the_release() -> None:
    table = pl.DataFrame({"number": range(70_000), "ill": ["a", "b", "c", "d", "e"] * 14_000})
    policy = (
        "attributes: {number: {role: insensitive}, "
        "ill: {role: sensitive, domain: [a, b, c, d, e], protect: {diversity: {l: 2}}}}"
    )
    release = ps.anonymize(table, policy, seed=3, accept_risk=True, warn=lambda text: None)
    published = dict(release.to_polars().select("number", "ill").iter_rows())
    shown = preview(table, policy, 200, seed=3)
    assert [record.after and record.after["ill"] for record in shown.records] == [
        published[record.before["number"]] for record in shown.records
    ]


def test_a_preview_refuses_what_a_release_would_be_refused_for_in_any_record(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": ["x"] * 3_000, "ill": ["a", "b", "c"] * 1_000})
    key = tmp_path / "key"
    new_key(key)
    policy = (
        "record-key: id\nattributes: {id: {role: identifier}, "
        "ill: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"
    )
    with pytest.raises(ps.TableError, match="3,000 records of only 1 people"):
        preview(table, policy, 1, key_file=key)
    strange = table.with_columns(ill=pl.when(pl.int_range(3_000) == 2_999).then(pl.lit("z")).otherwise("ill"))
    for _ in range(3):
        with pytest.raises(ps.TableError, match="not in the declared domain"):
            preview(strange, policy, 1)


@pytest.mark.parametrize("records", [0, -1, 1.5])
def test_a_preview_of_no_records_is_refused(records: Any) -> None:
    with pytest.raises(ps.QuestionError, match="above 0"):
        preview(people(), ps.Policy.loads(RAW), records)


def test_a_preview_is_for_a_terminal(work: Path) -> None:
    before = sorted(work.iterdir())
    refused = polyseme("anonymize", "raw.yaml", "people.csv", "--preview", 2, cwd=work)
    assert refused.returncode == 2
    assert "no terminal" in " ".join(refused.stderr.split())
    assert MARK not in refused.stdout + refused.stderr
    assert polyseme("anonymize", "raw.yaml", "people.csv", "--preview", 2, "--json", cwd=work).returncode == 2
    forced = polyseme("anonymize", "raw.yaml", "people.csv", "--preview", 2, "--force-preview", cwd=work)
    assert forced.returncode == 0
    assert forced.stdout.count(MARK) == 2
    assert sorted(work.iterdir()) == before
    assert polyseme("anonymize", "raw.yaml", "people.csv", cwd=work).returncode == 2


def test_on_a_terminal_a_preview_is_shown(work: Path) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "polyseme", "anonymize", "raw.yaml", "people.csv", "--preview", "1", "--out", "r"]
    with subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL, cwd=work) as process:
        os.close(follower)
        assert process.wait(timeout=120) == 0
    assert MARK in os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert not (work / "r").exists()
