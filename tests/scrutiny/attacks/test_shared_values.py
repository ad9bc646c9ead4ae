"""A value that several records share: intersected where each has a set of its own, kept by one set for the group."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import polyseme

import polyseme as ps
from polyseme.kernel.randomness import new_key

VALUES = "abcdefghijkl"
POLICY = """
attributes:
  home: {role: ROLE}
  person: {role: quasi-identifier}
  income: {role: sensitive, SHARED domain: [a, b, c, d, e, f, g, h, i, j, k, l], distance: {line: rank},
           protect: {semantic-diversity: {l: 3, d: 2}}}
"""
SIZES = np.array([0.35, 0.30, 0.14, 0.13, 0.05, 0.03])
"""Of households with 1 to 6 people, about as in Austria."""


def policy(role: str = "identifier", shared: bool = True) -> ps.Policy:
    return ps.Policy.loads(POLICY.replace("ROLE", role).replace("SHARED", "shared-by: home," if shared else ""))


def households(count: int, seed: int = 0, differing: float = 0.0) -> pl.DataFrame:
    """People with the income of their household; in some households one member has another one."""
    rng = np.random.default_rng(seed)
    size = rng.choice(6, count, p=SIZES) + 1
    home = np.repeat(np.arange(count), size)
    income = np.minimum(rng.geometric(0.25, count) - 1, 11)[home]
    odd = np.isin(home, rng.choice(np.flatnonzero(size > 1), round(differing * count), replace=False))
    first = np.flatnonzero(np.diff(home, prepend=-1))
    other = np.zeros(len(home), dtype=bool)
    other[first] = True
    income = np.where(odd & other, (income + 5) % 12, income)
    letters = np.array(list(VALUES))
    return pl.DataFrame({"home": home, "person": np.arange(len(home)), "income": letters[income]})


def quietly(*given: Any, **more: Any) -> ps.Release:
    return ps.anonymize(*given, warn=lambda text: None, **more)


def members(release: ps.Release, table: pl.DataFrame) -> dict[int, list[set[str]]]:
    """The sets of each household, found by the number of the person."""
    home = dict(zip(table["person"], table["home"]))
    found = defaultdict(list)
    for person, sets in release.to_polars().select("person", "income").iter_rows():
        found[home[int(person)]].append(set(sets))
    return found


def intersected(release: ps.Release, table: pl.DataFrame) -> tuple[int, int, int]:
    """Households of two or more, those with one candidate in common, and those where it is the income of all."""
    true = {home: set(incomes) for home, incomes in table.group_by("home").agg("income").iter_rows()}
    several = {home: sets for home, sets in members(release, table).items() if len(sets) > 1}
    left = {home: set.intersection(*sets) for home, sets in several.items()}
    resolved = {home: common for home, common in left.items() if len(common) == 1}
    return len(several), len(resolved), sum(common == true[home] for home, common in resolved.items())


def shared_finding(release: ps.Release, original: Any = None) -> Any:
    found = [one for one in ps.attack(release, original) if one.attack == "shared-value"]
    return found[0] if found else None


def test_sets_of_members_are_intersected_unless_they_share_one() -> None:
    """`attack` found nothing, with the household number published and without it."""
    table = households(400)
    apart = quietly(table, policy("quasi-identifier", shared=False))
    several, resolved, right = intersected(apart, table)
    assert resolved == right > 0.5 * several
    for found in (shared_finding(apart), shared_finding(apart, table)):
        assert found.exceeded
        assert found.detail["groups"] == several
        assert found.detail["groups_resolved"] == resolved
    assert shared_finding(apart, table).detail["groups_right"] == right
    # Members who are recognized by other columns are linked by an attacker who knows who lives together.
    known = shared_finding(quietly(table, policy(shared=False)), table)
    assert known.exceeded
    assert known.success > 0.6
    together = quietly(table, policy())
    assert intersected(together, table)[1:] == (0, 0)
    assert all(len({frozenset(one) for one in sets}) == 1 for sets in members(together, table).values())
    kept = shared_finding(together, table)
    assert not kept.exceeded
    assert kept.success == pytest.approx(1 / 3)
    assert kept.detail["same_set"] == 1.0


def test_success_without_the_original_is_what_the_original_says() -> None:
    table = households(1_500, seed=1)
    apart = quietly(table, policy("quasi-identifier", shared=False))
    remarks, true = shared_finding(apart), shared_finding(apart, table)
    assert remarks.success == pytest.approx(true.success, abs=0.03)
    assert remarks.detail["sharing"] > 0.97


@pytest.mark.parametrize("grouped", [True, False])
def test_groups_that_have_nothing_to_do_with_a_value_are_no_finding(grouped: bool) -> None:
    """A household number, and values that do not depend on it; and a column in which no two agree."""
    table = households(600, seed=2)
    shuffled = table.with_columns(pl.Series("income", np.random.default_rng(0).permutation(table["income"])))
    shuffled = shuffled if grouped else shuffled.with_columns(home=pl.int_range(pl.len()))
    heard: list[str] = []
    release = ps.anonymize(shuffled, policy("quasi-identifier", shared=False), warn=heard.append)
    assert shared_finding(release) is None
    assert shared_finding(release, shuffled) is None
    assert not any("share their value" in text for text in heard)


def test_shared_values_are_warned_of_before_and_while_publishing(tmp_path: Path) -> None:
    table = households(200)
    heard: list[str] = []
    ps.anonymize(table, policy(shared=False), warn=heard.append)
    (remarks,) = [text for text in heard if "share their value" in text]
    assert "records with the same home share their value of 'income'" in remarks
    assert "shared-by: home" in remarks
    assert any("share their value" in text for text in ps.plan(policy(shared=False), data=table).remarks)
    assert not any("share their value" in text for text in ps.plan(policy(), data=table).remarks)
    quiet: list[str] = []
    ps.anonymize(table, policy(), warn=quiet.append)
    assert not any("share their value" in text for text in quiet)


def test_verify_and_the_report_say_it(tmp_path: Path) -> None:
    """`verify` held, and said nothing."""
    table = households(300)
    apart = quietly(table, policy("quasi-identifier", shared=False))
    (remarks,) = ps.verify(apart).remarks
    assert "By intersecting their sets" in remarks
    together = quietly(table, policy(), tmp_path / "release")
    (remarks,) = ps.verify(together).remarks
    assert "one group of 'home' show one set" in remarks
    assert json.loads(polyseme("verify", tmp_path / "release", "--json").stdout)["remarks"] == [remarks]
    # The last line is no all-clear beside that.
    closing = "Every model holds. No model covers what is remarked above."
    assert closing in " ".join(polyseme("verify", tmp_path / "release").stdout.split())
    assert "No model covers what is remarked below." in ps.verify(together)._repr_html_()
    alone = quietly(
        table.drop("home"), ps.Policy.loads(POLICY.replace("  home: {role: ROLE}\n", "").replace("SHARED", ""))
    )
    assert not ps.verify(alone).remarks
    assert "No model covers" not in str(ps.verify(alone)._repr_html_())
    page = " ".join(re.sub("<[^>]*>", "", ps.report(together)).split())
    assert "All records of one group of home show the same set" in page
    assert "Equal sets link members" in page


def test_how_far_equal_sets_link_members() -> None:
    from polyseme.scrutiny.attacks.audit.shared_values import linked_pairs

    table = households(500)
    release = quietly(table, policy())
    home = dict(zip(table["person"], table["home"]))
    rows = [(home[int(person)], tuple(sets)) for person, sets in release.to_polars()["person", "income"].iter_rows()]
    alike = [(one[0] == two[0]) for place, one in enumerate(rows) for two in rows[:place] if one[1] == two[1]]
    assert linked_pairs(release, release.manifest.sets) == pytest.approx(np.mean(alike), rel=0.05)


def test_the_manifest_says_which_records_share_a_set(tmp_path: Path) -> None:
    table = households(300)
    release = quietly(table, policy(), tmp_path / "release")
    (entry,) = [
        one for one in json.loads((tmp_path / "release/manifest.json").read_text())["attributes"] if "shared_by" in one
    ]
    sizes = table["home"].value_counts()["count"].to_numpy()
    assert entry["shared_by"] == {"column": "home", "differing": 0.0}
    assert (sizes**2).sum() / sizes.sum() <= entry["repeats"] <= (sizes**2).sum() / sizes.sum() + 0.1
    again = ps.Release.open(tmp_path / "release")
    assert again.manifest["income"].shared_by == "home"
    assert again.manifest["income"].repeats == release.manifest["income"].repeats == entry["repeats"]
    assert "home" not in again.to_polars().columns
    note = next(note for note in ps.estimate(again, of=["income"]).notes if "one group of home" in note)
    assert f"{table.height / entry['repeats']:,.0f} records" in note


def test_the_key_of_a_run_is_thrown_away_and_a_key_file_keeps_sets(tmp_path: Path) -> None:
    table, new = households(150), tmp_path / "key"
    new_key(new)

    def drawn(**more: Any) -> list[Any]:
        return quietly(table, policy(), **more).to_polars().sort("person")["income"].to_list()

    assert drawn() != drawn()
    assert drawn(seed=3) == drawn(seed=3) != drawn(seed=4)
    # No record key is needed: every set belongs to a group.
    assert drawn(key_file=new) == drawn(key_file=new)


@pytest.mark.parametrize(("share", "refused"), [(0.005, False), (0.02, True)])
def test_groups_that_differ_are_counted_and_refused_above_one_percent(share: float, refused: bool) -> None:
    table = households(1_000, differing=share)
    message = f"{round(1_000 * share):,} of 1,000 groups of 'home' have members with different values"
    heard: list[str] = []
    if refused:
        with pytest.raises(ps.RiskError, match=message):
            ps.anonymize(table, policy(), warn=heard.append)
        assert any(message in text and "refuses" in text for text in ps.plan(policy(), data=table).remarks)
    release = ps.anonymize(table, policy(), warn=heard.append, accept_risk=refused)
    assert any(message in text for text in heard)
    assert release.manifest["income"].differing == share
    # Nothing of the truth was changed for it: every set holds the value of its own record.
    true = dict(zip(table["person"], table["income"]))
    assert all(true[int(person)] in sets for person, sets in release.to_polars()["person", "income"].iter_rows())


def test_members_under_different_conditions_count_as_different() -> None:
    """Strata draw other sets, also for one value."""
    table = households(300)
    table = table.with_columns(sex=pl.Series(np.where(np.arange(table.height) % 2, "m", "f")))
    table = table.filter(~((pl.col("sex") == "m") & (pl.col("income") == "l")))
    text = POLICY.replace("ROLE", "identifier").replace("SHARED", "shared-by: home,")
    rules = text.replace("attributes:", "impossible: [{when: {sex: m}, attribute: income, values: [l]}]\nattributes:")
    rules = rules.replace("person:", "sex: {role: quasi-identifier}\n  person:")
    mixed = table.group_by("home").agg(pl.col("sex").n_unique()).filter(pl.col("sex") > 1).height
    with pytest.raises(ps.RiskError, match=f"{mixed:,} of {table['home'].n_unique():,} groups"):
        quietly(table, ps.Policy.loads(rules))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("shared-by: home,", "shared-by: house,"), "no attribute 'house'"),
        (("shared-by: home,", "shared-by: income,"), "cannot tell groups"),
        (("person: {role: quasi-identifier}", "person: {role: quasi-identifier, shared-by: home}"), "share one"),
        (("home: {role: identifier}", "home: {role: quasi-identifier, hierarchy: suppress}"), "generalized"),
    ],
)
def test_what_cannot_tell_groups_is_refused_with_its_place(change: tuple[str, str], message: str) -> None:
    text = POLICY.replace("ROLE", "identifier").replace("SHARED", "shared-by: home,")
    with pytest.raises(ps.PolicyError, match=message) as error:
        ps.Policy.loads(text.replace(*change))
    assert "shared-by" in str(error.value)


def test_a_record_without_a_group_is_refused() -> None:
    table = households(50).with_columns(home=pl.when(pl.col("person") > 3).then("home"))
    with pytest.raises(ps.InvalidInput, match="4 records have no group"):
        quietly(table, policy())


def test_intervals_count_households_not_people() -> None:
    """Person counts, households of 1 to 6 people whose size goes with their income."""
    rules = """
      attributes:
        home: {role: identifier}
        x: {role: sensitive, shared-by: home, domain: [a, b, c, d, e, f, g, h], distance: {line: rank},
            protect: {semantic-diversity: {l: 2, d: 2}}}
    """
    shares, letters = np.array([0.22, 0.2, 0.17, 0.14, 0.1, 0.08, 0.06, 0.03]), np.array(list("abcdefgh"))
    held, errors = [], []
    for number in range(60):
        rng = np.random.default_rng(number)
        size = rng.choice(6, 500, p=SIZES) + 1
        value = np.where(size > 3, rng.choice(8, 500, p=shares[::-1]), rng.choice(8, 500, p=shares))
        home = np.repeat(np.arange(500), size)
        frame = pl.DataFrame({"home": home, "x": letters[value[home]]})
        release = quietly(frame, ps.Policy.loads(rules), seed=number)
        table = ps.estimate(release, of=["x"], estimator="inverse")
        truth = np.bincount(value[home], minlength=8)
        held.append((table.low[0] <= truth) & (truth <= table.high[0]))
        errors.append((table.values[0] - truth) / table.stderr[0])
    # Without counting groups 76% were covered, and the root mean square of the errors was 1.7 standard errors.
    assert 0.92 <= np.mean(held) <= 0.985
    assert 0.9 <= np.sqrt(np.mean(np.square(errors))) <= 1.1


EUSILC = Path(__file__).resolve().parents[4] / "shared" / "data" / "real" / "eusilc.csv"
EDGES = [0, 5_000, 7_500, 10_000, 12_500, 15_000, 17_500, 20_000, 22_500, 25_000, 30_000, 35_000, 40_000, 50_000, 1e6]


@pytest.mark.skipif(not EUSILC.exists(), reason="the EU-SILC table is not at hand")
def test_household_income_of_eusilc() -> None:
    """Of 4,255 households with several people, most resolved to the true class; with one set none does."""
    table = pl.read_csv(EUSILC).select("db030", "hsize", "db040", "age", "rb090", "eqIncome")
    text = f"""
      attributes:
        db030: {{role: identifier}}
        hsize: {{role: quasi-identifier}}
        db040: {{role: quasi-identifier}}
        age: {{role: quasi-identifier}}
        rb090: {{role: quasi-identifier}}
        eqIncome: {{role: sensitive, bins: {EDGES}, distance: {{line: rank}},
                    protect: {{semantic-diversity: {{l: 3, d: 2}}}}}}
    """
    apart = quietly(table, ps.Policy.loads(text.replace("db030: {role: identifier}", "db030: {role: insensitive}")))
    found = shared_finding(apart)
    assert found.detail["groups"] == 4_255
    assert found.detail["groups_resolved"] > 3_300
    assert shared_finding(quietly(table, ps.Policy.loads(text)), table).success > 0.85
    shared = quietly(table, ps.Policy.loads(text.replace("sensitive, bins", "sensitive, shared-by: db030, bins")))
    kept = shared_finding(shared, table)
    assert kept.detail["groups_resolved"] == 0
    assert kept.success == pytest.approx(1 / 3)
