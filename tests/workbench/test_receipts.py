"""Receipts are commands and Python that run."""

from __future__ import annotations

import shlex

import pytest
import yaml

from polyseme.workbench import receipts


@pytest.mark.parametrize(
    ("changes", "value"),
    [({"models[0].k-anonymity.k": 7}, 7), ({"attributes.a.hierarchy": {"intervals": [5, 10]}}, {"intervals": [5, 10]})],
)
def test_an_edit_is_read_back_as_it_was_meant(changes: dict[str, object], value: object) -> None:
    receipt = receipts.edit("policy.yaml", changes)
    words = shlex.split(receipt.command)
    assert words[:4] == ["polyseme", "policy", "set", "policy.yaml"]
    assert yaml.safe_load(words[5]) == value
    called: list[tuple[object, ...]] = []
    ps = type("ps", (), {"edit": staticmethod(lambda *given, **named: called.append(given))})
    eval(receipt.python, {"ps": ps})  # noqa: S307 - the text is ours
    assert called == [("policy.yaml", changes)]


def test_names_with_blanks_and_quotes_survive() -> None:
    receipt = receipts.edit("my policy.yaml", roles={"it's a name": "sensitive"}, data="a table.csv")
    words = shlex.split(receipt.command)
    assert words == [
        "polyseme",
        "policy",
        "role",
        "my policy.yaml",
        "it's a name",
        "sensitive",
        "--data",
        "a table.csv",
    ]


def test_a_script_has_every_command_in_order() -> None:
    made = [receipts.verb("plan", "p.yaml", data="t.csv"), receipts.verb("anonymize", "p.yaml", "t.csv", out="r")]
    assert receipts.script(made).splitlines()[2:] == [
        "polyseme plan p.yaml --data t.csv",
        "polyseme anonymize p.yaml t.csv --out r",
    ]
    assert receipts.program(made).splitlines()[2:] == [
        'ps.plan("p.yaml", data="t.csv")',
        'ps.anonymize("t.csv", "p.yaml", out="r")',
    ]
