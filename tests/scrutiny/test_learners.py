"""Three people who know more and more, through `plan`: the figures of the theory, and where knowledge comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from draws import replications

import polyseme as ps
from polyseme.cli import main
from polyseme.demo.walkthrough import INCOME_CLASSES, INCOME_POLICY, income_population, income_table
from polyseme.inference.knowledge.tradeoff import advise, tradeoff
from polyseme.kernel.errors import PolicyError, QuestionError
from polyseme.results.plan import Plan, Tried
from polyseme.scrutiny.knowledge import _ranges


@pytest.fixture(scope="module")
def statistics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The law of the demo's data: income given single years of age and sex."""
    people, file = income_population(), tmp_path_factory.mktemp("statistics") / "income.csv"
    lines = ["age,sex,income,share"]
    for group, (weight, shares) in enumerate(zip(people.weights, people.shares, strict=True)):
        age, sex = 20 + group // 2, "MF"[group % 2]
        lines += [
            f"{age},{sex},{label},{float(weight * share)!r}" for label, share in zip(INCOME_CLASSES, shares.tolist())
        ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def learner(l: int, d: int, **options: Any) -> dict[str, Any]:
    policy = ps.Policy.loads(_at(l, d))
    document = json.loads(json.dumps(ps.plan(policy, 100_000, **options).to_dict()))
    return dict(document["attributes"]["income"]["learner"])


def _at(l: int, d: int) -> str:
    text = INCOME_POLICY
    found = text[text.index("{l:") : text.index("}", text.index("{l:")) + 1]
    return text.replace(found, f"{{l: {l}, d: {d}}}")


@pytest.mark.parametrize(
    ("l", "d", "success", "least"),
    [(2, 2, 0.827, 0.511), (3, 2, 0.702, 0.431), (3, 3, 0.733, 0.571), (3, 4, 0.755, 0.699)],
)
def test_the_figures_of_the_theory_come_out_of_a_plan(
    statistics: Path, l: int, d: int, success: float, least: float
) -> None:
    found = learner(l, d, distribution=statistics)
    assert found["by"] == ["age", "sex"]
    assert found["groups"] == 100
    assert found["reference"]["after"] == pytest.approx(1 / l)
    assert found["reference"]["before"] == pytest.approx(1 / 14)
    assert found["conditional"]["before"] == pytest.approx(0.224, abs=5e-4)
    assert found["conditional"]["after"] == pytest.approx(success, abs=6e-4)
    assert found["conditional"]["floor"] == pytest.approx(least, abs=6e-4)
    assert found["marginal"]["before"] == pytest.approx(0.181, abs=5e-4)
    assert found["reference"]["after"] < found["marginal"]["after"] < found["conditional"]["after"]
    assert found["conditional"]["after"] < found["conditional"]["worst_group"]


def test_who_knows_the_law_is_named_with_the_worst_group_and_its_crowd(statistics: Path) -> None:
    found = learner(3, 4, distribution=f"income={statistics}")["conditional"]
    assert found["worst_group"] == pytest.approx(0.956, abs=5e-4)
    assert found["group"] == "age = 20, sex = F"
    assert "only one of the values <1M, 1-2M, 2-3M, 3-4M, which 92.7%" in found["crowd"]
    assert found["range"]["before"] == pytest.approx(0.699, abs=5e-4)
    assert found["range"]["after"] == pytest.approx(0.755, abs=5e-4)


def test_the_table_itself_says_the_same_and_that_it_must_not_be_published() -> None:
    found = learner(3, 4, data=income_table(100_000))
    assert found["by"] == ["age", "sex"]
    assert found["source"] == "the table itself"
    assert found["conditional"]["after"] == pytest.approx(0.755, abs=0.005)
    assert any("do not publish" in warning for warning in found["warnings"])


def test_an_undeclared_uniform_prior_is_mentioned() -> None:
    found = learner(3, 2)
    assert found["marginal"] is None
    assert found["conditional"] is None
    assert any("no prior is declared" in warning for warning in found["warnings"])
    declared = INCOME_POLICY.replace("    role: sensitive\n", f"    role: sensitive\n    prior: {[1.0] * 14}\n")
    attackers = ps.plan(ps.Policy.loads(declared)).attributes[0].learner
    assert attackers is not None
    assert attackers.marginal is not None
    assert not attackers.warnings


def test_what_a_policy_declares_is_known() -> None:
    shares = income_population().margin
    declared = INCOME_POLICY.replace(
        "    role: sensitive\n", f"    role: sensitive\n    reference: {shares.tolist()}\n"
    )
    attackers = ps.plan(ps.Policy.loads(declared)).attributes[0].learner
    assert attackers is not None
    assert attackers.marginal is not None
    assert attackers.source == "the policy"
    assert attackers.marginal.after == pytest.approx(0.652, abs=5e-4)
    assert attackers.conditional is None


def test_plans_with_guessers_are_stored_without_loss(statistics: Path) -> None:
    made = ps.plan(ps.Policy.loads(INCOME_POLICY), distribution=statistics)
    again = Plan.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
    assert again == made
    assert again.attributes[0].learner == made.attributes[0].learner
    assert "knows it by group" in str(made)
    assert "knows it by group" in made._repr_html_()


POLICY = """
attributes:
  sex: {role: quasi-identifier}
  level: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
  pregnant: {role: sensitive, domain: ["yes", "no", unknown, never], protect: {diversity: {l: 2}}}
impossible:
  - {when: {sex: m}, attribute: pregnant, values: ["yes", unknown]}
"""


def plan_with(text: str, tmp_path: Path, name: str = "") -> ps.Plan:
    file = tmp_path / "public.csv"
    file.write_text(text, encoding="utf-8")
    return ps.plan(ps.Policy.loads(POLICY), distribution=f"{name}{file}")


def test_strata_are_guessed_at_with_their_own_mechanisms(tmp_path: Path) -> None:
    made = plan_with("sex,pregnant,n\nf,yes,1\nf,no,7\nf,unknown,1\nf,never,1\nm,no,5\nm,never,5\n", tmp_path)
    found = made["pregnant"].learner
    assert found is not None
    assert found.conditional is not None
    # Two values are left for men: each set holds both, so a set says nothing and a guess is right in half the cases.
    assert found.conditional.before == pytest.approx(0.5 * 0.7 + 0.5 * 0.5)
    assert found.groups == 2
    level = made["level"].learner
    assert level is not None
    assert level.marginal is None


def test_a_distribution_that_does_not_decide_the_stratum_says_nothing(tmp_path: Path) -> None:
    found = plan_with("pregnant,n\nyes,1\nno,7\n", tmp_path)["pregnant"].learner
    assert found is not None
    assert found.marginal is None
    assert any("sex" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("text", "name", "what"),
    [
        ("a,1\nb,2\n", "", "for which attribute"),
        ("a,1\nz,2\n", "level=", "not in the domain"),
        ("a,1\na,2\n", "level=", "repeat"),
        ("a,0\n", "level=", "all numbers are 0"),
        ("age,level,n\n1,a,2\n", "", "'age' is no column"),
        ("level,n\na,many\n", "", "line 2"),
        ("", "level=", "no distribution"),
        ("sex,n\nf,1\n", "sex=", "'sex' is not protected"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=what):
        plan_with(text, tmp_path, name)


def test_the_command_reads_statistics(tmp_path: Path, statistics: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(INCOME_POLICY, encoding="utf-8")
    with pytest.raises(SystemExit) as leaving:
        main(["plan", str(tmp_path / "policy.yaml"), "--distribution", str(statistics), "--json"])
    assert not leaving.value.code
    found = json.loads(capsys.readouterr().out)["attributes"]["income"]["learner"]
    assert set(found) >= {"reference", "marginal", "conditional"}
    assert all({"before", "after", "worst_group", "floor"} <= set(found[who]) for who in ("reference", "conditional"))


def test_few_people_are_groups_too() -> None:
    """An attacker needs no 100 records in a group: he is reported for any table."""
    attackers = ps.plan(ps.Policy.loads(INCOME_POLICY), data=income_table(150)).attributes[0].learner
    assert attackers is not None
    assert attackers.marginal is not None
    assert attackers.conditional is not None
    assert attackers.marginal.after <= attackers.conditional.after <= attackers.conditional.high


def test_a_range_is_guessed_at_least_as_often_as_a_value() -> None:
    """Values are judged leave-one-out, ranges by the groups' shares, which came out lower: 90.7% beside 91.0%."""
    rng = np.random.default_rng(1)
    group, other = rng.integers(0, 8, 3_000), rng.integers(0, 8, 3_000)
    value = np.where(rng.random(3_000) < 0.85, group, other)
    table = pl.DataFrame({"group": group.astype(str), "sex": rng.choice(["m", "f"], 3_000), "x": value.astype(str)})
    policy = ps.Policy.loads(
        "attributes: {group: {role: quasi-identifier}, sex: {role: quasi-identifier}, x: {role: sensitive, "
        "domain: ['0', '1', '2', '3', '4', '5', '6', '7'], distance: {line: rank}, "
        "protect: {semantic-diversity: {l: 2, d: 2}}}}"
    )
    guessers = ps.plan(policy, data=table).to_dict()["attributes"]["x"]["learner"]
    for name in ("marginal", "conditional"):
        for key in ("before", "after", "worst_group"):
            assert guessers[name]["range"][key] >= guessers[name][key], (name, key)


def test_columns_that_tell_nothing_add_nothing() -> None:
    """Groups of ten by chance: to count each record for itself would seem right in 68%."""
    random = np.random.default_rng(5)
    table = pl.DataFrame(
        {"zip": random.permutation(np.arange(4_000) % 400).astype(str), "level": random.choice(list("abcd"), 4_000)}
    )
    policy = "attributes: {zip: {role: quasi-identifier}, level: {role: sensitive, protect: {diversity: {l: 2}}}}"
    attackers = ps.plan(ps.Policy.loads(policy), data=table).attributes[0].learner
    assert attackers is not None
    assert attackers.by == ("zip",)
    assert attackers.marginal.after == pytest.approx(0.5, abs=0.02)
    assert attackers.conditional.after == pytest.approx(attackers.marginal.after, abs=0.005)
    assert attackers.conditional.high == pytest.approx(0.68, abs=0.02)


@pytest.fixture(scope="module")
def release() -> ps.Release:
    return ps.anonymize(income_table(20_000), ps.Policy.loads(_at(3, 4)), seed=2, warn=lambda text: None)


def test_a_release_teaches_its_readers_and_verify_says_so(release: ps.Release) -> None:
    found = ps.verify(release)
    assert found.holds
    attackers = found.learners["income"]
    assert attackers.conditional is not None
    # The law says 0.7545; the standard deviation over seeds is 0.02, and limits hold it for 38 of the first 40.
    assert attackers.conditional.after == pytest.approx(0.7545, abs=0.045)
    assert attackers.conditional.low is not None
    assert attackers.conditional.high is not None
    assert attackers.conditional.low < 0.7545 < attackers.conditional.high
    assert 0.05 < attackers.conditional.high - attackers.conditional.low < 0.14
    assert attackers.by == ("age", "sex")
    assert attackers.above
    assert "estimated from 20,000 records" in attackers.source
    assert f"between {attackers.conditional.low:.1%} and {attackers.conditional.high:.1%}" in attackers.sentence()
    text = " ".join(str(found).split())
    assert f"({attackers.conditional.low:.1%} to {attackers.conditional.high:.1%})" in text
    text = str(found)
    # The all-clear is never said alone.
    (closing,) = [part for part in text.split("\n\n") if "Every model holds." in part]
    assert "33.3%" in closing.split("Every model holds.")[1]
    again = type(found).from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again == found
    assert again.learners == found.learners


@pytest.mark.parametrize(("l", "d", "law"), [(2, 2, 0.8269), (3, 2, 0.7021), (3, 3, 0.7332)])
def test_what_a_release_teaches_is_what_the_law_says(l: int, d: int, law: float) -> None:
    made = ps.anonymize(income_table(20_000, seed=3), ps.Policy.loads(_at(l, d)), seed=3, warn=lambda text: None)
    attackers = ps.verify(made).learners["income"].conditional
    assert attackers is not None
    assert attackers.after == pytest.approx(law, abs=0.02)
    assert attackers.low is not None
    assert attackers.high is not None
    assert attackers.low < law < attackers.high
    assert attackers.high - attackers.low < 0.06


def test_a_promise_that_is_kept_is_not_called_exceeded_by_chance() -> None:
    """All values alike: a learner is right in exactly half of all cases, and an estimate of that is above or below."""
    random = np.random.default_rng(8)
    policy = "attributes: {sex: {role: quasi-identifier}, level: {role: sensitive, protect: {diversity: {l: 2}}}}"
    after = []
    for seed in replications(8):
        table = pl.DataFrame({"sex": random.choice(["f", "m"], 2_000), "level": random.choice(list("abcdef"), 2_000)})
        attackers = ps.verify(ps.anonymize(table, ps.Policy.loads(policy), seed=seed, warn=lambda text: None)).learners[
            "level"
        ]
        assert not attackers.above
        assert attackers.learned is not None
        after.append(attackers.learned.after)
    assert max(after) > 0.5


def test_numbers_are_also_looked_at_in_ranges() -> None:
    texts = pl.Series("age", [str(number) for number in range(40)] + [None])
    found = _ranges(texts)
    assert found is not None
    assert found.null_count() == 1
    assert found[0] == "0 to 3"
    assert found[39] == "36 to 39"
    assert found.drop_nulls().value_counts()["count"].to_list() == [4] * 10
    assert _ranges(pl.Series("age", ["1", "2", "x"] * 20)) is None
    assert _ranges(pl.Series("few", ["1", "2", "3"] * 20)) is None


def test_a_report_is_no_all_clear_while_learners_know_more(release: ps.Release) -> None:
    page = ps.report(release)
    assert "Every check holds." not in page
    assert "Every check holds, but a risk remains." in page
    assert "knows it given age and sex" in page
    attackers = ps.verify(release).learners["income"].conditional
    assert attackers is not None
    assert f"<small>{attackers.low:.1%} to {attackers.high:.1%}</small>" in page


def test_the_long_form_is_still_verified() -> None:
    long = ps.anonymize(income_table(300), ps.Policy.loads(_at(2, 2)), form="long", warn=lambda text: None)
    assert ps.verify(long).learners == {}


def test_who_reads_the_estimates_is_an_adversary(release: ps.Release) -> None:
    table = income_table(20_000)
    found = {finding.attack: finding for finding in ps.attack(release, table)}
    learned = found["published-estimate"]
    assert learned.bound is None
    assert learned.detail["marginal"] == pytest.approx(0.69, abs=0.02)
    assert learned.success > learned.detail["marginal"]
    assert learned.success >= found["definetti"].success - 0.01


@pytest.fixture(scope="module")
def tried(statistics: Path) -> list[Tried]:
    return tradeoff(ps.plan(ps.Policy.loads(_at(2, 2)), 100_000, distribution=statistics))["income"]


@pytest.mark.parametrize(
    ("l", "alpha", "p", "success", "error"),
    [
        (2, 0.0, 1.0, 0.827, 6.8e-4),
        (2, 0.45, 1.0, 0.651, 9.1e-4),
        (2, 0.75, 0.8, 0.494, 15.9e-4),
        (2, 0.0, 0.5, 0.485, 22.2e-4),
        (3, 0.3, 1.0, 0.537, 15.7e-4),
    ],
)
def test_the_frontier_of_the_theory_comes_out_of_a_plan(
    tried: list[Tried], l: int, alpha: float, p: float, success: float, error: float
) -> None:
    """Strata of ten years by sex, against a learner who knows the year."""
    (one,) = [each for each in tried if (each.l, each.d, each.alpha, each.p) == (l, 2, alpha, p)]
    assert one.success == pytest.approx(success, abs=2e-3)
    assert one.error == pytest.approx(error, rel=0.03)


def test_the_policy_is_marked_and_beaten_settings_are_known(tried: list[Tried]) -> None:
    (chosen,) = [one for one in tried if one.chosen]
    assert (chosen.l, chosen.d, chosen.alpha, chosen.p) == (2, 2, 0, 1)
    assert not chosen.dominated
    lying = next(one for one in tried if (one.l, one.d, one.alpha, one.p) == (2, 2, 0, 0.5))
    assert lying.dominated
    # A smaller distance does not beat a larger one: it protects from less.
    assert not any(one.dominated for one in tried if (one.l, one.d) == (2, 3))


def test_advice_is_lines_to_paste(statistics: Path) -> None:
    (advice,) = advise(ps.plan(ps.Policy.loads(_at(3, 2)), 100_000, distribution=statistics), 0.5)
    assert advice.policy[1] == "protect: {semantic-diversity: {l: 2, d: 2}, learner: {success: 0.5}}"
    assert advice.worst <= 0.5 + 1e-9
    assert advice.error == pytest.approx(14.7e-4, rel=0.05)


def test_advice_says_what_it_needs() -> None:
    with pytest.raises(QuestionError, match="distribution"):
        advise(ps.plan(ps.Policy.loads(INCOME_POLICY), 1_000), 0.5)
    with pytest.raises(QuestionError, match="number of records"):
        advise(ps.plan(ps.Policy.loads(INCOME_POLICY)), 0.5)


@pytest.mark.slow
def test_the_command_draws_and_advises(tmp_path: Path, statistics: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(_at(2, 2), encoding="utf-8")
    options = ["--distribution", statistics, "--records", 9_000, "--advise", "--chart", tmp_path / "f.svg"]
    with pytest.raises(SystemExit) as leaving:
        main(["plan", str(tmp_path / "policy.yaml"), *map(str, options)])
    assert not leaving.value.code
    assert "Advice for income" in capsys.readouterr().out
    assert "beaten by another" in (tmp_path / "f.svg").read_text(encoding="utf-8")
