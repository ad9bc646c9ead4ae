"""Every long verb says how far it is, can be cancelled from another thread, and then leaves no file behind."""

from __future__ import annotations

import ast
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.cli import progress as bars
from polyseme.engines import Engine, engine_given
from polyseme.engines.local import publish
from polyseme.kernel.work import check_cancelled, current_cancellation, stage, tracked, verb, working
from polyseme.tables.io.output import FORMATS

POLICY = """
attributes:
  sex: {role: quasi-identifier}
  rank:
    role: sensitive
    domain: [a, b, c, d, e, f]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 2, d: 2}}
"""
CLASSES = """
attributes:
  sex: {role: quasi-identifier, hierarchy: suppress}
  rank: {role: quasi-identifier, hierarchy: suppress}
models: [{k-anonymity: {k: 40}}]
method: METHOD
"""
VERBS = ("init", "plan", "anonymize", "verify", "risk", "estimate", "attack", "evaluate", "report")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its policy and its release."""
    folder = tmp_path_factory.mktemp("given")
    rng = np.random.default_rng(7)
    people = pl.DataFrame({"sex": rng.choice(["f", "m"], 300), "rank": rng.choice(list("abcdef"), 300)})
    people.write_csv(folder / "people.csv")
    (folder / "policy.yaml").write_text(POLICY)
    for method in ("full-domain", "mondrian"):
        (folder / f"{method}.yaml").write_text(CLASSES.replace("METHOD", method))
    ps.anonymize(folder / "people.csv", folder / "policy.yaml", folder / "release", seed=1, warn=lambda text: None)
    return folder


def calls(given: Path, out: Path) -> dict[str, Callable[[], Any]]:
    """Each verb in each way that has stages of its own."""
    people, policy, release = given / "people.csv", given / "policy.yaml", given / "release"
    return {
        "init": lambda: ps.init(people),
        "plan": lambda: ps.plan(policy, data=people),
        "plan full-domain": lambda: ps.plan(given / "full-domain.yaml", data=people),
        "anonymize": lambda: ps.anonymize(people, policy, out, warn=lambda text: None),
        "anonymize in memory": lambda: ps.anonymize(people, policy, warn=lambda text: None),
        "anonymize full-domain": lambda: ps.anonymize(people, given / "full-domain.yaml", out, warn=lambda text: None),
        "anonymize mondrian": lambda: ps.anonymize(people, given / "mondrian.yaml", out, warn=lambda text: None),
        "verify": lambda: ps.verify(release),
        "verify a table": lambda: ps.verify(people, given / "mondrian.yaml"),
        "risk": lambda: ps.risk(people, qi=["sex"], sensitive=["rank"]),
        "estimate": lambda: ps.estimate(release, of=["rank"], by=["sex"]),
        "attack": lambda: ps.attack(release, people),
        "evaluate": lambda: ps.evaluate(release, people, by=["sex"]),
        "report": lambda: ps.report(release, people, by="sex"),
    }


WAYS = tuple(calls(Path(), Path()))


def steps_of(call: Callable[[], Any]) -> list[ps.Progress]:
    steps: list[ps.Progress] = []
    with working(progress=steps.append):
        call()
    return steps


def test_the_ways_are_those_of_all_verbs() -> None:
    assert {way.split()[0] for way in WAYS} == set(VERBS)


@pytest.mark.parametrize("way", WAYS)
def test_every_verb_tells_its_stages_and_a_share_that_grows_to_one(given: Path, tmp_path: Path, way: str) -> None:
    steps = steps_of(calls(given, tmp_path / "out")[way])
    name = way.split()[0]
    assert {step.verb for step in steps} == {name}
    assert (steps[0].stage, steps[0].state, steps[0].share) == (name, "begun", 0.0)
    assert (steps[-1].stage, steps[-1].state, steps[-1].share) == (name, "ended", 1.0)
    shares = [step.share for step in steps]
    assert all(share is not None for share in shares)
    assert shares == sorted(shares)
    assert len(set(shares)) > 2
    weighted = {step.stage: step.weight for step in steps if step.weight is not None}
    assert weighted
    assert 0.0 < sum(weighted.values()) <= 1.0 + 1e-9
    for number in {step.number for step in steps}:
        states = [step.state for step in steps if step.number == number]
        assert states == ["begun", *["going"] * (len(states) - 2), "ended"]


@pytest.mark.parametrize("way", WAYS)
def test_every_verb_is_cancelled_at_any_step_and_leaves_nothing(
    given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    number = len(steps_of(calls(given, tmp_path / "whole")[way]))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    before = sorted(given.rglob("*"))
    for k in sorted({1, 2, number // 2, number - 2, number - 1}):
        token, heard = ps.Cancellation(), []

        def at_the_step(step: ps.Progress, k: int = k, token: ps.Cancellation = token, heard: list = heard) -> None:
            heard.append(step)
            if len(heard) == k:
                other = threading.Thread(target=token.cancel, args=("the user left",))
                other.start()
                other.join()

        with pytest.raises(ps.Cancelled, match="left"), working(cancellation=token, progress=at_the_step):
            calls(given, work / "out")[way]()
        assert heard[-1].share != 1.0
        assert list(work.iterdir()) == []
        assert sorted(given.rglob("*")) == before


@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_context_lets_no_verb_begin(given: Path, tmp_path: Path, way: str) -> None:
    token = ps.Cancellation()
    token.cancel("too late")
    with pytest.raises(ps.Cancelled, match="too late"), working(cancellation=token):
        calls(given, tmp_path / "out")[way]()
    assert list(tmp_path.iterdir()) == []


def commands(given: Path, out: Path) -> dict[str, list[object]]:
    release, people, policy = given / "release", given / "people.csv", given / "policy.yaml"
    return {
        "init": [people, "--out", out / "new.yaml"],
        "plan": [policy, "--data", people, "--json"],
        "anonymize": [policy, people, "--out", out / "release"],
        "verify": [release, "--json"],
        "risk": [people, "--qi", "sex", "--json"],
        "estimate": [release, "--of", "rank", "--by", "sex", "--chart", out / "chart.svg", "--json"],
        "attack": [release, "--json"],
        "evaluate": [release, "--original", people, "--json"],
        "report": [release, "--out", out / "report.html"],
    }


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("command", VERBS)
def test_progress_as_json_lines_on_standard_error(given: Path, tmp_path: Path, command: str) -> None:
    arguments = commands(given, tmp_path)[command]
    result = polyseme("--progress", "json", command, *arguments)
    assert result.returncode == 0, result.stderr
    lines = lines_of(result.stderr)
    assert {"verb", "stage", "label", "state", "done", "total", "weight", "share"} <= set(lines[0])
    assert {line["verb"] for line in lines} == {command}
    shares = [line["share"] for line in lines]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len({line["stage"] for line in lines}) > 1
    if "--json" in arguments:
        json.loads(result.stdout)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("command", VERBS)
def test_ctrl_c_in_the_middle_of_a_command_leaves_no_file(
    given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def pressed(self: bars.ProgressLines, step: ps.Progress) -> None:
        if step.stage != command:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                signal.sigtimedwait([], 0.01)
            except SystemExit:
                pass  # lost in a callback, as libraries do

    monkeypatch.setattr(bars.ProgressLines, "__call__", pressed)
    result = polyseme("--progress", "json", command, *commands(given, tmp_path)[command])
    assert (result.returncode, result.stderr, result.stdout) == (130, "Stopped.\n", "")
    assert list(tmp_path.iterdir()) == []


def test_no_progress_is_told_unless_it_is_asked_for(given: Path) -> None:
    release = given / "release"
    assert polyseme("--progress", "none", "verify", release).stderr == polyseme("verify", release).stderr == ""
    assert polyseme("--progress", "xml", "verify", release).returncode == 2


def test_a_verb_that_calls_a_verb_counts_it_as_a_stage() -> None:
    @verb(first=1, second=1)
    def inner() -> None:
        with stage("first", "First", 2) as progress:
            progress.advance(2)
        with stage("second", "Second"):
            pass

    @verb(inner=3, last=1)
    def outer() -> None:
        inner()
        list(tracked([1], "last", "Last"))

    progress = steps_of(outer)
    ended = [(step.stage, step.weight, round(step.share or 0.0, 9)) for step in progress if step.state == "ended"]
    assert ended == [("first", 0.375, 0.375), ("second", 0.375, 0.7425), ("last", 0.25, 0.99), ("outer", None, 1.0)]


def test_a_stage_that_comes_again_does_not_take_back_what_was_done() -> None:
    @verb(read=1, count=1)
    def again() -> None:
        for _ in range(2):
            list(tracked([1, 2], "read", "Reading"))
        list(tracked([1, 2], "count", "Counting"))
        list(tracked([1, 2], "read", "Reading"))

    shares = [step.share for step in steps_of(again)]
    assert shares == sorted(shares)
    assert set(shares) == {0.0, 0.25, 0.5, 0.75, 0.99, 1.0}


def test_a_verb_that_fails_does_not_say_that_it_is_done() -> None:
    @verb(only=1)
    def failing() -> None:
        with stage("only", "Only", 4) as current:
            current.advance()
            raise ValueError

    current: list[ps.Progress] = []
    with pytest.raises(ValueError), working(progress=current.append):  # noqa: PT011 - any will do
        failing()
    assert [(step.stage, step.state, step.share) for step in current[-2:]] == [
        ("only", "ended", 0.25),
        ("failing", "ended", 0.25),
    ]


def test_both_tokens_of_nested_contexts_stop_the_work_and_neither_touches_the_other() -> None:
    for which in (0, 1):
        outer, inner = ps.Cancellation(), ps.Cancellation()
        with working(cancellation=outer), working(cancellation=inner):
            check_cancelled()
            (outer, inner)[which].cancel("enough")
            assert current_cancellation().cancelled
            with pytest.raises(ps.Cancelled, match="enough"):
                check_cancelled()
        assert [outer.cancelled, inner.cancelled] == [which == 0, which == 1]
    check_cancelled()


def test_a_token_of_a_verb_does_not_outlive_it(given: Path) -> None:
    token = ps.Cancellation()
    token.cancel("this one only")
    with pytest.raises(ps.Cancelled):
        ps.anonymize(given / "people.csv", given / "policy.yaml", cancellation=token)
    assert not current_cancellation().cancelled
    assert ps.verify(given / "release").verdicts


def test_engines_state_what_they_can_do() -> None:
    assert publish.formats == FORMATS
    assert (publish.scaled, publish.deals) == (False, False)
    assert engine_given("local") is publish

    def own(run: Any, target: Any, watch: Any) -> Any:
        return publish(run, target, watch)

    made = engine_given(own)
    assert (made.formats, made.scaled, made.deals) == (Engine.formats, False, False)

    class Undeclared:
        scaled = True

        def __call__(self, run: Any, target: Any, watch: Any) -> Any: ...

    with pytest.raises(ps.QuestionError, match=r"polyseme\.engines\.Engine"):
        engine_given(Undeclared())


def test_no_capability_of_an_engine_is_asked_for_by_its_name() -> None:
    names = {"formats", "scaled", "deals", "workers"}
    source = Path(ps.__file__).parent
    found = [
        f"{path.relative_to(source)}:{node.lineno}"
        for path in source.rglob("*.py")
        if "attr(" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"getattr", "hasattr"}
        and (
            (isinstance(node.args[0], ast.Name) and node.args[0].id == "engine")
            or (isinstance(node.args[1], ast.Constant) and node.args[1].value in names)
        )
    ]
    assert not found


def test_the_spark_engine_does_not_import_verbs() -> None:
    folder = Path(ps.__file__).parent / "engines" / "spark"
    found = {
        node.module.split(".")[2]
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polyseme.verbs.")
    }
    assert not found
