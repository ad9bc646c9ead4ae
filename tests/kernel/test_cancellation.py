"""Work that is stopped from outside leaves nothing behind, and the process lives on."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.kernel.files import whole_file, whole_folder
from polyseme.policy import Policy

SOURCE = Path(ps.__file__).parent
POLICY = "attributes: {v: {role: sensitive, domain: [0, 1, 2, 3, 4, 5, 6, 7], protect: {diversity: {l: 3}}}}"
ROWS = 200_000
"""Several batches of the reader, and several pieces of the writer."""


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return pl.DataFrame({"v": np.random.default_rng(1).integers(0, 8, ROWS)})


@pytest.fixture
def rules() -> Policy:
    return Policy.loads(POLICY)


def cancel_from_another_thread(token: ps.Cancellation) -> None:
    thread = threading.Thread(target=token.cancel, args=("the user left",))
    thread.start()
    thread.join()


def stopper(token: ps.Cancellation, after: int) -> Callable[[int], None]:
    """Progress that has another thread cancel the run once so many rows are read."""
    read = 0

    def progress(rows: int) -> None:
        nonlocal read
        read += rows
        if read >= after:
            cancel_from_another_thread(token)

    return progress


def test_a_token_keeps_its_first_reason() -> None:
    token = ps.Cancellation()
    token.check()
    assert (token.cancelled, token.reason) == (False, "")
    token.cancel("one")
    token.cancel("two")
    assert (token.cancelled, token.reason) == (True, "one")
    with pytest.raises(ps.Cancelled, match=r"^one$"):
        token.check()


@pytest.mark.parametrize("after", [1, ROWS], ids=["while reading", "while writing"])
@pytest.mark.parametrize("where", ["folder", "csv folder", "memory"])
def test_a_service_cancels_a_run_and_goes_on(
    table: pl.DataFrame, rules: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, after: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    out = None if where == "memory" else tmp_path / "release"
    file_format = "csv" if where.startswith("csv") else "parquet"
    threads = threading.active_count()

    def run(token: ps.Cancellation, progress: Callable[[int], None]) -> ps.Release:
        return ps.anonymize(table, rules, out, file_format=file_format, progress=progress, cancellation=token)

    with ThreadPoolExecutor(1) as service:
        token = ps.Cancellation()
        with pytest.raises(ps.Cancelled, match="the user left"):
            service.submit(run, token, stopper(token, after)).result()
        assert list(tmp_path.iterdir()) == []
        second = service.submit(run, ps.Cancellation(), lambda rows: None).result()
        assert second.manifest.records == ROWS
    assert threading.active_count() == threads
    assert [path.name for path in tmp_path.iterdir()] == ([] if out is None else ["release"])


def test_what_was_there_before_stays(table: pl.DataFrame, rules: Policy, tmp_path: Path) -> None:
    ps.anonymize(table.head(100), rules, tmp_path / "release")
    token = ps.Cancellation()
    with pytest.raises(ps.Cancelled):
        ps.anonymize(table, rules, tmp_path / "release", overwrite=True, progress=stopper(token, 1), cancellation=token)
    assert ps.Release.open(tmp_path / "release").manifest.records == 100
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_passes_before_publishing_are_cancelled_too(table: pl.DataFrame, tmp_path: Path) -> None:
    """An open domain is looked up in the table before anything is published."""
    token = ps.Cancellation()
    token.cancel("too late")
    opened = Policy.loads("attributes: {v: {role: sensitive, protect: {diversity: {l: 3}}}}")
    with pytest.raises(ps.Cancelled, match="too late"):
        ps.anonymize(table, opened, tmp_path / "release", cancellation=token, warn=pytest.fail)
    assert not list(tmp_path.iterdir())


def test_one_run_is_cancelled_and_its_neighbor_is_not(table: pl.DataFrame, rules: Policy, tmp_path: Path) -> None:
    tokens = [ps.Cancellation(), ps.Cancellation()]
    with ThreadPoolExecutor(2) as service:
        runs = [
            service.submit(ps.anonymize, table, rules, tmp_path / str(number), progress=progress, cancellation=token)
            for number, (token, progress) in enumerate(zip(tokens, [stopper(tokens[0], 1), lambda rows: None]))
        ]
        assert isinstance(runs[0].exception(), ps.Cancelled)
        assert runs[1].result().manifest.records == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_a_release_in_memory_is_not_saved_once_cancelled(table: pl.DataFrame, rules: Policy, tmp_path: Path) -> None:
    release = ps.anonymize(table.head(100), rules)
    token = ps.Cancellation()
    token.cancel()
    with pytest.raises(ps.Cancelled):
        ps.save(release, tmp_path / "release", cancellation=token)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_a_finished_file_does_not_take_its_place_once_cancelled(tmp_path: Path, whole) -> None:
    token = ps.Cancellation()
    with pytest.raises(ps.Cancelled), whole(tmp_path / "out", cancellation=token):
        token.cancel()
    assert not list(tmp_path.iterdir())


def test_an_interrupted_cleanup_still_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, and Ctrl-C again while the first one clears away."""
    real, pressed = shutil.rmtree, []

    def impatient(*arguments: object, **options: object) -> None:
        if not pressed:
            pressed.append(True)
            raise SystemExit(130)
        real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(shutil, "rmtree", impatient)
    with pytest.raises(SystemExit), whole_folder(tmp_path / "out"):
        raise SystemExit(130)
    assert pressed
    assert not list(tmp_path.iterdir())


LOST = """
import os, signal, sys
from polyseme.verbs import anonymize as verb
from polyseme.cli import main

def deaf(publish):
    # A callback of a library in which the interruption is raised, and dropped.
    def inner(*arguments, **options):
        def lost(rows):
            try:
                os.kill(os.getpid(), NUMBER)
                signal.sigtimedwait([], 0.01)
            except BaseException:
                pass
        return publish(*arguments, progress=lost, **options)
    return inner

verb.anonymize = deaf(verb.anonymize)
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_lost_interruption_stops_the_command_all_the_same(table: pl.DataFrame, tmp_path: Path, number: int) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the signal is ignored here")
    table.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "p.yaml").write_text(POLICY)
    before = sorted(tmp_path.iterdir())
    code = LOST.replace("NUMBER", str(int(number)))
    arguments = ["anonymize", tmp_path / "p.yaml", tmp_path / "t.parquet", "--out", tmp_path / "out"]
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 128 + number, run.stderr
    assert run.stderr == "Stopped.\n"
    assert run.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_only_the_command_line_leaves_the_process() -> None:
    leaving = {"SystemExit", "_exit", "exit"}
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if "cli" not in path.relative_to(SOURCE).parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Name) and node.id in leaving)
        or (isinstance(node, ast.Attribute) and node.attr in leaving)
    ]
    assert not found
