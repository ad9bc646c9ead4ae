"""The generated incomes have the shape they are described with, and a policy that fits them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.demo.walkthrough import (
    DEMO_POLICY,
    INCOME_CLASSES,
    INCOME_POLICY,
    REPRESENTATIVE_VALUES,
    income_statistics,
    income_table,
    with_age_bands,
)
from polyseme.inference.knowledge.tradeoff import tradeoff
from polyseme.policy import Policy
from polyseme.results.views.terminal import as_text, tradeoff_view
from polyseme.verbs.report import make_page


def test_table_is_as_described() -> None:
    table = income_table()
    assert table.shape == (100_000, 4)
    assert table.columns == ["id", "age", "sex", "income"]
    assert table["id"].n_unique() == 100_000
    assert table["age"].min() == 20
    assert table["age"].max() == 69
    assert set(table["sex"]) == {"F", "M"}
    assert set(table["income"]) == set(INCOME_CLASSES)
    assert table.null_count().sum_horizontal().item() == 0


def test_table_depends_on_the_seed_only() -> None:
    assert income_table(500, seed=1).equals(income_table(500, seed=1))
    assert not income_table(500, seed=1).equals(income_table(500, seed=2))
    assert income_table(0).height == 0


def test_income_depends_on_age_and_sex() -> None:
    means = (
        income_table()
        .with_columns(
            value=pl.col("income").replace_strict(dict(zip(INCOME_CLASSES, REPRESENTATIVE_VALUES, strict=True))),
            decade=pl.col("age") // 10 * 10,
        )
        .group_by("sex", "decade")
        .agg(pl.col("value").mean())
    )
    table = {(sex, decade): value for sex, decade, value in means.iter_rows()}
    for decade in (20, 30, 40, 50, 60):
        assert table["F", decade] < table["M", decade]
    men = [table["M", decade] for decade in (20, 30, 40, 50, 60)]
    assert men[0] < men[1] < men[2] < men[3] > men[4]
    assert table["M", 50] > 1.7 * table["F", 50]


def test_classes_and_values_go_together() -> None:
    assert len(INCOME_CLASSES) == len(REPRESENTATIVE_VALUES) == 14
    assert INCOME_CLASSES[:3] == ("<1M", "1-2M", "2-3M")
    assert INCOME_CLASSES[9:] == ("9-10M", "10-15M", "15-20M", "20-25M", ">=25M")
    assert REPRESENTATIVE_VALUES[:2] == (0.5, 1.5)
    assert REPRESENTATIVE_VALUES[9:] == (9.5, 12.5, 17.5, 22.5, 30.0)
    assert np.all(np.diff(REPRESENTATIVE_VALUES) > 0)


def test_policy_loads_and_fits_the_table() -> None:
    policy = Policy.loads(INCOME_POLICY)
    assert [attribute.name for attribute in policy.attributes] == income_table(1).columns
    (income,) = policy.protected
    assert income.values == INCOME_CLASSES
    assert income.protect.given() == {"semantic-diversity": {"l": 3, "d": 2}}


def test_statistics_are_public_and_coarse() -> None:
    """They come from the law: no seed, no table; and are what the table has up to sampling error."""
    lines = income_statistics().splitlines()
    assert lines[1] == "sex,age,income,people"
    assert len(lines) == 2 + 10 * 14
    statistics = pl.read_csv(io.StringIO("\n".join(lines[1:])))
    assert statistics["people"].sum() == pytest.approx(100_000, abs=50)
    seen = with_age_bands(income_table()).group_by("sex", "age", "income").len("seen")
    both = statistics.join(seen, on=["sex", "age", "income"], how="full", coalesce=True).fill_null(0)
    assert both.height == 140
    assert ((both["people"] - both["seen"]).abs() <= 5 * (both["people"] + 1).sqrt()).all()


@pytest.fixture
def demo_policy(tmp_path: Path) -> Policy:
    (tmp_path / "statistics.csv").write_text(income_statistics(), encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(DEMO_POLICY, encoding="utf-8")
    return Policy.load(tmp_path / "policy.yaml")


@pytest.mark.slow
def test_no_setting_beats_the_demo(demo_policy: Policy) -> None:
    made = ps.plan(demo_policy, 100_000)
    tried = tradeoff(made)["income"]
    (chosen,) = [one for one in tried if one.chosen]
    assert (chosen.l, chosen.d, chosen.alpha, chosen.p) == (2, 2, None, None)
    assert chosen.success == pytest.approx(0.5, abs=1e-6)
    assert chosen.worst <= 0.5 + 1e-9
    assert chosen.error == pytest.approx(14.7e-4, rel=0.01)
    assert made["income"].facts is not None
    assert made["income"].facts.expected_mse == pytest.approx(chosen.error**2, rel=0.02)
    assert not chosen.dominated
    even = next(one for one in tried if (one.l, one.d, one.alpha, one.p) == (3, 2, 0, 1))
    assert even.dominated
    assert "the policy's" in as_text(tradeoff_view("income", tried))
    assert "own" in as_text(tradeoff_view("income", tried))


def test_a_learner_of_the_demo_is_told_by_sex_and_age(demo_policy: Policy) -> None:
    """The columns that decide the stratum are part of what groups are called, also where no other column tells more."""
    reported = ps.plan(demo_policy, data=with_age_bands(income_table(20_000))).attributes[0].learner
    assert reported is not None
    assert reported.by == ("sex", "age")
    assert reported.conditional is not None
    assert reported.conditional.group.startswith("sex = ")
    assert reported.conditional.after == pytest.approx(0.5, abs=0.02)


def test_plans_show_the_span_of_the_truth_probability(demo_policy: Policy) -> None:
    assert "0.478 to 1" in str(ps.plan(demo_policy, 100_000))


def test_a_report_speaks_of_the_strata_that_people_are_in(demo_policy: Policy) -> None:
    """Not of the mechanism for records that no condition applies to, of which there are none."""
    release = ps.anonymize(with_age_bands(income_table(20_000)), demo_policy, seed=1, warn=lambda _: None)
    page = make_page(release, verification=ps.verify(release))
    (fact,) = page.facts
    planned = ps.plan(demo_policy, 20_000)["income"].facts
    assert planned is not None
    assert fact.expected_mse == pytest.approx(planned.expected_mse, rel=0.05)
    assert (round(fact.p, 3), fact.p_most) == (0.478, 1.0)
    (promise,) = page.promises
    assert "With probability 0.478 to 1, by group, they are drawn around the true value" in promise.text
    assert all(check.margin is None or check.margin >= 0 for check in page.checks if check.holds)


def test_what_readers_learn_is_judged_where_every_group_has_a_design_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "statistics.csv").write_text(income_statistics())
    made = Policy.loads(DEMO_POLICY, tmp_path)
    release = ps.anonymize(with_age_bands(income_table(20_000)), made, warn=lambda text: None)
    reported = ps.verify(release).learners["income"]
    learned = reported.conditional
    assert learned is not None
    assert learned.low is not None
    assert learned.high is not None
    # The law says 0.500: the promise is kept, and chance must not call it broken.
    assert learned.low <= 0.5 <= learned.high
    assert learned.high - learned.low < 0.08
    assert not reported.above
