"""A walkthrough of the whole pipeline on generated incomes, with a line for each step.

Incomes are shaped as the journal paper describes its income data (its section 6.2).

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

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from scipy.stats import norm

from polyseme.kernel.arrays import Bools, Floats, Ints
from polyseme.kernel.files import whole_folder
from polyseme.kernel.randomness import experiment
from polyseme.kernel.work import Cancellation
from polyseme.policy import Policy
from polyseme.privacy.analysis.learner import Population
from polyseme.results.plan import AttributePlan
from polyseme.results.views.formats import percent
from polyseme.verbs.anonymize import anonymize
from polyseme.verbs.attack import attack
from polyseme.verbs.estimate import estimate
from polyseme.verbs.evaluate import evaluate
from polyseme.verbs.plan import plan
from polyseme.verbs.report import report
from polyseme.verbs.verify import verify

__all__ = [
    "DEMO_POLICY",
    "INCOME_CLASSES",
    "INCOME_POLICY",
    "REPRESENTATIVE_VALUES",
    "income_population",
    "income_statistics",
    "income_table",
    "run_demo",
    "with_age_bands",
]

_EDGES: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0)
"""Classes of yearly income in million yen, as the journal paper's experiments use them."""

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

_DOMAIN: Final = ", ".join(f'"{label}"' for label in INCOME_CLASSES)

INCOME_POLICY: Final = f"""\
# Each person's income is published as 3 classes, any two of them at least 2 classes apart.
attributes:
  id: {{role: identifier}}
  age: {{role: quasi-identifier}}
  sex: {{role: quasi-identifier}}
  income:
    role: sensitive
    domain: [{_DOMAIN}]
    distance: {{line: rank}}
    protect: {{semantic-diversity: {{l: 3, d: 2}}}}
"""
"""A policy for the table where nothing is publicly known about incomes. An attacker who knows how they go with age and
sex is right in 70.2% of all cases, at an expected error of 12.3e-4; among policies without a prior none is better on
both (2 candidates have 82.7% and 6.8e-4, 4 have 60.7% and 18.3e-4). With one there are better: see `DEMO_POLICY`."""

DEMO_POLICY: Final = f"""\
# Each person's income is published as 2 classes, at least 2 classes apart. Decoys follow public statistics of incomes
# by sex and age; an attacker who knows these statistics guesses right in at most half of all cases.
about: {{title: Invented incomes, publisher: The Polyseme demo, version: 1}}   # at the head of the report
attributes:
  id: {{role: identifier}}
  age: {{role: quasi-identifier}}
  sex: {{role: quasi-identifier}}
  income:
    role: sensitive
    domain: [{_DOMAIN}]
    distance: {{line: rank}}
    prior: {{by: [sex, age], file: statistics.csv}}
    protect: {{semantic-diversity: {{l: 2, d: 2}}, learner: {{success: 0.5}}}}
"""
"""A policy for the table `with_age_bands`, beside which `income_statistics` lie in a file. `plan --frontier` finds no
setting that has both a lower success of an attacker who knows the statistics and a lower expected error."""

_MAN, _WOMAN = "M", "F"
_AGES: Final = np.arange(20, 70)
_WOMEN: Final = 0.46
"""The share of women."""
_PART: Final = 3.0
"""Part-time work divides an income by this."""
_BAND: Final = 10
"""Years of an age band."""
_PER: Final = 100_000
"""The people that public statistics speak of."""


def income_table(records: int = 100_000, seed: int = 0) -> pl.DataFrame:
    """People with `id`, `age` (20 to 69), `sex` and `income` (one of `INCOME_CLASSES`).

    All figures are invented.

    >>> table = income_table(1_000)
    >>> table.columns, table.height
    (['id', 'age', 'sex', 'income'], 1000)
    """
    random = experiment(seed)
    age = _ages(records, random)
    woman = random.random(records) < _WOMEN
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


def income_population(years: int = 1) -> Population:
    """The exact distribution of income given age and sex that the generator draws from.

    years  how many years of age make one group; groups are ordered by age, men before women

    >>> population = income_population()
    >>> population.shares.shape, round(float(population.shares.max(axis=1) @ population.weights), 4)
    ((100, 14), 0.2238)
    """
    age, woman = np.repeat(_AGES, 2), np.tile([False, True], len(_AGES))
    weights = np.repeat(_age_shares(), 2) * np.where(woman, _WOMEN, 1.0 - _WOMEN)
    center, spread, part_time = _law(age, woman)
    edges = np.log(_EDGES) - center[:, None]
    below = (1.0 - part_time)[:, None] * norm.cdf(edges / spread[:, None])
    below += part_time[:, None] * norm.cdf((edges + np.log(_PART)) / spread[:, None])
    shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
    everyone = Population(weights, np.asarray(shares))
    return everyone if years == 1 else everyone.gathered((age - _AGES[0]) // years * 2 + woman)


def with_age_bands(table: pl.DataFrame) -> pl.DataFrame:
    """The table with bands of ten years in the place of ages.

    >>> with_age_bands(pl.DataFrame({"age": [20, 34, 69]}))["age"].to_list()
    ['20-29', '30-39', '60-69']
    """
    first = pl.col("age") // _BAND * _BAND
    return table.with_columns(age=pl.format("{}-{}", first, first + _BAND - 1))


def income_statistics() -> str:
    r"""Public statistics as a CSV file: people of each sex, age band and income, rounded.

    They come from the law that incomes are drawn from, not from any table.

    >>> print(*income_statistics().splitlines()[:4], sep="\n")
    # People of 100,000, by sex, age and income (invented)
    sex,age,income,people
    M,20-29,<1M,218
    M,20-29,1-2M,674
    """
    population = income_population(_BAND)
    groups = [(first, sex) for first in _AGES[::_BAND].tolist() for sex in (_MAN, _WOMAN)]
    lines = [f"# People of {_PER:,}, by sex, age and income (invented)", "sex,age,income,people"]
    for (first, sex), weight, shares in zip(groups, population.weights, population.shares, strict=True):
        lines += [
            f"{sex},{first}-{first + _BAND - 1},{label},{_PER * weight * share:.0f}"
            for label, share in zip(INCOME_CLASSES, shares.tolist(), strict=True)
        ]
    return "\n".join(lines) + "\n"


def _age_shares() -> Floats:
    """Working people: fewer at both ends, most in their forties and fifties."""
    weight = np.exp(-(((_AGES - 47.0) / 19.0) ** 2))
    return np.asarray(weight / weight.sum())


def _ages(records: int, random: np.random.Generator) -> Ints:
    return random.choice(_AGES, records, p=_age_shares())


def _law(age: Ints, woman: Bools) -> tuple[Floats, Floats, Floats]:
    """Center and spread of the log of a full-time income, and the probability of part-time work."""
    profile = np.exp(-(((age - 54.0) / 21.0) ** 2))
    after_sixty = np.where(age >= 60, 0.35, 0.0)
    center = np.where(woman, 0.98, 1.06) + np.where(woman, 0.30, 0.68) * profile - after_sixty
    end = np.where((age < 24) | (age >= 62), 0.15, 0.0)
    part_time = np.where(woman, 0.34, 0.07) + end
    return np.asarray(center), np.asarray(0.36 + 0.006 * (age - 20), dtype=np.float64), np.asarray(part_time)


def _incomes(age: Ints, woman: Bools, random: np.random.Generator) -> Floats:
    """Annual incomes in million yen."""
    center, spread, part_time = _law(age, woman)
    third = np.where(random.random(len(age)) < part_time, np.log(_PART), 0.0)
    return np.asarray(np.exp(center + spread * random.standard_normal(len(age)) - third))


def _planned(made: AttributePlan) -> Iterator[str]:
    """The setting and its risk for two attackers: with the decoys' prior, and with statistics."""
    choice, attackers = made.choice, made.learner
    if attackers is None or attackers.learned is None or attackers.promised is None or attackers.learner is None:
        raise ValueError(made.obstacle)
    known = attackers.learned
    yield f"Plan        {choice.l} candidates, at least {choice.d:g} classes apart; a balanced design by sex and age"
    yield f"            an attacker with the prior of the decoys is right with at most 1/{choice.l}, whatever the set"
    yield (
        f"            an attacker with the statistics is right in {percent(known.after)} of cases (promised: at most "
        f"{percent(attackers.learner)}), without the release in {percent(known.before)}"
    )


def run_demo(
    out: Path, records: int = 100_000, overwrite: bool = False, cancellation: Cancellation | None = None
) -> Iterator[str]:
    """Leave people.parquet, statistics.csv, policy.yaml, release/ and report.html in `out`.

    Say what happens.
    """
    contents = ("people.parquet", "statistics.csv", "policy.yaml", "release", "report.html")
    with whole_folder(out, overwrite, contents, cancellation) as folder:
        with_age_bands(income_table(records)).write_parquet(folder / "people.parquet")
        (folder / "statistics.csv").write_text(income_statistics(), encoding="utf-8")
        (folder / "policy.yaml").write_text(DEMO_POLICY, encoding="utf-8")
        yield f"People      {records:,} invented records: age in bands of ten years, sex and income in 14 classes"
        yield "            and public statistics of incomes by sex and age, which are not made from these records"
        policy = Policy.load(folder / "policy.yaml")
        yield from _planned(plan(policy, records)["income"])
        heard: list[str] = []
        release = anonymize(
            folder / "people.parquet", policy, folder / "release", warn=heard.append, cancellation=cancellation
        )
        yield f"Anonymize   {release.manifest.records:,} records, shuffled, identifiers dropped"
        yield from (f"Warning     {text.partition(' To generalize them')[0]}" for text in heard)
        verified = verify(release)
        outcome = "all hold" if verified.holds else "VIOLATED"
        yield f"Verify      {len(verified.verdicts)} checks from the definitions: {outcome}"
        table = estimate(release, of=["income"], by=["sex"])
        yield f"Estimate    income by sex, {table.values.size} cells with intervals ({table.estimator})"
        metrics = evaluate(release, folder / "people.parquet", of=["income"], by=["sex"]).to_dict()
        error = math.sqrt(metrics["mse"]) * records
        yield f"Evaluate    typical error of a cell: {error:,.0f} people of {records:,}"
        findings = attack(release, folder / "people.parquet")
        guess, learned = (
            max(finding.success for finding in findings if finding.attack == name)
            for name in ("bayes", "published-estimate")
        )
        broken = ", ".join(finding.attack for finding in findings if finding.exceeded) or "none"
        yield f"Attack      an attacker who knows the method is right in {guess:.1%} of cases; above a bound: {broken}"
        yield f"            one who also estimates from the release how incomes go with age and sex, in {learned:.1%}"
        (folder / "report.html").write_text(report(release, folder / "people.parquet", by="sex"), encoding="utf-8")
    yield f"Report      {out / 'report.html'}"
