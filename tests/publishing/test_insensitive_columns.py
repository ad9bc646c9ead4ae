"""Columns that are called insensitive and single out records: hinted at, warned of, refused, and counted as a risk."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps

POLICY = """
attributes:
  age: {role: quasi-identifier, hierarchy: {intervals: [10, 20, 40, 80]}}
  phone: {role: insensitive}
  v: {role: sensitive, domain: [a, b, c, d, e], protect: {diversity: {l: 2}}}
models: [{k-anonymity: {k: 5}}]
method: {full-domain: {}}
"""


def table(rows: int = 500, own: float = 1.0) -> pl.DataFrame:
    """People, of whom so many have a telephone number of their own."""
    rng = np.random.default_rng(0)
    phone = np.where(np.arange(rows) < own * rows, 600_000 + np.arange(rows), 1)
    return pl.DataFrame({"age": rng.integers(20, 60, rows), "phone": phone, "v": rng.choice(list("abcde"), rows)})


def test_the_hint_for_a_column_without_an_entry_drops_it(tmp_path: Path) -> None:
    """It was `phone: {role: insensitive}`; pasted, it published 5,000 telephone numbers."""
    table().write_csv(tmp_path / "people.csv")
    (tmp_path / "p.yaml").write_text(POLICY.replace("  phone: {role: insensitive}\n", ""))
    result = polyseme("anonymize", tmp_path / "p.yaml", tmp_path / "people.csv", "--out", tmp_path / "release")
    assert result.returncode == 2
    assert "phone: {role: identifier}" in result.stderr
    assert "insensitive" not in result.stderr


@pytest.mark.parametrize(
    ("rows", "own", "refused"), [(500, 1.0, True), (500, 0.96, True), (500, 0.94, False), (99, 1.0, False)]
)
def test_a_column_that_identifies_is_refused_until_it_is_accepted(
    tmp_path: Path, rows: int, own: float, refused: bool
) -> None:
    table(rows, own).write_csv(tmp_path / "people.csv")
    (tmp_path / "p.yaml").write_text(POLICY)
    command = ("anonymize", tmp_path / "p.yaml", tmp_path / "people.csv", "--out", tmp_path / "release")
    result = polyseme(*command)
    share = round(own * rows) / rows
    assert result.returncode == (1 if refused else 0)
    assert "'phone' is published as it is (role: insensitive)" in " ".join(result.stderr.split())
    assert f"{share:.1%} of {rows:,} records have a unique value" in " ".join(result.stderr.split())
    assert (tmp_path / "release").exists() is not refused
    if refused:
        assert polyseme(*command, "--accept-risk").returncode == 0
        assert "published all the same" in " ".join(polyseme(*command, "--accept-risk", "--force").stderr.split())


@pytest.mark.parametrize("own", [0.04, 0.0])
def test_a_column_that_singles_out_few_records_is_not_warned_of(own: float) -> None:
    heard: list[str] = []
    ps.anonymize(table(500, own), ps.Policy.loads(POLICY), warn=heard.append)
    assert not any("phone" in text for text in heard)


def test_every_column_is_named_at_once() -> None:
    rules = POLICY.replace("  phone:", "  mail: {role: insensitive}\n  phone:")
    people = table().with_columns(mail=pl.col("phone").cast(pl.String) + "@x.org")
    with pytest.raises(ps.RiskError) as error:
        ps.anonymize(people, ps.Policy.loads(rules), warn=lambda text: None)
    assert [problem.where for problem in error.value.problems] == [
        "$.attributes.phone.role",
        "$.attributes.mail.role",
    ]
    assert not any(str(number) in str(error.value) for number in people["phone"]), "no value of the table"


def test_records_are_found_by_insensitive_columns_too() -> None:
    """`attack` and the report's head said that at least 5 records fit."""
    release = ps.anonymize(table(500, 0.5), ps.Policy.loads(POLICY), warn=lambda text: None)
    found = {one.attack: one for one in ps.attack(release)}
    rows = release.to_polars()
    alike = rows.group_by("age", "phone").len()["len"].to_numpy()
    by_age = rows.group_by("age").len()["len"].to_numpy()
    prosecutor, marketer = found["linkage-prosecutor"], found["linkage-marketer"]
    assert prosecutor.success == 1.0 == 1 / alike.min()
    assert marketer.success == pytest.approx(len(alike) / 500)
    assert prosecutor.detail["unique"] == pytest.approx((alike == 1).sum() / 500)
    assert prosecutor.detail["average_by_promise"] == pytest.approx(len(by_age) / 500)
    assert "phone" in prosecutor.knows
    # The promise is about quasi-identifiers, and holds.
    assert prosecutor.bound == 0.2
    assert not prosecutor.exceeded
    verified = ps.verify(release)
    assert verified.holds
    assert any("'phone'" in text for text in verified.remarks)
    page = " ".join(re.sub("<[^>]*>", "", ps.report(release)).split())
    assert "who knows age and phone of a person in the table finds at least 1 record that fits" in page
    assert "promised: at least 5 by age, without phone" in page


def test_without_insensitive_columns_nothing_is_different() -> None:
    rules = POLICY.replace("phone: {role: insensitive}", "phone: {role: identifier}")
    release = ps.anonymize(table(), ps.Policy.loads(rules), warn=lambda text: None)
    found = {one.attack: one for one in ps.attack(release)}
    assert found["linkage-prosecutor"].success <= 0.2
    assert "insensitive" not in found["linkage-prosecutor"].knows
    assert "average_by_promise" not in found["linkage-prosecutor"].detail
