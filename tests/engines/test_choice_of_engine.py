"""The engine that is asked for is the one that runs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest

import polyseme as ps
from polyseme import engines
from polyseme.cli import main
from polyseme.engines import local
from polyseme.policy import Policy

POLICY = "attributes: {v: {role: sensitive, domain: [a, b, c], protect: {diversity: {l: 2}}}}"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    pl.DataFrame({"v": ["a", "b", "c"] * 10}).write_csv(tmp_path / "t.csv")
    (tmp_path / "p.yaml").write_text(POLICY)
    return tmp_path


def run(work: Path, *more: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["anonymize", str(work / "p.yaml"), str(work / "t.csv"), "--out", str(work / "out"), *more])
    return int(left.value.code or 0)


def test_local_runs(work: Path) -> None:
    assert run(work, "--engine", "local") == 0
    assert ps.verify(work / "out").holds


def test_unknown_engines_are_refused(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(work, "--engine", "flink") == 2
    assert "'local', 'spark'" in capsys.readouterr().err
    with pytest.raises(ps.QuestionError, match="unknown engine 'lokal'\n  hint: did you mean 'local'"):
        ps.anonymize(work / "t.csv", work / "p.yaml", engine="lokal")


@pytest.mark.parametrize("out", [None, "out"])
def test_the_engine_that_is_named_does_the_work(work: Path, monkeypatch: pytest.MonkeyPatch, out: str | None) -> None:
    jobs: list[SimpleNamespace] = []

    def publish(run: Any, target: Any, watch: Any) -> Any:
        jobs.append(run)
        return local.publish(run, target, watch)

    module = ModuleType("another_engine")
    module.publish = publish  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "another_engine", module)
    monkeypatch.setattr(engines, "ENGINES", {"local": "polyseme.engines.local", "another": "another_engine"})
    rules = Policy.loads(POLICY)
    ps.anonymize(work / "t.csv", rules, out and work / out, engine="local")
    assert not jobs
    ps.anonymize(work / "t.csv", rules, out and work / out, engine="another", overwrite=True)
    assert len(jobs) == 1
