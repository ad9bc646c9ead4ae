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
from polyseme.release import AsIs, Grouped

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


@pytest.mark.parametrize("asked", ["e: 1", "d: 2"])
def test_values_of_a_bucket_are_far_apart(asked: str) -> None:
    made = policy(f"{{buckets: {{l: 3, {asked}}}}}", f"role: sensitive, distance: {TREE}")
    release = ps.anonymize(patients(), made, **QUIET)
    found = ps.verify(release)
    assert found.holds
    assert {verdict.model for verdict in found.verdicts} >= {
        "groups",
        "le-diversity" if "e" in asked else "semantic-diversity",
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
    asked = [str(tmp_path / name) for name in ("p.yaml", "t.csv")]
    said = runner.invoke(cli, ["anonymize", *asked, "--out", str(tmp_path / "r"), "--json"])
    assert said.exit_code == 0
    document = json.loads(said.stdout)
    assert document["method"]["name"] == "anatomy"
    assert document["suppressed"] == 0
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["method"] == document["method"]
    said = runner.invoke(cli, ["plan", asked[0], "--data", asked[1], "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout)["method"]["classes"] == document["method"]["classes"]
