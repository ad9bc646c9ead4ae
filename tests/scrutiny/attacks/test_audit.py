from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.designs.mechanism import Mechanism
from polyseme.kernel.errors import QuestionError, ReleaseError, TableError
from polyseme.kernel.randomness import new_key
from polyseme.privacy.promises import read_promises
from polyseme.scrutiny.attacks.audit import scenes
from polyseme.scrutiny.attacks.scene import Finding

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


@pytest.mark.parametrize("limit", ["diversity: {l: 3}", "ldp: {epsilon: 2, size: 3}"])
def test_releases_over_other_lists_of_values_are_intersected_by_label(limit: str) -> None:
    def released(labels: list[str]) -> ps.Release:
        listed = f"  rank: {{role: sensitive, domain: {labels}, protect: {{{limit}}}}}\n"
        return ps.anonymize(table, ps.Policy.loads(f"attributes:\n  zip: {{role: quasi-identifier}}\n{listed}"))

    table = people().select("zip", "rank")
    first = released(LABELS)
    found = {
        name: by_name(ps.attack(first, other=released(labels)))["repetition"]
        for name, labels in {"same": LABELS, "turned": LABELS[::-1], "more": ["a", *LABELS, "b"]}.items()
    }
    assert all(finding.exceeded for finding in found.values())
    assert found["turned"].success == pytest.approx(found["same"].success, abs=0.03)
    assert found["more"].success > found["same"].success - 0.03
    assert all(finding.detail["matched_records"] == 4_000 for finding in found.values())


def test_releases_over_nothing_in_common_are_not_intersected() -> None:
    released = [
        ps.anonymize(
            pl.DataFrame({"zip": [f"z{number}" for number in range(90)], "v": list(labels) * 30}),
            ps.Policy.loads(
                "attributes:\n  zip: {role: quasi-identifier}\n"
                f"  v: {{role: sensitive, domain: {list(labels)}, protect: {{diversity: {{l: 2}}}}}}\n"
            ),
        )
        for labels in ("abc", "xyz")
    ]
    assert "repetition" not in by_name(ps.attack(released[0], other=released[1]))


def test_an_original_without_records(tmp_path: Path) -> None:
    release = ps.anonymize(people(), policy("balanced", 3, 4))
    (tmp_path / "empty.csv").write_text("id,zip,rank\n", encoding="utf-8")
    with pytest.raises(TableError, match="no record fits"):
        ps.attack(release, tmp_path / "empty.csv")


def test_fresh_sets_of_an_experiment_are_the_same_in_every_run() -> None:
    table = people().with_columns(zip=pl.lit("same"))
    release = ps.anonymize(table, policy("simple", 3, 4))

    def right(seed: int | None) -> float:
        found = by_name(ps.attack(release, table, seed=seed))["transparency"]
        assert "fresh_sets" in found.detail
        return found.success

    assert right(1) == right(1)
    assert len({right(1), right(2), right(None)}) == 3


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


# -- promises that are kept, and promises that are not -----------------------------------------------------------------

IMPOSSIBLE = """
impossible:
  - {attribute: ill, when: {sex: f}, values: [a, b]}
  - {attribute: ill, when: {sex: x}, values: [h]}
"""


def ill_policy(values: str, rest: str, extra: str = "") -> ps.Policy:
    """One attribute with these values, described by the rest."""
    return ps.Policy.loads(
        f"""
attributes:
  id: {{role: identifier}}
  zip: {{role: quasi-identifier}}
  sex: {{role: insensitive}}
  ill: {{role: sensitive, domain: [{", ".join(values)}], {rest}}}
{extra}
"""
    )


def patients(values: str, rows: int = 3_000) -> pl.DataFrame:
    """No record has an impossible value; values are more uneven than any prior says."""
    rng = np.random.default_rng(5)
    weights = np.arange(1, len(values) + 1) ** 3.0
    table = pl.DataFrame(
        {
            "id": np.arange(rows),
            "zip": [f"z{number}" for number in rng.permutation(rows)],
            "sex": rng.choice(["m", "f", "x"], rows, p=[0.5, 0.3, 0.2]),
            "ill": rng.choice(list(values), rows, p=weights / weights.sum()),
        }
    )
    return table.filter(
        ~(pl.col("sex").eq("f") & pl.col("ill").is_in(["a", "b"])), ~(pl.col("sex").eq("x") & (pl.col("ill") == "h"))
    )


def alarms(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.attack for finding in findings if finding.exceeded]


EIGHT = "abcdefgh"
KEPT = [
    (EIGHT, "reference: [93, 1, 1, 1, 1, 1, 1, 1], protect: {closeness: {t: 0.3}}"),
    (EIGHT, "reference: [1, 1, 1, 1, 1, 1, 1, 1], protect: {closeness: {t: 0.3, ground: ordered}}"),
    (EIGHT, "distance: {line: rank}, reference: [8, 7, 6, 5, 4, 3, 2, 1], "
            "protect: {closeness: {t: 0.2, ground: hierarchical}}"),
    (EIGHT, "protect: {closeness: {t: 0.3}}"),
    (EIGHT, "prior: [30, 5, 5, 5, 5, 5, 5, 4], protect: {ldp: {epsilon: 2, size: 2}}"),
    (EIGHT, "protect: {ldp: {epsilon: 1, size: 1}}"),
    (EIGHT, "prior: [9, 8, 8, 8, 8, 8, 8, 7], protect: {diversity: {l: 3}, ldp: {epsilon: 3}}"),
    (EIGHT, "protect: {entropy-diversity: {l: 2.5}}"),
]  # fmt: skip


@pytest.mark.parametrize("extra", ["", IMPOSSIBLE], ids=["", "strata"])
@pytest.mark.parametrize(("values", "rest"), KEPT, ids=[rest for _, rest in KEPT])
def test_a_kept_promise_is_not_reported_as_broken(values: str, rest: str, extra: str, tmp_path: Path) -> None:
    table, rules = patients(values), ill_policy(values, rest, extra + "record-key: id")
    new_key(tmp_path / "key")
    release, again = (ps.anonymize(table, rules, key_file=tmp_path / "key") for _ in range(2))
    assert ps.verify(release).holds
    assert not alarms(ps.attack(release, other=again))
    assert not alarms(ps.attack(release, table))
    # No person is recognized here, so that success is measured on fresh sets.
    alike = table.with_columns(zip=pl.lit("same"))
    assert not alarms(ps.attack(ps.anonymize(alike, rules, key_file=tmp_path / "key"), alike))


def test_an_adapted_diversity_is_held_to_what_it_was_adapted_to() -> None:
    table = patients("abcd")
    release = ps.anonymize(table, ill_policy("abcd", "protect: {diversity: {l: 5, adapt: true}}"))
    assert not alarms(ps.attack(release, table))
    assert by_name(ps.attack(release))["bayes"].bound == pytest.approx(1 / 3)


def promising(release: ps.Release, models: Mapping[str, Any], p: float | None = None) -> ps.Release:
    """The same release with other promises, or with a mechanism for some stratum that tells the truth more often."""
    (ill,) = release.manifest.sets
    members = ill.strata.members
    if p is not None:
        lax = replace(members[1], mechanism=Mechanism(members[1].mechanism.design, p))
        members = (members[0], lax, *members[2:])
    attribute = replace(ill.attribute, promises=read_promises(models))
    changed = replace(ill, attribute=attribute, strata=replace(ill.strata, members=members))
    columns = tuple(changed if item is ill else item for item in release.manifest.columns)
    return replace(release, manifest=replace(release.manifest, columns=columns))


@pytest.mark.parametrize(
    ("rest", "stricter", "found"),
    [
        (KEPT[0][1], {"closeness": {"t": 0.25}}, "skewness"),
        (KEPT[1][1], {"closeness": {"t": 0.25, "ground": "ordered"}}, "skewness"),
        (KEPT[2][1], {"closeness": {"t": 0.15, "ground": "hierarchical"}}, "skewness"),
        (KEPT[3][1], {"closeness": {"t": 0.29}}, "any-prior"),
        (KEPT[4][1], {"ldp": {"epsilon": 1.9, "size": 2}}, "any-prior"),
        (KEPT[7][1], {"diversity": {"l": 12, "adapt": True}}, "bayes"),
    ],
)
@pytest.mark.parametrize("extra", ["", IMPOSSIBLE], ids=["", "strata"])
def test_a_broken_promise_is_found(rest: str, stricter: Mapping[str, Any], found: str, extra: str) -> None:
    release = ps.anonymize(patients(EIGHT), ill_policy(EIGHT, rest, extra))
    assert found in alarms(ps.attack(promising(release, stricter)))


def test_a_promise_that_is_broken_in_a_small_stratum_is_found() -> None:
    promise = {"closeness": {"t": 0.3}}
    release = ps.anonymize(patients(EIGHT), ill_policy(EIGHT, "protect: {closeness: {t: 0.3}}", IMPOSSIBLE))
    broken = ps.attack(promising(release, promise, p=0.99))
    assert "any-prior" in alarms(broken)
    assert all("another stratum" in finding.knows for finding in broken if finding.exceeded)


def test_fresh_decoys_add_up_also_where_sets_may_lie() -> None:
    table, rules = patients(EIGHT), ill_policy(EIGHT, "protect: {ldp: {epsilon: 4, size: 2}}")
    first, second = (ps.anonymize(table, rules) for _ in range(2))
    assert "repetition" in alarms(ps.attack(first, other=second))


# -- the original beside the release -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_people_are_matched_whatever_their_columns_are_written_as(tmp_path: Path, file_format: str) -> None:
    """Numbers, truth values and words for "missing" are read as they were when the release was made."""
    rng = np.random.default_rng(1)
    rows = 2_000
    table = pl.DataFrame(
        {
            "weight": [f"{number / 4:.2f}" for number in rng.permutation(rows)],
            "old": rng.choice(["True", "False"], rows),
            "town": rng.choice(["a", "NA"], rows),
            "ill": rng.choice(list(EIGHT), rows),
        }
    )
    table.write_csv(tmp_path / "people.csv")
    rules = ps.Policy.loads(
        f"""
table: {{missing-values: ["NA"]}}
attributes:
  weight: {{role: quasi-identifier, type: number}}
  old: {{role: quasi-identifier, type: boolean}}
  town: {{role: insensitive, type: text}}
  ill: {{role: sensitive, domain: [{", ".join(EIGHT)}], protect: {{diversity: {{l: 2}}}}}}
"""
    )
    release = ps.anonymize(tmp_path / "people.csv", rules, tmp_path / "release", file_format=file_format)
    found = by_name(ps.attack(release, tmp_path / "people.csv"))
    assert found["bayes"].detail["matched_records"] == rows


def test_a_sorted_original_does_not_move_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "SAMPLE", 1_000)
    table = people(4_000).with_columns(zip=pl.lit("same"))
    release = ps.anonymize(table, policy("balanced", 3, 4))
    for original in (table, table.sort("rank")):
        found = by_name(ps.attack(release, original))["bayes"]
        assert found.detail["fresh_sets"] == 1_000
        assert found.baseline < 0.15


def test_a_related_attribute_helps_to_guess() -> None:
    table = patients(EIGHT).with_columns(
        cure=pl.col("ill"), hobby=pl.Series(np.random.default_rng(2).choice(list(EIGHT), patients(EIGHT).height))
    )
    promise = f"{{role: sensitive, domain: [{', '.join(EIGHT)}], protect: {{diversity: {{l: 3}}}}}}"
    rules = ps.Policy.loads(
        "attributes:\n  id: {role: identifier}\n  zip: {role: quasi-identifier}\n  sex: {role: insensitive}\n"
        + "".join(f"  {name}: {promise}\n" for name in ("ill", "cure", "hobby"))
    )
    for original in (table, table.with_columns(zip=pl.lit("same"))):
        release = ps.anonymize(original, rules)
        assert "correlation" not in by_name(ps.attack(release))
        found = {
            finding.attribute: finding for finding in ps.attack(release, original) if finding.attack == "correlation"
        }
        assert found["ill"].success > found["ill"].detail["without_the_other"] + 0.1
        assert "'cure'" in found["ill"].knows
        assert found["ill"].bound is None
        assert found["hobby"].success == pytest.approx(found["hobby"].detail["without_the_other"], abs=0.05)


def test_an_intersection_that_cannot_be_tried_is_refused() -> None:
    table = people(400).with_columns(zip=pl.lit("same"))
    first, second = (ps.anonymize(table, policy("balanced", 3, 4)) for _ in range(2))
    with pytest.raises(ps.QuestionError, match="no person can be recognized in both"):
        ps.attack(first, other=second)
    with pytest.raises(ps.QuestionError, match="the other release has no sets"):
        ps.attack(first, other=ps.anonymize(table, policy("balanced", 3, 4), form="long"))
