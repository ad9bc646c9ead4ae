from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.cli import main

POLICY = """
attributes:
  level:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h]
    protect: {diversity: {l: 2}}
"""


def plan(folder: Path, policy: str, *options: object) -> int:
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    with pytest.raises(SystemExit) as leaving:
        main(["plan", str(folder / "policy.yaml"), *map(str, options)])
    return int(leaving.value.code or 0)


def test_a_chart_that_is_asked_for_is_drawn(tmp_path: Path):
    far = POLICY.replace("{diversity: {l: 2}}", "{semantic-diversity: {l: 2, d: 2}}\n    distance: {line: rank}")
    assert plan(tmp_path, far, "--chart", tmp_path / "grid.svg") == 0
    assert "<svg" in (tmp_path / "grid.svg").read_text(encoding="utf-8")


def test_a_chart_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert plan(tmp_path, POLICY, "--chart", tmp_path / "grid.svg") == 2
    assert "no attribute has a distance" in capsys.readouterr().err
