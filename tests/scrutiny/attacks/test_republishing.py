"""What is said when sets of the same person differ between releases."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polyseme as ps
from polyseme.cli import main
from polyseme.kernel.randomness import new_key
from polyseme.scrutiny.attacks.republication import changed_since, changing_strata

POLICY = """
attributes:
  id: {role: identifier}
  sex: {role: quasi-identifier}
  age: {role: quasi-identifier}
  ill:
    role: sensitive
    domain: [a, b, c, d, e, f, g, h, i, j]
    distance: {line: rank}
    protect: {semantic-diversity: {l: 3, d: 1}}
record-key: id
"""
CHILDREN = """
impossible:
  - {when: {age: child}, attribute: ill, values: [i, j], may-be-empty: true}
"""
IMPOSSIBLE = CHILDREN + "  - {when: {sex: m}, attribute: ill, values: [a], may-be-empty: true}\n"


def people(rows: int = 400, age: str = "adult") -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {"id": range(rows), "sex": ["f"] * rows, "age": [age] * rows, "ill": rng.choice(list("abcdefgh"), rows)}
    )


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "key")
    return tmp_path / "key"


def published(key: Path | None, text: str = POLICY, **options: object) -> ps.Release:
    return ps.anonymize(people(), ps.Policy.loads(text), key_file=key, warn=lambda said: None, **options)


def said(release: ps.Release, earlier: ps.Release) -> list[str]:
    return changed_since(release.manifest.columns, release.manifest.sticky, earlier.manifest)


def test_strata_that_change_the_sets_are_pointed_out(key: Path) -> None:
    attributes = published(key, POLICY + IMPOSSIBLE).manifest.columns
    (warning,) = changing_strata(attributes)
    assert warning.startswith("ill: decoys depend on age or sex")
    shown = [int(part.split("%")[0].split()[-1].strip("(")) for part in warning.split("right in")[1].split("% ")[:2]]
    assert shown[1] == 33
    assert 40 <= shown[0] <= 52
    assert not changing_strata(published(key).manifest.columns)


def test_the_share_that_is_told_is_what_two_waves_show(key: Path) -> None:
    rules = ps.Policy.loads(POLICY + CHILDREN)
    waves = []
    for age in ("adult", "child"):
        table = people(4_000, age).with_columns(sex=pl.col("id").cast(pl.String).str.zfill(4))
        release = ps.anonymize(table, rules, key_file=key, warn=lambda text: None)
        waves.append(pl.DataFrame(pl.from_arrow(release.table)).sort("sex")["ill"].to_list())
    shared = [set(one) & set(two) for one, two in zip(*waves)]
    assert all(truth in both for truth, both in zip(people(4_000)["ill"], shared))
    (warning,) = changing_strata(published(key, POLICY + CHILDREN).manifest.columns)
    reported = float(warning.split("up to ")[1].split("%")[0]) / 100
    assert np.mean([1 / len(both) for both in shared]) == pytest.approx(reported, abs=0.02)
    # No less can be known: one set, and which values are impossible.
    floor = np.mean([1 / sum(value not in "ij" for value in one) for one in waves[0]])
    assert floor == pytest.approx(reported, abs=0.02)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("l: 3", "l: 2", "l 3 -> 2"),
        ("d: 1", "d: 2", "d 1 -> 2"),
        (", i, j]\n", ", i, j, k]\n", "1 more and 0 fewer values"),
        ("[a, b, c", "[b, a, c", "another order of the values"),
        ("d: 1}", "d: 1, mechanism: simple}", "mechanism balanced -> simple"),
        ("    protect", "    prior: [1, 1, 1, 1, 1, 1, 1, 1, 2, 2]\n    protect", "other prior"),
        ("record-key: id", "record-key: id" + IMPOSSIBLE, "other impossible combinations"),
        ("{semantic-diversity: {l: 3, d: 1}}", "{semantic-diversity: {l: 3, d: 1}, ldp: {epsilon: 2}}", "p 1 -> "),
    ],
)
def test_a_policy_that_changed_is_told_attribute_by_attribute(key: Path, old: str, new: str, what: str) -> None:
    earlier = published(key)
    assert old in POLICY
    later = published(key, POLICY.replace(old, new))
    (warning,) = said(later, earlier)
    assert what in warning
    assert "right in about " in warning
    assert said(published(key), earlier) == []
    assert said(later, later) == []


def test_the_success_of_intersecting_is_that_of_the_two_policies(key: Path) -> None:
    """Measured on the two releases themselves."""
    table = people(3_000).with_columns(sex=pl.col("id").cast(pl.String))
    rules = [ps.Policy.loads(text) for text in (POLICY, POLICY.replace("d: 1", "d: 2"))]
    first, second = (ps.anonymize(table, rule, key_file=key, warn=lambda text: None) for rule in rules)
    frames = [pl.DataFrame(pl.from_arrow(release.table)).sort("sex")["ill"].to_list() for release in (first, second)]
    real = np.mean([1 / len(set(one) & set(two)) for one, two in zip(*frames)])
    (warning,) = said(second, first)
    reported = float(warning.split("right in about ")[1].split("%")[0]) / 100
    assert reported == pytest.approx(real, abs=0.03)
    assert 0.6 < real < 0.85


def test_fresh_decoys_beside_sticky_ones_are_pointed_out(key: Path) -> None:
    fresh, sticky = published(None), published(key)
    assert "this release has no sticky decoys" in said(fresh, sticky)[0]
    assert "the earlier release has no sticky decoys" in said(sticky, fresh)[0]
    assert "right in about" in said(fresh, fresh)[0]


def test_an_attribute_that_one_release_shows_openly_is_pointed_out(key: Path) -> None:
    more = "  job: {role: sensitive-qid, domain: [f, g, h], protect: {diversity: {l: 2}}}\nrecord-key"
    table = people().with_columns(job=pl.lit("f"))
    closed = ps.anonymize(
        table, ps.Policy.loads(POLICY.replace("record-key", more)), key_file=key, warn=lambda text: None
    )
    text = POLICY.replace("record-key", "  job: {role: insensitive}\nrecord-key")
    shown = ps.anonymize(table, ps.Policy.loads(text), key_file=key, warn=lambda text: None)
    assert [warning for warning in said(shown, closed) if warning.startswith("job: published as it is now")]
    assert [warning for warning in said(closed, shown) if "as it is in the earlier release" in warning]


def test_an_older_program_drew_otherwise_in_strata(key: Path) -> None:
    release = published(key, POLICY + IMPOSSIBLE)
    older = replace(release, manifest=replace(release.manifest, uncounted=True))
    assert "an older program" in said(release, older)[0]
    assert "%" not in said(release, older)[0], "what another program drew is not measured"
    plain = published(key)
    assert said(plain, replace(plain, manifest=replace(plain.manifest, uncounted=True))) == []


def run(*arguments: object) -> tuple[int, str]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown), pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0), shown.getvalue()


def test_the_commands(tmp_path: Path, key: Path) -> None:
    policy, sex, data = tmp_path / "p.yaml", tmp_path / "sex.yaml", tmp_path / "people.csv"
    policy.write_text(POLICY)
    sex.write_text(POLICY.replace("record-key: id", "record-key: sex"))
    pl.concat([people(), people(), people()]).write_csv(data)
    code, output = run("anonymize", policy, data, "--out", tmp_path / "one", "--key-file", key)
    assert code == 0
    assert "3 on average: intervals are as wide as for 400 records" in output
    policy.write_text(POLICY.replace("l: 3", "l: 2"))
    code, output = run(
        "anonymize", policy, data, "--out", tmp_path / "two", "--key-file", key, "--earlier", tmp_path / "one"
    )
    assert code == 0
    assert "l 3 -> 2" in output
    code, output = run("anonymize", sex, data, "--out", tmp_path / "three", "--key-file", key)
    assert code == 2
    assert "1,200 records of only 1 people" in output
    assert not (tmp_path / "three").exists()
    assert "$.record-key: 1,200 records of only 1 people" in " ".join(run("plan", sex, "--data", data)[1].split())
    assert (
        run("anonymize", sex, data, "--out", tmp_path / "three", "--key-file", key, "--records-per-person", 1200)[0]
        == 0
    )
    code, output = run("anonymize", policy, data, "--out", tmp_path / "x", "--earlier", tmp_path / "nothing")
    assert code == 2
    assert "no release here" in output


def intersections(first: ps.Release, second: ps.Release, truth: pl.DataFrame) -> float:
    """How often a guess among the candidates that both releases show is right, people being known by their age."""
    both = [release.to_polars().sort("age")["ill"].to_list() for release in (first, second)]
    shared = [sorted(set(one) & set(two)) for one, two in zip(*both)]
    values = truth.sort("age")["ill"].to_list()
    return sum((value in left) / len(left) for value, left in zip(values, shared)) / len(values)


def test_another_key_is_noticed_before_anything_is_published(tmp_path: Path, key: Path) -> None:
    """Sticky sets of two keys are two draws: intersecting them is right far more often than 1 in 3."""
    new_key(tmp_path / "wrong")
    known = people().with_columns(age=pl.int_range(400))
    january = ps.anonymize(known, POLICY, tmp_path / "january", key_file=key, warn=lambda said: None)
    again = ps.anonymize(known, POLICY, key_file=key, earlier=january, warn=lambda said: None)
    with pytest.raises(ps.RiskError, match="the key is not that of the earlier release") as refused:
        ps.anonymize(known, POLICY, tmp_path / "r", key_file=tmp_path / "wrong", earlier=january)
    assert not (tmp_path / "r").exists()
    reported: list[str] = []
    accepted = ps.anonymize(
        known, POLICY, key_file=tmp_path / "wrong", earlier=january, accept_risk=True, warn=reported.append
    )
    assert any("another key" in text for text in reported)
    assert intersections(january, again, known) == pytest.approx(1 / 3)
    measured = intersections(january, accepted, known)
    success = int(str(refused.value).split("right in about ")[1].split("%")[0]) / 100
    assert measured > 0.6
    assert success == pytest.approx(measured, abs=0.06)


def test_a_release_says_which_key_it_has_and_nothing_of_the_key(tmp_path: Path, key: Path) -> None:
    checks = {published(key).manifest.key_check for _ in range(2)}
    new_key(tmp_path / "other")
    other = published(tmp_path / "other").manifest
    (check,) = checks
    assert check != other.key_check
    assert check not in key.read_text(encoding="ascii")
    assert published(None).manifest.key_check == ""
    ps.anonymize(people(), POLICY, tmp_path / "r", key_file=key, warn=lambda said: None)
    assert ps.Release.open(tmp_path / "r").manifest.key_check == check


def test_an_older_release_does_not_say_its_key_and_that_is_said(key: Path) -> None:
    earlier = published(key)
    older = replace(earlier, manifest=replace(earlier.manifest, key_check=""))
    reported: list[str] = []
    ps.anonymize(people(), POLICY, key_file=key, earlier=older, warn=reported.append)
    assert any("does not say with which key" in text for text in reported)
