"""The page about Spark is executed as it stands, with a server of our own at the address that it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "beyond-one-machine.md").read_text(encoding="utf-8")
ADDRESS = "sc://localhost:15002"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.S | re.M)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


def run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)


def test_what_the_page_does_runs(sail_address: str, workplace: Path) -> None:
    """First Python, which makes the table that the commands are about."""
    code = "\n".join(blocks("python")).replace(ADDRESS, sail_address)
    policy = re.search(r'loads\("""\n(.*?)"""', code, re.S)
    assert policy is not None
    run([sys.executable, "-W", "ignore", "-c", code], workplace)
    (workplace / "policy.yaml").write_text(policy[1])
    commands = [line for text in blocks("sh") for line in text.splitlines()]
    assert len(commands) == 4
    for line in commands:
        run([sys.executable, "-m", *line.replace(ADDRESS, sail_address).split()], workplace)
