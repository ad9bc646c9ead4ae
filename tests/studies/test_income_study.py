"""The generated incomes have the shape they are described with, and a policy that fits them."""

from __future__ import annotations

import numpy as np
import polars as pl

from polyseme.policy import Policy
from polyseme.studies.income import INCOME_CLASSES, INCOME_POLICY, REPRESENTATIVE_VALUES, income_table


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
