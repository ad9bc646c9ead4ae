"""Prior files: from an earlier release, from a table with differential privacy, and two waves."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats

import polyseme as ps
from polyseme.cli import cli
from polyseme.kernel.randomness import SystemStream, discrete_laplace
from polyseme.privacy.analysis.learner import pooled

VALUES = list("abcdef")
SHARES = {"f": [30, 25, 20, 10, 10, 5], "m": [5, 10, 15, 25, 25, 20]}


def people(records: int = 20_000, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], records)
    steps = np.cumsum([np.array(SHARES[one]) / sum(SHARES[one]) for one in sex], axis=1)
    return pl.DataFrame({"sex": sex, "x": np.array(VALUES)[(steps[:, :-1] < rng.random((records, 1))).sum(axis=1)]})


def policy(folder: Path | None = None, **attribute: Any) -> ps.Policy:
    described = {
        "role": "sensitive",
        "domain": VALUES,
        "distance": {"line": "rank"},
        "protect": {"semantic-diversity": {"l": 2, "d": 1}},
        **attribute,
    }
    document = {"attributes": {"sex": {"role": "quasi-identifier"}, "x": described}}
    return ps.Policy.from_dict(document, folder or Path())


def distance(prior: ps.Prior, table: pl.DataFrame) -> float:
    """The largest total variation between a group of the prior and the table."""
    return max(
        0.5
        * np.abs(
            numbers / numbers.sum()
            - np.array([table.filter(sex=sex, x=value).height for value in VALUES]) / table.filter(sex=sex).height
        ).sum()
        for (sex,), numbers in zip(prior.groups, prior.numbers, strict=True)
    )


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(20, 3)])
def test_noise_has_its_law(scale: Fraction) -> None:
    drawn = discrete_laplace(scale, 20_000, SystemStream.seeded(1))
    fall = math.exp(-1 / float(scale))
    most = max(int(6 * scale), 2)
    numbers = np.arange(-most, most + 1)
    chance = (1 - fall) / (1 + fall) * fall ** np.abs(numbers)
    counts = np.array([(drawn == number).sum() for number in numbers])
    rest = [len(drawn) - counts.sum(), len(drawn) * (1 - chance.sum())]
    kept = len(drawn) * chance >= 5
    observed = [*counts[kept], rest[0] + counts[~kept].sum()]
    expected = [*(len(drawn) * chance[kept]), rest[1] + len(drawn) * chance[~kept].sum()]
    assert stats.chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue > 1e-3


def test_pooling_is_closer_to_the_truth_than_thin_groups_are() -> None:
    rng = np.random.default_rng(2)
    margin = np.array([0.4, 0.3, 0.2, 0.1])
    truth = rng.dirichlet(40 * margin, 60)
    numbers = np.array([rng.multinomial(30, shares) for shares in truth]).astype(float)
    found = pooled(numbers, np.zeros_like(numbers))
    assert np.all(found > 0.0)
    assert found.sum(axis=1) == pytest.approx(numbers.sum(axis=1))
    assert np.abs(found / 30 - truth).sum() < 0.8 * np.abs(numbers / 30 - truth).sum()


def test_a_prior_from_a_release_is_its_estimate() -> None:
    table = people()
    prior = ps.prior_from_release(ps.anonymize(table, policy()), "x", ["sex"])
    assert prior.groups == (("f",), ("m",))
    assert prior.epsilon is None
    assert distance(prior, table) < 0.03
    assert ps.Prior.from_dict(prior.to_dict()) == prior


@pytest.mark.parametrize("by", [[], ["sex"]])
def test_a_prior_from_a_table_states_its_epsilon(by: list[str]) -> None:
    prior = ps.prior_from_table(people(), "x", by, epsilon=0.5)
    assert prior.epsilon == 0.5
    assert "epsilon 0.5" in prior.to_csv().splitlines()[0]
    assert prior.to_csv().startswith("# ")
    assert np.all(prior.numbers > 0.0)
    if by:
        assert distance(prior, people()) < 0.03


def test_noise_hides_a_small_table_and_the_exact_distribution_has_to_be_asked_for() -> None:
    few = people(60)
    assert len({ps.prior_from_table(few, "x", epsilon=0.1).to_csv() for _ in range(5)}) > 1
    with pytest.raises(ps.QuestionError, match="publish-exact"):
        ps.prior_from_table(few, "x")
    with pytest.raises(ps.QuestionError, match="publish-exact"):
        ps.prior_from_table(few, "x", epsilon=1.0, publish_exact=True)
    exact = ps.prior_from_table(few, "x", publish_exact=True)
    assert exact.epsilon is None
    assert "learn it exactly" in exact.remarks[0]
    for epsilon in (0.0, -1.0, math.nan, math.inf, 1e-9):
        with pytest.raises(ps.QuestionError):
            ps.prior_from_table(few, "x", epsilon=epsilon)


def test_a_policy_says_what_the_values_are() -> None:
    table = people(500).filter(pl.col("x") != "f")
    assert ps.prior_from_table(table, "x", epsilon=1.0, policy=policy()).values == tuple(VALUES)
    with pytest.raises(ps.QuestionError, match="no such column"):
        ps.prior_from_table(table, "y", epsilon=1.0)


def test_too_many_groups_are_refused() -> None:
    table = pl.DataFrame({"who": [str(number) for number in range(2_000)], "x": ["a", "b"] * 1_000})
    with pytest.raises(ps.QuestionError, match="combinations"):
        ps.prior_from_table(table, "x", ["who"], epsilon=1.0)


def test_the_commands_make_files_that_a_policy_reads(tmp_path: Path) -> None:
    table = people(4_000)
    table.write_csv(tmp_path / "people.csv")
    ps.anonymize(table, policy(), tmp_path / "first")
    runner = CliRunner()
    for number, command in enumerate(
        [
            ["from-release", str(tmp_path / "first")],
            ["from-table", str(tmp_path / "people.csv"), "--epsilon", "1"],
            ["from-table", str(tmp_path / "people.csv"), "--publish-exact"],
        ]
    ):
        file = f"prior{number}.csv"
        result = runner.invoke(cli, ["prior", *command, "--of", "x", "--by", "sex", "--out", str(tmp_path / file)])
        assert result.exit_code == 0, result.output
        prior = {"by": ["sex"], "file": file}
        assert len(ps.plan(policy(tmp_path, prior=prior))["x"].strata) == 2
    refused = runner.invoke(cli, ["prior", "from-table", str(tmp_path / "people.csv"), "--of", "x"])
    assert isinstance(refused.exception, ps.QuestionError)


def test_two_waves(tmp_path: Path) -> None:
    """A first wave of some people is the prior of the others, and a promise about learners is calibrated with it."""
    ps.anonymize(people(8_000, seed=1), policy(), tmp_path / "first")
    protect = {"semantic-diversity": {"l": 2, "d": 1}, "learner": {"success": 0.55}}
    second = policy(tmp_path, prior={"by": ["sex"], "release": "first"}, protect=protect)
    table = people(8_000, seed=2)
    release = ps.anonymize(table, second, warn=lambda _: None)
    assert ps.verify(release).holds
    findings = {finding.attack: finding for finding in ps.attack(release, table)}
    assert findings["learner"].detail["hit_rate"] < 0.58
    assert not findings["learner"].exceeded
    truth = np.array([table.filter(x=value).height for value in VALUES])
    found = ps.estimate(release, of=["x"])
    assert np.mean((found.low[0] <= truth) & (truth <= found.high[0])) >= 0.5


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"by": ["sex"], "release": "absent"}, r"\$\.attributes\.x\.prior\.release"),
        ({"by": ["sex"], "release": "../first"}, "outside the policy's folder"),
        ({"by": ["sex"], "release": "first", "file": "f.csv"}, "a file and a release"),
        ({"by": ["sex"]}, "no file"),
    ],
)
def test_problems_with_earlier_releases(tmp_path: Path, prior: dict[str, Any], message: str) -> None:
    (tmp_path / "inner").mkdir()
    ps.anonymize(people(200), policy(), tmp_path / "first")
    with pytest.raises(ps.PolicyError, match=message):
        ps.plan(policy(tmp_path / "inner", prior=prior))
