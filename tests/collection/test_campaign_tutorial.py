"""The tutorial of a campaign does what it says, command by command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polyseme as ps

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "collection" / "tutorial.md"


@pytest.mark.lane
def test_the_tutorial_runs(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, content in re.findall(r'```\w+ title="(.*?)"\n(.*?)```', text, re.S):
        (tmp_path / name).write_text(content, encoding="utf-8")
    script = "".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    path = f"{_commands(tmp_path / 'bin')}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", _served(script)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT / "src"), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Sent(stored=250, refused=0, waiting=0" in done.stdout
    assert ps.Release.open(tmp_path / "release").manifest.records == 250
    assert ps.verify(tmp_path / "release").holds
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


def _commands(folder: Path) -> Path:
    """A folder with the two commands of the page."""
    folder.mkdir()
    for name, given in (("polyseme", "-m polyseme "), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {given}"$@"\n')
        (folder / name).chmod(0o755)
    return folder


def _served(script: str) -> str:
    """The script with the collector on any free port, and stopped at the end."""
    serving = re.search(r"polyseme collect serve (.*?) --port 8080 &\n", script)
    assert serving is not None
    waiting = (
        f"polyseme collect serve {serving[1]} --port 0 --admin-port 0 > /dev/null 2> serve.log &\n"
        'trap "kill $!; wait" EXIT\n'
        "for _ in $(seq 600); do grep -q 'Takes reports' serve.log && break; sleep 0.1; done\n"
        "URL=$(grep -o 'http://[0-9.:]*' serve.log | head -1)\n"
    )
    return script.replace(serving[0], waiting).replace("http://127.0.0.1:8080", "$URL")
