from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.attacks.base import Finding
from polyseme.errors import QuestionError, ReleaseError, TableError
from polyseme.randomness import new_key

LABELS = [f"rank {code:02d}" for code in range(14)]


def policy(mechanism: str, l: int, d: int, extra: str = "", columns: str = "") -> ps.Policy:
    """extra and columns are further lines of the policy and of its attributes."""
    return ps.Policy.loads(
        f"""
attributes:
{columns}
  id: {{role: identifier}}
  zip: {{role: quasi-identifier}}
  rank:
    role: sensitive
    domain: {LABELS}
    distance: {{line: rank}}
    protect: {{semantic-diversity: {{l: {l}, d: {d}, mechanism: {mechanism}}}}}
{extra}
"""
    )


def people(rows: int = 4_000) -> pl.DataFrame:
    """Everybody has a zip code of their own, so that an attacker can match all of them."""
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "zip": [f"z{number}" for number in rng.permutation(rows)],
            "rank": rng.choice(LABELS, rows),
        }
    )


def by_name(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.attack: finding for finding in findings}


@pytest.mark.parametrize(("l", "d", "worst"), [(2, 6, 0.727), (3, 4, 0.506)])
def test_the_papers_algorithm_exceeds_its_bound_and_the_balanced_design_does_not(l: int, d: int, worst: float) -> None:
    table = people()
    papers = by_name(ps.attack(ps.anonymize(table, policy("simple", l, d)), table))
    assert papers["transparency"].exceeded
    assert papers["transparency"].detail["matched_records"] == 4_000
    ours = ps.attack(ps.anonymize(table, policy("balanced", l, d)), table)
    assert not any(finding.exceeded for finding in ours)
    assert worst == pytest.approx(ps.plan(policy("simple", l, d))["rank"].facts.worst_posterior, abs=5e-4)


def test_two_releases_are_intersected_unless_decoys_are_sticky(tmp_path: Path) -> None:
    table = people()
    new_key(tmp_path / "key")
    rules = policy("balanced", 3, 4, "record-key: id")
    first, second = (ps.anonymize(table, rules) for _ in range(2))
    found = by_name(ps.attack(first, other=second))["repetition"]
    assert found.exceeded
    assert found.success > 0.6
    keyed = [ps.anonymize(table, rules, key_file=tmp_path / "key") for _ in range(2)]
    found = by_name(ps.attack(keyed[0], other=keyed[1]))["repetition"]
    assert not found.exceeded
    assert found.success == pytest.approx(1 / 3)


def test_the_other_release_may_have_its_columns_in_another_order_and_more_of_them() -> None:
    table = people().with_columns(sex=pl.Series(["f", "m"] * 2_000), town=pl.lit("t"))
    wide = "  sex: {role: quasi-identifier}\n  town: {role: insensitive}\n"
    rules = policy("balanced", 3, 4)
    first = ps.anonymize(table.drop("sex", "town"), rules)
    second = ps.anonymize(table.select("town", "rank", "sex", "zip", "id"), policy("balanced", 3, 4, columns=wide))
    found = by_name(ps.attack(first, other=second))["repetition"]
    assert found.detail["matched_records"] == 4_000
    assert found.exceeded
    with pytest.raises(ReleaseError, match=r"(?s)town.*sex"):
        ps.attack(second, other=first)


def test_an_original_without_records(tmp_path: Path) -> None:
    release = ps.anonymize(people(), policy("balanced", 3, 4))
    (tmp_path / "empty.csv").write_text("id,zip,rank\n", encoding="utf-8")
    with pytest.raises(TableError, match="no record fits"):
        ps.attack(release, tmp_path / "empty.csv")


def test_people_who_cannot_be_matched_are_attacked_on_fresh_sets() -> None:
    table = people().with_columns(zip=pl.lit("same"))
    findings = by_name(ps.attack(ps.anonymize(table, policy("balanced", 3, 4)), table))
    assert findings["bayes"].detail["fresh_sets"] == 4_000
    assert findings["bayes"].success == pytest.approx(1 / 3, abs=0.03)


def test_an_adversary_who_learns_statistics_is_shown_without_a_bound() -> None:
    table = people().with_columns(zip=pl.col("rank").str.slice(0, 6))
    findings = by_name(ps.attack(ps.anonymize(table, policy("balanced", 3, 4)), table))
    assert findings["definetti"].bound is None
    assert findings["definetti"].success > 0.5


def test_questions_that_cannot_be_answered() -> None:
    table = people(200)
    with pytest.raises(QuestionError, match="set form"):
        ps.attack(ps.anonymize(table, policy("balanced", 2, 2), form="long"))
    release = ps.anonymize(table, policy("balanced", 2, 2))
    with pytest.raises(TableError, match="no column 'rank'"):
        ps.attack(release, table.drop("rank"))
    with pytest.raises(TableError, match="no record fits"):
        ps.attack(release, table.with_columns(rank=pl.lit("SECRET")))


def test_attacks_without_untouched_columns() -> None:
    rules = ps.Policy.loads(
        f"""
attributes:
  rank:
    role: sensitive
    domain: {LABELS}
    distance: {{line: rank}}
    protect: {{semantic-diversity: {{l: 3, d: 4}}}}
"""
    )
    table = people().select("rank")
    release = ps.anonymize(table, rules)
    for findings in (by_name(ps.attack(release)), by_name(ps.attack(release, table))):
        assert not any(name.startswith("linkage") for name in findings)
        assert not any(finding.exceeded for finding in findings.values())
    assert by_name(ps.attack(release, table))["bayes"].detail["fresh_sets"] == 4_000


def test_records_that_do_not_fit_the_release_are_passed_over() -> None:
    """The original has more people than the release, in another order: the right ones are still found."""
    table = people()
    release = ps.anonymize(table, policy("balanced", 3, 4))
    strangers = pl.DataFrame({"id": [0] * 500, "zip": [f"x{n}" for n in range(500)], "rank": ["unheard of"] * 500})
    longer = pl.concat([strangers, table.reverse()])
    findings = by_name(ps.attack(release, longer))
    assert findings["bayes"].detail["matched_records"] == 4_000
    assert findings["bayes"].success == pytest.approx(1 / 3, abs=0.03)


def test_suppressed_records_are_no_class() -> None:
    table = people(300).with_columns(zip=pl.when(pl.int_range(300) < 100).then(pl.lit("*")).otherwise(pl.lit("a")))
    found = by_name(ps.attack(ps.anonymize(table, policy("balanced", 3, 4))))["linkage-prosecutor"]
    assert found.success == pytest.approx(1 / 200)
    everything = table.with_columns(zip=pl.lit("*"))
    found = by_name(ps.attack(ps.anonymize(everything, policy("balanced", 3, 4))))["linkage-prosecutor"]
    assert found.success == pytest.approx(1 / 300)
