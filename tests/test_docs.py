"""README, documentation and help texts are executed as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "example"}
    for text in blocks(page, "python"):
        exec(compile(text, name_of(page), "exec"), namespace)  # noqa: S102 - our own documentation


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A shell line as a user types it, with `polyseme` being the package under test."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    script = f'polyseme() {{ "{sys.executable}" -m polyseme "$@"; }}\n{command}'
    return subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    for text in blocks(ROOT / "README.md", "sh"):
        result = run(text.replace("polyseme demo ", "polyseme demo --records 20000 "), tmp_path)
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "demo-out" / "report.html").exists()


def test_every_command_has_a_help_text_with_an_example(tmp_path: Path) -> None:
    from polyseme.cli import COMMANDS

    for name in COMMANDS:
        result = run(f"polyseme {name} --help", tmp_path)
        assert result.returncode == 0, result.stderr
        if name not in ("key", "taxonomy"):
            assert "Example" in result.stdout, name


def test_documentation_leads_somewhere() -> None:
    result = subprocess.run([sys.executable, "docs/check.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
