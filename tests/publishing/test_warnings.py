"""Warnings have a category, and show the line of the caller of the library."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import polars as pl
import pytest

import polyseme as ps
from polyseme.policy import Policy

SOURCE = Path(ps.__file__).parent
TABLE = pl.DataFrame({"v": ["a", "b", "c", "d"] * 10})
OPEN = "attributes: {v: {role: sensitive, protect: {diversity: {l: 2}}}}"
ADAPTED = "attributes: {v: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 9, adapt: true}}}}"


def test_the_tree_of_warnings() -> None:
    assert issubclass(ps.PolysemeWarning, UserWarning)
    assert issubclass(ps.PrivacyWarning, ps.PolysemeWarning)
    assert issubclass(ps.PolicyWarning, ps.PolysemeWarning)


def test_what_others_may_learn_is_a_privacy_warning_at_the_callers_line(tmp_path: Path) -> None:
    with pytest.warns(ps.PrivacyWarning, match="taken from the table") as heard:
        ps.anonymize(TABLE, Policy.loads(OPEN))
    assert [Path(warning.filename) for warning in heard] == [Path(__file__)] * len(heard)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert {lines[warning.lineno - 1].strip() for warning in heard} == {"ps.anonymize(TABLE, Policy.loads(OPEN))"}


def test_what_a_policy_comes_to_is_a_policy_warning() -> None:
    with pytest.warns(ps.PolicyWarning, match="l = 9 was adapted to 3") as heard:
        ps.anonymize(TABLE, Policy.loads(ADAPTED))
    assert {Path(warning.filename) for warning in heard} == {Path(__file__)}


def test_warnings_can_be_made_errors_and_nothing_is_published(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.PrivacyWarning)
        with pytest.raises(ps.PrivacyWarning):
            ps.anonymize(TABLE, Policy.loads(OPEN), tmp_path / "release")
    assert not list(tmp_path.iterdir())


def test_a_listener_hears_texts_and_python_hears_nothing(recwarn: pytest.WarningsRecorder) -> None:
    heard: list[str] = []
    ps.anonymize(TABLE, Policy.loads(OPEN), warn=heard.append)
    assert any("taken from the table" in text for text in heard)
    assert not recwarn.list


def test_every_warning_goes_through_one_door() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if path != SOURCE / "kernel" / "errors.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "warn" and ast.unparse(node.value).endswith("warnings")
    ]
    assert not found
