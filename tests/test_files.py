"""What happens to files, seen from the outside: broken ones, ones in the way, ones left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    process = _run("anonymize", tmp_path / "p.yaml", tmp_path / "t.csv", "--out", tmp_path / "out")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "line 3" in errors
    assert "Carol" not in errors
    assert not (tmp_path / "out").exists()
