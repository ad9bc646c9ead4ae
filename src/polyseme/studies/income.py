"""Generated incomes, shaped as the journal paper describes its income data (its section 6.2).

The paper's table has 100,000 people with age and sex as quasi-identifiers and 14 classes of annual income, and follows
a salary survey that is not part of it. Here every figure is invented; only the shape is meant to be life-like:

    ln income = base(sex) + lift(sex) * profile(age) + spread(age) * z - ln 3 * part_time,        z standard normal

where
    profile(age)  rises from 20 to its peak at 54; after 60 incomes drop
    base, lift    level at the start and size of the rise, both smaller for women
    spread(age)   incomes differ more the older people are
    part_time     likelier for women and at both ends of working life; divides an income by three
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from polyseme.distances.structure import Bools, Floats, Ints
from polyseme.randomness import experiment

__all__ = ["INCOME_CLASSES", "INCOME_POLICY", "REPRESENTATIVE_VALUES", "income_table"]

_EDGES: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0)

INCOME_CLASSES: Final[tuple[str, ...]] = (
    "<1M",
    *(f"{low:.0f}-{high:.0f}M" for low, high in pairwise(_EDGES)),
    ">=25M",
)
"""Annual income in million yen."""

REPRESENTATIVE_VALUES: Final[tuple[float, ...]] = (
    0.5,
    *((low + high) / 2 for low, high in pairwise(_EDGES)),
    30.0,
)
"""The middle of each class, and 30 for the open one."""

INCOME_POLICY: Final = f"""\
# Each person's income is published as 3 classes, any two of them at least 4 classes apart.
attributes:
  id: {{role: identifier}}
  age: {{role: quasi-identifier}}
  sex: {{role: quasi-identifier}}
  income:
    role: sensitive
    domain: [{", ".join(f'"{label}"' for label in INCOME_CLASSES)}]
    distance: {{line: rank}}
    protect: {{semantic-diversity: {{l: 3, d: 4}}}}
"""
"""A policy for the table. With 14 ranks, l * d = 12 leaves room for a balanced design, and it can be estimated."""

_MAN, _WOMAN = "M", "F"


def income_table(records: int = 100_000, seed: int = 0) -> pl.DataFrame:
    """People with `id`, `age` (20 to 69), `sex` and `income` (one of `INCOME_CLASSES`). All figures are invented.

    >>> table = income_table(1_000)
    >>> table.columns, table.height
    (['id', 'age', 'sex', 'income'], 1000)
    """
    random = experiment(seed)
    age = _ages(records, random)
    woman = random.random(records) < 0.46
    income = _incomes(age, woman, random)
    classes = np.searchsorted(_EDGES, income, side="right")
    return pl.DataFrame(
        {
            "id": np.arange(1, records + 1),
            "age": age,
            "sex": np.where(woman, _WOMAN, _MAN),
            "income": np.asarray(INCOME_CLASSES)[classes],
        }
    )


def _ages(records: int, random: np.random.Generator) -> Ints:
    """Working people: fewer at both ends, most in their forties and fifties."""
    ages = np.arange(20, 70)
    weight = np.exp(-(((ages - 47.0) / 19.0) ** 2))
    return random.choice(ages, records, p=weight / weight.sum())


def _incomes(age: Ints, woman: Bools, random: np.random.Generator) -> Floats:
    """Annual incomes in million yen."""
    profile = np.exp(-(((age - 54.0) / 21.0) ** 2))
    after_sixty = np.where(age >= 60, 0.35, 0.0)
    centre = np.where(woman, 0.98, 1.06) + np.where(woman, 0.30, 0.68) * profile - after_sixty
    spread = 0.36 + 0.006 * (age - 20)
    end = np.where((age < 24) | (age >= 62), 0.15, 0.0)
    part_time = random.random(len(age)) < np.where(woman, 0.34, 0.07) + end
    third = np.where(part_time, np.log(3.0), 0.0)
    return np.asarray(np.exp(centre + spread * random.standard_normal(len(age)) - third))
