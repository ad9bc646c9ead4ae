from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from polyseme.policy import Policy
from polyseme.policy.drafting import draft
from polyseme.schema import Role
from polyseme.tables.io.source import open_table
from polyseme.verbs.anonymize import anonymize


def drafted(table: pl.DataFrame, folder: Path) -> Policy:
    """The draft for a table as text, which publishes it without a change."""
    path = folder / "table.csv"
    table.write_csv(path)
    policy = Policy.loads(draft(open_table(path)))
    anonymize(path, policy)
    return policy


DISEASES = ["flu", "cold", "ulcer", "angina"]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["60", "71", "80", "95"], "integer"),
        (["60.5", "71", "80.25", "95"], None),
        (["007", "8", "9", "10"], None),
        (["1" + "0" * 20, "2", "3", "4"], None),
    ],
)
def test_a_column_is_of_integers_when_every_value_is(tmp_path: Path, texts: list[str], kind: str | None):
    policy = drafted(pl.DataFrame({"weight": texts, "disease": DISEASES}), tmp_path)
    assert policy.by_name["weight"].type == kind


def test_decimals_do_not_number_the_rows(tmp_path: Path):
    steps = [str(number) if number != 15 else "15.5" for number in range(30)]
    policy = drafted(pl.DataFrame({"step": steps, "disease": (DISEASES * 8)[:30]}), tmp_path)
    assert policy.by_name["step"].role is Role.QUASI_IDENTIFIER


def test_numbers_written_as_text_are_ordered_by_size(tmp_path: Path):
    policy = drafted(pl.DataFrame({"income": [str(number) for number in range(12)] * 3}), tmp_path)
    assert policy.by_name["income"].values == tuple(map(str, range(12)))


def test_numbers_too_close_together_for_round_bins_are_labels(tmp_path: Path):
    numbers = [str(10**20 + number) for number in range(100)]
    policy = drafted(pl.DataFrame({"income": numbers}), tmp_path)
    assert policy.by_name["income"].values == tuple(numbers)


@pytest.mark.parametrize("others", [4, 100])
def test_infinite_values_are_not_listed(others: int):
    table = pl.DataFrame({"income": [float("inf"), *map(float, range(others))]})
    policy = Policy.loads(draft(open_table(table)))
    assert policy.by_name["income"].values is None
    with pytest.warns(UserWarning, match="taken from the table"):
        anonymize(table, policy)


@pytest.mark.parametrize("column", [[[1, 2], [3]], [{"a": 1}, {"a": 2}], [b"a", b"b"]])
@pytest.mark.parametrize("name", ["x", "income"])
def test_what_a_policy_cannot_speak_of_is_dropped(column: list[object], name: str):
    policy = Policy.loads(draft(open_table(pl.DataFrame({name: column, "age": [1, 2]}))))
    assert policy.by_name[name].role is Role.IDENTIFIER
    assert policy.by_name["age"].role is Role.QUASI_IDENTIFIER
