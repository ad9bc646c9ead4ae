"""What happens to files, seen from the outside: broken ones, ones in the way, ones left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from command_line import polyseme

POLICY = """
attributes:
  name: {role: identifier}
  disease: {role: sensitive, domain: [flu, hiv, cold], protect: {diversity: {l: 2}}}
  note: {role: insensitive}
"""


def _run(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "polyseme", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("end", ["Carol,hiv,ok\nDave,hiv,ok\n", 'Carol,hiv,6"\nDave,hiv,ok\n'])
def test_a_stray_quote_publishes_nothing(tmp_path: Path, end: str) -> None:
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "t.csv").write_text(f'name,disease,note\nAnn,flu,fine\nBob,cold,"tall\n{end}')
    done = polyseme("anonymize", tmp_path / "p.yaml", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "line 3" in done.stderr
    assert "Carol" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix" or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="signals")
def test_a_closed_terminal_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(POLICY)
    people = pl.DataFrame({"name": range(2_000_000), "disease": ["flu", "hiv"] * 1_000_000, "note": ["ok"] * 2_000_000})
    people.write_csv(tmp_path / "t.csv")
    before = sorted(tmp_path.iterdir())
    process = _run("anonymize", tmp_path / "p.yaml", tmp_path / "t.csv", "--out", tmp_path / "out")
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out.*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGHUP
    assert sorted(tmp_path.iterdir()) == before
