"""Tables that are put into classes or groups before they are published, through the public interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import polyseme as ps
from polyseme.cli import cli
from polyseme.release import AsIs, Generalized, Grouped, Sets

QUIET: dict[str, Any] = {"warn": lambda text: None}
TREE = "{tree: {any: {lung: [flu, cold, asthma], skin: [rash, burn], heart: [attack, failure]}}}"
ILLNESSES = ("flu", "cold", "asthma", "rash", "burn", "attack", "failure")


def patients(count: int = 300, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"QQMARKQQ{number}" for number in range(count)],
            "age": random.integers(18, 90, count),
            "zip": [f"{code:05d}" for code in random.integers(10_000, 10_400, count)],
            "ill": random.choice(ILLNESSES, count),
            "weight": random.integers(50, 99, count),
        }
    )


def policy(method: str, ill: str = "role: sensitive", models: str = "[]", more: str = "") -> ps.Policy:
    return ps.Policy.loads(f"""
attributes:
  name: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: [5, 10, 20, 40]}}}}
  zip: {{role: quasi-identifier, hierarchy: {{prefix: 5}}}}
  ill: {{{ill}}}
  weight: {{role: insensitive}}
models: {models}
method: {method}
{more}
""")


def rows(release: ps.Release) -> pl.DataFrame:
    batches = release.batches(release.manifest.names)
    return pl.concat([pl.DataFrame(pl.from_arrow(batch)) for batch in batches])


# -- Anatomy and buckets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_anatomy_goes_the_whole_way(tmp_path: Path, file_format: str) -> None:
    table = patients()
    ps.anonymize(table, policy("{anatomy: {l: 3}}"), tmp_path / "r", file_format=file_format, **QUIET)
    release = ps.Release.open(tmp_path / "r")
    assert [type(column) for column in release.manifest.columns] == [AsIs, AsIs, Grouped, AsIs, AsIs]
    assert ps.verify(release).holds
    published = rows(release)
    assert published.columns == ["age", "zip", "ill", "weight", "group"]
    assert published["ill"].list.len().min() >= 3
    assert (published["ill"].list.n_unique() == published["ill"].list.len()).all()
    # Every record shows its own value among those of its group, and nothing is lost or added.
    groups = published.unique("group").explode("ill")
    assert groups["ill"].value_counts(sort=True).sort("ill").equals(table["ill"].value_counts().sort("ill"))
    assert "QQMARKQQ" not in published.write_json()


def test_a_record_is_in_the_group_that_shows_its_value() -> None:
    table = patients(60).with_columns(age=pl.int_range(60))
    published = rows(ps.anonymize(table, policy("{anatomy: {l: 3}}"), **QUIET))
    there = published.with_columns(pl.col("age").cast(pl.Int64)).join(table, on="age", suffix=" true")
    assert there.height == published.height
    assert there.select(pl.col("ill").list.contains(pl.col("ill true")).all()).item()


def test_groups_of_two_runs_differ_and_seeded_ones_do_not() -> None:
    made = policy("{anatomy: {l: 3}}")
    one, two, three, four = (rows(ps.anonymize(patients(), made, seed=seed, **QUIET)) for seed in (1, 1, 2, None))
    assert one.equals(two)
    assert not one.equals(three)
    assert not one.equals(four)


@pytest.mark.parametrize("limit", ["e: 1", "d: 2"])
def test_values_of_a_bucket_are_far_apart(limit: str) -> None:
    made = policy(f"{{buckets: {{l: 3, {limit}}}}}", f"role: sensitive, distance: {TREE}")
    release = ps.anonymize(patients(), made, **QUIET)
    found = ps.verify(release)
    assert found.holds
    assert {verdict.model for verdict in found.verdicts} >= {
        "groups",
        "le-diversity" if "e" in limit else "semantic-diversity",
    }
    branch = {name: place for place, part in enumerate((ILLNESSES[:3], ILLNESSES[3:5], ILLNESSES[5:])) for name in part}
    assert all(len({branch[name] for name in values}) == len(values) for values in rows(release)["ill"].to_list())


def test_a_record_that_was_moved_to_another_group_is_noticed(tmp_path: Path) -> None:
    release = ps.anonymize(patients(), policy("{anatomy: {l: 3}}"), **QUIET)
    table = rows(release)
    moved = table.with_columns(group=pl.when(pl.int_range(pl.len()) == 0).then(table["group"][1]).otherwise("group"))
    forged = ps.Release(release.manifest, None, moved.to_arrow())
    broken = [verdict.model for verdict in ps.verify(forged).verdicts if not verdict.holds]
    assert broken == ["groups"]


def test_a_group_column_gets_a_name_that_is_free() -> None:
    table = patients().rename({"weight": "group"})
    text = policy("{anatomy: {l: 3}}")
    made = ps.Policy(
        tuple(item if item.name != "weight" else type(item)("group", item.role) for item in text.attributes),
        grouping=text.grouping,
    )
    assert ps.anonymize(table, made, **QUIET).manifest.names == ("age", "zip", "ill", "group", "ill group")


def test_too_few_different_values_are_refused(tmp_path: Path) -> None:
    table = patients().with_columns(ill=pl.lit("flu"))
    with pytest.raises(ps.ImpossibleError) as error:
        ps.anonymize(table, policy("{anatomy: {l: 3}}"), tmp_path / "r", **QUIET)
    assert "flu" not in str(error.value)
    assert not (tmp_path / "r").exists()


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "ill", "models", "message"),
    [
        ("{anatomy: {l: 3, attribute: age}}", "role: sensitive", "[]", "no sensitive attribute without decoys"),
        ("{buckets: {l: 3, e: 1}}", "role: sensitive", "[]", "the values have no distance"),
        ("{buckets: {l: 3}}", f"role: sensitive, distance: {TREE}", "[]", "expected one of e and d"),
        ("{anatomy: {l: 3}}", "role: sensitive", "[{k-anonymity: {k: 5}}]", "cannot reach k-anonymity"),
    ],
)
def test_policies_that_make_no_sense_are_refused(method: str, ill: str, models: str, message: str) -> None:
    with pytest.raises((ps.PolicyError, ps.ImpossibleError), match=message):
        ps.anonymize(patients(), policy(method, ill, models), **QUIET)


def test_a_table_without_records_is_refused() -> None:
    with pytest.raises(ps.TableError, match="no records to publish"):
        ps.anonymize(patients().head(0), policy("{anatomy: {l: 3}}"), **QUIET)


def test_missing_sensitive_values_are_refused_or_dropped_or_a_category() -> None:
    table = patients().with_columns(ill=pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise("ill"))
    with pytest.raises(ps.TableError, match="30 records have no value of 'ill'"):
        ps.anonymize(table, policy("{anatomy: {l: 3}}"), **QUIET)
    dropped = ps.anonymize(table, policy("{anatomy: {l: 3}}", "role: sensitive, missing: drop"), **QUIET).manifest
    assert (dropped.records, dropped.dropped) == (270, 30)
    kept = ps.anonymize(table, policy("{anatomy: {l: 3}}", "role: sensitive, missing: {category: none}"), **QUIET)
    assert kept.manifest.records == 300
    assert rows(kept).unique("group").explode("ill").filter(ill="none").height == 30
    assert ps.verify(kept).holds


def test_the_command_says_what_was_done(tmp_path: Path) -> None:
    patients().write_csv(tmp_path / "t.csv")
    (tmp_path / "p.yaml").write_text(
        "attributes: {name: {role: identifier}, age: {role: quasi-identifier}, zip: {role: quasi-identifier},\n"
        "  ill: {role: sensitive}, weight: {role: insensitive}}\nmethod: {anatomy: {l: 3}}\n"
    )
    runner = CliRunner()
    command = [str(tmp_path / name) for name in ("p.yaml", "t.csv")]
    said = runner.invoke(cli, ["anonymize", *command, "--out", str(tmp_path / "r"), "--json"])
    assert said.exit_code == 0
    document = json.loads(said.stdout)
    assert document["method"]["name"] == "anatomy"
    assert document["suppressed"] == 0
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["method"] == document["method"]
    said = runner.invoke(cli, ["plan", command[0], "--data", command[1], "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout)["method"]["classes"] == document["method"]["classes"]


# -- generalization ------------------------------------------------------------------------------------------------

DECOYS = f"role: sensitive, distance: {TREE}, protect: {{semantic-diversity: {{l: 2, d: 2}}}}"
TWO_MODELS = "[{k-anonymity: {k: 5}}, {distinct-diversity: {l: 3, attribute: ill}}]"
GENERALIZING = ["{full-domain: {suppression: 0.1}}", "{mondrian: {}}", "{mondrian: {mode: relaxed}}"]


@pytest.mark.parametrize("method", GENERALIZING)
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_quasi_identifiers_are_generalized_until_the_models_hold(tmp_path: Path, method: str, file_format: str) -> None:
    ps.anonymize(patients(), policy(method, models=TWO_MODELS), tmp_path / "r", file_format=file_format, **QUIET)
    release = ps.Release.open(tmp_path / "r")
    assert [type(column) for column in release.manifest.columns] == [Generalized, Generalized, AsIs, AsIs]
    found = ps.verify(release)
    assert found.holds
    assert {verdict.model for verdict in found.verdicts} == {"k-anonymity", "distinct-diversity", "record-count"}
    # The same by hand, with suppressed rows one more class.
    classes = rows(release).group_by("age", "zip").agg(pl.len(), pl.col("ill").n_unique().alias("kinds"))
    assert classes["len"].min() >= 5
    assert classes["kinds"].min() >= 3
    assert rows(release).height + (300 - release.manifest.records) == 300


@pytest.mark.parametrize("method", ["{decoys: {}, full-domain: {suppression: 0.1}}", "{mondrian: {}}"])
def test_generalized_columns_and_decoys_are_one_release(tmp_path: Path, method: str) -> None:
    made = policy(method, DECOYS, "[{k-anonymity: {k: 5}}]")
    ps.anonymize(patients(), made, tmp_path / "r", **QUIET)
    release = ps.Release.open(tmp_path / "r")
    assert [type(column) for column in release.manifest.columns] == [Generalized, Generalized, Sets, AsIs]
    assert ps.verify(release).holds
    assert rows(release).group_by("age", "zip").len()["len"].min() >= 5
    table = ps.estimate(release, of=["ill"], by=["age"])
    assert set(table.by["age"]) == set(rows(release)["age"])
    assert table.values.sum() == pytest.approx(release.manifest.records)
    assert "ill" in ps.report(release)
    assert {finding.attack for finding in ps.attack(release)} >= {"linkage-prosecutor", "homogeneity"}


def test_conditions_are_about_generalized_values() -> None:
    text = """
attributes:
  sex: {role: quasi-identifier, hierarchy: {tree: {any: {known: [f, m]}}}}
  ill: {role: sensitive, domain: [a, b, c, d], protect: {diversity: {l: 2}}}
models: [{k-anonymity: {k: 5}}]
method: full-domain
impossible: [{when: {sex: %s}, attribute: ill, values: [d]}]
"""
    table = pl.DataFrame({"sex": ["f"] * 38 + ["m"] * 2, "ill": list("abca") * 10})
    release = ps.anonymize(table, ps.Policy.loads(text % "known"), **QUIET)
    assert ps.verify(release).holds
    assert "d" not in rows(release)["ill"].explode().to_list()
    with pytest.raises(ps.InvalidInput, match=r"impossible\[0\]"):
        ps.anonymize(table, ps.Policy.loads(text % "m"), **QUIET)


def test_a_goal_that_cannot_be_reached_is_refused_and_nothing_written(tmp_path: Path) -> None:
    made = policy("full-domain", models="[{k-anonymity: {k: 301}}, {distinct-diversity: {l: 3}}]")
    with pytest.raises(ps.ImpossibleError, match="k-anonymity"):
        ps.anonymize(patients(), made, tmp_path / "r", **QUIET)
    assert not (tmp_path / "r").exists()
    planned = ps.plan(made, data=patients())
    assert not planned.usable
    assert planned.to_dict()["method"]["feasible"] is False


def test_a_method_without_a_goal_is_refused() -> None:
    with pytest.raises(ps.PolicyError, match=r"\$\.models: full-domain forms classes"):
        ps.anonymize(patients(), policy("full-domain", DECOYS), **QUIET)


def test_a_sensitive_attribute_that_no_model_is_about_is_refused() -> None:
    with pytest.raises(ps.InvalidInput, match="no model limits what a class tells about it"):
        ps.anonymize(patients(), policy("full-domain", models="[{k-anonymity: {k: 5}}]"), **QUIET)


def test_few_suppressed_records_are_left_out_and_many_are_shown_as_stars() -> None:
    crowd = pl.DataFrame({"age": [30] * 50, "zip": ["10000"] * 50})
    for odd, shown in ((3, False), (9, True)):
        alone = pl.DataFrame({"age": range(40, 40 + odd), "zip": [f"{20_000 + n}" for n in range(odd)]})
        table = pl.concat([crowd, alone.cast({"age": pl.Int64})]).with_columns(
            name=pl.lit(""), ill=pl.lit("flu"), weight=pl.lit(1)
        )
        made = policy("{full-domain: {suppression: 0.2}}", DECOYS, "[{k-anonymity: {k: 5}}]")
        release = ps.anonymize(table.select(patients().columns), made, **QUIET)
        applied = release.manifest.applied
        assert applied is not None
        assert (applied.suppressed, applied.withheld) == (odd, not shown)
        assert rows(release).filter(age="*").height == (odd if shown else 0)
        assert ps.verify(release).holds


def test_levels_of_an_earlier_release_are_used_again(tmp_path: Path) -> None:
    made = policy("{full-domain: {suppression: 0.1}}", models=TWO_MODELS)
    first = ps.anonymize(patients(), made, tmp_path / "r", **QUIET)
    again = ps.anonymize(patients(400, seed=2), made, apply=tmp_path / "r", **QUIET)
    assert again.manifest.applied is not None
    assert first.manifest.applied is not None
    assert again.manifest.applied.levels == first.manifest.applied.levels
    assert ps.verify(again).holds
    with pytest.raises(ps.ImpossibleError, match=r"of 20 records would break what is promised"):
        ps.anonymize(patients(20, seed=3), made, apply=first, **QUIET)
    with pytest.raises(ps.QuestionError, match="only levels of generalization can be taken over"):
        ps.anonymize(patients(), policy("{anatomy: {l: 3}}"), apply=first, **QUIET)


def test_no_value_of_the_table_is_in_what_is_said(tmp_path: Path) -> None:
    table = patients().with_columns(zip=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("QQMARKQQ")).otherwise("zip"))
    made = ps.Policy.loads("""
attributes:
  name: {role: identifier}
  age: {role: quasi-identifier, hierarchy: {intervals: [5]}}
  zip: {role: quasi-identifier, hierarchy: {intervals: [10]}}
  ill: {role: sensitive}
  weight: {role: insensitive}
models: [{distinct-diversity: {l: 3}}]
method: full-domain
""")
    with pytest.raises(ps.TableError, match=r"zip\.hierarchy: 1 of .* values") as error:
        ps.anonymize(table, made, **QUIET)
    assert "QQMARKQQ" not in str(error.value)


@pytest.mark.parametrize("method", ["full-domain", "{mondrian: {}}", "{anatomy: {l: 2}}"])
@pytest.mark.parametrize("kind", ["one row", "all equal", "all different"])
def test_odd_tables(method: str, kind: str) -> None:
    count = 1 if kind == "one row" else 40
    table = patients(count).with_columns(ill=pl.Series([ILLNESSES[place % 7] for place in range(count)]))
    if kind == "all equal":
        table = table.with_columns(age=pl.lit(30), zip=pl.lit("10000"))
    if kind == "all different":
        table = table.with_columns(
            age=pl.int_range(pl.len()), zip=pl.int_range(10_000, 10_000 + pl.len()).cast(pl.String)
        )
    models = "[]" if "anatomy" in method else "[{k-anonymity: {k: 5}}, {distinct-diversity: {l: 2}}]"
    made = policy(method, models=models)
    if kind == "one row":
        with pytest.raises(ps.ImpossibleError):
            ps.anonymize(table, made, **QUIET)
    else:
        assert ps.verify(ps.anonymize(table, made, **QUIET)).holds


def test_a_prior_by_a_generalized_column_lists_what_is_published(tmp_path: Path) -> None:
    shares = [
        (age, name, 1 + place) for age in ("[0, 40)", "[40, 80)", "[80, 120)") for place, name in enumerate(ILLNESSES)
    ]
    pl.DataFrame(shares, schema=["age", "ill", "people"], orient="row").write_csv(tmp_path / "ill.csv")
    text = f"""
attributes:
  name: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: [40]}}}}
  zip: {{role: %s}}
  ill:
    role: sensitive
    distance: {TREE}
    prior: {{by: [age], file: ill.csv}}
    protect: {{semantic-diversity: {{l: 2, d: 2}}}}
  weight: {{role: insensitive}}
models: [{{k-anonymity: {{k: 20}}}}]
method: full-domain
"""
    release = ps.anonymize(patients(), ps.Policy.loads(text % "insensitive", tmp_path), **QUIET)
    assert set(rows(release)["age"]) == {"[0, 40)", "[40, 80)", "[80, 120)"}
    assert len(release.manifest.sets[0].strata.members) == 4
    assert ps.verify(release).holds
    # At level 0 no record has a value that the prior lists: that must not pass in silence.
    fine = (text % "insensitive").replace("k: 20", "k: 1")
    with pytest.raises(ps.PolicyError, match=r"ill\.prior: no record has a value of 'age' that the prior lists"):
        ps.anonymize(patients(), ps.Policy.loads(fine, tmp_path), **QUIET)


def test_a_report_on_groups_is_no_all_clear_while_all_groups_together_tell_more() -> None:
    random = np.random.default_rng(2)
    ages = random.integers(18, 90, 3_000)
    related = patients(3_000).with_columns(age=ages, ill=pl.Series([ILLNESSES[age * 7 // 90] for age in ages]))
    made = policy("{anatomy: {l: 3}}")
    assert "Every check holds." not in (page := ps.report(ps.anonymize(related, made, **QUIET)))
    assert "an attacker who learns from all groups" in page
    # Where values have nothing to do with the other columns there is nothing to learn.
    assert "Every check holds." in ps.report(ps.anonymize(patients(3_000), made, **QUIET))
