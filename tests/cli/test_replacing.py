"""`--force` replaces what the command itself writes, and never a user's table."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import polyseme

TABLE = "age,sex,income\n" + "".join(f"{20 + row % 40},{'FM'[row % 2]},{row % 7}\n" for row in range(60))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("init", "people.csv", "--out"),
        ("hierarchy", "build", "intervals", "5,10", "people.csv", "--column", "age", "--out"),
        ("prior", "from-table", "people.csv", "--of", "income", "--epsilon", "1", "--out"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_only_its_own_kind_is_replaced(command: tuple[str, ...], table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert polyseme(*command, "out.csv", cwd=tmp_path).returncode == 0
    first = out.read_text()
    assert polyseme(*command, "out.csv", cwd=tmp_path).returncode == 2
    assert polyseme(*command, "out.csv", "--force", cwd=tmp_path).returncode == 0
    refused = polyseme(*command, "people.csv", "--force", cwd=tmp_path)
    assert refused.returncode == 2
    assert "not made by this command, so it is not replaced" in refused.stderr
    assert table.read_text() == TABLE
    out.write_text("")
    assert polyseme(*command, "out.csv", "--force", cwd=tmp_path).returncode == 0
    if command[0] != "prior":  # whose numbers are drawn again
        assert out.read_text() == first


@pytest.mark.parametrize(
    ("content", "replaced"),
    [
        ("attributes: {age: {role: nonsense}}\n", True),
        ("protect-all-but: [age]\n", True),
        ("a,b\n1,2\n", False),
        ("just: a mapping\n", False),
        ("- a list\n", False),
        ("# nothing but a remark\n", False),
        ("{[", False),
    ],
)
def test_a_draft_replaces_what_reads_as_a_policy(content: str, replaced: bool, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.yaml"
    out.write_text(content)
    code = polyseme("init", table, "--out", out, "--force").returncode
    assert (code == 0) is replaced
    assert (out.read_text() == content) is not replaced


def test_an_explanation_does_not_replace_a_table(table: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "attributes: {age: {role: quasi-identifier, hierarchy: {intervals: [5, 10]}}, "
        "sex: {role: quasi-identifier, hierarchy: suppress}, income: {role: sensitive}}\n"
        "models: [{distinct-diversity: {l: 2}}]\nmethod: {full-domain: {}}\n"
    )
    found = polyseme(
        *("anonymize", tmp_path / "policy.yaml", table, "--out", tmp_path / "release", "--explain", table, "--force")
    )
    assert found.returncode == 2
    assert table.read_text() == TABLE
    assert not (tmp_path / "release").exists()
