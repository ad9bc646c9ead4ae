"""What was collected becomes a release like any other, by the commands that people use."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import crowd
import numpy as np
import polars as pl
import pytest
import yaml
from command_line import Result, polyseme

import polyseme as ps
from polyseme.collection.operations import open_document
from polyseme.collection.releases import release_campaign
from polyseme.collection.store import State, Store, open_store
from polyseme.collection.survey import Survey
from polyseme.device.reports import answer
from polyseme.kernel.errors import CollectionError, RiskError

QUESTIONS = {
    "name": "health",
    "languages": ["en"],
    "title": {"en": "Health"},
    "questions": {name: {"text": {"en": f"Your {name}?"}} for name in ("sex", "age", "disease", "income")},
    "collection": {"planned": 400, "minimum": 300, "purpose": {"en": "a test"}, "contact": "nobody"},
}


@pytest.fixture
def subkeys(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Devices draw the same in every run: what they take from the system is counted on from a number."""
    number = [0]

    def next_key() -> bytes:
        number[0] += 1
        return hashlib.sha256(f"test {number[0]}".encode()).digest()

    monkeypatch.setattr("polyseme.device.reports.fresh_subkey", next_key)
    monkeypatch.setattr("polyseme.device.reports.os.urandom", lambda size: next_key()[:size])
    return number


def collect(store: Store, survey: Survey, table: pl.DataFrame) -> None:
    """Every person's device answers."""
    bodies = [answer(survey.campaign, record).body(survey.size) for record in table.iter_rows(named=True)]
    outcomes = store.append([survey.entry(body) for body in bodies])
    assert {outcome.value for outcome in outcomes} == {"stored"}


def run(*arguments: object) -> Result:
    done = polyseme(*arguments)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.usefixtures("subkeys")
def test_the_whole_way_by_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYSEME_STORE", f"sqlite:///{tmp_path}/reports.db")
    (tmp_path / "policy.yaml").write_text(crowd.POLICY, encoding="utf-8")
    (tmp_path / "questions.yaml").write_text(yaml.safe_dump(QUESTIONS), encoding="utf-8")
    run(
        "campaign", "new", tmp_path / "policy.yaml", "--questions", tmp_path / "questions.yaml", "--out", tmp_path / "c"
    )
    campaign = run("collect", "open", tmp_path / "c").stdout.strip()
    survey = Survey.read((tmp_path / "c" / "campaign.json").read_bytes(), campaign)
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    collect(store, survey, crowd.people(400))
    status = json.loads(run("collect", "status", "--json").stdout)["campaigns"]
    assert [(item["id"], item["name"], item["state"], item["reports"], item["enough"]) for item in status] == [
        (campaign, "health", "open", 400, True)
    ]
    assert "400" in run("collect", "status", campaign[:8]).stdout
    early = polyseme("collect", "release", campaign, "--out", tmp_path / "early")
    assert early.returncode == 2
    assert "it is open, not closed" in early.stderr
    run("collect", "close", campaign[:6])
    run("collect", "backup", tmp_path / "backup.db")
    run("collect", "release", campaign, "--out", tmp_path / "release")
    release = ps.Release.open(tmp_path / "release")
    assert (release.manifest.records, release.manifest.dropped, release.manifest.seeded) == (400, 0, False)
    run("verify", tmp_path / "release")
    table = json.loads(run("estimate", tmp_path / "release", "--of", "disease", "--by", "sex", "--json").stdout)
    assert table
    run("attack", tmp_path / "release")
    run("report", tmp_path / "release", "--by", "sex", "--out", tmp_path / "report.html")
    # The same again, as a table of text, with another order of the rows.
    run("collect", "release", campaign, "--out", tmp_path / "again", "--format", "csv")
    again = ps.Release.open(tmp_path / "again")
    assert not again.holds_the_same_as(release)
    assert _rows(again) == _rows(release)
    run("collect", "purge", campaign, "--yes")
    assert store.counts(campaign).reports == 0
    gone = polyseme("collect", "release", campaign, "--out", tmp_path / "late")
    assert "it is purged, not closed" in gone.stderr
    restored = open_store(f"sqlite:///{tmp_path}/backup.db", create=False)
    assert restored.counts(campaign).reports == 400
    restored.close()
    store.close()


def _rows(release: ps.Release) -> list[str]:
    names = ["sex", "age", "disease", "income"]
    return sorted(str(row) for batch in release.batches(names) for row in batch.to_pylist())


def test_commands_say_what_is_wrong(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/reports.db"
    nowhere = polyseme("collect", "status", "--store", store)
    assert (nowhere.returncode, "no store here" in nowhere.stderr) == (2, True)
    token = run("collect", "token", "new", "anna", "--role", "analyst", "--store", store).stdout.strip()
    assert len(token) == 43
    assert token.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("reports.db*"))
    assert run("collect", "token", "list", "--store", store).stdout == "anna\tanalyst\n"
    twice = polyseme("collect", "token", "new", "anna", "--role", "analyst", "--store", store)
    assert "there is a token with the name 'anna' already" in twice.stderr
    run("collect", "token", "remove", "anna", "--store", store)
    for command in (["close", "nobody"], ["release", "nobody", "--out", tmp_path / "r"], ["purge", "nobody", "--yes"]):
        unknown = polyseme("collect", *command, "--store", store)
        assert (unknown.returncode, "the store has no such campaign" in unknown.stderr) == (2, True)
    strange = polyseme("collect", "status", "--store", "mongodb://root:secret@host/x")
    assert strange.returncode == 2
    assert "sqlite:///" in strange.stderr
    assert "secret" not in strange.stderr
    (tmp_path / "campaign.json").write_text("{}", encoding="utf-8")
    broken = polyseme("collect", "open", tmp_path / "campaign.json", "--store", store)
    assert broken.returncode == 2
    assert "polyseme-campaign-1" in broken.stderr


def test_invitations_by_the_command_line(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/reports.db"
    (tmp_path / "campaign.json").write_bytes(crowd.document(tokens="invitation"))
    campaign = run("collect", "open", tmp_path / "campaign.json", "--store", store).stdout.strip()
    run("collect", "invite", campaign, "--count", "3", "--out", tmp_path / "codes.txt", "--store", store)
    codes = (tmp_path / "codes.txt").read_text(encoding="utf-8").split()
    assert (len(set(codes)), (tmp_path / "codes.txt").stat().st_mode & 0o077) == (3, 0)
    assert json.loads(run("collect", "status", "--json", "--store", store).stdout)["campaigns"][0]["invited"] == 3
    again = polyseme("collect", "invite", campaign, "--count", "3", "--out", tmp_path / "codes.txt", "--store", store)
    assert "exists already" in again.stderr
    assert json.loads(run("collect", "status", "--json", "--store", store).stdout)["campaigns"][0]["invited"] == 3


@pytest.fixture
def collected(tmp_path: Path) -> Iterator[tuple[Store, Survey]]:
    """150 people have answered, and a few of them were the only ones of their kind."""
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    document = crowd.document(minimum=100)
    open_document(store, document)
    survey = Survey.read(document)
    people = crowd.people(200).filter((pl.col("sex") == "m") | (pl.col("age") != "old"))
    few = crowd.people(200).filter((pl.col("sex") == "f") & (pl.col("age") == "old")).head(3)
    reports = crowd.reports(survey, pl.concat([people.head(147), few]))
    store.append([survey.entry(crowd.padded(report)) for report in reports])
    yield store, survey
    store.close()


def test_rare_open_values_are_left_out_and_counted(collected: tuple[Store, Survey], tmp_path: Path) -> None:
    store, survey = collected
    store.move(survey.id, State.CLOSED)
    whole = release_campaign(store, survey.id, tmp_path / "whole")
    assert (whole.manifest.records, whole.manifest.dropped) == (150, 0)
    release = release_campaign(store, survey.id, tmp_path / "release", k=5)
    assert (release.manifest.records, release.manifest.dropped) == (147, 3)
    rows = pl.concat([pl.from_arrow(batch) for batch in release.batches(["sex", "age"])])
    assert rows.group_by("sex", "age").len()["len"].min() >= 5
    assert ps.verify(release).holds
    with pytest.raises(RiskError, match=r"it has \d+ reports that share their open values, and promised"):
        release_campaign(store, survey.id, tmp_path / "none", k=60)
    with pytest.raises(CollectionError, match="at least 1"):
        release_campaign(store, survey.id, tmp_path / "none", k=0)
    assert not (tmp_path / "none").exists()


def test_too_few_reports_are_not_released(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    survey = Survey.read(crowd.document(minimum=100))
    open_document(store, crowd.document(minimum=100))
    store.append([survey.entry(crowd.padded(report)) for report in crowd.reports(survey, crowd.people(99))])
    with pytest.raises(CollectionError, match="it is open, not closed"):
        release_campaign(store, survey.id, tmp_path / "release")
    store.move(survey.id, State.CLOSED)
    with pytest.raises(RiskError, match="it has 99 reports, and promised that none is released below 100"):
        release_campaign(store, survey.id, tmp_path / "release")
    assert store.campaign(survey.id).state is State.CLOSED
    assert not (tmp_path / "release").exists()
    store.close()


def test_rows_are_in_another_order_than_ids(collected: tuple[Store, Survey], tmp_path: Path) -> None:
    store, survey = collected
    store.move(survey.id, State.CLOSED)
    kept = survey.matrix([payload for piece in store.payloads(survey.id) for payload in piece])
    release = release_campaign(store, survey.id, tmp_path / "release")
    shown = [row["sex"] for batch in release.batches(["sex"]) for row in batch.to_pylist()]
    ordered = [crowd.SEXES[code] for code in kept[:, 0]]
    assert sorted(shown) == sorted(ordered)
    assert shown != ordered


REPEATS = 320
"""Then the ratio has a standard error of about 0.03: one beyond 0.9 or 1.1 is no accident."""


@pytest.mark.slow
def test_a_collected_release_is_as_good_as_an_anonymized_one(tmp_path: Path, subkeys: list[int]) -> None:
    truth = crowd.people(300)
    survey = Survey.read(crowd.document(minimum=1))
    policy = ps.Policy.loads(crowd.POLICY)
    expected = {
        "disease": np.array([(truth["disease"] == label).sum() for label in crowd.DISEASES]),
        "income": np.array([(truth["income"] == label).sum() for label in crowd.INCOMES]),
    }
    errors: dict[tuple[str, str], list[float]] = {}
    draw = random.Random(5)
    for repeat in range(REPEATS):
        store = open_store(f"sqlite:///{tmp_path}/{repeat}.db")
        open_document(store, crowd.document(minimum=1))
        collect(store, survey, truth)
        store.move(survey.id, State.CLOSED)
        releases = {
            "collected": release_campaign(store, survey.id, tmp_path / f"release-{repeat}"),
            "anonymized": ps.anonymize(truth, policy, seed=draw.randrange(1 << 60), warn=lambda text: None),
        }
        store.close()
        for name, release in releases.items():
            for attribute, counts in expected.items():
                estimated = ps.estimate(release, of=[attribute]).values
                errors.setdefault((attribute, name), []).append(float(((estimated - counts) ** 2).sum()))
        if repeat == 0:
            one, two = (ps.verify(release).verdicts for release in releases.values())
            # A campaign promises one thing more: how many answers are released at the least.
            assert [(item.model, item.attribute, item.holds) for item in one] == [
                *((item.model, item.attribute, item.holds) for item in two),
                ("minimum", None, True),
            ]
    assert subkeys[0] > REPEATS * 300
    for attribute in expected:
        ratio = np.mean(errors[attribute, "collected"]) / np.mean(errors[attribute, "anonymized"])
        print(f"{attribute}: ratio of mean squared errors {ratio:.3f}")
        assert 0.9 < ratio < 1.1
