"""What the page asks for: states, edits, what-ifs, receipts and downloads, without a browser."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bench import Bench
from click.testing import CliRunner

import polyseme as ps
from polyseme.cli import cli
from polyseme.workbench.opened import tables_below


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("bench"))
    yield made
    made.close()


def test_the_state_is_the_policy_file_and_the_table(bench: Bench) -> None:
    state = bench.get("/api/state")
    assert state["table"]["rows"] == 5_000
    counted = pl.read_csv(bench.folder / "patients.csv").group_by("age", "sex", "postcode").len()
    assert state["table"]["unique"] == counted.filter(pl.col("len") == 1).height
    assert state["policy"]["text"] == (bench.folder / "policy.yaml").read_text(encoding="utf-8")
    assert state["policy"]["problems"] == []
    columns = {column["name"]: column for column in bench.get("/api/columns")["columns"]}
    assert columns["patient"]["guess"] == "identifier"
    assert columns["diagnosis"]["guess"] == "sensitive"
    assert columns["age"]["different"] == 72


def test_an_edit_changes_one_line_and_its_receipt_does_the_same(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bench.opened.text
    place = "attributes.diagnosis.protect.semantic-diversity.l"
    done = bench.post("/api/edits", revision=bench.revision, changes={place: 4}, said="4 candidates")
    after = bench.opened.text
    differ = [(one, other) for one, other in zip(before.splitlines(), after.splitlines(), strict=True) if one != other]
    assert len(differ) == 1
    assert "l: 4" in differ[0][1]
    (tmp_path / "policy.yaml").write_text(before, encoding="utf-8")
    arguments = shlex.split(done["receipt"]["command"])[1:]
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    assert Path("policy.yaml").read_text(encoding="utf-8") == after
    undone = bench.post("/api/history", revision=bench.revision, step="undo")
    assert undone["said"] == "4 candidates"
    assert bench.opened.text == before


def test_an_edit_on_an_old_revision_is_refused_with_the_state_as_it_is(bench: Bench) -> None:
    old, before = bench.revision, bench.opened.text
    (bench.folder / "policy.yaml").write_text(before + "# from an editor\n", encoding="utf-8")
    answer = bench.ask("POST", "/api/edits", {"revision": old, "changes": {"models[0].k-anonymity.k": 9}, "said": "k"})
    assert answer.status == 409
    assert answer.json["state"]["policy"]["text"].endswith("# from an editor\n")
    assert answer.json["state"]["history"]["entries"][-1]["outside"]
    assert "k: 9" not in bench.opened.text
    bench.post("/api/history", revision=bench.revision, step="undo")
    assert bench.opened.text == before


def test_a_wrong_edit_says_where_and_writes_nothing(bench: Bench) -> None:
    before = bench.opened.text
    changes = {"attributes.diagnosis.protect.semantic-diversity.l": -1}
    answer = bench.ask("POST", "/api/edits", {"revision": bench.revision, "changes": changes, "said": "wrong"})
    assert answer.status == 422
    assert any("semantic-diversity.l" in one["where"] for one in answer.json["problems"])
    assert bench.opened.text == before


def test_a_what_if_says_what_plan_says_and_writes_nothing(bench: Bench) -> None:
    before = bench.opened.text
    place = "attributes.diagnosis.protect.semantic-diversity.l"
    (card,) = bench.post("/api/what-if", changes={place: 2})["cards"]
    assert bench.opened.text == before
    text = before.replace("{l: 3, d: 3}", "{l: 2, d: 3}")
    assert text != before
    planned = ps.plan(ps.Policy.loads(text), data=bench.folder / "patients.csv").to_dict()["attributes"]["diagnosis"]
    assert card["error"] ** 2 == pytest.approx(planned["expected_mse"])
    for attacker in card["attackers"]:
        assert attacker["after"] == pytest.approx(planned["learner"][attacker["name"]]["after"])


def test_the_light_is_never_green_where_a_learner_wins(bench: Bench) -> None:
    light = bench.post("/api/what-if", changes={})["light"]
    assert light["color"] == "amber"
    assert light["steps"]
    impossible = bench.post("/api/what-if", changes={"attributes.diagnosis.protect.semantic-diversity.d": 9})["light"]
    assert impossible["color"] == "red"
    assert impossible["steps"], "the nearest settings are offered"


def test_a_preview_has_before_and_after(bench: Bench) -> None:
    found = bench.get("/api/preview")
    assert len(found["rows"]) == 10
    shown = [row for row in found["rows"] if row["after"] is not None]
    assert all(row["before"]["diagnosis"] in row["after"]["diagnosis"] for row in shown)


def test_values_and_their_steps(bench: Bench) -> None:
    found = bench.post("/api/columns/age", hierarchy={"intervals": [10]})
    table = pl.read_csv(bench.folder / "patients.csv")
    assert sum(row["records"] for row in found["values"]) == table.height
    assert {row["levels"][1] for row in found["values"] if row["levels"][0] == "34"} == {"[30, 40)"}
    beside = bench.get("/api/beside/diagnosis")["beside"]
    assert "B20" not in beside["B20"]


def test_downloads_need_a_fresh_ticket(bench: Bench) -> None:
    url = bench.post("/api/tickets", name="policy")["url"]
    assert bench.ask("GET", url).body.decode() == bench.opened.text
    assert bench.ask("GET", url).status == 404
    assert bench.ask("POST", "/api/tickets", {"name": "/etc/passwd"}).status == 400
    script = bench.ask("GET", bench.post("/api/tickets", name="commands")["url"]).body.decode()
    assert "polyseme anonymize policy.yaml patients.csv --out release" in script


def test_only_files_below_the_start_folder(bench: Bench, tmp_path: Path) -> None:
    for path in ("../other.csv", "/etc/hostname", "a/../../b.csv"):
        answer = bench.ask("POST", "/api/open", {"path": path})
        assert answer.status == 422
        assert "outside" in answer.json["problems"][0]["what"]
    for name in (
        "one.csv",
        ".hidden.csv",
        "notes.md",
        "below/two.parquet",
        "release/manifest.json",
        "release/data.csv",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert tables_below(tmp_path) == ["one.csv", "below/two.parquet"]


def test_no_value_of_the_table_leaves_in_an_error(tmp_path: Path) -> None:
    marked = pl.DataFrame({"code": [f"SECRETX{row}" for row in range(200)] * 2, "age": [*range(200)] * 2})
    marked.write_csv(tmp_path / "marked.csv")
    bench = Bench(tmp_path, "marked.csv")
    try:
        answers = [
            bench.ask("POST", "/api/columns/code", {"hierarchy": {"intervals": [5]}}),
            bench.ask("POST", "/api/columns/SECRETX", {"hierarchy": "suppress"}),
            bench.ask("GET", "/api/estimate?of=code"),
            bench.ask("POST", "/api/jobs", {"kind": "nothing"}),
            bench.ask("GET", "/api/jobs/99"),
        ]
        for answer in answers:
            assert answer.status >= 400
            assert b"SECRETX" not in answer.body
    finally:
        bench.close()


def test_a_release_is_made_checked_and_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    try:
        started = bench.post("/api/jobs", kind="anonymize", out="release", seed=7)
        job = _ended(bench, started["job"]["id"])
        assert job["state"] == "done", job
        verified = _ended(bench, bench.post("/api/jobs", kind="verify")["job"]["id"])
        assert verified["state"] == "done"
        state = bench.get("/api/state")
        assert state["release"]["revision"] == state["policy"]["revision"]
        estimated = bench.get("/api/estimate?of=diagnosis&truth=yes")
        true = dict(pl.read_csv(tmp_path / "patients.csv").group_by("diagnosis").len().iter_rows())
        assert estimated["truth"] == true
        packed = bench.ask("GET", bench.post("/api/tickets", name="release")["url"]).body
        names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
        assert "release/manifest.json" in names
        other = tmp_path / "again"
        other.mkdir()
        shutil.copy(tmp_path / "patients.csv", other)
        shutil.copy(tmp_path / "policy.yaml", other)
        monkeypatch.chdir(other)
        ran = CliRunner().invoke(cli, shlex.split(started["receipt"]["command"])[1:])
        assert ran.exit_code == 0, ran.output
        assert _rows(other / "release") == _rows(tmp_path / "release")
    finally:
        bench.close()


def _rows(release: Path) -> Any:
    return json.dumps(pl.read_parquet(release / "data.parquet").to_dicts(), default=str)


def _ended(bench: Bench, number: str) -> dict[str, Any]:
    import asyncio

    async def waited() -> None:
        while not bench.bench.jobs.all[number].ended:
            await asyncio.sleep(0.05)

    bench._loop.run_until_complete(asyncio.wait_for(waited(), 240))
    return dict(bench.get(f"/api/jobs/{number}")["job"])
